"""The real supervisor with toy children: deaths, restarts, ends."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shared_memory import nothing_is_left
from toy_appliance import connect

from appliance.supervisor.folder import CLEAN_NAME, LOCK_NAME
from tests.descriptors import readable

ROOT = Path(__file__).parents[2]
CONTROL, IOPROC, NETPROC = 0, 1, 2


class Appliance:
    """One running toy appliance; every wait has a deadline far above what it takes."""

    def __init__(self, folder: Path, *, ready: bool = True, **options):
        arguments = [f"{key}={json.dumps(value)}" for key, value in options.items()]
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("toy_appliance.py")), folder, *arguments],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.connection = None
        if ready:
            self.greet()

    def greet(self):
        """Wait until it is ready, and connect."""
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.address = json.loads(line)["address"]
        self.reconnect()

    def reconnect(self):
        self.hang_up()
        self.connection = connect(self.address)
        self.lines = self.connection.makefile("r")

    def hang_up(self):
        if self.connection:
            self.lines.close()
            self.connection.close()
            self.connection = None

    def call(self, line: str):
        """One line's answer; a connection cut by the death of a netproc is made again."""
        while True:
            try:
                self.connection.sendall(f"{line}\n".encode())
                answer = self.lines.readline()
                if answer:
                    return json.loads(answer)
            except OSError:
                pass
            self.reconnect()

    def tell(self, line: str):
        self.connection.sendall(f"{line}\n".encode())

    def who(self, name: str):
        return self.call("who")[name]

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        who = self.call("who")
        self.pids = {n: row["pid"] for n, row in who.items() if isinstance(row, dict)}
        os.kill(self.pids[name], number)
        return self.pids[name]

    def until(self, name: str, generation: int):
        """The row of `name` once that generation is ready."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            row = self.who(name)
            if row["generation"] >= generation and row["state"] == "ready":
                return row
            time.sleep(0.01)
        raise AssertionError(f"{name} is {row}")

    def end(self, *signals: int) -> tuple[int, list[str]]:
        """Send the signals; exit code and the lines of the log."""
        for number in signals:
            self.process.send_signal(number)
        _, log = self.process.communicate(timeout=30)
        return self.process.returncode, log.splitlines()

    @property
    def clean(self) -> bool:
        return (self.folder / CLEAN_NAME).exists()


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(**options) -> Appliance:
        appliance = Appliance(tmp_path, **options)
        started.append(appliance)
        return appliance

    yield begin
    for appliance in started:
        appliance.hang_up()
        if appliance.process.poll() is None:
            appliance.process.kill()
        appliance.process.stdout.close()
        appliance.process.wait(timeout=20)
        appliance.process.stderr.close()
    assert nothing_is_left()


@pytest.mark.parametrize(("name", "kind"), [("ioproc-0", IOPROC), ("control", CONTROL)])
def test_killed_child_comes_back_with_new_generation_and_empty_rings(start, name, kind):
    appliance = start()
    untouched = {n: appliance.who(n)["pid"] for n in ("ioproc-0", "netproc-0", "control")}
    for generation in (2, 3):
        assert "payload" in appliance.call(f"ask {kind} 0")
        killed = appliance.kill(name)
        row = appliance.until(name, generation)
        assert row["pid"] != killed
        answer = appliance.call(f"ask {kind} 0")
        assert answer == {
            "generation": generation if kind == IOPROC else 0,
            "payload": "cba" if kind == CONTROL else "",
        }
    for other in untouched.keys() - {name}:
        assert appliance.who(other)["pid"] == untouched[other]
    assert appliance.call("who")["metadata"] == 5


def test_what_was_asked_of_a_dead_peer_is_reported_lost(start):
    appliance = start()
    pid = appliance.kill("ioproc-0", signal.SIGSTOP)
    appliance.tell("ask 1 0")
    os.kill(pid, signal.SIGKILL)
    assert json.loads(appliance.lines.readline()) == {"lost": "ioproc-0"}


def test_connections_wait_at_the_door_while_a_netproc_is_replaced(start):
    appliance = start()
    appliance.kill("netproc-0", signal.SIGKILL)
    appliance.reconnect()  # never refused: the supervisor holds the socket
    assert appliance.until("netproc-0", 2)
    assert appliance.call("ask 1 0") == {"generation": 1, "payload": ""}
    assert appliance.call("ask 0 0") == {"generation": 0, "payload": "cba"}


def test_exception_in_a_child_is_its_last_word_in_the_log(start):
    appliance = start()
    appliance.tell("crash")
    appliance.until("netproc-0", 2)
    _, log = appliance.end(signal.SIGTERM)
    assert any("child-died" in line and "RuntimeError: asked to crash" in line for line in log)


def test_an_exception_that_ends_a_thread_ends_its_process_and_is_told(start):
    appliance = start()
    appliance.tell("thread")
    appliance.until("netproc-0", 2)
    _, log = appliance.end(signal.SIGTERM)
    said = [line for line in log if "child-died" in line]
    assert len(said) == 1 and "thread sync-0: OSError: [Errno 9]" in said[0]
    assert "restart_in_ms=0" in said[0]
    assert any("Traceback" in line for line in log)


def test_children_die_with_a_killed_supervisor_and_the_folder_is_free_again(start):
    appliance = start()
    doors = [
        os.pidfd_open(appliance.who(name)["pid"]) for name in ("control", "ioproc-0", "netproc-0")
    ]
    appliance.hang_up()
    appliance.process.kill()
    for door in doors:
        assert readable(door, 20)
        os.close(door)
    successor = start()
    assert successor.call("who")["clean"] is False
    assert successor.end(signal.SIGTERM)[0] == 0


def test_orderly_end_writes_the_marker_last_and_the_next_start_takes_it(start):
    appliance = start(netprocs=2, ioprocs=2)
    code, log = appliance.end(signal.SIGTERM)
    assert code == 0, log
    ended = (appliance.folder / "ended").read_text().split()
    assert sorted(ended[:2]) == ["netproc-0", "netproc-1"]
    assert sorted(ended[2:4]) == ["ioproc-0", "ioproc-1"]
    assert ended[4:] == ["control"]
    assert appliance.clean
    successor = start()
    assert successor.call("who")["clean"] is True
    assert not successor.clean
    successor.kill("netproc-0")
    successor.until("netproc-0", 2)
    assert successor.call("who")["clean"] is False


def test_a_member_of_a_cluster_leaves_it_before_anything_ends(start, tmp_path):
    (tmp_path / "member").write_text("leaves")
    appliance = start()
    code, log = appliance.end(signal.SIGTERM)
    assert code == 0, log
    ended = (appliance.folder / "ended").read_text().split()
    assert ended == ["left", "netproc-0", "ioproc-0", "control"]


def test_who_does_not_leave_its_cluster_is_not_waited_for_for_ever(start, tmp_path):
    (tmp_path / "member").write_text("stays")
    appliance = start(leave_seconds=0.2)
    code, log = appliance.end(signal.SIGTERM)
    assert code == 0, log
    assert (appliance.folder / "ended").read_text().split() == ["netproc-0", "ioproc-0", "control"]


def test_no_marker_when_an_ioproc_does_not_end_in_time(start):
    appliance = start(ioproc_drain_seconds=0.2)
    appliance.kill("ioproc-0", signal.SIGSTOP)
    code, log = appliance.end(signal.SIGINT)
    assert code == 1
    assert not appliance.clean
    assert "not everything was flushed" in log[-1]


def test_signal_before_ready_ends_in_order_but_not_clean(start, tmp_path):
    (tmp_path / "crash-ioproc-0").touch()
    appliance = start(ready=False, crash_limit=1000)
    for line in appliance.process.stderr:
        if "restart_in_ms=400" in line:
            break
    code, log = appliance.end(signal.SIGTERM)
    assert code == 1
    assert (tmp_path / "ended").read_text().split() == ["netproc-0", "control"]
    assert "not everything was flushed" in log[-1]
    assert not appliance.clean


@pytest.mark.parametrize("name", ["control", "ioproc-0"])
def test_who_had_not_begun_leaves_no_marker_and_nothing_is_lost(start, tmp_path, name):
    (tmp_path / f"unbegun-{name}").touch()
    appliance = start()
    code, log = appliance.end(signal.SIGTERM)
    assert code == 0
    assert "clean=no" in log[-1] and "it had not begun" in log[-1]
    assert not appliance.clean


def test_ioproc_that_dies_while_draining_leaves_no_marker(start):
    appliance = start()
    appliance.kill("netproc-0", signal.SIGSTOP)
    ioproc = appliance.pids["ioproc-0"]
    appliance.process.send_signal(signal.SIGTERM)
    for line in appliance.process.stderr:
        if "draining" in line:
            break
    os.kill(ioproc, signal.SIGKILL)
    os.kill(appliance.pids["netproc-0"], signal.SIGCONT)
    assert appliance.end()[0] == 1
    assert not appliance.clean


def test_second_signal_ends_at_once(start):
    appliance = start(netproc_drain_seconds=60)
    appliance.kill("netproc-0", signal.SIGSTOP)
    appliance.process.send_signal(signal.SIGTERM)
    for line in appliance.process.stderr:
        if "draining" in line:
            break
    while appliance.process.poll() is None:  # until one is late enough to be a second wish
        appliance.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            appliance.process.wait(timeout=0.1)
    # A third one may meet a process that has nothing left to do but to exit.
    assert appliance.process.returncode in (1, -signal.SIGTERM)
    assert not appliance.clean


@pytest.mark.parametrize("name", ["netproc-0", "netproc-1"])
def test_crash_loop_isolates_one_and_the_others_serve(start, tmp_path, name):
    (tmp_path / f"crash-{name}").touch()
    appliance = start(netprocs=2, crash_limit=3)
    for _ in range(20):
        appliance.reconnect()
        assert appliance.call("ask 1 0") == {"generation": 1, "payload": ""}
    assert appliance.who(name)["state"] == "down"
    code, log = appliance.end(signal.SIGTERM)
    assert code == 0
    why = [line for line in log if "child-isolated" in line]
    assert len(why) == 1
    assert f"{name} died 3 times" in why[0]
    assert f"RuntimeError: poisoned {name}" in why[0]


def rests(appliance, name):
    """Let it die again and again, until the supervisor says that it rests."""
    (appliance.folder / f"crash-{name}").touch()
    appliance.kill(name)
    for line in appliance.process.stderr:
        if "child-rests" in line:
            break
    assert f"RuntimeError: poisoned {name}" in line and f"{name} died 3 times" in line


@pytest.mark.parametrize("member", [False, True])
@pytest.mark.parametrize("name", ["control", "ioproc-1"])
def test_without_one_that_nobody_replaces_the_others_serve_and_it_is_tried_again(
    start, tmp_path, name, member
):
    """A node of a cluster, too: without control it finds itself isolated."""
    if member:
        (tmp_path / "member").write_text("leaves")
    appliance = start(ioprocs=2, crash_limit=3, crash_window_seconds=1.5)
    generation = appliance.who(name)["generation"]
    rests(appliance, name)
    assert appliance.call("ask 1 0") == {"generation": 1, "payload": ""}
    (tmp_path / f"crash-{name}").unlink()
    appliance.until(name, generation + 3)
    code, _ = appliance.end(signal.SIGTERM)
    assert code == 0


@pytest.mark.parametrize("name", ["netproc-0", "ioproc-0"])
def test_the_last_one_of_its_kind_rests_and_is_tried_again(start, tmp_path, name):
    """Its cause may pass, and everything else goes on."""
    appliance = start(crash_limit=3, crash_window_seconds=1.5)
    control = appliance.who("control")["pid"]
    rests(appliance, name)
    (tmp_path / f"crash-{name}").unlink()
    assert "pid" in appliance.until(name, 4)
    assert appliance.who("control")["pid"] == control
    assert "payload" in appliance.call("ask 1 0")
    code, _ = appliance.end(signal.SIGTERM)
    assert code == 0


def test_a_member_of_a_cluster_that_cannot_go_on_hangs_up_before_it_flushes(start, tmp_path):
    """Others lead when its connections are closed: nobody waits for answers that do not come."""
    (tmp_path / "member").write_text("stays")
    appliance = start(crash_limit=3, netproc_drain_seconds=600)
    appliance.kill("netproc-0", signal.SIGSTOP)
    (tmp_path / "hopeless-control").touch()
    os.kill(appliance.pids["control"], signal.SIGKILL)
    code, _ = appliance.end()
    assert code == 1
    assert (tmp_path / "ended").read_text().split() == ["ioproc-0"]


@pytest.mark.parametrize("netprocs", [1, 2])
def test_the_last_netproc_rests_at_the_first_start_too(start, tmp_path, netprocs):
    for index in range(netprocs):
        (tmp_path / f"crash-netproc-{index}").touch()
    appliance = start(ready=False, netprocs=netprocs, crash_limit=3, crash_window_seconds=1.5)
    for line in appliance.process.stderr:
        if "child-rests" in line:
            break
    names = [f"netproc-{index}" for index in range(netprocs)]
    last = next(name for name in names if f"RuntimeError: poisoned {name}" in line)
    assert f"{last} died 3 times" in line
    (tmp_path / f"crash-{last}").unlink()
    appliance.greet()
    assert appliance.who(last)["state"] == "ready"
    assert appliance.call("ask 1 0") == {"generation": 1, "payload": ""}
    code, _ = appliance.end(signal.SIGTERM)
    assert code == 0


@pytest.mark.parametrize(
    "wrong", ["crash-control", "crash-ioproc-0", "hopeless-netproc-0", "hopeless-control"]
)
def test_appliance_that_cannot_go_on_ends_with_the_cause_as_last_line(start, tmp_path, wrong):
    (tmp_path / wrong).touch()
    appliance = start(ready=False, crash_limit=3)
    code, log = appliance.end()
    assert code == 1
    how, _, name = wrong.partition("-")
    assert (f"RuntimeError: poisoned {name}" if how == "crash" else wrong.replace("-", " ", 1)) in (
        log[-1]
    )
    assert not appliance.clean


def test_second_start_is_refused_by_the_lock(start, tmp_path):
    appliance = start()
    second = start(ready=False)
    code, log = second.end()
    assert code == 2
    assert f"in use by the process {appliance.process.pid}" in log[-1]
    assert (tmp_path / LOCK_NAME).read_text().strip() == str(appliance.process.pid)


def test_port_in_use_is_refused_though_both_would_reuse_it(start, tmp_path):
    appliance = start()
    other = tmp_path / "other"
    other.mkdir()
    (other / CLEAN_NAME).touch()
    port = int(appliance.address.rpartition(":")[2])
    second = Appliance(other, ready=False, port=port)
    code, log = second.end()
    second.process.stdout.close()
    assert code == 2
    assert f"127.0.0.1:{port} is in use" in log[-1]
    assert second.clean, "a start that never began leaves the folder as it was"


@pytest.mark.parametrize("damage", ["garbage", "jump"])
def test_writer_of_garbage_is_replaced_and_its_peer_lives(start, damage):
    appliance = start()
    before = appliance.who("ioproc-0")["pid"]
    appliance.tell(damage)
    appliance.until("netproc-0", 2)
    assert appliance.who("ioproc-0")["pid"] == before
    assert appliance.call("ask 1 0") == {"generation": 1, "payload": ""}
    _, log = appliance.end(signal.SIGTERM)
    assert len([line for line in log if "ring-broken" in line]) == 1


def test_wedged_child_is_killed_and_replaced(start):
    appliance = start(wedged_seconds=0.5)
    stopped = appliance.kill("ioproc-0", signal.SIGSTOP)
    assert appliance.until("ioproc-0", 2)["pid"] != stopped


def test_peer_that_keeps_the_rings_of_a_dead_one_is_killed_too(start):
    appliance = start(confirm_seconds=0.2)
    appliance.kill("ioproc-0", signal.SIGSTOP)
    appliance.kill("netproc-0")
    appliance.until("netproc-0", 2)
    appliance.until("ioproc-0", 2)
    assert appliance.call("ask 1 0") == {"generation": 2, "payload": ""}
