"""How far groups are behind, as it is told to whoever looks: of what is committed and what is
there, in slices."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

from appliance.base.ids import TopicId
from appliance.coordinators import groups
from appliance.coordinators.groups.classic_group import ClassicGroup
from appliance.coordinators.groups.classic_state import PREPARING
from appliance.coordinators.groups.consumer_group import ConsumerGroup
from appliance.coordinators.groups.records import OffsetCommitValue
from appliance.coordinators.groups.settings import GroupSettings
from appliance.coordinators.groups.shard import GroupShard
from appliance.ioproc.coordination.group_lag_sampler import GroupLagSampler
from appliance.metadata.image import MetadataImage
from appliance.ring import lag_table
from appliance.ring.lag_table import LagTable
from appliance.ring.partition_table import HIGH_WATERMARK, LOG_START, PartitionTable

SECOND_NS = 1_000_000_000


class World:
    def __init__(self, partitions=4):
        table = memoryview(bytearray(PartitionTable.bytes_needed(2000)))
        self.partitions = PartitionTable(table, 2000)
        topic_id = TopicId(b"t" * 16)
        rows = {(topic_id, n): self.partitions.add(topic_id, n) for n in range(partitions)}
        for handle in rows.values():
            self.partitions.set(handle, HIGH_WATERMARK, 100)
        self.rows = list(rows.values())
        topic = SimpleNamespace(topic_id=topic_id)
        follower = SimpleNamespace(
            image=SimpleNamespace(topics_by_name={"orders": topic}),
            handles=rows,
        )
        shard = GroupShard(0, GroupSettings(), MetadataImage(), lambda: b"m" * 16)
        shard.activate(0)
        self.shard = shard
        self.lags = LagTable(memoryview(bytearray(LagTable.bytes_needed(1))), 1)
        self.behind = GroupLagSampler(self.lags, 0, self.partitions, follower, lambda: [shard])
        self.now_ns = SECOND_NS

    def commit(self, group, partition, offset, topic="orders"):
        value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0)
        self.shard.state.offsets.put_offset(group, topic, partition, value)

    def join(self, group, members, kind=ClassicGroup):
        """A group with so many members; of a classic one they are about to be."""
        made = self.shard.state.groups[group] = kind(group)
        if kind is ClassicGroup:
            made.pending_joins.update((f"m{n}", 0) for n in range(members))
            if members:
                made.become(PREPARING, 0)
        return made

    def told(self):
        """After the next round."""
        self.now_ns += 10 * SECOND_NS
        slices = 1
        while not self.behind.sample_slice(self.now_ns):
            slices += 1
        return self.lags.read()


def test_a_group_is_behind_by_what_can_be_read_and_is_not_committed():
    world = World()
    assert world.told() == ({}, 0)
    world.commit("billing", 0, 100)
    assert world.told() == ({("billing", "orders"): 0}, 0)
    world.commit("billing", 1, 40)
    world.commit("mail", 3, 10)
    world.partitions.set(world.rows[3], LOG_START, 30)  # what retention took is not to be read
    assert world.told() == ({("billing", "orders"): 60, ("mail", "orders"): 70}, 0)
    world.commit("mail", 3, 200)
    world.commit("mail", 7, 0)  # there is no such partition any more
    world.commit("old", 0, 0, topic="deleted")
    assert world.told() == ({("billing", "orders"): 60, ("mail", "orders"): 0}, 0)


def test_with_too_many_groups_those_furthest_behind_are_told():
    world = World()
    for n in range(lag_table.ROWS + 64):
        world.commit(f"g{n}", n % 4, n % 100)
    found, left_out = world.told()
    assert (len(found), left_out) == (lag_table.ROWS, 64)
    assert min(found.values()) >= 100 - 100 * (lag_table.ROWS + 63) // (lag_table.ROWS + 64)


def test_a_round_is_done_in_slices_and_groups_may_go_meanwhile(monkeypatch):
    monkeypatch.setattr("appliance.ioproc.coordination.group_lag_sampler.SLICE_NS", 0)
    world = World(partitions=200)
    for n in range(20):
        for partition in range(60):
            world.commit(f"g{n}", partition, 0)
    slices = 0
    while not world.behind.sample_slice(world.now_ns):
        slices += 1
        world.shard.state.offsets.by_group.pop(f"g{19 - slices}", None)
    found, _ = world.lags.read()
    assert slices > 5 and 0 < len(found) < 20
    assert set(found.values()) == {6000}


def test_it_rests_between_rounds():
    world = World()
    world.told()
    world.commit("billing", 0, 0)
    assert world.told() == ({("billing", "orders"): 100}, 0)
    world.commit("billing", 0, 50)
    assert world.behind.sample_slice(world.now_ns + SECOND_NS)
    assert world.lags.read() == ({("billing", "orders"): 100}, 0)
    world.shard.resign()
    assert world.told() == ({}, 0)


def test_groups_are_counted_by_state_and_told_with_their_members():
    world = World()
    world.told()
    nobody = dict.fromkeys(lag_table.STATES, 0)
    assert world.lags.groups() == (nobody, [], 0)
    world.join("old", 0)
    world.join("new", 0, ConsumerGroup)
    world.join("joining", 3)
    world.told()
    told = world.lags.groups()
    assert told.states == {**nobody, "Empty": 2, "PreparingRebalance": 1}
    assert told.members == [(3, "joining")] and told.left_out == 0
    del world.shard.state.groups["joining"]
    world.told()
    assert world.lags.groups() == ({**nobody, "Empty": 2}, [], 0), "nothing stays of who is gone"
    world.shard.resign()
    world.told()
    assert world.lags.groups() == (nobody, [], 0), "another node coordinates them"


def test_with_too_many_groups_those_with_most_members_are_told_and_all_are_counted():
    world = World()
    for n in range(lag_table.ROWS + 5):
        world.join("g" * 300 + f"{n}" if n == lag_table.ROWS + 4 else f"g{n}", n + 1)
    world.told()
    told = world.lags.groups()
    assert told.states["PreparingRebalance"] == lag_table.ROWS + 5
    assert (len(told.members), told.left_out) == (lag_table.ROWS, 5)
    assert min(one.members for one in told.members) == 6
    assert told.members[0] == (lag_table.ROWS + 5, "g" * 256), "a long name is cut"
    world.commit("billing", 0, 100)
    assert world.told() == ({("billing", "orders"): 0}, 0), "rows do not touch one another"
    assert world.lags.groups() == told


def test_every_state_that_a_group_has_can_be_told():
    """A word without a place would end the coordinator's process."""
    folder = Path(groups.__file__).parent
    words = {
        node.value
        for file in ("classic_state.py", "consumer_group.py")
        for node in ast.walk(ast.parse((folder / file).read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch("([A-Z][a-z]+)+", node.value)
    }
    assert {"Stable", "Empty", "Assigning"} <= words <= set(lag_table.STATES)
