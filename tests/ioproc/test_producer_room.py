"""Producers are remembered up to a bound: those who are silent make room, a new one beyond it is
refused, and everybody who is remembered is served."""

import random
import struct

import pytest
from core_world import NOW_MS, World, batch

from appliance.base import errors
from appliance.config import bounds
from appliance.ioproc.requests.producer_limit import SILENT_MS, ProducerLimit
from appliance.ring.messages import APPEND, APPENDED, UNVERIFIED, Message
from appliance.wire.batch import NewRecord, build_batch

MOST = 4


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.reached = []
    world.served.reach = lambda bound, why: world.reached.append((bound, why))
    world.core.appends.producers = ProducerLimit(world.served, MOST)
    world.add("t", 0)
    world.add("t", 1)
    return world


def send(world, producer, handle=0, sequence=0, later_ms=0, flags=0, transactional=False):
    """The answer's error code, and whether it is to be verified first."""
    records = [NewRecord(NOW_MS, None, b"v")]
    sent = build_batch(
        records, producer_id=producer, producer_epoch=0, base_sequence=sequence,
        transactional=transactional,
    )  # fmt: skip
    asker = world.core.askers[0]
    asker.arena[: len(sent)] = sent
    message = Message(APPEND, flags, handle, 7, 0, 0, 0, 0, 0, 0, 0, 0, len(sent), 1)
    world.arrivals.handle(asker, [message], NOW_MS + later_ms)
    (found,) = [one for one in world.settle() if one.op in (APPENDED, UNVERIFIED)]
    return found.flags


def test_producers_beyond_the_bound_are_refused_and_others_served(world):
    assert [send(world, producer, producer % 2) for producer in range(MOST)] == [0] * MOST
    for producer in (100, 101):
        assert send(world, producer) == errors.POLICY_VIOLATION
    assert [bound for bound, _ in world.reached] == [bounds.PRODUCER_IDS] * 2
    assert bounds.setting_of(bounds.PRODUCER_IDS) in world.reached[0][1]
    assert send(world, 0, sequence=1) == errors.NONE, "who is remembered goes on"
    assert send(world, 0, sequence=1) == errors.NONE, "also with a batch sent twice"
    assert world.served.partitions[0].log.end_offset == MOST // 2 + 1
    world.append(0, batch(b"plain"))
    assert world.settle()[0].flags == errors.NONE, "and who is no producer at all"


def test_silent_producers_make_room(world):
    for producer in range(MOST):
        send(world, producer, producer % 2)
    world.served.partitions[0].log.producers.producers[0].last_seen_ms = NOW_MS + SILENT_MS
    assert send(world, 50, later_ms=SILENT_MS) == errors.NONE
    left = {0: [0, 50], 1: []}
    assert {
        n: sorted(one.log.producers.producers) for n, one in world.served.partitions.items()
    } == (left)
    assert not world.reached


def test_an_open_transaction_keeps_its_producer(world):
    for producer in range(MOST):
        assert send(world, producer, transactional=True, flags=2) in (0, errors.INVALID_TXN_STATE)
    room = world.core.appends.producers
    states = world.served.partitions[0].log.producers
    assert room.held == states.size()
    states.open.update(dict.fromkeys(states.producers, 0))
    kept = dict(states.producers)
    send(world, 50, later_ms=2 * SILENT_MS)
    assert states.producers.keys() >= kept.keys()


def test_whoever_asks_for_a_guard_only_counts(world):
    codes = [send(world, producer, transactional=True, flags=1) for producer in range(MOST + 2)]
    assert codes == [errors.INVALID_TXN_STATE] * MOST + [errors.POLICY_VIOLATION] * 2
    assert not world.served.partitions[0].log.producers.producers
    assert [bound for bound, _ in world.reached] == [bounds.PRODUCER_IDS] * 2


def test_room_is_counted_as_what_is_there(world):
    """Whatever comes and goes, in any order."""
    rng = random.Random(5)
    room = world.core.appends.producers = ProducerLimit(world.served, 40)
    for later in range(300):
        if rng.random() < 0.1:
            states = rng.choice(list(world.served.partitions.values())).log.producers
            states.expire(NOW_MS + later * 10_000, 100_000)
        send(world, rng.randrange(90), rng.randrange(2), later_ms=later * 10_000)
        sizes = [one.log.producers.size() for one in world.served.partitions.values()]
        assert max(sizes) <= 40 and room.held >= sum(sizes) - 40
    for partition in world.served.partitions.values():
        room.count_producers(partition.log.producers)
    assert room.held == sum(one.log.producers.size() for one in world.served.partitions.values())


def test_a_batch_that_is_too_large_is_told(world):
    handle = world.add("small", max_message_bytes=200).handle
    world.append(handle, batch(b"v" * 300))
    assert world.settle()[0].flags == errors.MESSAGE_TOO_LARGE
    ((bound, why),) = world.reached
    assert bound == bounds.BATCH_BYTES and "small-0" in why and "200" in why
    world.append(handle, batch(b"v"))
    assert world.settle()[0].flags == errors.NONE


def test_short_bytes_are_no_producer(world):
    for producer in range(MOST):
        send(world, producer)
    world.append(0, struct.pack(">q", 1))
    assert world.settle()[0].flags == errors.CORRUPT_MESSAGE
