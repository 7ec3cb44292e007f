"""Sums of topics: the same as reading every row, with only those read that have changed."""

import random

import pytest

from appliance.base.ids import TopicId
from appliance.observer.traffic import BLOCK, Sums, Traffic
from appliance.ring import partition_table as columns
from appliance.ring.partition_table import ROW_MASK, SERVED_COLUMNS, PartitionTable

ROWS = 4 * BLOCK
COUNT = len(range((BLOCK + 1) % 5, 3 * BLOCK, 5))


@pytest.fixture
def table():
    size = PartitionTable.bytes_needed(ROWS, 2)
    return PartitionTable(memoryview(bytearray(size)), ROWS, 2)


def whole(table):
    """The sums by a new reader, who reads every row."""
    fresh = Traffic(table)
    fresh.find_changed()
    return fresh.topics


def test_sums_are_those_of_all_rows_whatever_happens_to_them(table):
    chance = random.Random(5)
    seen, live = Traffic(table), {}
    for step in range(2000):
        what = chance.random()
        idle = [row for _, row in table.idle_rows()]
        if what < 0.1 and (table.row_count < ROWS or idle):
            topic = TopicId(bytes([chance.randrange(9)]) * 16)
            handle = table.reuse(idle[0], topic, 0) if idle else table.add(topic, 0)
            live[handle] = topic
        elif what < 0.15 and live:
            handle = chance.choice(list(live))
            table.retire(handle, step + 1)
            del live[handle]
        elif live:
            handle = chance.choice(list(live))
            column = chance.choice((columns.STATUS, columns.BYTES_IN, columns.HIGH_WATERMARK))
            table.set(handle, column, chance.randrange(1 << 62))
            at = (handle & ROW_MASK) * SERVED_COLUMNS
            chance.choice(table.served)[at + columns.BYTES_OUT] += chance.randrange(2)
        if chance.random() < 0.2 or step == 1999:
            before = dict(seen.topics)
            changed = seen.find_changed()
            assert seen.topics == whole(table)
            both = before.keys() | seen.topics.keys()
            assert changed == {t for t in both if before.get(t) != seen.topics.get(t)}


class Watched:
    """A table that notes which of its rows are read."""

    def __init__(self, table):
        self._table = table
        self.read = []

    def __getattr__(self, name):
        return getattr(self._table, name)

    def live_rows(self, first, last):
        self.read.append((first, last))
        return self._table.live_rows(first, last)


def test_what_rests_is_not_read_again(table):
    handles = [table.add(TopicId(bytes([n % 5]) * 16), n) for n in range(3 * BLOCK)]
    watched = Watched(table)
    seen = Traffic(watched)
    assert len(seen.find_changed()) == 5
    assert len(watched.read) == 3
    assert seen.find_changed() == set()
    assert len(watched.read) == 3
    table.set(handles[BLOCK + 1], columns.BYTES_IN, 7)
    (topic,) = seen.find_changed()
    assert watched.read[3:] == [(BLOCK, 2 * BLOCK)]
    assert seen.topics[topic] == Sums(partitions=COUNT, offline=COUNT, bytes_in=7)


def test_what_another_node_leads_is_not_offline(table):
    topic = TopicId(b"t" * 16)
    statuses = (columns.NOT_OPEN, columns.ONLINE, columns.OFFLINE, columns.FOLLOWING)
    for partition, status in enumerate(statuses):
        table.set(table.add(topic, partition), columns.STATUS, status)
    assert whole(table)[topic].offline == 2, "not open yet, and offline"
