"""`penstock up` from outside: ready, refusing, ending, and what it leaves behind."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.local import Appliance, ApplianceError

UP = [sys.executable, "-m", "console", "up"]


def up(tmp_path, *args):
    return subprocess.run(
        [*UP, "--data", str(tmp_path / "data"), *args],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_it_serves_says_where_and_ends_in_order(fresh_appliance):
    one = fresh_appliance()
    with socket.create_connection(("127.0.0.1", one.port), 5):
        pass
    assert len(one.pids()) >= 4
    assert one.stop() == 0
    said = one.log_text()
    for words in ("ready in", one.bootstrap, str(one.data_dir), "cluster id"):
        assert words in said
    assert "Try" not in said, "a file cannot try anything"
    assert (one.data_dir / ".kafka_cleanshutdown").exists()


ELSEWHERE = """
import os, runpy, sys
here = os.uname()
os.uname = lambda: os.uname_result((*here[:4], "aarch64"))
sys.argv[0] = "penstock"
runpy.run_module("console", run_name="__main__")
"""


def test_on_another_processor_it_refuses_before_it_makes_anything(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, "up", "--data", str(tmp_path / "data")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode not in (0, None) and "Traceback" not in result.stderr
    assert "this processor is aarch64" in result.stderr and "x86-64 host" in result.stderr
    assert not list((tmp_path / "data").rglob("*")), "nothing is formatted"


def test_it_comes_back_on_the_same_port_with_the_same_cluster(fresh_appliance):
    one = fresh_appliance()
    identity, port = (one.data_dir / "meta.properties").read_bytes(), one.port
    one.kill()
    assert not (one.data_dir / ".kafka_cleanshutdown").exists()
    one.start()
    one.restart()
    assert (one.data_dir / "meta.properties").read_bytes() == identity
    assert one.port == port


def test_ctrl_c_ends_it_in_order(fresh_appliance):
    one = fresh_appliance()
    os.kill(one.pid, signal.SIGINT)
    assert one._process.wait(60) == 0
    assert "ended clean=yes" in one.log_text()


def test_one_wish_that_comes_as_two_signals_ends_it_in_order(fresh_appliance):
    """As `timeout` does it: the process, then its group."""
    one = fresh_appliance()
    os.kill(one.pid, signal.SIGTERM)
    os.kill(one.pid, signal.SIGINT)
    assert one._process.wait(60) == 0
    assert "ended clean=yes" in one.log_text()


def _until(fd, words):
    """What a terminal shows up to `words`."""
    shown = b""
    while words not in shown:
        shown += os.read(fd, 4096)
    return shown.decode()


@pytest.mark.parametrize("way", ["path", "module", "found"])
def test_what_to_try_is_the_command_as_it_was_called(tmp_path, way):
    program = Path(sys.executable).with_name("penstock")
    if not program.exists():
        pytest.skip("the command is not installed beside this interpreter")
    words, env = [os.path.relpath(program, tmp_path)], dict(os.environ)
    if way == "module":
        words = UP[:-1]
    elif way == "found":
        words, env["PATH"] = ["penstock"], f"{program.parent}:{env['PATH']}"
    screen, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            [*words, "up", "--listen", "127.0.0.1:0"], stderr=terminal, cwd=tmp_path, env=env
        ) as one:
            try:
                shown = _until(screen, b"Ctrl-C ends it in order.")
            finally:
                one.send_signal(signal.SIGINT)
                _until(screen, b"ended clean")
        assert one.returncode == 0
    finally:
        os.close(screen)
        os.close(terminal)
    assert f"  {' '.join(words)} topic create hello -b 127.0.0.1:" in shown
    assert f"echo world | {' '.join(words)} produce hello" in shown


def test_the_journal_gets_an_event_and_nothing_to_try(tmp_path):
    ours, theirs = os.pipe()
    stream = os.fstat(theirs)
    env = os.environ | {"JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}"}
    with subprocess.Popen(
        [*UP, "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0"], stderr=theirs, env=env
    ) as one:
        os.close(theirs)
        shown = _until(ours, b"event=ready")
        one.send_signal(signal.SIGTERM)
        with os.fdopen(ours) as rest:
            shown += rest.read()
    assert one.returncode == 0
    assert "Try" not in shown
    assert all(re.match(r"<\d>event=\S+ process=", line) for line in shown.splitlines())
    assert re.search(r"event=ready process=supervisor took_ms=\d+ listens_on=127.0.0.1:\d+", shown)


def test_the_journal_takes_a_start_that_fails_for_an_error(tmp_path):
    with (tmp_path / "journal").open("w+") as journal:
        stream = os.fstat(journal.fileno())
        env = os.environ | {"JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}"}
        for words in (["-o", "num.partitions=many"], ["--no-such-flag"]):
            done = subprocess.run([*UP, *words], cwd=tmp_path, stderr=journal, env=env, check=False)
            assert done.returncode == 2
    told = (tmp_path / "journal").read_text().splitlines()
    assert told and all(line.startswith("<3>") for line in told), told
    assert "num.partitions" in told[0] and any("--no-such-flag" in line for line in told)
    done = subprocess.run(
        [*UP, "-o", "num.partitions=many"], cwd=tmp_path, env=env, check=False, text=True,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert done.stderr.startswith("penstock: "), "somebody else reads it"


def test_settings_reach_it(fresh_appliance):
    one = fresh_appliance(penstock_net_processes=2, penstock_io_processes=2)
    assert len(one.pids()) == 1 + 2 + 2 + 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-o", "num.partitions=0"], ["num.partitions", "value 0", "from 1 to"]),
        (["-o", "nonsense"], ["nonsense", "KEY=VALUE"]),
        (["--listen", "9092"], ["9092", "HOST:PORT"]),
        (["--listen", "127.0.0.1:65536"], ["65536"]),
        (["--config", "missing.properties"], ["missing.properties", "No such file"]),
        (["-o", "listeners=SSL://localhost:0"], ["SSL", "ssl.keystore.location"]),
        (["--no-such-option"], ["--no-such-option"]),
    ],
)
def test_a_wrong_command_line_is_refused_with_cause_and_code_2(tmp_path, args, words):
    result = up(tmp_path, *args)
    assert result.returncode == 2
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr
    assert "Traceback" not in result.stderr


def test_a_port_in_use_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = up(tmp_path, "--listen", f"127.0.0.1:{port}")
    assert result.returncode == 1
    assert f"127.0.0.1:{port} is in use" in result.stderr.splitlines()[-1]


def test_a_folder_in_use_is_named(fresh_appliance):
    one = fresh_appliance()
    result = up(one.data_dir.parent, "--listen", "127.0.0.1:0")
    assert result.returncode == 1
    assert f"{one.data_dir} is in use by the process {one.pid}" in result.stderr


def test_a_second_one_in_a_folder_is_refused_in_a_sentence_and_leaves_the_log_alone(
    fresh_appliance,
):
    one = fresh_appliance()
    before = one.log_text()
    with pytest.raises(ApplianceError) as told:
        Appliance(one.data_dir).start()
    assert str(told.value) == f"{one.data_dir} is in use by process {one.pid}"
    assert one.log_text() == before


def test_why_one_did_not_start_is_told_without_what_was_said_before(fresh_appliance):
    one = fresh_appliance()
    one.stop()
    with pytest.raises(ApplianceError) as told:
        one.start(num_partitions=0)
    assert "num.partitions" in str(told.value)
    assert "ready in" not in str(told.value)


def test_a_folder_that_cannot_be_made_is_named():
    result = subprocess.run(
        [*UP, "--data", "/proc/nothing/here"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert "/proc/nothing" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_of_a_kafka_user_is_taken_and_unknown_keys_are_warned_about(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("process.roles=broker,controller\nnode.id=7\nnum.partition=3\n")
    file.write_text(file.read_text() + "log.dirs=" + str(tmp_path / "logs") + "\n")
    process = subprocess.Popen(
        [*UP, "--config", str(file), "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if "cluster id" in line:
                break
        (where,) = [line for line in said if "listens on" in line]
        ports = re.findall(r"127\.0\.0\.1:(\d+)", where)
        assert len(set(ports)) == 2, "each listener is told by the port that it really has"
        for port in ports:
            socket.create_connection(("127.0.0.1", int(port)), 5).close()
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(60) == 0
    finally:
        process.stderr.close()
        if process.poll() is None:
            process.kill()
    assert any("num.partition is not known" in line and "num.partitions" in line for line in said)
    assert "node.id=7" in (tmp_path / "logs" / "meta.properties").read_text()


def test_one_that_cannot_start_says_why(fresh_appliance):
    with pytest.raises(ApplianceError, match=r"num\.partitions"):
        fresh_appliance(num_partitions=0)


def test_localhost_is_both_loopback_addresses_and_each_listener_has_a_name(monkeypatch):
    from appliance.config.broker import BrokerConfig
    from console.model.local import listening as module
    from tests.config.loading import load

    monkeypatch.setattr(module, "_has_ipv6_loopback", lambda: True)
    found = module.listeners(("localhost:9092", "[::]:9093"), BrokerConfig())
    broker, warnings = load(None, found)
    assert [(one.host, one.port) for one in broker.endpoints()] == [
        ("localhost", 9092),
        ("::1", 9092),
        ("::", 9093),
    ]
    assert not warnings
    monkeypatch.setattr(module, "_has_ipv6_loopback", lambda: False)
    alone = module.listeners(("localhost:9092",), BrokerConfig())
    assert alone["listeners"] == "PLAINTEXT://localhost:9092"
    voters = {"controller.quorum.voters": "1@a:9093,2@b:9093", "controller.listener.names": "C"}
    several = BrokerConfig.of({**voters, "listeners": "PLAINTEXT://:1,C://[::]:9093"})
    found = module.listeners(("localhost:9092",), several)
    assert found["listeners"] == "PLAINTEXT://localhost:9092,C://[::]:9093"


def test_where_it_listens_can_be_pasted():
    from console.model.local.listening import address

    assert address("::1", 9092) == "[::1]:9092"
    assert address("localhost", 9092) == "localhost:9092"


def test_a_folder_of_another_node_is_refused_at_once(fresh_appliance):
    one = fresh_appliance()
    one.stop()
    result = up(one.data_dir.parent, "--listen", "127.0.0.1:0", "-o", "node.id=5")
    assert result.returncode == 2
    assert "node.id=1" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    (one.data_dir / "meta.properties").write_text("garbage")
    result = up(one.data_dir.parent, "--listen", "127.0.0.1:0")
    assert result.returncode == 2
    assert "meta.properties" in result.stderr.splitlines()[-1]


def test_partitions_without_an_identity_are_not_formatted_over(tmp_path):
    (tmp_path / "data" / "orders-0").mkdir(parents=True)
    result = up(tmp_path, "--listen", "127.0.0.1:0")
    assert result.returncode == 2
    assert "orders-0" in result.stderr
    assert not (tmp_path / "data" / "meta.properties").exists()


def test_a_descriptor_that_is_not_open_is_refused(tmp_path):
    assert "77" in up(tmp_path, "--ready-fd", "77").stderr
    assert not (tmp_path / "data").exists()


def test_damaged_metadata_ends_the_start_with_the_cause(fresh_appliance):
    one = fresh_appliance()
    one.stop()
    (segment,) = (one.data_dir / "__cluster_metadata-0").glob("*.log")
    damaged = bytearray(segment.read_bytes())
    damaged[-5] ^= 1
    segment.write_bytes(damaged)
    done = up(one.data_dir.parent, "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "damaged at byte" in last
    assert "restore the folder from a copy" in last
    assert segment.read_bytes() == damaged
