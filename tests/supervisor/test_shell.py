"""Links, loop and log: who is woken, who is told of a death, what a line looks like."""

import json
import os
import re
import select
import threading

import pytest

from appliance.ring.event_ring import EventTable
from appliance.ring.log_levels import LEVELS, LOGGERS, LogLevels
from appliance.ring.messages import ANSWERED, APPEND, APPENDED, FORWARD
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, READY, Peer
from appliance.shell import loop as loop_module
from appliance.shell.links import Links
from appliance.shell.log import Log
from appliance.shell.loop import STOP, Loop
from appliance.supervisor.layout import MIB, Layout
from tests.seats import Seats, log_file

LAYOUT = Layout(arena_bytes=MIB, partition_rows=16)
CONTROL_0, IO, NET = Peer(CONTROL, 0), Peer(IOPROC, 0), Peer(NETPROC, 0)


@pytest.fixture
def log(tmp_path):
    fd, log = log_file(tmp_path, "test")
    yield log
    os.close(fd)


@pytest.fixture
def office(log):
    office = Seats(LAYOUT, log)
    yield office
    office.close()


def turn(*all_links):
    for links in all_links:
        links.changed_peers()
        links.confirm()


def test_messages_pass_after_flush_and_only_sleepers_are_rung(office):
    net, io = office.links(NET), office.links(IO)
    turn(net, io)
    net.writer(IOPROC, 0).push(APPEND, 0, 1, 5, 0, e=10)
    assert io.poll() == []
    net.flush()
    assert office.rung(IO) == 0
    [(peer, [message])] = io.poll()
    assert (peer, message.token) == (NET, 5)

    assert net.prepare_sleep()
    for token in (6, 7):
        io.writer(NETPROC, 0).push(APPENDED, 1, 1, token)
    io.flush()
    assert office.rung(NET) == 1
    net.awake()
    assert [m.token for m in net.poll()[0][1]] == [6, 7]
    io.flush()
    assert office.rung(NET) == 0


def test_nobody_falls_asleep_over_something_that_is_there(office):
    net, control = office.links(NET), office.links(CONTROL_0)
    turn(net, control)
    net.poll()
    assert net.prepare_sleep()
    net.awake()

    control.writer(NETPROC, 0).push_with_payload(ANSWERED, 1, 0, 1, payload=b"x")
    control.flush()
    assert not net.prepare_sleep()
    assert not office.table.asleep(NET)
    net.poll()

    office.table.publish_metadata(3)
    assert not net.prepare_sleep()
    net.poll()

    office.table.move_epoch()
    assert not net.prepare_sleep()
    turn(net)
    assert net.prepare_sleep()


def test_a_beat_tells_of_a_changed_peer_until_it_is_confirmed_and_long_turns_stand(office):
    net = office.links(NET)
    assert net.beat() and net.beat()
    turn(net)
    assert not net.beat()
    office.table.move_epoch()
    assert net.beat()
    net.changed_peers()
    assert net.beat(), "its memory is still in use"
    net.confirm()
    assert not net.beat()
    assert office.table.heartbeat(NET) == 6
    for took_ns in (5, 30, 7):
        net.beat(took_ns)
    assert office.table.longest_turn(NET) == 30


def test_control_wakes_every_sleeper(office):
    links = {peer: office.links(peer) for peer in office.table.peers}
    turn(*links.values())
    assert links[IO].prepare_sleep()
    links[CONTROL_0].wake_sleepers()
    assert (office.rung(IO), office.rung(NET)) == (1, 0)


def test_rings_of_a_dead_peer_close_and_open_for_its_successor(office):
    net, io = office.links(NET), office.links(IO)
    assert set(net.changed_peers()) == {IO}
    net.confirm()
    turn(io)
    assert net.changed_peers() == []
    writer = net.writer(IOPROC, 0)
    writer.push(APPEND, 0, 0, 1, 0, e=1)
    net.flush()

    office.table.vacate(IO)
    epoch = office.table.move_epoch()
    assert net.changed_peers() == [IO]
    assert not net.is_up(IOPROC, 0)
    assert not writer.push(APPEND, 0, 0, 2, 0, e=1)
    assert office.table.confirmed(NET) < epoch
    net.confirm()
    assert office.table.confirmed(NET) == epoch

    office.memory.clear_rings_of(IO)
    successor = office.links(IO)
    turn(successor)
    assert net.changed_peers() == [IO]
    net.confirm()
    assert net.is_up(IOPROC, 0)
    assert successor.poll() == []
    assert writer.push(APPEND, 0, 0, 3, 0, e=1)
    net.flush()
    assert [m.token for m in successor.poll()[0][1]] == [3]


