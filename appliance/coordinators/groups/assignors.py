"""Server-side assignors of the consumer protocol (KIP-848): which member is to own what.

`uniform` balances all partitions over the members and then moves as few as possible; `range` gives
each member a run of neighbouring partitions of every topic, so that topics with equally many
partitions fall to the same members. Pure functions: the same group gives the same assignment, on
any machine. Caller: `consumer_target`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.coordinators.groups import uniform
from appliance.coordinators.groups.reconcile import Target


@dataclass(slots=True, frozen=True)
class Subscriber:
    """A member. topics: ids of topics that exist. before: its target until now."""

    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]
    before: Target


Assignor = Callable[[list[Subscriber], Mapping[bytes, int]], dict[str, Target]]
"""(members, topic id → number of partitions) → member id → its target."""


def assign_uniform(members: list[Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Target]:
    """Sizes differ by at most one while all members read the same topics, and as little as single
    moves can make them otherwise; of the previous target as much as that allows is kept."""
    ordered = sorted(members, key=lambda one: one.member_id)
    inputs = [uniform.AssignedMember(one.member_id, one.topics, one.before) for one in ordered]
    return uniform.assign(inputs, partitions)


def assign_range(members: list[Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Target]:
    """Static members first, in the order of their instance ids, then the others by member id."""
    ordered = sorted(
        members,
        key=lambda one: (one.instance_id is None, one.instance_id or "", one.member_id),
    )
    targets: dict[str, Target] = {one.member_id: {} for one in ordered}
    for topic_id, count in partitions.items():
        readers = [one for one in ordered if topic_id in one.topics]
        start = 0
        for number, one in enumerate(readers):
            size = count // len(readers) + (number < count % len(readers))
            if size:
                targets[one.member_id][topic_id] = frozenset(range(start, start + size))
            start += size
    return targets


ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}
"""By the name that clients ask for; the first one is the default."""
