"""With group commit nobody sees what a power cut could take: the high watermark rises with syncs
alone, and a sync is never far away."""

import pytest
from core_world import World, batch

from appliance.base import errors
from appliance.ioproc.durability.group_commit import VISIBLE_MS
from appliance.ring import partition_table as columns
from appliance.ring.messages import APPENDED, DELETE_RECORDS, DELETED, FOUND, LIST_OFFSET, LISTED

LATEST = -1


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def told(answers):
    return [(m.op, m.flags, m.token) for m in answers]


@pytest.mark.parametrize("acks", [0, 1])
def test_a_record_is_acknowledged_at_once_and_seen_after_its_sync(world, acks):
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=acks, token=1)
    assert told(world.turn()) == [(APPENDED, 0, 1)]
    assert (p.log.end_offset, p.high_watermark) == (1, 0)
    assert world.table.read_column(p.handle, columns.HIGH_WATERMARK) == 0
    world.read(p.handle, 0, wait=False, token=2)
    assert [m.e for m in world.turn()] == [0]
    world.settle()
    assert (p.high_watermark, p.log.recovery_point) == (1, 1)
    assert world.table.read_column(p.handle, columns.HIGH_WATERMARK) == 1


def test_one_that_needs_no_sync_shows_no_record_of_one_that_waits(world):
    """A waits for its sync, B does not: B's record lies behind A's, and a cut takes both."""
    p = world.add()
    world.append(p.handle, batch(b"A"), acks=-1, token=1)
    world.append(p.handle, batch(b"B"), acks=1, token=2, position=4096)
    assert told(world.turn()) == [(APPENDED, 0, 2)]
    assert p.high_watermark == 0
    world.threads.run_all()
    assert told(world.turn()) == [(APPENDED, 0, 1)]
    assert p.high_watermark == 2


def test_the_policy_of_the_operating_system_shows_what_is_written(world):
    p = world.add(flush_policy="os")
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn()
    assert (p.high_watermark, p.log.recovery_point) == (1, 0)
    assert not world.core.syncing.unseen
    assert world.threads.outstanding() == 0


def test_a_reader_at_the_end_is_reason_enough_for_a_sync(world):
    """Whether it was there before the record or comes after it."""
    p, q = world.add(), world.add("q")
    world.read(p.handle, 0, token=1)
    world.append(p.handle, batch(b"a"), acks=1, token=2)
    world.append(q.handle, batch(b"b"), acks=1, token=3, position=4096)
    assert told(world.turn(ms=0)) == [(APPENDED, 0, 2), (APPENDED, 0, 3)]
    assert len(world.threads.jobs) == 1, "nobody waits for the other one"
    world.read(q.handle, 0, token=4)
    world.turn(ms=0)
    assert len(world.threads.jobs) == 2
    world.threads.run_all()
    assert sorted(told(world.turn(ms=0))) == [(FOUND, 0, 1), (FOUND, 0, 4)]


def test_records_that_nobody_waits_for_are_synced_a_few_at_a_time(world):
    """One sync in the background, each for all that came by then: their producers pay little."""
    parts = [world.add(f"t{n}") for n in range(3)]
    for p in parts:
        world.append(p.handle, batch(b"a"), acks=1)
        world.turn(ms=0)
    assert world.threads.outstanding() == 0
    world.turn(ms=VISIBLE_MS)
    assert len(world.threads.jobs) == 1
    world.append(parts[0].handle, batch(b"b"), acks=1)
    world.turn(ms=VISIBLE_MS)
    assert len(world.threads.jobs) == 1, "one at a time"
    assert [p.high_watermark for p in parts] == [0, 0, 0]
    rounds = 0
    while world.core.syncing.unseen or world.threads.outstanding():
        world.threads.run_all()
        world.turn(ms=VISIBLE_MS)
        rounds += 1
    assert [p.high_watermark for p in parts] == [2, 1, 1]
    assert rounds <= 5


def test_what_came_during_a_sync_is_seen_after_the_next(world):
    p = world.add()
    world.read(p.handle, 0, token=1, enough=1 << 20)
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn(ms=0)
    world.append(p.handle, batch(b"b"), acks=1, position=4096)
    world.turn(ms=0)
    world.threads.run_all()
    world.turn(ms=0)
    assert p.high_watermark == 1
    world.threads.run_all()
    world.turn(ms=0)
    assert p.high_watermark == 2


@pytest.mark.parametrize(
    ("op", "answer", "value"), [(LIST_OFFSET, LISTED, 1), (DELETE_RECORDS, DELETED, 1)]
)
def test_who_asks_for_the_end_is_told_of_all_that_was_acknowledged_before(world, op, answer, value):
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=1, token=1)
    world.turn(ms=0)
    world.ask(op, p.handle, token=2, a=LATEST)
    assert world.turn(ms=0) == []
    world.append(p.handle, batch(b"b"), acks=1, token=3)
    world.turn(ms=0)  # later records do not hold up the answer
    world.threads.run_all()
    (m,) = world.turn(ms=0)
    assert (m.op, m.flags, m.token) == (answer, 0, 2)
    assert (m.b if op == LIST_OFFSET else m.a) == value


def test_who_asks_for_the_end_of_a_partition_that_fails_or_goes_is_told(world):
    p, q = world.add(), world.add("q")
    for partition, token in ((p, 1), (q, 2)):
        world.append(partition.handle, batch(b"a"), acks=1)
        world.turn(ms=0)
        world.ask(LIST_OFFSET, partition.handle, token=token, a=LATEST)
    world.core.drop(world.core.askers[1])
    world.core.fail(p, errors.StorageFailed("t-0", 5, "broken"))
    world.core.remove(q.handle, world.now_ns)
    got = {m.token: (m.op, m.flags) for m in world.turn()}
    assert got[1] == (LISTED, errors.KAFKA_STORAGE_ERROR)
    assert got[2] == (LISTED, 0), "its sync ended before it went"


def test_an_orderly_end_leaves_nothing_unseen(world):
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn(ms=0)
    world.core.settle_all(world.now_ns)
    assert p.high_watermark == 1