def test_what_a_dead_process_had_answered_is_handed_over_before_its_death(office):
    """Both are seen in the same turn where a machine is busy: control ends right behind the answer
    to who gave its node other listeners."""
    seat = office.seat(NET)
    net, control, io = Links(seat), office.links(CONTROL_0), office.links(IO)
    turn(net, control, io)
    for token in range(300):  # more than one poll takes
        control.writer(NETPROC, 0).push_with_payload(ANSWERED, 1, 0, token, payload=b"yes")
    io.writer(NETPROC, 0).push(APPENDED, 1, 1, 300)
    net.writer(IOPROC, 0).push(APPEND, 0, 1, 5, 0, e=10)
    for links in (control, io, net):
        links.flush()
    for peer in (CONTROL_0, IO):
        office.table.vacate(peer)
    office.table.move_epoch()
    told = []

    class Told(Shell):
        def peers_changed(self, peers):
            told.append(set(peers))

        def handle(self, peer, messages):
            told.append((peer, [one.token for one in messages]))

    loop = Loop(seat, net)
    loop.run(Told(net, 1))
    loop.close()
    assert told == [(CONTROL_0, list(range(300))), (IO, [300]), {CONTROL_0, IO}] or told == [
        (IO, [300]), (CONTROL_0, list(range(300))), {CONTROL_0, IO}
    ]  # fmt: skip
    office.table.vacate(NET)
    office.table.move_epoch()
    io.changed_peers()
    assert io.take_last_said() == [], "nobody waits for what a dead process asked"


def test_a_process_that_never_looked_is_not_waited_for_but_one_about_to_look_is(office):
    io = office.links(IO)
    assert office.table.confirmed(IO) == 0
    io.changed_peers()
    assert office.table.confirmed(IO) == 1
    io.confirm()
    assert office.table.confirmed(IO) == office.table.epoch


@pytest.mark.parametrize("culprit", ["writer", "reader"])
def test_a_broken_ring_is_closed_and_its_peer_accused_once(office, tmp_path, culprit):
    net, control = office.links(NET), office.links(CONTROL_0)
    turn(net, control)
    pair = office.memory.rings_of(CONTROL_0)[NET]
    if culprit == "writer":
        pair.into[:8] = b"\xff" * 8
    else:
        pair.out[64:72] = b"\xff" * 8
        for token in range(LAYOUT.ring_slots + 1):
            control.writer(NETPROC, 0).push(APPENDED, 1, 0, token)
    control.poll()
    control.flush()
    control.flush()
    assert office.table.accused(CONTROL_0) == (NET, 1)
    assert not control.writer(NETPROC, 0).push(APPENDED, 1, 0, 1)
    assert (tmp_path / "log").read_text().count("ring-broken peer=netproc-0") == 1


class Shell:
    """Answers FORWARD and stops after so many turns."""

    def __init__(self, links, turns):
        self.links = links
        self.left = turns
        self.seen = []
        self.files = []

    def peers_changed(self, peers):
        self.seen.append(tuple(peers))

    def handle(self, peer, messages):
        for m in messages:
            self.seen.append(m.payload)
            self.links.writer(*peer).push_with_payload(ANSWERED, 1, 0, m.token, payload=b"yes")

    def ready(self, mask):
        self.files.append(mask)
        os.eventfd_read(self.file)

    def run_once(self, now_ns):
        self.left -= 1
        self.links.flush()
        return STOP if self.left == 0 else 0


