"""Replicas that catch up are throttled as the settings say: who, how fast, and who never."""

import pytest
from core_world import World, batch
from test_replicas import D3, fetch, leads

from appliance.config.broker import BrokerConfig
from appliance.ioproc.replication.replication_throttle import ReplicationThrottling, replicas_of
from appliance.metadata.changes import BrokerChanged, ConfigChanged, PartitionChanged
from appliance.metadata.image import BROKER, TOPIC, MetadataImage
from appliance.ring.messages import FOUND
from appliance.wire import kraft_records as kraft

ME = 1
RATE = 1000
T, U = b"t" * 16, b"u" * 16


class Metadata:
    """Topics t and u, three replicas each; node 1 leads t-0 and t-1, and follows in t-2 and u-0.
    Everybody is in sync but node 3 in t-0, nodes 2 and 3 in t-1, and node 1 in t-2."""

    def __init__(self):
        self.image = MetadataImage()
        for name, topic_id, partitions in (
            ("t", T, [(1, (1, 2)), (1, (1,)), (2, (2, 3))]),
            ("u", U, [(3, (1, 2, 3))]),
        ):
            self.apply(kraft.TopicRecord(name=name, topic_id=topic_id))
            for index, (leader, isr) in enumerate(partitions):
                self.apply(kraft.PartitionRecord(
                    partition_id=index, topic_id=topic_id, replicas=(1, 2, 3), isr=isr,
                    leader=leader, leader_epoch=1, partition_epoch=1,
                    directories=(b"d" * 16,) * 3,
                ))  # fmt: skip

    def apply(self, record):
        self.image.apply(self.image.applied_offset + 1, record)

    def set(self, kind, name, key, value):
        self.apply(
            kraft.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
        )

    def limit(self, side, rate=RATE, replicas="*", topics=("t", "u")):
        self.set(BROKER, str(ME), f"{side}.replication.throttled.rate", str(rate))
        for topic in topics:
            self.set(TOPIC, topic, f"{side}.replication.throttled.replicas", replicas)

    def looked(self, me=0, ioprocs=1):
        found = ReplicationThrottling(BrokerConfig(), me, ioprocs)
        found.read_settings(self.image)
        return found


def rate_of(throttle):
    """As what passes in a long time."""
    throttle.spend(10**9, 0)
    return 10**12 / throttle.wait_ms(0)


@pytest.fixture
def metadata():
    return Metadata()


def test_nothing_is_throttled_that_nobody_asked_for(metadata):
    both = metadata.looked()
    assert not both.leader.on and not both.follower.on
    metadata.limit("leader", rate=(1 << 63) - 1)
    assert not metadata.looked().leader.on, "without a limit"
    metadata.limit("follower", replicas="")
    assert not metadata.looked().follower.on, "without replicas"


def test_those_are_throttled_that_are_not_in_sync(metadata):
    metadata.limit("leader")
    metadata.limit("follower")
    both = metadata.looked()
    assert both.leader.keys == {(T, 0), (T, 1)}
    assert both.follower.keys == {(T, 2)}
    assert rate_of(both.leader) == pytest.approx(RATE, rel=0.01)


def test_a_list_names_partitions_and_this_node(metadata):
    assert replicas_of("0:1, 2:1,1:2", 1) == {0, 2}
    assert replicas_of("*", 1) is None
    metadata.limit("leader", replicas="0:2,1:1")
    assert metadata.looked().leader.keys == {(T, 1)}


def test_processes_share_the_limit_by_who_has_replicas_that_are_late(metadata):
    metadata.limit("leader")
    shares = [metadata.looked(me, ioprocs=2) for me in range(2)]
    found = {key: rate_of(one.leader) for one in shares for key in one.leader.keys}
    assert found[T, 0] == pytest.approx(RATE / 3, rel=0.01)
    assert found[T, 1] == pytest.approx(RATE * 2 / 3, rel=0.01), "two of its replicas are late"
    metadata.apply(kraft.PartitionChangeRecord(partition_id=0, topic_id=T, isr=(1, 2, 3)))
    shares = [metadata.looked(me, ioprocs=2) for me in range(2)]
    (one,) = [one.leader for one in shares if one.leader.on]
    assert rate_of(one) == pytest.approx(RATE, rel=0.01)


