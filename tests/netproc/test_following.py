"""What a network process does about metadata: which brokers clients are still told of when they
have been fenced, and when it looks anew where partitions are."""

from types import SimpleNamespace

import pytest

from appliance.authorization.authorizer import AllowAll
from appliance.config.broker import BrokerConfig
from appliance.handlers.nodes import STILL_TOLD_NS, just_left
from appliance.metadata.image import TOPIC, MetadataImage
from appliance.netproc.requests.metadata_replay import MetadataFollowing
from appliance.shell.read_retries import ReadRetries
from appliance.wire import kraft_records as kraft

pytestmark = pytest.mark.interpreted("what stands behind it is not of the compiled classes")


class World:
    """What a network process follows, with nothing behind it."""

    def __init__(self, *unfenced):
        self.image = MetadataImage()
        for node_id in unfenced:
            self.image.apply(0, register(node_id, fenced=False))
        self.renewed = []  # whether routes, for each time
        renew = lambda routes: self.renewed.append(routes)  # noqa: E731
        self.host = SimpleNamespace(now_ns=7, left={}, renew=renew, node_id=1)
        self.host.logins = SimpleNamespace(follow_changes=lambda _: None)
        self.following = MetadataFollowing(
            SimpleNamespace(
                authorizer=AllowAll(),
                config=BrokerConfig(),
                processes=SimpleNamespace(set_applied=lambda *_: None),
                rereading=SimpleNamespace(then=lambda _: None),
                me=None,
            ),
            SimpleNamespace(
                image=self.image,
                applied=0,
                is_far=lambda _: False,
                catch_up=lambda _: self.changes,
            ),
            self.host,
            SimpleNamespace(configure=lambda *_: None),
            SimpleNamespace(
                committed=[1],
                applied=0,
                limits=SimpleNamespace(set=lambda *_: None),
                bugs=SimpleNamespace(guard=lambda _, consequence: consequence()),
            ),
            SimpleNamespace(follow=lambda *_: None),
            ReadRetries(None),
        )

    def commit(self, record):
        self.changes = self.image.apply(1, record)
        self.following._shared.applied = 0
        assert self.following.follow()
        return just_left(self.host)


def register(node_id, *, fenced):
    return kraft.RegisterBrokerRecord(
        broker_id=node_id, incarnation_id=bytes(16), broker_epoch=node_id, fenced=fenced,
        end_points=(), features=(), rack=None,
    )  # fmt: skip


def fence(node_id, fenced=1):
    return kraft.BrokerRegistrationChangeRecord(
        broker_id=node_id, broker_epoch=node_id, fenced=fenced
    )


def test_who_was_fenced_while_we_looked_is_told_for_a_moment():
    world = World(1, 2)
    world.image.apply(0, register(3, fenced=True))
    assert world.commit(fence(2)) == {2}, "3 was fenced before"
    world.host.now_ns += STILL_TOLD_NS - 1
    assert world.commit(register(4, fenced=True)) == {2}
    world.host.now_ns += 1
    assert not just_left(world.host)


def test_who_comes_back_is_told_like_anybody_and_leaves_anew():
    world = World(1, 2)
    world.commit(fence(2))
    assert not world.commit(fence(2, fenced=-1))
    assert not world.host.left
    assert world.commit(fence(1)) == {1}


def test_routes_are_looked_up_anew_for_what_may_change_them_alone():
    world = World(1, 2)
    world.commit(kraft.ConfigRecord(resource_type=TOPIC, resource_name="t", name="k", value="1"))
    world.commit(kraft.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000))
    world.commit(kraft.NoOpRecord())
    assert world.renewed == [False] * 3
    world.commit(fence(2))
    world.commit(kraft.TopicRecord(name="t", topic_id=bytes(range(16))))
    assert world.renewed[3:] == [True] * 2