@pytest.mark.parametrize("spin_us", [0, 20])
def test_a_turn_hands_over_answers_and_publishes(office, spin_us):
    net = office.links(NET)
    seat = office.seat(CONTROL_0, spin_us=spin_us)
    links = Links(seat)
    turn(net)
    net.writer(CONTROL, 0).push_with_payload(FORWARD, 0, 0, 9, e=1, payload=b"who")
    net.flush()
    loop = Loop(seat, links)
    shell = Shell(links, 3)
    shell.file = os.eventfd(1, os.EFD_NONBLOCK)
    loop.register(shell.file, select.EPOLLIN, shell)
    links.set_state(READY)
    loop.run(shell)
    loop.unregister(shell.file)
    loop.close()
    os.close(shell.file)
    assert shell.seen == [(NET,), b"who"]
    assert shell.files == [select.EPOLLIN]
    assert [(m.token, m.payload) for m in net.poll()[0][1]] == [(9, b"yes")]
    assert office.table.heartbeat(CONTROL_0) == 3
    assert office.table.state(CONTROL_0) == READY


@pytest.mark.parametrize("journal", [False, True])
def test_a_line_is_one_line_whatever_a_stranger_sent(tmp_path, journal):
    fd = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    log = Log("netproc-0", fd=fd, journal=journal)
    log.event(4, "odd-name", client='a b"c\n<3>event=forged\x1b[31m', empty="", count=3)
    os.close(fd)
    [line] = (tmp_path / "log").read_text().splitlines()
    shown = r"""client="a b'c\n<3>event=forged\x1b[31m" empty="" count=3"""
    if journal:
        assert line == f"<4>event=odd-name process=netproc-0 {shown}"
    else:
        assert line[19:] == f" netproc-0 odd-name {shown}"


def test_one_peer_gets_one_line_a_second(tmp_path, monkeypatch):
    import appliance.shell.log as log_module

    now = [5_000_000_000]
    monkeypatch.setattr(log_module.time, "monotonic_ns", lambda: now[0])
    fd = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    log = Log("netproc-0", fd=fd, journal=False)
    for _ in range(50):
        log.event_from(4, "refused", "10.0.0.1")
        log.event_from(4, "refused", "10.0.0.2")
        log.event_from(4, "closed", "10.0.0.1")
        log.event_seldom(4, "made", topic="a")
    now[0] += 1_000_000_000
    log.event_from(4, "refused", "10.0.0.1")
    log.event_seldom(4, "made", topic="b")
    for n in range(3000):
        log.event_from(4, "flood", str(n))
    os.close(fd)
    lines = [line.split(" ", 3)[3] for line in (tmp_path / "log").read_text().splitlines()]
    assert lines[:6] == [
        *("refused peer=10.0.0.1", "refused peer=10.0.0.2", "closed peer=10.0.0.1"),
        "made topic=a",
        "refused peer=10.0.0.1 lines_left_out=49",
        "made topic=b lines_left_out=49",
    ]
    assert len(log._seen) <= 1024


def levels(**own):
    found = LogLevels(memoryview(bytearray(8)).cast("q"))
    for name, level in own.items():
        found.set(name if name == "root" else f"penstock.{name}", level)
    return found


def test_every_logger_has_its_level_or_that_of_root():
    one = levels()
    assert one.all() == dict.fromkeys(LOGGERS, "INFO")
    for logger in LOGGERS[1:]:
        for level in LEVELS:
            one.set(logger, level)
            assert one.all() == dict.fromkeys(LOGGERS, "INFO") | {logger: level}
        one.set(logger, None)
    one.set("root", "ERROR")
    assert set(one.all().values()) == {"ERROR"}


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("FATAL", []),
        ("ERROR", [3]),
        ("WARN", [3, 4]),
        ("INFO", [3, 4, 5, 6]),
        ("DEBUG", [3, 4, 5, 6, "noted"]),
        ("TRACE", [3, 4, 5, 6, 6, "noted"]),
    ],
)
def test_what_is_written_follows_the_level_and_what_is_kept_does_not(tmp_path, level, written):
    table = EventTable(memoryview(bytearray(EventTable.bytes_needed(1, 1))), ioprocs=1, netprocs=1)
    fd = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    ring = table.writer("netproc-0")
    of_others = "FATAL" if level != "FATAL" else "TRACE"
    known = levels(root=of_others, netproc=level)
    log = Log("netproc-0", fd=fd, journal=True, ring=ring, levels=known)
    for priority in (3, 4, 5):
        log.event(priority, "said")
    log.event_from(6, "said", "10.0.0.1")
    log.event_from(6, "said", "10.0.0.1")
    log.note_event(6, "noted")
    os.close(fd)
    lines = (tmp_path / "log").read_text().splitlines()
    assert ["noted" if "noted" in line else int(line[1]) for line in lines] == written
    assert len(table.reader("netproc-0").read_events()[0]) == (6 if level == "TRACE" else 5)