def test_it_is_looked_at_when_it_may_be_another_answer(metadata):
    both = metadata.looked()
    metadata.limit("leader")
    isr = PartitionChanged("t", T, 0)
    both.follow(metadata.image, [isr, BrokerChanged(2)])
    assert not both.leader.on, "nothing was limited"
    both.follow(metadata.image, [ConfigChanged(TOPIC, "t", "leader.replication.throttled.rate")])
    assert both.leader.keys == {(T, 0), (T, 1)}
    metadata.apply(kraft.PartitionChangeRecord(partition_id=0, topic_id=T, isr=(1, 2, 3)))
    both.follow(metadata.image, [isr])
    assert both.leader.keys == {(T, 1)}
    metadata.set(BROKER, str(ME), "leader.replication.throttled.rate", None)
    both.follow(metadata.image, [ConfigChanged(BROKER, str(ME), "log.retention.ms")])
    assert both.leader.on, "that is none of these settings"
    both.follow(
        metadata.image, [ConfigChanged(BROKER, str(ME), "leader.replication.throttled.rate")]
    )
    assert not both.leader.on


# The leader's side --------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.cluster.epochs = {1: 11, 2: 12, 3: 13}
    return world


def led(world, index=0):
    """Eight batches of 3 KB, all visible; node 3 is not in sync."""
    p = world.add(index=index, role=leads(isr=(2,)), **D3)
    for _ in range(8):
        world.append(p.handle, batch(b"x" * 3000), acks=1)
    world.turn()
    fetch(world, p, 2, 8)
    world.turn()
    return p


def limit(world, *partitions, rate=RATE):
    world.throttle.set(rate, [(p.topic_id, p.index) for p in partitions])


def given(world, ms=0):
    """Token → length of each answer."""
    got = world.turn(ms)
    replicas = world.questions.replicas
    if world.now_ms >= replicas.due_ms:
        replicas.tick(world.now_ms)
    return {m.token: m.e for m in got + world.turn(0) if m.op == FOUND}


def test_who_is_not_in_sync_waits_until_what_it_had_is_paid_for(world):
    p = led(world)
    limit(world, p, rate=100_000)
    fetch(world, p, 3, 0, token=1)
    size = given(world)[1]
    assert size > 20_000, "a whole answer passes"
    fetch(world, p, 3, 1, token=2)
    assert given(world) == {2: 0}
    fetch(world, p, 3, 1, token=3, wait=1)
    assert given(world) == {} and len(p.parked) == 1
    assert given(world, ms=10) == {}
    assert given(world, ms=300)[3] > 0, "without being asked again"
    assert not p.parked


def test_records_that_come_do_not_wake_it_before(world):
    p = led(world)
    limit(world, p)
    fetch(world, p, 3, 0, token=1)
    given(world)
    fetch(world, p, 3, 1, token=2, wait=1)
    world.append(p.handle, batch(b"more"), acks=1)
    assert given(world) == {}
    limit(world)
    assert given(world, ms=60_000)[2] > 0, "when the limit is gone it waits no more"


def test_who_is_in_sync_or_about_to_be_is_never_throttled(world):
    p, other = led(world), led(world, 1)
    limit(world, p, other)
    fetch(world, p, 3, 0, token=1)
    given(world)
    assert world.throttle.wait_ms(world.now_ms) > 0
    world.append(p.handle, batch(b"y"), acks=1)
    world.turn()
    fetch(world, p, 2, 8, token=2)
    assert given(world)[2] > 0
    fetch(world, other, 3, other.progress.log_end, token=3)
    given(world)
    assert 3 in other.progress.near or 3 in other.progress.in_sync
    world.append(other.handle, batch(b"y"), acks=1)
    world.turn()
    fetch(world, other, 3, other.progress.log_end - 1, token=4)
    assert given(world)[4] > 0


def test_other_partitions_are_not_throttled(world):
    p, other = led(world), led(world, 1)
    limit(world, p)
    for number in range(2):
        fetch(world, p, 3, 0, token=number)
    given(world)
    fetch(world, other, 3, 0, token=9)
    assert given(world)[9] > 0


def test_who_asks_for_what_is_not_there_is_told_at_once(world):
    p = led(world)
    limit(world, p)
    fetch(world, p, 3, 0, token=1)
    given(world)
    fetch(world, p, 3, 99, token=2, wait=1)
    assert given(world) == {2: 0}
