"""docs/testing.md: its tests run as they stand, its variables are those that are set, its Java
program talks to an appliance of `penstock run`; and what else that command promises."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_INVALID, TopicPartition

from benchmarks import kafka
from penstock.local import Appliance, ApplianceError
from penstock.variables import NAMES
from tests.console_process import PENSTOCK

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text()
DAY_MS = 86_400_000


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def put_away(tmp_path):
    """An environment whose temporary folder is empty, and where ours are found."""
    home = tmp_path / "temporary"
    home.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"TMPDIR": str(home), "PYTHONPATH": str(ROOT), "PATH": path}


@pytest.mark.timeout(300)  # seven tests with processes of their own
def test_its_tests_run_as_they_stand(tmp_path, put_away):
    (tmp_path / "test_page.py").write_text("\n\n".join(blocks("python")))
    (tmp_path / "pyproject.toml").write_text("".join(blocks("toml")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "penstock.pytest_plugin", "-p",
         "no:cacheprovider", "test_page.py"],
        cwd=tmp_path, env=put_away, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{''.join(blocks('python')).count('def test_')} passed" in done.stdout


def test_the_clock_goes_ahead_in_all_processes_and_stays_so(fresh_appliance):
    """What a record gets for its time is the broker's clock's."""
    one = fresh_appliance()
    one.connect().create_topic("stamped", 1, message_timestamp_type="LogAppendTime")
    began_ms = time.time_ns() // 1_000_000

    def stamped():
        link = one.connect()
        with link.producer() as producer:
            producer.produce("stamped", b"now")
        *_, last = link.read("stamped")
        return last.timestamp()[1] - began_ms

    assert 0 <= stamped() < DAY_MS
    one.advance(days=3)
    assert 3 * DAY_MS <= stamped() < 4 * DAY_MS
    one.kill()
    one.start()
    one.advance(hours=24)
    assert 4 * DAY_MS <= stamped() < 5 * DAY_MS
    assert "clock-of-a-test" in one.log_text()
    assert "clock-jumped-ahead" not in one.log_text()


def test_what_is_kept_for_a_time_is_old_then_and_what_lasts_goes_on(fresh_appliance):
    one = fresh_appliance(offsets_retention_check_interval_ms=100)
    link = one.connect()
    link.create_topic("orders", 1)
    place = TopicPartition("orders", 0, 7)
    with closing(link.consumer(group_id="gone")) as consumer:
        consumer.commit(offsets=[place], asynchronous=False)
        with link.producer(transactional_id="copier") as producer:
            producer.init_transactions(60)
            producer.begin_transaction()
            producer.produce("orders", b"held")
            producer.flush(60)
            one.advance(days=8)
            until = time.monotonic() + 60
            while (found := consumer.committed([place], 60)[0].offset) != OFFSET_INVALID:
                assert found == 7 and time.monotonic() < until
                time.sleep(0.02)
            producer.commit_transaction(60)  # its timeout is a minute, and has not passed
    assert [message.value() for message in link.read("orders")] == [b"held"]


def test_a_clock_that_is_the_machines_is_not_turned(appliance):
    with pytest.raises(ApplianceError, match="fresh_appliance"):
        appliance.advance(days=1)
    assert "clock-of-a-test" not in appliance.log_text()


def test_a_clock_that_is_not_there_is_said_at_the_start(tmp_path):
    env = os.environ | {"PENSTOCK_TEST_CLOCK": str(tmp_path / "none")}
    words = ("up", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    done = subprocess.run(
        [*PENSTOCK, *words], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "PENSTOCK_TEST_CLOCK in the environment: " in done.stderr and "unset it" in done.stderr


OF_A_WORKER = """
import os

def test_a_topic_of_the_same_name(appliance):
    link = appliance.connect()
    link.create_topic("orders", 1)  # refused where another worker has made it
    with link.producer() as producer:
        producer.produce("orders", b"one")
    assert [message.value() for message in link.read("orders")] == [b"one"]

def test_the_rest(appliance, new_topic, fresh_appliance, kill_process):
    assert new_topic() != new_topic()
    own = fresh_appliance()
    assert own.bootstrap != appliance.bootstrap
    kill_process(appliance, "io")
    assert own.connect().admin().list_topics(timeout=30).topics == {}
    with open(os.environ["PYTEST_XDIST_WORKER"], "w") as told:
        print(appliance.bootstrap, *appliance.pids(), *own.pids(), file=told)
