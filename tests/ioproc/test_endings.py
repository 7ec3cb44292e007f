"""Endings on their way to the homes of partitions: what is sent when, again, and what is told."""

import pytest

from appliance.base import errors
from appliance.base.home import home_of
from appliance.coordinators.runtime.call import NEVER
from appliance.coordinators.runtime.transaction_effects import Ending
from appliance.ioproc.coordination.marker_sender import (
    AT_ONCE,
    FIRST_REST_MS,
    LONGEST_REST_MS,
    MOST_SENT,
    RING_FULL_MS,
    SHARE,
    SPREAD,
    MarkerSender,
)
from appliance.metadata.image import MetadataImage
from appliance.ring.messages import MARK, MARK_COMMIT
from appliance.ring.ring import RingReader, RingWriter, ring_bytes
from appliance.wire import kraft_records as kraft
from tests.alone import alone

TOPIC_ID = b"t" * 16
HOMES = 2
NOW = 1000
STORAGE = errors.KAFKA_STORAGE_ERROR


def image_with(partitions, leaders=None):
    """leaders: of each partition, this node where nothing is said."""
    image = MetadataImage()
    image.apply(1, kraft.TopicRecord(name="t", topic_id=TOPIC_ID))
    for index in range(partitions):
        leader = (leaders or {}).get(index, 1)
        record = kraft.PartitionRecord(
            partition_id=index, topic_id=TOPIC_ID, replicas=(1,), isr=(1,), leader=leader,
            leader_epoch=0, partition_epoch=0, directories=(b"d" * 16,),
        )  # fmt: skip
        image.apply(image.applied_offset + 1, record)
    return image


class World:
    """This process is home 0, the other one 1. told: what coordinators were told, by owner."""

    def __init__(self, partitions=8, capacity=1024, leaders=None, away=None):
        self.now = NOW
        self.told, self.refused = {}, []
        self.writable = True
        self.rings = {}
        for home in range(HOMES):
            memory = memoryview(bytearray(ring_bytes(capacity)))
            writer = RingWriter(memory, 1, capacity=capacity)
            self.rings[home] = writer, RingReader(memory, 1, capacity=capacity)
        self.rows = {(TOPIC_ID, index): 100 + index for index in range(partitions)}
        self.endings = MarkerSender(
            {home: writer for home, (writer, _) in self.rings.items()},
            image_with(partitions, leaders),
            self.rows,
            lambda ending, where, code: self.refused.append((where, code)),
            away or alone(),
        )
        for home in range(HOMES):
            self.endings.changed(home, up=True)

    def begin(self, *partitions, owner="owner", number=1, commit=True, producer=77):
        where = tuple(("t", index) for index in partitions)
        ending = Ending(number, "id", producer, 5, commit, 3, 2, where)

        def tell(found, now_ms):
            assert now_ms == self.now
            if self.writable:
                self.told.setdefault(owner, []).extend(index for _, index in found)
            return self.writable

        self.endings.begin_ending(ending, owner, tell)

    def turn(self, ms=0):
        """What each home is asked since."""
        self.now += ms
        if self.endings.due_ms <= self.now:
            self.endings.send_due(self.now)
        for writer, _ in self.rings.values():
            writer.publish()
        return {home: reader.drain() for home, (_, reader) in self.rings.items()}

    def answer(self, home, messages, code=errors.NONE):
        for one in messages:
            self.endings.answered(home, one.token, code, self.now)

    def all(self, home, partitions=8):
        return [n for n in range(partitions) if home_of(TOPIC_ID, n, HOMES) == home]


@pytest.fixture
def world():
    return World()


def indexes(messages):
    return [one.handle - 100 for one in messages]


