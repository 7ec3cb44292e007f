"""Transactions that are written here: the last stable offset waits for them, and readers with
READ_COMMITTED with it."""

import pytest
from core_world import NOW_MS, World, batch
from sim.disk import PAGE, SimDisk

from appliance.base import errors
from appliance.ioproc.netproc_peer import A_TURN
from appliance.ioproc.partitions.read_rules import PRODUCERS_A_SLICE
from appliance.ring import partition_table as columns
from appliance.ring.messages import (
    ABORTED,
    ADDS,
    APPEND,
    APPENDED,
    DELETE_RECORDS,
    DESCRIBE_PRODUCERS,
    FOUND,
    LIST_OFFSET,
    LISTED,
    PRODUCERS,
    PRODUCERS_TOLD,
    READ,
    READ_COMMITTED,
    READ_WAIT,
    TRANSACTIONAL,
    TRUSTED,
    UNVERIFIED,
)
from appliance.wire import aborted, markers, producers

LATEST = -1


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, payload=256)


def own(world, partition, data):
    """As a coordinator's or a transactional producer's batch will come, once it is checked."""
    assert world.core.appends.append_own(partition, memoryview(bytearray(data)), NOW_MS)


def write(world, partition, producer, sequence=0, value=b"v"):
    own(world, partition, batch(value, producer=(producer, 0, sequence), transactional=True))


def end(world, partition, producer, *, committed):
    own(world, partition, markers.build(producer, 0, markers.Marker(committed, 0), NOW_MS))


def row(world, partition):
    """Last stable offset, high watermark."""
    get = world.table.read_column
    return get(partition.handle, columns.LAST_STABLE), get(partition.handle, columns.HIGH_WATERMARK)


def latest(world, partition, flags=READ_COMMITTED):
    world.ask(LIST_OFFSET, partition.handle, 3, LATEST, flags=flags)
    (answer,) = [one for one in world.turn() if one.op == LISTED]
    return answer.b


def read(world, partition, offset, flags=READ_COMMITTED | READ_WAIT):
    world.ask(READ, partition.handle, 7, offset, e=1 << 20, f=1, flags=flags)
    return found(world)


def found(world):
    return [one for one in world.turn() if one.op in (ABORTED, FOUND)]


def test_the_last_stable_offset_is_where_the_oldest_open_transaction_began(world):
    partition = world.add(flush_policy="none")
    world.append(partition.handle, batch(b"0"))
    write(world, partition, 8)
    write(world, partition, 9)
    world.turn()
    assert row(world, partition) == (1, 3)
    assert (latest(world, partition), latest(world, partition, flags=0)) == (1, 3)
    end(world, partition, 9, committed=True)
    world.turn()
    assert row(world, partition) == (1, 4)
    end(world, partition, 8, committed=False)
    world.turn()
    assert row(world, partition) == (5, 5)
    assert latest(world, partition) == 5


def test_what_begins_and_ends_in_one_turn_holds_nothing_back(world):
    partition = world.add(flush_policy="none")
    for turn in range(3):
        write(world, partition, 8, sequence=turn)
        end(world, partition, 8, committed=turn == 1)
    world.turn()
    assert row(world, partition) == (6, 6)
    told, answer = read(world, partition, 0)
    assert aborted.decode(told.payload) == [(8, 0), (8, 4)]
    assert answer.op == FOUND


def test_a_parked_reader_of_what_is_committed_wakes_with_the_marker(world):
    partition = world.add(flush_policy="none")
    write(world, partition, 8)
    world.turn()
    assert read(world, partition, 0) == []
    write(world, partition, 8, sequence=1)
    world.append(partition.handle, batch(b"plain"))
    assert found(world) == []
    end(world, partition, 8, committed=False)
    told, answer = found(world)
    assert aborted.decode(told.payload) == [(8, 0)]
    assert answer.op == FOUND
    assert world.bytes_of(answer, partition).count(b"plain") == 1


def test_a_reader_that_asked_before_is_told_of_a_later_abort(world):
    partition = world.add(flush_policy="none")
    world.append(partition.handle, batch(b"0"))
    world.turn()
    assert len(read(world, partition, 0)) == 1
    world.turn()
    assert world.table.read_column(partition.handle, columns.ABORTED_TO) == 1, "none so far"
    write(world, partition, 8)
    end(world, partition, 8, committed=False)
    world.turn()
    assert world.table.read_column(partition.handle, columns.ABORTED_TO) == 4
    told, _ = read(world, partition, 0)
    assert aborted.decode(told.payload) == [(8, 1)]
    assert [one.op for one in read(world, partition, 2, READ_COMMITTED)] == [ABORTED, FOUND]