"""


@pytest.mark.timeout(300)  # four appliances
def test_each_worker_of_xdist_has_its_own(tmp_path, put_away):
    pytest.importorskip("xdist")
    for name in ("one", "other"):  # a file for each worker
        (tmp_path / f"test_{name}.py").write_text(OF_A_WORKER)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "penstock.pytest_plugin", "-p",
         "no:cacheprovider", "-n", "2", "--dist", "loadfile"],
        cwd=tmp_path, env=put_away, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    told = [(tmp_path / worker).read_text().split() for worker in ("gw0", "gw1")]
    assert told[0][0] != told[1][0], "one appliance for both"
    for pid in (*told[0][1:], *told[1][1:]):
        assert not Path(f"/proc/{pid}").exists(), "left behind"


def test_the_plugin_is_declared_once_and_loads_nothing_for_who_does_not_use_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (named,) = project["entry-points"]["pytest11"].items()
    assert named == ("penstock.pytest_plugin", "penstock.pytest_plugin")
    heavy = "{'penstock.local', 'penstock.client', 'confluent_kafka', 'subprocess'}"
    asks = f"import sys, pytest; b = set(sys.modules); import {named[1]}; "
    told = f"print(sorted({heavy} & (set(sys.modules) - b)))"
    done = subprocess.check_output([sys.executable, "-c", asks + told], cwd=ROOT, text=True)
    assert done.strip() == "[]"


def test_its_variables_are_those_that_are_set(tmp_path):
    assert dict(re.findall(r"^\| `([A-Z_]+)` \| (.*) \|$", PAGE, re.MULTILINE)) == NAMES
    assert set(Appliance(tmp_path / "none", port=9092).environment().values()) == {"127.0.0.1:9092"}


def test_its_command_runs_as_it_stands_and_leaves_nothing(put_away):
    (typed,) = blocks("sh")
    assert typed.count("penstock ") == 3
    typed = typed.replace("penstock ", f"{' '.join(PENSTOCK)} ")
    done = subprocess.run(
        ["bash", "-ec", typed], env=put_away, capture_output=True, text=True, timeout=110,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["1", "2", "3", "4", "5"]
    assert os.listdir(put_away["TMPDIR"]) == []


def test_its_java_program_talks_to_it(tmp_path, put_away):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    if shutil.which("javac") is None:
        pytest.skip("no JDK")
    (program,) = blocks("java")
    (tmp_path / "Orders.java").write_text(program)
    java = ("java", "-cp", f"{kafka.libs()}/*", str(tmp_path / "Orders.java"))
    done = subprocess.run(
        [*PENSTOCK, "run", "-t", "orders", "--", *java],
        env=put_away, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"order {number}" for number in range(5)]


SCRIPT = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", os.environ["PENSTOCK_BOOTSTRAP"], flush=True)
signal.sigwait([signal.SIGUSR1])
print("heard")
sys.exit(7)
"""


def test_signals_and_the_exit_code_are_the_commands(tmp_path, put_away):
    kept = tmp_path / "kept"
    words = ("run", "--data", str(kept), "-t", "here", "--", sys.executable, "-c", SCRIPT)
    with subprocess.Popen(
        [*PENSTOCK, *words], env=put_away, stdout=subprocess.PIPE, text=True
    ) as one:
        try:
            assert one.stdout.readline().startswith("ready 127.0.0.1:")
            one.send_signal(signal.SIGUSR1)
            assert one.communicate(timeout=60)[0] == "heard\n"
        finally:
            one.terminate()  # where that failed, nothing waits for it until the test's timeout
    assert one.returncode == 7
    assert (kept / "here-0").is_dir(), "what is named stays"
    again = (*PENSTOCK, "run", "--data", str(kept), "-t", "here", "--", "sh", "-c", "kill -9 $$")
    assert subprocess.run(again, env=put_away, check=False).returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--", "no-such-command-here"), 127, "no-such-command-here: No such file"),
        (("-t", "a:0", "--", "true"), 2, "is not NAME[:PARTITIONS]"),
        (("-o", "num.partitions=x", "--", "true"), 2, "num.partitions"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(put_away, words, code, said):
    done = subprocess.run(
        [*PENSTOCK, "run", *words], env=put_away, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert said in done.stderr.splitlines()[0]
    assert os.listdir(put_away["TMPDIR"]) == []
