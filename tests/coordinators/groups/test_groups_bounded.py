"""Groups, what their members say, and transactional ids, each driven to its ceiling: the error, the
event that counts, and that everybody who was there is served."""

from itertools import count

import pytest
from consumer_world import ConsumerWorld
from coordinator_world import World as GroupWorld

from appliance.base import errors
from appliance.config import bounds
from appliance.coordinators.runtime.room import ShardRoom
from appliance.coordinators.transactions.shard import TransactionShard
from tests.coordinators.transactions.transaction_world import INIT
from tests.coordinators.transactions.transaction_world import World as TransactionWorld

COMMIT, TXN_COMMIT, JOIN, HEARTBEAT = 8, 28, 11, 68
BEYOND = errors.GROUP_MAX_SIZE_REACHED
MANY = 4


class Bounded:
    """A world with so little room. reached: the bounds that events told of, one for each."""

    most, most_bytes = MANY, 1 << 20
    version = 4

    def room(self):
        return ShardRoom(self.most, self.most_bytes, lambda: [self])

    def carry_out(self, outcome):
        notes = [one for one in outcome.notes if one.event == "bound-reached"]
        self.reached = [*getattr(self, "reached", ()), *(one.about for one in notes)]
        assert all(one.is_loss and one.fields["bound"] == one.about for one in notes)
        assert all(bounds.setting_of(one.about) in one.fields["why"] for one in notes)
        return super().carry_out(outcome)


class Groups(Bounded, GroupWorld):
    def new_shard(self, partition=0):
        made = super().new_shard(partition)
        made.state.room = self.room()
        return made

    def commit(self, group):
        row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": None}
        found = self.answer(
            COMMIT, 2, group_id=group, generation_id_or_member_epoch=-1, member_id="",
            retention_time=-1, topics=[{"name": "t", "partitions": [row]}],
        )  # fmt: skip
        return int(found.topics[0].partitions[0].error_code)

    def commit_within(self, group, version):
        row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": None}
        found = self.answer(
            TXN_COMMIT, version, transactional_id="x", group_id=group, producer_id=7,
            producer_epoch=0, topics=[{"name": "t", "partitions": [row]}],
        )  # fmt: skip
        return int(found.topics[0].partitions[0].error_code)

    def join(self, group, size=10, member_id="", version=2):
        _, answers = self.ask(
            JOIN, version, group_id=group, session_timeout=10_000, rebalance_timeout=10_000,
            member_id=member_id, protocol_type="consumer",
            protocols=[{"name": "range", "metadata": bytes(size)}],
        )  # fmt: skip
        return [(int(found.error_code), found.member_id) for _, found in answers]


class Consumers(Bounded, ConsumerWorld):
    def new_shard(self, partition=0):
        made = super().new_shard(partition)
        made.state.room = self.room()
        return made


class Transactions(Bounded, TransactionWorld):
    def new_shard(self):
        take = lambda: next(self.ids, None)  # noqa: E731
        return TransactionShard(
            0, self.epoch, self.settings, self.image, take, room=self.room()
        )  # fmt: skip

    def init(self, name):
        found = self.ask(INIT, 1, transactional_id=name, transaction_timeout=60_000)
        return int(found.error_code)


def test_groups_beyond_the_bound_are_refused_and_others_served():
    world = Groups()
    assert [world.commit(f"g{n}") for n in range(MANY + 2)] == [0] * MANY + [BEYOND] * 2
    assert world.join("another") == [(BEYOND, "")]
    assert world.reached == [bounds.GROUPS] * 3
    assert world.commit("g0") == errors.NONE
    assert [code for code, _ in world.join("g1")] == [errors.NONE], "members may come"
    world.answer(42, 0, groups_names=["g0"])
    assert world.commit("another") == errors.NONE, "there is room again"


def test_a_group_of_a_transaction_beyond_the_bound_aborts_it():
    world = Groups()
    for n in range(MANY):
        world.commit(f"g{n}")
    world.shard.state.image.features["transaction.version"] = 2
    for version, code in ((2, BEYOND), (4, errors.TRANSACTION_ABORTABLE)):
        standing = {"standing": errors.NONE}
        assert _within(world, "another", version, **standing) == code
    assert _within(world, "g0", 2, standing=errors.NONE) == errors.NONE
    assert world.reached == [bounds.GROUPS] * 2