def test_each_partition_is_asked_of_its_home_and_told_in_one_go(world):
    world.begin(*range(8))
    asked = world.turn()
    assert {home: indexes(found) for home, found in asked.items()} == {
        0: world.all(0), 1: world.all(1),
    }  # fmt: skip
    assert all(world.all(home) for home in range(HOMES)), "both homes have some"
    one = asked[0][0]
    assert (one.op, one.flags, one.a, one.b, one.e, one.f) == (MARK, MARK_COMMIT, 77, 3, 5, 2)
    assert world.endings.due_ms == NEVER
    world.answer(0, asked[0])
    world.turn()
    assert world.told == {"owner": world.all(0)} and world.endings.under_way == 1
    world.answer(1, asked[1])
    world.turn()
    assert sorted(world.told["owner"]) == list(range(8))
    assert world.endings.under_way == 0 and world.endings.due_ms == NEVER


def test_what_a_dead_home_did_not_answer_is_asked_of_its_successor(world):
    world.begin(*range(8))
    asked = world.turn()
    answered, lost = asked[1][:1], asked[1][1:]
    world.answer(1, answered)
    world.endings.changed(1, up=False)
    world.begin(*range(8), owner="later")
    assert indexes(world.turn()[1]) == [], "nobody is there"
    world.answer(1, lost)  # words of the dead
    assert world.turn()[1] == []
    world.endings.changed(1, up=True)
    again = world.turn()[1]
    assert indexes(again) == indexes(lost) + world.all(1), "in the order in which they came"
    assert not {one.token for one in again} & {one.token for one in lost}
    world.answer(1, again)
    world.turn()
    assert sorted(world.told["owner"]) == world.all(1) == world.told["later"]


def test_who_refuses_is_asked_again_with_more_and_more_patience(world):
    (index, *_) = world.all(1)
    world.begin(index)
    rests, began = [], world.now
    while len(rests) < 12:
        found = world.turn()[1]
        if found:
            rests.append(world.now - began)
            began = world.now
            world.answer(1, found, STORAGE)
            assert world.turn()[1] == []
        assert world.now < world.endings.due_ms < NEVER
        world.now = world.endings.due_ms
    doubled = [FIRST_REST_MS << n for n in range(7)]
    assert rests == [0, *doubled, *[LONGEST_REST_MS] * 4]
    assert set(world.refused) == {(("t", index), STORAGE)}
    world.answer(1, world.turn()[1])
    world.turn()
    assert world.told == {"owner": [index]}


def test_a_transaction_that_somebody_else_ended_is_ended(world):
    (index, *_) = world.all(0)
    world.begin(index)
    world.answer(0, world.turn()[0], errors.INVALID_PRODUCER_EPOCH)
    world.turn()
    assert world.told == {"owner": [index]} and len(world.refused) == 1


def test_a_fenced_coordinator_does_not_give_up(world):
    (index, *_) = world.all(0)
    world.begin(index)
    world.answer(0, world.turn()[0], errors.TRANSACTION_COORDINATOR_FENCED)
    world.turn()
    assert world.told == {} and world.endings.under_way == 1


def test_a_partition_that_is_no_more_needs_no_marker(world):
    world.begin(0, 99)
    (home,) = [home for home in range(HOMES) if 0 in world.all(home)]
    asked = world.turn()
    assert world.told == {"owner": [99]}
    world.answer(home, asked[home], errors.UNKNOWN_TOPIC_OR_PARTITION)
    world.endings.follow(MetadataImage())
    world.turn()
    assert world.turn(ms=FIRST_REST_MS) == {0: [], 1: []}
    assert world.told == {"owner": [99, 0]} and world.endings.under_way == 0


def test_nothing_of_a_coordinator_that_is_no_more_is_sent_or_told(world):
    """Its marker, sent late, could end the next transaction of the same epoch."""
    world.begin(*range(8), owner="gone")
    asked = world.turn()
    refused, written, kept = world.all(1)[0], world.all(0)[0], world.all(0)[1:]
    for home, found in asked.items():
        for one in found:
            if one.handle - 100 == refused:
                world.answer(home, [one], STORAGE)
            elif one.handle - 100 == written:
                world.answer(home, [one])
    assert kept
    world.endings.forget_owner("gone")
    world.endings.changed(1, up=True)  # what it was asked would be asked again
    world.begin(*range(8), owner="successor", number=1)
    again = world.turn()
    assert sorted(indexes(again[0] + again[1])) == list(range(8))
    world.answer(0, asked[0])
    world.answer(1, asked[1])
    assert world.turn(ms=LONGEST_REST_MS) == {0: [], 1: []}
    assert world.told == {}
    for home, found in again.items():
        world.answer(home, found)
    world.turn()
    assert sorted(world.told["successor"]) == list(range(8)) and list(world.told) == ["successor"]