def test_where_the_disk_counts_a_marker_counts_when_it_is_synced(world):
    partition = world.add()
    write(world, partition, 8)
    world.settle()
    assert row(world, partition) == (0, 1)
    assert read(world, partition, 0) == []
    end(world, partition, 8, committed=True)
    assert found(world) == []
    assert row(world, partition) == (0, 1)
    assert [one.op for one in world.settle() if one.op == FOUND] == [FOUND]
    assert row(world, partition) == (2, 2)


def test_records_of_an_open_transaction_may_be_deleted(world):
    partition = world.add(flush_policy="none")
    write(world, partition, 8)
    world.append(partition.handle, batch(b"1"))
    world.append(partition.handle, batch(b"2"))
    world.turn()
    world.ask(DELETE_RECORDS, partition.handle, 4, 2)
    world.turn()
    assert row(world, partition) == (2, 3)
    end(world, partition, 8, committed=False)
    world.turn()
    assert row(world, partition) == (4, 4)
    assert [one.op for one in read(world, partition, 2)] == [ABORTED, FOUND]


def test_transactions_go_on_where_the_log_is_served_anew(world):
    partition = world.add(flush_policy="none")
    write(world, partition, 8)
    end(world, partition, 8, committed=False)
    write(world, partition, 9)
    world.append(partition.handle, batch(b"3"))
    world.turn()
    partition.log.sync_now()
    world.core.replace(partition, partition.log, 0)
    assert row(world, partition) == (2, 4)
    assert [one.op for one in read(world, partition, 0)] == [ABORTED, FOUND]
    end(world, partition, 9, committed=True)
    world.turn()
    assert row(world, partition) == (5, 5)


def test_a_marker_that_found_no_room_ends_nothing_until_it_is_written():
    disk = SimDisk()
    disk.mkdir("/logs")
    world = World("/logs", disk=disk, payload=256)
    partition = world.add(flush_policy="none")
    write(world, partition, 8)
    world.turn()
    disk.foreign = disk.capacity - disk.used() - PAGE
    write(world, partition, 9, value=bytes(3 * PAGE))
    end(world, partition, 8, committed=False)
    world.turn()
    assert row(world, partition) == (0, 1)
    assert partition.log.has_unwritten
    assert read(world, partition, 0) == []
    disk.foreign = 0
    world.core.appends.has_room(0)
    world.settle()
    assert row(world, partition) == (1, 3)
    assert partition.aborted is None or partition.aborted.end == 3


# What clients write -------------------------------------------------------------------------------


def produced(world, partition, sequence=0, guard=0, flags=TRANSACTIONAL, producer=8, **rest):
    """What comes of a produced batch: (error code, base offset), or the guard to come back with."""
    data = batch(b"v", producer=(producer, 0, sequence), **{"transactional": True} | rest)
    world.core.askers[0].arena[: len(data)] = data
    world.ask(APPEND, partition.handle, 5, 0, guard, e=len(data), f=1, flags=flags)
    (answer,) = world.turn()
    if answer.op == UNVERIFIED:
        assert answer.flags == errors.INVALID_TXN_STATE
        return answer.a
    assert answer.op == APPENDED
    return answer.flags, answer.a


def test_a_transaction_is_verified_before_its_first_batch_and_not_again(world):
    partition = world.add(flush_policy="none")
    guard = produced(world, partition)
    assert guard > 0
    assert row(world, partition) == (0, 0), "nothing was written"
    assert produced(world, partition, guard=guard) == (0, 0)
    assert produced(world, partition, sequence=1) == (0, 1)
    assert produced(world, partition, sequence=1) == (0, 1), "sent again"
    assert row(world, partition) == (0, 2)
    end(world, partition, 8, committed=True)
    world.turn()
    assert produced(world, partition, sequence=2, guard=guard) not in (0, guard)


def test_a_marker_that_comes_while_the_coordinator_is_asked_ends_the_guard(world):
    partition = world.add(flush_policy="none")
    guard = produced(world, partition)
    end(world, partition, 8, committed=False)
    again = produced(world, partition, guard=guard)
    assert again not in (0, guard)
    assert produced(world, partition, guard=again) == (0, 1)


def test_a_guard_outlives_a_move_to_another_folder(world):
    partition = world.add(flush_policy="none")
    guard = produced(world, partition)
    world.core.replace(partition, partition.log, 0)
    assert produced(world, partition, guard=guard) == (0, 0)