def _within(world, group, version, standing):
    from dataclasses import replace

    handle = world.shard.handle
    world.shard = _Standing(world.shard, lambda call: replace(call, standing=standing), handle)
    try:
        return world.commit_within(group, version)
    finally:
        world.shard = world.shard.shard


class _Standing:
    """The shard, whose coordinator has been asked already."""

    def __init__(self, shard, change, handle):
        self.shard, self._change, self._handle = shard, change, handle

    def __getattr__(self, name):
        return getattr(self.shard, name)

    def handle(self, call, request, now):
        return self._handle(self._change(call), request, now)


def test_what_members_say_beyond_the_bound_is_refused_and_others_served():
    world = Groups()
    world.most_bytes = 1000
    world.shard.state.room = world.room()
    world.join("g", 600)
    assert world.join("h", 600) == [(BEYOND, "")]
    assert "h" not in world.shard.state.groups
    world.join("h", 300)
    assert world.shard.held_bytes() == 600 + 300 + 2 * len("range")
    assert world.reached == [bounds.GROUP_BYTES]
    assert world.commit("i") == errors.NONE
    world.pass_time(400_000)
    assert world.shard.held_bytes() == 0, "whoever has gone says nothing"
    world.join("h", 900)
    assert world.reached == [bounds.GROUP_BYTES]


def beat(world, group, member="m", expression=None):
    found = world.answer(
        HEARTBEAT, 1, group_id=group, member_id=member, member_epoch=0, instance_id=None,
        rack_id=None, rebalance_timeout=10_000, subscribed_topic_names=["t"],
        subscribed_topic_regex=expression, server_assignor=None, topic_partitions=[],
    )  # fmt: skip
    return int(found.error_code)


def test_groups_of_the_consumer_protocol_beyond_the_bound_are_refused():
    world = Consumers()
    world.most = 1
    world.shard.state.room = world.room()
    assert [beat(world, "g"), beat(world, "h")] == [errors.NONE, BEYOND]
    assert world.reached == [bounds.GROUPS]


def test_members_beyond_the_size_of_a_group_are_refused():
    world = Consumers(consumer_max_size=2)
    assert [beat(world, "g", name) for name in "abca"] == [0, 0, BEYOND, 0]
    assert world.reached == [bounds.CONSUMER_MEMBERS]
    world = Groups(max_size=1)
    assert [code for code, _ in world.join("g")] == [errors.NONE]
    assert world.join("g") == [(BEYOND, "")]
    assert [code for code, _ in world.join("h")] == [errors.NONE]
    assert world.reached == [bounds.GROUP_MEMBERS]


def test_an_expression_that_takes_too_much_work_is_refused():
    world = Consumers(regex_max_steps=1000)
    assert beat(world, "g", "a", "(.?){900}") == errors.INVALID_REGULAR_EXPRESSION
    assert world.reached == [bounds.REGEX]
    assert beat(world, "g", "b", "t.*") == errors.NONE


def test_transactional_ids_beyond_the_bound_are_refused_and_others_served():
    world = Transactions()
    world.ids = count(1000)
    codes = [world.init(f"x{n}") for n in range(MANY + 2)]
    assert codes == [errors.NONE] * MANY + [errors.POLICY_VIOLATION] * 2
    assert world.reached == [bounds.TRANSACTIONAL_IDS] * 2
    assert world.init("x0") == errors.NONE


@pytest.mark.parametrize("kind", [Groups, Transactions])
def test_what_is_loaded_is_kept(kind):
    world = kind()
    name = "commit" if kind is Groups else "init"
    world.most = 10
    world.shard.state.room = world.room()
    for n in range(8):
        assert getattr(world, name)(f"x{n}") == errors.NONE
    world.most = 2
    world.restart()
    assert world.shard.size() == 8
    assert getattr(world, name)("x0") == errors.NONE
    assert getattr(world, name)("another") != errors.NONE
