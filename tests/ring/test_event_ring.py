"""Rings of events: what a reader gets while the writer overtakes it, dies, or wrote nonsense."""

import mmap
import os
import signal

from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.ring import event_ring
from appliance.ring.event_ring import LONGEST_TEXT, RING, EventReader, EventTable, EventWriter

WORDS = event_ring._WORDS * 8
BEGINS = st.integers(2**63, 2**63 + 2 * RING) | st.integers()
"""Of those, 2 ** 63 taken away: some are places in the ring."""


def ring():
    return memoryview(bytearray(WORDS + RING))


def numbers(found):
    return [one.number for one in found]


def test_an_event_is_read_as_it_was_written():
    memory = ring()
    writer, reader = EventWriter(memory), EventReader(memory.toreadonly())
    assert reader.read_events() == ([], 0)
    fields = {"topic": "orders", "cause": "", "client": "日本 \x1b[31m [/red]\0"}
    writer.write_event(1_700_000_000_123, 4, "topic-created", fields)
    writer.write_event(5, 6, "ended", {})
    (first, second), missed = reader.read_events()
    assert first == (1, 1_700_000_000_123, 4, "topic-created", tuple(fields.items()))
    assert second == (2, 5, 6, "ended", ())
    assert missed == 0
    assert reader.read_events() == ([], 0)
    writer.write_event(6, 6, "again", {"client": "\udcff"})
    assert reader.read_events()[0][0].fields == (("client", "\\udcff"),)


def test_a_slow_reader_gets_the_newest_and_hears_how_many_it_missed():
    memory = ring()
    writer, reader = EventWriter(memory), EventReader(memory)
    writer.write_event(0, 6, "first", {})
    reader.read_events()
    for n in range(5000):
        writer.write_event(n, 6, "flood", {"n": str(n), "fill": "x" * (n % 90)})
    found, missed = reader.read_events()
    assert numbers(found) == list(range(5002 - len(found), 5002)), "whole ones, in order"
    assert len(found) > 500
    assert missed == 5000 - len(found)
    assert [dict(one.fields)["n"] for one in found] == [str(one.at_ms) for one in found]
    late, missed = EventReader(memory).read_events()
    assert (late, missed) == (found, 0), "who begins to look has missed nothing"


def test_what_is_too_long_keeps_its_begin_and_its_end():
    memory = ring()
    writer = EventWriter(memory)
    long = "begin " + "日" * 100_000 + " ValueError: the end"
    writer.write_event(0, 3, "bug", {"cause": long, **{f"k{n}": "v" * 1000 for n in range(20)}})
    ((one,), _) = EventReader(memory).read_events()
    told = dict(one.fields)
    assert told["cause"].startswith("begin 日") and told["cause"].endswith(" ValueError: the end")
    assert len(told["cause"].encode()) <= LONGEST_TEXT + 9, "a cut character"
    assert 1 < len(told) < 9


def test_a_successor_goes_on_behind_what_the_dead_one_wrote():
    memory = memoryview(mmap.mmap(-1, EventTable.bytes_needed(1, 1)))
    table = EventTable(memory, ioprocs=1, netprocs=1)
    assert table.names == ("supervisor", "control", "ioproc-0", "netproc-0")
    reader = table.reader("ioproc-0")
    table.writer("ioproc-0").write_event(0, 5, "first", {})
    reader.read_events()
    last = 1
    for _ in range(3):
        child = os.fork()
        if child == 0:
            writer = table.writer("ioproc-0")
            while True:
                writer.write_event(0, 6, "turn", {"fill": "x" * 50})
        seen, lost, before = [], 0, last
        try:
            while len(seen) < 3000 or last < before + 20_000:
                found, missed = reader.read_events()
                seen += found
                lost += missed
                last = found[-1].number if found else last
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        found, missed = reader.read_events()
        seen += found
        last = seen[-1].number
        assert {one.event for one in seen} == {"turn"}
        assert numbers(seen) == sorted(set(numbers(seen)))
        assert len(seen) + lost + missed == last - before, "each is seen, or said to be missed"
        table.writer("ioproc-0").write_event(0, 5, "successor", {})
        ((one,), missed) = reader.read_events()
        last += 1
        assert (one.event, one.number, missed) == ("successor", last, 0)
    assert table.reader("netproc-0").read_events() == ([], 0)


@settings(max_examples=60)
@given(st.binary(min_size=16, max_size=400), BEGINS, BEGINS)
def test_no_length_in_the_memory_is_believed(noise, end, oldest):
    memory = ring()
    for n in range(0, RING - 400, len(noise)):
        memory[WORDS + n : WORDS + n + len(noise)] = noise
    words = memory.cast("q")
    words[0] = end % 2**64 - 2**63
    words[8] = oldest % 2**64 - 2**63
    reader = EventReader(memory)
    for _ in range(2):
        found, missed = reader.read_events()
        assert len(found) <= RING // 32 and missed >= 0
