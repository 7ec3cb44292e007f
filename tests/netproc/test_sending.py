"""Answers leave in order, each client in its share of a turn, and never by waiting for the disk."""

from types import SimpleNamespace

import pytest

from appliance.handlers.exchange import Exchange, FileRange, Handler, never
from appliance.netproc.connections.send_queue import COLD, FULL, SENT, SHARE, SendQueue
from appliance.netproc.files.page_cache import PATIENCE_NS, PageCache
from appliance.netproc.transport.transport import BLOCKED, Transport
from appliance.ring.counters import Counters
from tests.callers import rights

TEXT = b"0123456789" * 250
FETCH = Handler(1, "Fetch", 4, 18, lambda host, x: None, never)


class Wire(Transport):
    """Takes at most `takes` bytes of a call, and `window` until it is emptied."""

    def __init__(self, sends_files, takes=1 << 20, window=1 << 30):
        super().__init__(SimpleNamespace(fileno=lambda: -1), sends_files)
        self.got = b""
        self.takes = takes
        self.window = window
        self.calls = []

    def agree(self):
        return True

    def continue_io(self):
        raise AssertionError("it wants nothing")

    def receive(self, into):
        raise AssertionError("nothing comes")

    def send_pieces(self, pieces, more):
        return self._take(b"".join(pieces), more)

    def send_file(self, fd, position, count):
        assert self.sends_files
        with open(fd, "rb", closefd=False) as file:
            file.seek(position)
            return self._take(file.read(count), None)

    def _take(self, data, more):
        taken = min(len(data), self.takes, self.window)
        if not taken:
            return BLOCKED
        self.calls.append((taken, more))
        self.got += data[:taken]
        self.window -= taken
        return taken


class Disk(PageCache):
    """Has the bytes before `there` and notes what it is to fetch."""

    def __init__(self):
        super().__init__()
        self.there = 1 << 40
        self.fetched = []

    def holds(self, fd, position):
        return position < self.there

    def fetch(self, fd, position, length):
        self.fetched.append((position, position + length))


@pytest.fixture
def segment(tmp_path):
    (tmp_path / "segment").write_bytes(TEXT)
    with (tmp_path / "segment").open("rb") as file:
        yield SimpleNamespace(fd=file.fileno())


def counts():
    memory = memoryview(bytearray(Counters.bytes_needed(1, 1)))
    return Counters(memory, ioprocs=1, netprocs=1).answers[0]


def asked(sending, answer=None):
    x = Exchange(-1, FETCH, 0, 0, rights(), 0, 0, None)
    x.answer = answer
    sending.queue.append(x)
    return x


@pytest.mark.parametrize("sends_files", [True, False])
@pytest.mark.parametrize("takes", [1 << 20, 7, 1])
def test_answers_go_out_in_the_order_of_the_requests(segment, sends_files, takes):
    sending, wire = SendQueue(PageCache(), counts()), Wire(sends_files, takes)
    first = asked(sending)
    asked(sending, [b"head ", b"more ", FileRange(segment, 10, 2005), b" tail"])
    assert sending.send_answers(wire, 0) == SENT
    assert not wire.got, "the first is not answered"
    first.answer = [b"first "]
    assert sending.send_answers(wire, 0) == SENT
    assert wire.got == b"first head more " + TEXT[10:2015] + b" tail"
    assert sending.idle() and not sending.out_bytes
    if takes > 7 and sends_files:
        assert wire.calls == [(16, True), (2005, None), (5, False)], "as few calls as can be"


@pytest.mark.parametrize("sends_files", [True, False])
def test_what_is_not_taken_is_offered_again(segment, sends_files):
    counted = counts()
    sending, wire = SendQueue(PageCache(), counted), Wire(sends_files, window=0)
    x = asked(sending, [b"head ", FileRange(segment, 0, 2500), b" tail"])
    x.received, x.sent, x.started_ns = 9, 2510, -5000
    for window in (2, 4, 1000, 1, 1400):
        assert sending.send_answers(wire, 0) == FULL
        assert sending.out_bytes
        wire.window = window
    assert sending.send_answers(wire, 0) == FULL
    wire.window = 1 << 20
    assert sending.send_answers(wire, 0) == SENT
    assert wire.got == b"head " + TEXT + b" tail"
    assert counted.traffic(1) == (9, 2510), "once, whatever is taken at a time"
    assert counted.latencies(1)[5] == sum(counted.latencies(1)) == 1


@pytest.mark.parametrize("sends_files", [True, False])
def test_a_large_answer_lets_the_others_have_their_turn(segment, sends_files):
    sending, wire = SendQueue(PageCache(), counts(), turn_bytes=1000), Wire(sends_files)
    asked(sending, [FileRange(segment, 0, 2500)])
    assert [sending.send_answers(wire, 0), len(wire.got)] == [SHARE, 1000]
    assert [sending.send_answers(wire, 0), len(wire.got)] == [SHARE, 2000]
    assert [sending.send_answers(wire, 0), len(wire.got)] == [SENT, 2500]


@pytest.mark.parametrize("sends_files", [True, False])
def test_what_the_page_cache_lacks_is_fetched_and_not_waited_for(segment, sends_files):
    disk = Disk()
    disk.there = 0
    sending, wire = SendQueue(disk, counts(), turn_bytes=1000), Wire(sends_files)
    asked(sending, [FileRange(segment, 0, 2500)])
    assert [sending.send_answers(wire, 5), sending.send_answers(wire, 6)] == [COLD, COLD]
    assert not wire.got and not sending.moved_ns
    ((start, end),) = disk.fetched  # asked for once
    assert start == 0 and end >= 2500
    disk.there = 1500
    assert [sending.send_answers(wire, 7), sending.send_answers(wire, 8)] == [SHARE, COLD]
    assert [len(wire.got), sending.moved_ns] == [1000, 7]
    disk.there = 2500
    assert [sending.send_answers(wire, 9), sending.send_answers(wire, 9)] == [SHARE, SENT]
    assert wire.got == TEXT


def test_patience_ends(segment):
    disk = Disk()
    disk.there = 0
    sending, wire = SendQueue(disk, counts()), Wire(sends_files=True)
    asked(sending, [FileRange(segment, 0, 2500)])
    assert sending.send_answers(wire, 5) == COLD
    assert sending.send_answers(wire, 4 + PATIENCE_NS) == COLD
    assert sending.send_answers(wire, 5 + PATIENCE_NS) == SENT
    assert len(wire.got) == 2500


@pytest.mark.parametrize("sends_files", [True, False])
def test_a_file_that_is_shorter_than_promised_ends_the_connection(segment, sends_files):
    sending = SendQueue(PageCache(), counts())
    asked(sending, [FileRange(segment, 2500, 10)])
    wire = Wire(sends_files)
    wire._take = lambda data, more: len(data)
    with pytest.raises(OSError, match="ends 10 bytes before"):
        sending.send_answers(wire, 0)
