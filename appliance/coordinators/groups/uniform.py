"""The uniform assignor: balance first, then stickiness.

Members of one mind (all read the same topics) get a share each, the bigger shares going to those
who have most already. Otherwise partitions go, topic by topic, to whoever has least, and are then
moved from full members to less full ones until no single move evens anything out. Every step goes
through members and topics in a fixed order. Caller: `assignors`.
"""

from collections.abc import Mapping
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.coordinators.groups.reconcile import Target

MOST_ROUNDS: Final = 16
"""Rounds of evening out. One is enough unless subscriptions overlap in part; each about halves what
is left to even out."""

_Shares = list[dict[bytes, dict[int, None]]]


@dataclass(slots=True, frozen=True)
class AssignedMember:
    """topics: ids. before: its target until now."""

    member_id: str
    topics: frozenset[bytes]
    before: Target


def assign(members: list[AssignedMember], partitions: Mapping[bytes, int]) -> dict[str, Target]:
    """members: in a fixed order. partitions: topic id → how many there are."""
    if not members:
        return {}
    shares, unassigned = _keep(members, partitions)
    if all(one.topics == members[0].topics for one in members):
        _even_shares(shares, unassigned)
    else:
        _fill(members, shares, unassigned)
        _even_out(members, shares)
    return {
        member.member_id: {topic: frozenset(held) for topic, held in share.items() if held}
        for member, share in zip(members, shares, strict=True)
    }


def _keep(
    members: list[AssignedMember], partitions: Mapping[bytes, int]
) -> tuple[_Shares, list[tuple[bytes, int]]]:
    """Splits the previous assignment into the shares that members keep and the partitions without
    an owner.
    """
    taken: dict[tuple[bytes, int], None] = {}
    shares: _Shares = []
    for member in members:
        share: dict[bytes, dict[int, None]] = {}
        for topic_id in sorted(member.before):
            if topic_id not in member.topics:
                continue
            count = partitions.get(topic_id, 0)
            for partition in sorted(member.before[topic_id]):
                if partition < count and (topic_id, partition) not in taken:
                    taken[topic_id, partition] = None
                    share.setdefault(topic_id, {})[partition] = None
        shares.append(share)
    read = dict.fromkeys(topic for topic in partitions if any(topic in m.topics for m in members))
    unassigned = [
        (topic_id, partition)
        for topic_id in sorted(read)
        for partition in range(partitions[topic_id])
        if (topic_id, partition) not in taken
    ]
    return shares, unassigned


def _size(share: dict[bytes, dict[int, None]]) -> int:
    return sum(len(held) for held in share.values())


# Everybody reads the same -------------------------------------------------------------------------


def _even_shares(shares: _Shares, unassigned: list[tuple[bytes, int]]) -> None:
    sizes = [_size(share) for share in shares]
    total = sum(sizes) + len(unassigned)
    least, bigger = divmod(total, len(shares))
    # Who has most keeps the odd one: sorted() is stable, so equals go by the order of members.
    ranked = sorted(range(len(shares)), key=lambda index: -sizes[index])
    quotas = [least] * len(shares)
    for index in ranked[:bigger]:
        quotas[index] += 1
    for share, size, quota in zip(shares, sizes, quotas, strict=True):
        unassigned += _take_away(share, size - quota)
    unassigned.reverse()
    for share, quota in zip(shares, quotas, strict=True):
        for _ in range(quota - _size(share)):
            topic_id, partition = unassigned.pop()
            share.setdefault(topic_id, {})[partition] = None
    assert not unassigned, f"{len(unassigned)} partitions were left over"


def _take_away(share: dict[bytes, dict[int, None]], count: int) -> list[tuple[bytes, int]]:
    taken: list[tuple[bytes, int]] = []
    for topic_id, held in share.items():
        while held and len(taken) < count:
            partition, _ = held.popitem()
            taken.append((topic_id, partition))
    return taken


# Everybody reads something else -------------------------------------------------------------------


def _readers(members: list[AssignedMember]) -> dict[bytes, list[int]]:
    readers: dict[bytes, list[int]] = {}
    for index, member in enumerate(members):
        for topic_id in sorted(member.topics):
            readers.setdefault(topic_id, []).append(index)
    return readers


def _fill(
    members: list[AssignedMember], shares: _Shares, unassigned: list[tuple[bytes, int]]
) -> None:
    """Topics with many partitions for few readers first: they leave the least choice."""
    readers = _readers(members)
    sizes = [_size(share) for share in shares]
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in unassigned:
        by_topic.setdefault(topic_id, []).append(partition)
    order = sorted(
        by_topic,
        key=lambda topic: (-len(by_topic[topic]) / len(readers[topic]), len(readers[topic]), topic),
    )
    for topic_id in order:
        for partition in by_topic[topic_id]:
            index = min(readers[topic_id], key=lambda index: sizes[index])
            shares[index].setdefault(topic_id, {})[partition] = None
            sizes[index] += 1


def _even_out(members: list[AssignedMember], shares: _Shares) -> None:
    readers = _readers(members)
    sizes = [_size(share) for share in shares]
    for _ in range(MOST_ROUNDS):
        moved = False
        for topic_id in sorted(readers):
            while _move_one(topic_id, readers[topic_id], shares, sizes):
                moved = True
        if not moved:
            return


def _move_one(topic_id: bytes, readers: list[int], shares: _Shares, sizes: list[int]) -> bool:
    """Move a partition of the topic from its fullest owner to its least full reader."""
    owners = [index for index in readers if shares[index].get(topic_id)]
    if not owners:
        return False
    fullest = max(owners, key=lambda index: sizes[index])
    emptiest = min(readers, key=lambda index: sizes[index])
    if sizes[fullest] - sizes[emptiest] <= 1:
        return False
    partition, _ = shares[fullest][topic_id].popitem()
    shares[emptiest].setdefault(topic_id, {})[partition] = None
    sizes[fullest] -= 1
    sizes[emptiest] += 1
    return True