def test_one_home_has_so_many_to_answer_and_the_rest_waits_for_that():
    world = World(partitions=4 * MOST_SENT)
    world.begin(*range(4 * MOST_SENT))
    seen, looked = [], 0
    while len(seen) < 4 * MOST_SENT:
        asked = world.turn()
        assert asked[0] or asked[1]
        looked += SPREAD
        is_all = looked > 4 * MOST_SENT  # the turn after the last one finds no more
        assert world.endings.due_ms == (NEVER if is_all else AT_ONCE), "an answer wakes it"
        for home, found in asked.items():
            assert len(found) <= MOST_SENT
            seen += indexes(found)
            world.answer(home, found)
        assert world.endings.due_ms == AT_ONCE
    world.turn()
    assert sorted(seen) == sorted(world.told["owner"]) == list(range(4 * MOST_SENT))


def test_a_full_ring_is_looked_at_again_soon():
    world = World(partitions=64, capacity=4)
    world.begin(*range(64))
    seen = 0
    while seen < 64:
        before = world.now
        for home, found in world.turn().items():
            seen += len(found)
            world.answer(home, found)
        assert seen == 64 or world.endings.due_ms in (AT_ONCE, before + RING_FULL_MS)
    world.turn()
    assert sorted(world.told["owner"]) == list(range(64))


def test_a_coordinator_that_can_write_nothing_is_told_again_with_patience(world):
    world.writable = False
    world.begin(0, 1)
    for home, found in world.turn().items():
        world.answer(home, found)
    world.turn()
    assert world.endings.due_ms == world.now + FIRST_REST_MS
    world.turn(ms=FIRST_REST_MS)
    assert world.endings.due_ms == world.now + 2 * FIRST_REST_MS
    world.writable = True
    world.turn(ms=2 * FIRST_REST_MS)
    assert sorted(world.told["owner"]) == [0, 1] and world.endings.under_way == 0


def test_a_small_ending_is_not_behind_all_of_a_large_one():
    """And a home writes so many markers of one in a turn; what it refuses keeps nobody back."""
    many = 40 * SHARE
    world = World(partitions=many)
    world.begin(*range(1, many), number=1)
    world.begin(0, number=2, owner="small")
    home = home_of(TOPIC_ID, 0, HOMES)
    asked = world.turn()
    assert all(len(found) <= SHARE + 1 for found in asked.values())
    at = indexes(asked[home]).index(0)
    small = asked[home].pop(at)
    world.answer(home, [small])
    world.answer(home, asked[home], STORAGE)
    again = world.turn()[home]
    assert len(again) == SHARE and world.told == {"small": [0]}
    found = [{**asked, home: again}]
    while any(found[-1].values()):
        for one, messages in found[-1].items():
            world.answer(one, messages)
        found.append(world.turn(LONGEST_REST_MS))
        assert all(len(one) <= 2 * SHARE for one in found[-1].values()), "what rested comes, too"
    assert sorted(world.told["owner"]) == list(range(1, many)) and not world.endings.under_way


def test_a_large_ending_whose_topic_goes_is_told_of_all():
    many = 5_000
    world = World(partitions=many)
    world.begin(*range(many))
    world.turn()
    world.rows.clear()
    for home in range(HOMES):
        world.endings.changed(home, up=True)
    for _ in range(many // SPREAD + 1):
        world.turn()
    assert sorted(world.told["owner"]) == list(range(many)) and not world.endings.under_way
