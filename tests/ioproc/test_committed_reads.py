"""Readers with READ_COMMITTED of a folder with transactions: what was aborted goes before the
range."""

from struct import pack

import pytest
from core_world import World, batch

from appliance.ring import partition_table as columns
from appliance.ring.messages import ABORTED, FOUND, READ, READ_COMMITTED, READ_WAIT
from appliance.wire import aborted

PAYLOAD = 256  # so that four transactions make a piece


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, payload=PAYLOAD)


@pytest.fixture
def partition(world):
    """Ten batches of one record."""
    one = world.add(flush_policy="none")
    for number in range(10):
        world.append(one.handle, batch(b"%d" % number))
        world.turn()
    return one


def write(world, partition, *transactions):
    """(producer, first, last) of each, as if Kafka had written the folder."""
    data = b"".join(pack(">hqqqq", 0, *one, one[2] + 1) for one in transactions)
    world.disk.create(f"{partition.log.path}/{0:020d}.txnindex").pwritev([data], 0)


def read(world, partition, offset, flags=READ_COMMITTED, max_bytes=1 << 20):
    world.ask(READ, partition.handle, 7, offset, e=max_bytes, f=1, flags=flags)
    return world.turn()


def test_aborted_transactions_go_before_the_range_that_has_their_records(world, partition):
    write(world, partition, (1, 0, 1), (2, 2, 5), (3, 7, 9))
    size = len(batch(b"0"))
    told, found = read(world, partition, 4, max_bytes=3 * size)
    assert told.op == ABORTED
    assert aborted.decode(told.payload) == [(2, 2)]
    assert (found.op, found.e, found.token) == (FOUND, 3 * size, told.token)
    assert [one.op for one in read(world, partition, 4, flags=0)] == [FOUND]
    told, found = read(world, partition, 0)
    assert aborted.decode(told.payload) == [(1, 0), (2, 2), (3, 7)]


def test_many_of_them_come_in_pieces_and_none_is_lost(world, partition):
    every = [(producer, 0, 9 + producer) for producer in range(60)]
    write(world, partition, *every)
    got = read(world, partition, 0)
    for _ in range(40):
        got += world.turn()
    assert [one.op for one in got] == [ABORTED] * 15 + [FOUND]
    told = [one for piece in got[:-1] for one in aborted.decode(piece.payload)]
    assert told == [one[:2] for one in every]


def test_a_parked_reader_is_told_too(world, partition):
    write(world, partition, (5, 10, 12))
    assert read(world, partition, 10, READ_COMMITTED | READ_WAIT) == []
    world.append(partition.handle, batch(b"10"))
    got = [one for one in world.turn() if one.op in (ABORTED, FOUND)]
    assert [one.op for one in got] == [ABORTED, FOUND]


def test_the_row_says_from_where_on_nothing_was_aborted(world, partition):
    write(world, partition, (1, 0, 1), (2, 2, 5))
    assert world.table.read_column(partition.handle, columns.ABORTED_TO) == 0
    read(world, partition, 0)
    world.turn()
    assert world.table.read_column(partition.handle, columns.ABORTED_TO) == 7


def test_what_compaction_took_is_not_told_any_more(world, partition):
    write(world, partition, (1, 0, 1))
    assert len(read(world, partition, 0)) == 2
    world.disk.unlink(f"{partition.log.path}/{0:020d}.txnindex")
    world.core.new_layout(partition)
    assert world.table.read_column(partition.handle, columns.ABORTED_TO) == 0
    assert [one.op for one in read(world, partition, 0)] == [FOUND]
    world.turn()
    assert world.table.read_column(partition.handle, columns.ABORTED_TO) == 1
