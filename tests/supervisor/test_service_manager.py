"""What systemd hears, without a systemd: a socket that listens as it does."""

import os
import signal
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_memory import nothing_is_left
from test_supervisor_processes import Appliance

from appliance.base.ids import TopicId
from appliance.ring.partition_table import OFFLINE, ONLINE, SIZE_BYTES, STATUS
from appliance.ring.process_table import IOPROC, NETPROC, READY, Peer
from appliance.ring.tables import Shape, Tables
from appliance.supervisor.notify import EXTENDED_S, Manager
from appliance.supervisor.service_manager import ServiceManager
from appliance.supervisor.status_line import StatusLine, sized

SECOND = 1_000_000_000
LIMIT_S = 60


class Heard:
    """A service manager's end: one list of lines."""

    def __init__(self, name):
        self.name = name
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._door.bind("\0" + name[1:] if name[0] == "@" else name)
        self._door.settimeout(LIMIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._door.close()

    def now(self):
        """What has been said and not taken yet."""
        found = []
        self._door.setblocking(False)
        try:
            while True:
                found += self._door.recv(4096).decode().splitlines()
        except BlockingIOError:
            return found
        finally:
            self._door.settimeout(LIMIT_S)

    def until(self, wanted):
        """All that was said until a line begins so, that line last."""
        found = []
        while not (found and found[-1].startswith(wanted)):
            found += self._door.recv(4096).decode().splitlines()
        return found


@pytest.fixture
def heard(tmp_path):
    with Heard(str(tmp_path / "notify")) as one:
        yield one


def manager_of(heard, **more):
    return Manager({"NOTIFY_SOCKET": heard.name} | more, 7)


@pytest.mark.parametrize("abstract", [False, True])
def test_states_reach_the_service_manager_in_one_datagram(tmp_path, abstract):
    name = f"@penstock-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with Heard(name) as heard:
        manager_of(heard).send_states("READY=1", "STATUS=well")
        assert heard.until("STATUS") == ["READY=1", "STATUS=well"]


def test_a_manager_that_is_behind_misses_no_state_and_holds_nobody_up(heard):
    manager = manager_of(heard, WATCHDOG_USEC="30000000", WATCHDOG_PID="7")
    said = [f"STATUS={number}" for number in range(40)] + ["READY=1"]
    for one in said:
        manager.send_states(one)
    found = heard.now()
    assert len(found) < len(said), "there is room for few"
    for now_s in range(100, 140):
        manager.lives(now_s * SECOND)
        found += heard.now()
    assert [one for one in found if one != "WATCHDOG=1"] == said


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/at/all"])
def test_without_a_manager_nothing_is_told_and_nothing_breaks(address):
    manager = Manager({"NOTIFY_SOCKET": address}, 7)
    manager.send_states("READY=1")
    assert manager.is_there == (address[:1] == "/")


def test_a_status_is_told_only_when_it_is_another_one(heard):
    manager = manager_of(heard)
    for text in ("starting", "starting", "serving", "serving", "starting"):
        manager.status(text)
    assert heard.now() == ["STATUS=starting", "STATUS=serving", "STATUS=starting"]


def test_the_watchdog_is_fed_three_times_in_its_interval(heard):
    manager = manager_of(heard, WATCHDOG_USEC="30000000", WATCHDOG_PID="7")
    assert manager.feeds_ns == 10 * SECOND
    for now_s in range(100, 131):
        manager.lives(now_s * SECOND)
    assert heard.now() == ["WATCHDOG=1"] * 4


@pytest.mark.parametrize("more", [{}, {"WATCHDOG_USEC": "9", "WATCHDOG_PID": "8"}])
def test_a_watchdog_of_another_process_is_not_fed(heard, more):
    manager = manager_of(heard, **more)
    manager.lives(100 * SECOND)
    assert heard.now() == []


def test_a_start_that_gets_on_may_take_longer(heard):
    manager = manager_of(heard)
    for now_s in (100, 101, 100 + EXTENDED_S):
        manager.gets_on(now_s * SECOND)
    assert heard.now() == [f"EXTEND_TIMEOUT_USEC={EXTENDED_S * 1_000_000}"] * 2


@given(st.integers(0, 1 << 60))
def test_sizes_are_told_with_at_most_four_digits(count):
    number, unit = sized(count).split()
    told = float(number) * 1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)
    assert abs(told - count) <= count / 20
    assert float(number) <= 1024


class Told:
    """Tables of an appliance, and what is said of them a second later each time."""

    def __init__(self):
        shape = Shape(1, 1, 16, 11)
        self.tables = Tables(memoryview(bytearray(Tables.bytes_needed(shape))), shape)
        self.standing = StatusLine(self.tables)
        self.now_ns = 0
        for peer in self.tables.processes.peers:
            self.tables.processes.occupy(peer)
            self.tables.processes.set_state(peer, READY)

    def line(self, *, ready=True):
        self.now_ns += 3600 * SECOND
        return self.standing.line(self.now_ns, ready=ready)