def test_a_line_of_json_has_no_control_character(tmp_path):
    fd = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    hostile = "\x1b\x7f\x9b2J\u202eevil\u2066"
    Log("netproc-0", fd=fd, journal=False, json=True).event(4, "told", client=hostile)
    line = os.pread(fd, 4096, 0).decode()
    os.close(fd)
    assert line.rstrip("\n").isprintable(), line
    assert json.loads(line)["fields"]["client"] == hostile


@pytest.mark.parametrize("journal", [True, False])
def test_a_line_of_json_is_one_object_whatever_is_in_it(tmp_path, journal):
    fd = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    log = Log("netproc-0", fd=fd, journal=journal, json=True)
    hostile = 'a"b\n<3>{"event": "forged"}\x1b[31m\udcff'
    log.event(4, "odd-name", client=hostile, event="mine", count=3)
    os.close(fd)
    [line] = (tmp_path / "log").read_bytes().splitlines()
    if journal:
        assert line.startswith(b"<4>")
    told = json.loads(line.removeprefix(b"<4>"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told.pop("time"))
    fields = {"client": hostile, "event": "mine", "count": "3"}
    head = {"level": "warning", "process": "netproc-0", "event": "odd-name"}
    assert told == {**head, "fields": fields}


def test_what_a_log_says_can_be_read_from_its_ring_from_any_thread(tmp_path):
    memory = memoryview(bytearray(EventTable.bytes_needed(1, 1)))
    table = EventTable(memory, ioprocs=1, netprocs=1)
    reader = table.reader("supervisor")
    fd, log = log_file(tmp_path, "supervisor")
    for n in range(100):
        log.event(4, "early", n=n)
    log.attach_ring(table.writer("supervisor"), levels())
    log.event(5, "late", client="a\x1b[31m", partition=None)
    log.note_event(6, "unsaid", took_ms=3)
    found, missed = reader.read_events()
    assert [one.event for one in found] == ["early"] * 64 + ["late", "unsaid"], "a start has few"
    assert found[-2].fields == (("client", "a\x1b[31m"), ("partition", "None"))
    assert "unsaid" not in (tmp_path / "log").read_text()
    assert missed == 0

    def say():
        for _ in range(500):
            log.event(6, "said", fill="x" * 40)

    threads = [threading.Thread(target=say) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    os.close(fd)
    found, missed = reader.read_events()
    assert len(found) + missed == 2000
    assert all(one == (one.number, one.at_ms, 6, "said", (("fill", "x" * 40),)) for one in found)


class Slow:
    """A file whose handler takes all the time that a turn has for files."""

    def __init__(self, turns, seen):
        self.turns, self.seen = turns, seen
        self.fd = os.eventfd(1, os.EFD_NONBLOCK)

    def ready(self, mask):
        self.seen.append((self.fd, self.turns()))


@pytest.mark.interpreted("sets a constant of a module that is compiled")
def test_files_for_which_a_turn_has_no_time_come_first_in_the_next(office, monkeypatch):
    """Else fifty connections with a large request each would keep a process from its heartbeat."""
    monkeypatch.setattr(loop_module, "_MOST_NS", -1)  # every handler takes too long
    seat = office.seat(CONTROL_0)
    links = Links(seat)
    loop, seen = Loop(seat, links), []
    files = [Slow(lambda: loop.turns, seen) for _ in range(3)]
    for file in files:
        loop.register(file.fd, select.EPOLLIN, file)
    loop.run(Shell(links, 10))  # nine turns with a wait behind them
    assert [turn for _, turn in seen] == list(range(1, 10))
    rounds = [{fd for fd, _ in seen[at : at + 3]} for at in (0, 3, 6)]
    assert rounds == [{file.fd for file in files}] * 3, "each is as good as the others"
    assert len(loop._late) <= len(files)
    for file in files:
        loop.unregister(file.fd)
        os.close(file.fd)
    loop.close()