def test_what_needs_no_guard_and_what_none_helps(world):
    partition = world.add(flush_policy="none")
    assert produced(world, partition, flags=TRANSACTIONAL | TRUSTED) == (0, 0)
    plain = {"transactional": False, "producer": 9}
    assert produced(world, partition, **plain) == (0, 1), "beside one in the same request"
    assert produced(world, partition, flags=0) == (errors.INVALID_TXN_STATE, -1)
    nobody = {"producer": -1, "sequence": -1}
    assert produced(world, partition, **nobody) == (errors.INVALID_RECORD, -1)
    assert produced(world, partition, producer=8, sequence=1, transactional=False) == (
        errors.INVALID_TXN_STATE, -1
    )  # fmt: skip
    first = produced(world, partition, producer=10, sequence=3, flags=TRANSACTIONAL | ADDS)
    assert produced(
        world, partition, producer=10, sequence=3, guard=first, flags=TRANSACTIONAL | ADDS
    ) == (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


@pytest.mark.parametrize("verified", [False, True])
def test_a_first_batch_that_there_was_no_room_for_is_not_passed_by_the_next_one(world, verified):
    partition = world.add(flush_policy="none")
    if verified:
        world.core.appends.expect(partition.handle, 8, 0)
    world.space.low = True
    assert produced(world, partition) == (errors.KAFKA_STORAGE_ERROR, -1)
    world.space.low = False
    guard = 0 if verified else produced(world, partition, sequence=1)
    late = produced(world, partition, sequence=1, guard=guard)
    assert late == (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert produced(world, partition, guard=guard) == (0, 0)
    assert produced(world, partition, sequence=1) == (0, 1)


def test_who_has_written_is_told_with_where_the_open_transaction_began(world):
    partition = world.add(flush_policy="none")
    count = 30  # more than fits into one piece
    for producer in range(count):
        own(world, partition, batch(b"v", producer=(producer, 1, 5), transactional=producer > 20))
    own(world, partition, markers.build(25, 1, markers.Marker(False, 3), NOW_MS + 7))
    world.turn()
    world.ask(DESCRIBE_PRODUCERS, partition.handle, 6)
    told = world.turn()
    while told[-1].op == PRODUCERS:  # the ring takes a few at a time
        told += world.turn()
    *told, end_ = told
    assert len(told) > 1 and {one.op for one in told} == {PRODUCERS}
    assert (end_.op, end_.flags, end_.token) == (PRODUCERS_TOLD, 0, 6)
    rows = list(producers.ROW.iter_unpack(b"".join(one.payload for one in told)))
    assert [one[0] for one in rows] == list(range(count))
    assert rows[20] == (20, 1, 5, NOW_MS, -1, -1)
    assert rows[21] == (21, 1, 5, NOW_MS, -1, 21)
    assert rows[25] == (25, 1, 5, NOW_MS + 7, 3, -1)
    world.ask(DESCRIBE_PRODUCERS, partition.handle + 1, 7)
    (none,) = world.turn()
    assert (none.op, none.flags) == (PRODUCERS_TOLD, errors.UNKNOWN_TOPIC_OR_PARTITION)


def test_very_many_producers_are_told_in_slices_while_others_are_answered(tmp_path):
    """A turn makes so many rows; who expires meanwhile is left out, who comes is not told."""
    world = World(tmp_path, payload=1 << 16)
    partition = world.add(flush_policy="none")
    count = 5 * A_TURN // producers.SIZE
    for producer in range(count):
        own(world, partition, batch(b"v", producer=(producer, 1, 0)))
    world.settle()
    world.ask(DESCRIBE_PRODUCERS, partition.handle, 6)
    world.ask(LIST_OFFSET, partition.handle, 7, a=-2, b=-1)
    told, turns = world.turn(), 1
    assert [one.op for one in told if one.token == 7] == [LISTED], "nobody waits for the last row"
    partition.log.producers.producers.pop(count - 1)
    own(world, partition, batch(b"v", producer=(count, 1, 0)))
    while told[-1].op != PRODUCERS_TOLD:
        more = world.turn()
        assert sum(len(one.payload) for one in more) <= A_TURN + PRODUCERS_A_SLICE * producers.SIZE
        told, turns = told + more, turns + 1
    rows = b"".join(one.payload for one in told if one.op == PRODUCERS)
    assert [one[0] for one in producers.ROW.iter_unpack(rows)] == list(range(count - 1))
    assert turns >= 5
