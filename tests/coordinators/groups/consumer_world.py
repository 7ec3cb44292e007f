"""A world whose groups may be of either kind, checked after every turn."""

from coordinator_world import World, durable, image_of

from appliance.coordinators.groups.classic_group import ClassicGroup
from appliance.coordinators.groups.classic_state import EMPTY, STABLE
from appliance.coordinators.groups.consumer_group import ConsumerGroup
from appliance.coordinators.groups.reconcile import UNREVOKED
from appliance.coordinators.runtime.shard import ACTIVE


class ConsumerWorld(World):
    def __init__(self, image=None, **settings) -> None:
        image = image_of(t=4, u=4) if image is None else image
        image.features["group.version"] = 1
        super().__init__(image, **settings)

    def heartbeat(self, member_id: str, epoch: int, *, version: int = 1, **fields):
        """(token, answers); what is not given is null."""
        values = {
            "group_id": "g",
            "member_id": member_id,
            "member_epoch": epoch,
            "rebalance_timeout": -1,
            "topic_partitions": None,
            **fields,
        }
        return self.ask(68, version, **values)

    def check(self) -> None:
        if self.shard.phase != ACTIVE:
            return
        other = self.replayed()
        assert other.state.offsets.by_group == self.shard.state.offsets.by_group
        assert list(other.state.groups) == list(self.shard.state.groups)
        for name, live in self.shard.state.groups.items():
            loaded = other.state.groups[name]
            assert type(loaded) is type(live)
            if isinstance(live, ConsumerGroup):
                assert recorded(loaded) == recorded(live)
                check_group(self, live)
            elif isinstance(live, ClassicGroup) and live.state in (STABLE, EMPTY):
                assert durable(loaded) == durable(live)


def recorded(group: ConsumerGroup):
    """What the records of a consumer group say, and what follows from them."""
    return (
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.members,
        group.targets,
        group.currents,
        group.regexes,
        group.static_members,
        group.owners,
        group.has_old_metadata,
    )


def check_group(world: ConsumerWorld, group: ConsumerGroup) -> None:
    """No partition has two holders or two targets; nobody may stay for ever unheard of."""
    holders: dict[tuple[bytes, int], str] = {}
    aims: dict[tuple[bytes, int], str] = {}
    for member_id, member in group.members.items():
        current = group.current(member_id)
        assert current.epoch <= group.epoch
        for place in held(group, member_id):
            assert place not in holders, f"{place} is of {holders[place]} and {member_id}"
            holders[place] = member_id
        for topic_id, partitions in group.targets.get(member_id, {}).items():
            for partition in partitions:
                aim = aims.setdefault((topic_id, partition), member_id)
                assert aim == member_id, f"{partition} is for {aim} and {member_id}"
        due = group.deadlines[member_id]
        assert due.session <= world.now + 10**6
        if current.state == UNREVOKED and member.classic is None:
            assert due.rebalance <= world.now + member.rebalance_timeout
    assert group.owners == holders
    assert set(group.currents) <= set(group.members)
    assert set(group.deadlines) <= set(group.members)
    assert world.shard.next_deadline_ms <= group.next_deadline_ms(), "nobody would wake it up"


def held(group: ConsumerGroup, member_id: str) -> list[tuple[bytes, int]]:
    """(topic id, partition) that nobody else may have while this member is in the group."""
    current = group.current(member_id)
    return [
        (topic_id, partition)
        for places in (current.assigned, current.revoking)
        for topic_id, partitions in places.items()
        for partition in partitions
    ]
