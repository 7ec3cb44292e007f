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

COMMIT, TXN_COMMIT, JOIN, SYNC, HEARTBEAT, LEAVE = 8, 28, 11, 14, 68, 13
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

    def commit(self, group, metadata=None):
        row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": metadata}
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

    def join(self, group, size=10, member_id="", version=2, protocols=None):
        _, answers = self.ask(
            JOIN, version, group_id=group, session_timeout=10_000, rebalance_timeout=10_000,
            member_id=member_id, protocol_type="consumer",
            protocols=protocols or [{"name": "range", "metadata": bytes(size)}],
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

    def begin(self, name):
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


def test_metadata_of_an_offset_beyond_the_bound_is_refused():
    world = Groups()
    assert world.commit("g", "m" * 4096) == errors.NONE
    assert world.commit("g", "m" * 4097) == errors.OFFSET_METADATA_TOO_LARGE
    assert world.reached == [bounds.OFFSET_METADATA]
    assert world.commit("g", "m") == errors.NONE


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
    world.most_bytes = 100_000
    world.shard.state.room = world.room()
    world.join("g", 60_000)
    assert world.join("h", 60_000) == [(BEYOND, "")]
    assert "h" not in world.shard.state.groups
    world.join("h", 30_000)
    assert 90_000 < world.shard.held_bytes() < 92_000
    assert world.reached == [bounds.GROUP_BYTES]
    assert world.commit("i") == errors.NONE
    world.pass_time(400_000)
    assert world.shard.held_bytes() == len("ghi"), "whoever has gone says nothing"
    world.join("h", 90_000)
    assert world.reached == [bounds.GROUP_BYTES]


def test_small_protocols_count_as_what_they_take():
    world = Groups()
    world.most_bytes = 100_000
    world.shard.state.room = world.room()
    many = [{"name": f"{number:x}", "metadata": b""} for number in range(1000)]
    assert world.join("g", protocols=many) == [(BEYOND, "")]
    assert world.join("g", protocols=many[:500]) != [(BEYOND, "")]


def test_names_of_groups_count():
    world = Groups()
    world.most_bytes = 50_000
    world.shard.state.room = world.room()
    codes = [world.commit(letter * 20_000) for letter in "abc"]
    assert codes == [errors.NONE, errors.NONE, BEYOND]
    assert world.reached == [bounds.GROUP_BYTES]
    world.answer(42, 0, groups_names=["a" * 20_000])
    assert world.commit("c" * 20_000) == errors.NONE


def test_assignments_count():
    world = Groups()
    world.most_bytes = 50_000
    world.shard.state.room = world.room()
    world.join("g")
    world.pass_time(5000)
    (member_id,) = world.shard.state.groups["g"].members
    sync = {"group_id": "g", "generation_id": 1, "member_id": member_id}
    codes = []
    for size in (60_000, 20_000):
        given = [{"member_id": member_id, "assignment": bytes(size)}]
        codes.append(int(world.answer(SYNC, 1, **sync, assignments=given).error_code))
    assert codes == [BEYOND, errors.NONE]
    assert 20_000 < world.shard.held_bytes() < 22_000
    world.restart()
    assert 20_000 < world.shard.held_bytes() < 22_000, "what is loaded counts"


def test_what_members_of_the_consumer_protocol_say_counts():
    world = Consumers()
    world.most_bytes = 100_000
    world.shard.state.room = world.room()
    names = [f"t{number}" for number in range(1000)]
    assert beat(world, "g", "a", names=names) == errors.NONE
    held = world.shard.held_bytes()
    assert 64_000 < held < 80_000
    assert beat(world, "h", "b", names=names) == BEYOND
    assert beat(world, "h", "b") == errors.NONE
    assert beat(world, "g", "a", epoch=2, names=["t", *names[:2]]) == errors.NONE
    assert world.shard.held_bytes() < 3000
    assert beat(world, "h", "b", names=names, epoch=2) == errors.NONE
    assert beat(world, "h", "b", epoch=-1) == errors.NONE
    assert world.shard.held_bytes() < 3000
    assert world.reached == [bounds.GROUP_BYTES]


def beat(world, group, member="m", expression=None, names=("t",), epoch=0):
    found = world.answer(
        HEARTBEAT, 1, group_id=group, member_id=member, member_epoch=epoch, instance_id=None,
        rack_id=None, rebalance_timeout=10_000, subscribed_topic_names=list(names),
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
    codes = [world.begin(f"x{n}") for n in range(MANY + 2)]
    assert codes == [errors.NONE] * MANY + [errors.POLICY_VIOLATION] * 2
    assert world.reached == [bounds.TRANSACTIONAL_IDS] * 2
    assert world.begin("x0") == errors.NONE


def test_members_that_ask_for_ids_and_do_not_join_are_bounded():
    world = Groups(max_pending=2)
    ids = []
    for _ in range(2):
        ((code, member_id),) = world.join("g", version=4)
        assert code == errors.MEMBER_ID_REQUIRED
        ids.append(member_id)
    assert world.join("g", version=4) == [(errors.COORDINATOR_LOAD_IN_PROGRESS, "")]
    assert world.join("h", version=4)[0][0] == errors.MEMBER_ID_REQUIRED, "other groups have room"
    assert world.join("g", version=3) != [(errors.COORDINATOR_LOAD_IN_PROGRESS, "")], "no id first"
    world.ask(JOIN, 4, **_joining("g", ids[0]))
    assert world.join("g", version=4)[0][0] == errors.MEMBER_ID_REQUIRED, "one has joined"
    assert world.join("g", version=4) == [(errors.COORDINATOR_LOAD_IN_PROGRESS, "")]
    world.answer(LEAVE, 2, group_id="g", member_id=ids[1])
    assert world.join("g", version=4)[0][0] == errors.MEMBER_ID_REQUIRED, "one has left"
    assert world.reached == [bounds.PENDING_MEMBERS] * 2
    world.pass_time(400_000)
    assert world.shard.held_bytes() == len("gh"), "ids that are not used are forgotten"


def test_ids_that_are_given_out_count():
    world = Groups()
    world.most_bytes = 3000
    world.shard.state.room = world.room()
    codes = [world.join("g", version=4)[0][0] for _ in range(20)]
    given = codes.count(errors.MEMBER_ID_REQUIRED)
    assert 5 < given < 15 and codes[given:] == [BEYOND] * (20 - given)
    assert world.shard.held_bytes() <= 3000


def _joining(group, member_id):
    return {
        "group_id": group, "session_timeout": 10_000, "rebalance_timeout": 10_000,
        "member_id": member_id, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }  # fmt: skip


def test_transactional_ids_count_with_their_names():
    world = Transactions()
    world.most, world.most_bytes = 1000, 70_000
    world.shard.state.room = world.room()
    assert world.begin("a" * 30_000) == world.begin("b" * 30_000) == errors.NONE
    assert world.begin("c" * 30_000) == errors.POLICY_VIOLATION
    assert world.reached == [bounds.TRANSACTION_BYTES]
    assert world.begin("d") == world.begin("a" * 30_000) == errors.NONE
    world.restart()
    assert 60_000 < world.shard.held_bytes() < 63_000, "what is loaded counts"


def test_partitions_of_transactions_beyond_the_bound_are_refused_and_others_served():
    world = Transactions()
    world.most_bytes = 1600
    world.shard.state.room = world.room()
    first, second = world.init("x"), world.init("y")
    assert world.add(first, 0, 1, name="x") == [errors.NONE] * 2
    before = world.shard.held_bytes()
    assert world.add(second, 0, 1, 2, name="y") == [errors.TRANSACTION_ABORTABLE] * 3
    assert world.add(first, 0, 1, name="x") == [errors.NONE] * 2, "they belong to it already"
    assert world.reached == [bounds.TRANSACTION_BYTES] and world.shard.held_bytes() == before
    world.end(first, name="x", version=3)
    world.mark()
    assert world.add(second, 0, 1, 2, name="y") == [errors.NONE] * 3, "there is room again"


@pytest.mark.parametrize("kind", [Groups, Transactions])
def test_what_is_loaded_is_kept(kind):
    world = kind()
    name = "commit" if kind is Groups else "begin"
    world.most = 10
    world.shard.state.room = world.room()
    for n in range(8):
        assert getattr(world, name)(f"x{n}") == errors.NONE
    world.most = 2
    world.restart()
    assert world.shard.size() == 8
    assert getattr(world, name)("x0") == errors.NONE
    assert getattr(world, name)("another") != errors.NONE
