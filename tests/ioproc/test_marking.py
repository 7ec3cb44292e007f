"""Markers at the home of a partition: when they are answered, what refuses them, and that one which
comes twice changes nothing."""

import pytest
from core_world import NOW_MS, World, batch
from test_full_core import fill, full_world, make_room

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.ring.messages import APPENDED, MARK, MARK_COMMIT
from appliance.wire import markers
from appliance.wire.batch_header import CONTROL_BIT, read_header


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def write(world, partition, producer=8, epoch=0):
    stage(world, partition, batch(b"v", producer=(producer, epoch, 0), transactional=True))
    world.settle()


def stage(world, partition, data):
    """As a transactional batch comes, once it is checked."""
    assert world.core.appends.append_own(partition, memoryview(bytearray(data)), NOW_MS)


def mark(world, partition, producer=8, epoch=0, token=1, commit=True, of=0, version=1):
    """Ask for a marker of coordinator epoch `of`."""
    flags = MARK_COMMIT if commit else 0
    world.ask(MARK, partition.handle, token, producer, of, e=epoch, f=version, flags=flags)


def told(answers):
    assert all(one.op == APPENDED for one in answers)
    return [(one.token, one.flags) for one in answers]


def newest(partition):
    """The last batch of the log."""
    log = partition.log
    segment, position, length, _ = log.locate(log.end_offset - 1, 1 << 20, log.end_offset)
    with open(f"{log.path}/{segment:020d}.log", "rb") as file:
        file.seek(position)
        return file.read(length)


def test_a_marker_is_answered_when_everybody_may_see_it(world):
    partition = world.add(epoch=3, flush_policy="group")
    write(world, partition)
    assert (partition.last_stable_offset, partition.high_watermark) == (0, 1)
    mark(world, partition, of=7)
    assert world.turn() == []
    assert partition.log.end_offset == 2 and partition.last_stable_offset == 0
    world.threads.run_all()
    assert told(world.turn()) == [(1, errors.NONE)]
    assert (partition.last_stable_offset, partition.high_watermark) == (2, 2)
    header = read_header(newest(partition))
    assert header.is_control and header[5] & CONTROL_BIT
    assert (header[9], header[10], header[2]) == (8, 0, 3), "producer, epoch, leader epoch"
    assert markers.read(newest(partition)) == markers.Marker(True, 7)


@pytest.mark.parametrize(("version", "epoch"), [(1, 0), (2, 1)])
def test_a_marker_that_comes_twice_changes_nothing(world, version, epoch):
    partition = world.add(flush_policy="group")
    write(world, partition)
    mark(world, partition, epoch=epoch, token=1, commit=False, version=version)
    mark(world, partition, epoch=epoch, token=2, commit=False, version=version)
    assert world.turn() == [], "neither is below the high watermark"
    world.threads.run_all()
    assert told(world.turn()) == [(1, errors.NONE), (2, errors.NONE)]
    mark(world, partition, epoch=epoch, token=3, commit=False, version=version)
    assert told(world.turn()) == [(3, errors.NONE)]
    assert partition.log.end_offset == 2


def test_a_new_transaction_of_the_same_epoch_is_ended_by_its_own_marker(world):
    partition = world.add(flush_policy="none")
    for round_ in range(2):
        stage(world, partition, batch(b"v", producer=(8, 0, round_), transactional=True))
        mark(world, partition, token=1)
        assert told(world.turn()) == [(1, errors.NONE)]
    assert partition.log.end_offset == partition.last_stable_offset == 4


def test_what_comes_too_late_is_refused(world):
    partition = world.add(flush_policy="none")
    write(world, partition, epoch=5)
    mark(world, partition, epoch=4, token=1)
    mark(world, partition, epoch=5, token=2, version=2)
    assert told(world.turn()) == [(n, errors.INVALID_PRODUCER_EPOCH) for n in (1, 2)]
    mark(world, partition, epoch=5, token=3, of=2)
    assert told(world.turn()) == [(3, errors.NONE)]
    mark(world, partition, epoch=6, token=4, of=1)
    assert told(world.turn()) == [(4, errors.TRANSACTION_COORDINATOR_FENCED)]
    assert partition.log.end_offset == 2


def test_who_is_not_there_does_not_lead_or_failed_says_so(world):
    follower, broken = world.add("f"), world.add("b")
    world.core.follow(follower, 1)
    world.core.fail(broken, StorageFailed("b", 5, "broken"))
    for token, partition in enumerate((follower, broken)):
        mark(world, partition, token=token)
    world.ask(MARK, 200, 2, 8, 0)
    assert told(world.turn()) == [
        (0, errors.NOT_LEADER_OR_FOLLOWER),
        (1, errors.KAFKA_STORAGE_ERROR),
        (2, errors.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_a_marker_without_room_is_there_once_when_there_is_room():
    world = full_world()
    partition = world.add(flush_policy="group")
    write(world, partition)
    fill(world.disk)
    for token in range(60):  # some find room in the last page
        mark(world, partition, producer=8, epoch=token, token=token, commit=False, version=2)
        answers = told(world.settle())
        if answers != [(token, errors.NONE)] and token:
            break
    assert answers == [(token, errors.KAFKA_STORAGE_ERROR)] and partition.log.has_unwritten
    end = partition.log.end_offset
    mark(world, partition, epoch=token, token=token, commit=False, version=2)
    assert told(world.turn()) == [(token, errors.KAFKA_STORAGE_ERROR)]
    make_room(world)
    mark(world, partition, epoch=token, token=token, commit=False, version=2)
    assert told(world.settle()) == [(token, errors.NONE)]
    assert partition.log.end_offset == partition.last_stable_offset == end
    assert world.failures == []