def test_a_line_tells_how_an_appliance_stands():
    told = Told()
    processes, partitions = told.tables.processes, told.tables.partitions
    assert told.line(ready=False) == "starting"
    rows = [partitions.add(TopicId(bytes([n]) * 16), 0) for n in (1, 2)]
    partitions.set(rows[0], STATUS, ONLINE)
    assert told.line(ready=False) == "starting: 1 of 2 partitions are open"
    partitions.set(rows[1], STATUS, ONLINE)
    partitions.set(rows[1], SIZE_BYTES, 1300 << 20)
    told.tables.clients.rows[0].claim("127.0.0.1", "PLAINTEXT", 1)
    assert told.line() == "serving 2 topics, 1 client, 1.3 GiB"
    processes.set_without_room(Peer(IOPROC, 0), 1)
    processes.set_nodes(3, 1)
    processes.set_state(Peer(NETPROC, 0), 1)
    partitions.set(rows[0], STATUS, OFFLINE)
    told.standing.needs_restart = ("listeners", "node.id")
    assert told.line() == (
        "disk full: writes are refused; netproc-0 is starting; 1 of 2 partitions are offline;"
        " cluster: 1 of 3 nodes away; serving 2 topics, 1 client, 1.3 GiB; a restart is needed for"
        " listeners, node.id"
    )
    processes.set_leaving(True)
    assert told.line() == "leaving the cluster: others take over what is led here"
    processes.set_drain(1)
    assert told.line() == "ending: what was asked is answered, then everything goes to the disk"


class Children:
    """What `ServiceManager` asks of a fleet."""

    draining = False
    stuck = ""

    def still(self, now):
        return self.stuck


@pytest.mark.parametrize("ready", [True, False])
def test_nothing_is_fed_and_no_time_is_asked_for_while_a_child_stands_still(heard, ready):
    told, fleet, events = Told(), Children(), []
    manager = manager_of(heard, WATCHDOG_USEC="30000000", WATCHDOG_PID="7")

    class Log:
        def event(self, level, name, **more):
            events.append((name, more["child"]))

    reporting = ServiceManager(manager, fleet, told.tables, Log())
    alive = "WATCHDOG=1" if ready else f"EXTEND_TIMEOUT_USEC={EXTENDED_S * 1_000_000}"
    now_ns = 3600 * SECOND

    def said():
        nonlocal now_ns
        for _ in range(3):
            now_ns += EXTENDED_S * SECOND
            reporting.report_due(now_ns, ready=ready)
        return [one for one in heard.now() if not one.startswith("STATUS=")]

    assert said() == [alive] * 3
    fleet.stuck = "ioproc-0"
    assert said() == []
    assert events == [("appliance-stuck", "ioproc-0")], "said once"
    fleet.stuck = ""
    assert said() == [alive] * 3, "it turns again"
    fleet.stuck, fleet.draining = "ioproc-0", True
    assert said() == ["WATCHDOG=1"] * 3, "at its end each stage has its own limit"


@pytest.mark.parametrize(("succeeds", "fed"), [("7", True), ("8", False)])
def test_a_successor_feeds_the_watchdog_of_the_service_that_runs_on(heard, succeeds, fed):
    manager = manager_of(heard, WATCHDOG_USEC="30000000", PENSTOCK_SUCCEEDS=succeeds)
    manager.gets_on(100 * SECOND)
    said = heard.now()
    assert ("WATCHDOG=1" in said) is fed and said[-1].startswith("EXTEND_TIMEOUT_USEC=")


def test_a_hung_child_is_replaced_while_the_watchdog_is_fed(tmp_path, heard, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", heard.name)
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    appliance = Appliance(tmp_path, wedged_seconds=1.0)
    try:
        started = heard.until("STATUS=serving")
        assert "WATCHDOG=1" not in started[: started.index("READY=1")]
        appliance.kill("ioproc-0", signal.SIGSTOP)
        heard.now()
        assert appliance.until("ioproc-0", 2)
        assert heard.now().count("WATCHDOG=1") > 1
        appliance.hang_up()
        assert appliance.end(signal.SIGTERM)[0] == 0
        ended = heard.until("STATUS=ending")
        assert "STOPPING=1" in ended
    finally:
        appliance.hang_up()
        if appliance.process.poll() is None:
            appliance.process.kill()
        appliance.process.wait(LIMIT_S)
        appliance.process.stdout.close()
        appliance.process.stderr.close()
    assert nothing_is_left()
