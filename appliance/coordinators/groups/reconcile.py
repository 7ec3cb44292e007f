"""How a member of a consumer group comes from what it owns to what it is to own (KIP-848).

A pure function of one member. Its promise: a partition is given to a member only when nobody else
holds it, and a member holds a partition until it has said that it gave it up. So no partition has
two owners at any moment.

    STABLE ── new target takes partitions away ──> UNREVOKED ── member gave them up ──┐
      ^                                                                                v
      └── all of the target is its own <── UNRELEASED: others still hold some <── next epoch
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import field, replace
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.coordinators.groups.consumer_records import (
    CurrentValue,
    HeldPartitions,
    TargetPartitions,
    TargetValue,
)

STABLE: Final = 0
UNREVOKED: Final = 1
UNRELEASED: Final = 2
STATIC_LEFT: Final = -2
"""The epoch of a static member that is away for a while."""

Target = dict[bytes, frozenset[int]]
"""Topic id → partitions; no empty ones."""
Held = dict[bytes, dict[int, int]]
"""Topic id → partition → the epoch in which it was assigned; no empty ones."""
Owned = Mapping[bytes, frozenset[int]] | None
"""What the member itself says that it owns; None: it did not say."""


@dataclass(slots=True, frozen=True)
class Current:
    """Where a member stands. A new one: nothing, in epoch 0."""

    epoch: int = 0
    previous_epoch: int = 0
    state: int = STABLE
    assigned: Held = field(default_factory=dict)
    revoking: Held = field(default_factory=dict)

    def at(self, epoch: int, state: int, assigned: Held, revoking: Held) -> "Current":
        """The next place of the member; the previous epoch is the one that it had before this."""
        previous = self.previous_epoch if epoch == self.epoch else self.epoch
        return Current(epoch, previous, state, assigned, revoking)


@dataclass(slots=True, frozen=True)
class Goal:
    """A member's target. free: tells whether no other member holds (topic id, partition).

    subscribed: topic ids; what the member is no longer subscribed to it loses at once.
    """

    target: Target
    epoch: int
    subscribed: Container[bytes]
    free: Callable[[bytes, int], bool]


def reconcile(current: Current, goal: Goal, owned: Owned, *, resubscribed: bool) -> Current:
    """The next place of a member; `current` itself when nothing is to be done."""
    if current.state == UNREVOKED:
        if not _still_owns(owned, current.revoking):
            return _advance(current, goal, owned)
    elif current.state == UNRELEASED or current.epoch != goal.epoch:
        return _advance(current, goal, owned)
    return _drop_unsubscribed(current, goal, owned) if resubscribed else current


def _still_owns(owned: Owned, revoking: Held) -> bool:
    if owned is None:
        return True
    return any(
        not partitions.keys().isdisjoint(owned.get(topic_id, ()))
        for topic_id, partitions in revoking.items()
    )


def _advance(current: Current, goal: Goal, owned: Owned) -> Current:
    kept: Held = {}
    lost: Held = {}
    missing: list[tuple[bytes, int]] = []
    for topic_id in sorted(dict.fromkeys((*goal.target, *current.assigned))):
        wanted = goal.target.get(topic_id, frozenset())
        if topic_id not in goal.subscribed:
            wanted = frozenset()
        before = current.assigned.get(topic_id, {})
        _put(kept, topic_id, {one: epoch for one, epoch in before.items() if one in wanted})
        _put(lost, topic_id, {one: epoch for one, epoch in before.items() if one not in wanted})
        missing += [(topic_id, one) for one in sorted(wanted) if one not in before]
    if lost and _still_owns(owned, lost):
        return current.at(current.epoch, UNREVOKED, kept, lost)
    unreleased = False
    for topic_id, one in missing:
        if goal.free(topic_id, one):
            kept.setdefault(topic_id, {})[one] = goal.epoch
        else:
            unreleased = True
    return current.at(goal.epoch, UNRELEASED if unreleased else STABLE, kept, {})


def _drop_unsubscribed(current: Current, goal: Goal, owned: Owned) -> Current:
    """The new target may not be there yet, but what nobody asked for can go at once."""
    gone = [topic_id for topic_id in current.assigned if topic_id not in goal.subscribed]
    if not gone:
        return current
    kept = {topic_id: held for topic_id, held in current.assigned.items() if topic_id not in gone}
    lost = {topic_id: dict(held) for topic_id, held in current.revoking.items()}
    for topic_id in gone:
        lost.setdefault(topic_id, {}).update(current.assigned[topic_id])
    if _still_owns(owned, lost):
        return replace(current, state=UNREVOKED, assigned=kept, revoking=lost)
    return replace(current, assigned=kept, revoking={})


def _put(held: Held, topic_id: bytes, partitions: dict[int, int]) -> None:
    if partitions:
        held[topic_id] = partitions


# As records ---------------------------------------------------------------------------------------


def current_of(value: CurrentValue) -> Current:
    """The place that a record says. Records older than 4.3 do not know when partitions came."""
    return Current(
        epoch=value.epoch,
        previous_epoch=value.previous_epoch,
        state=value.state,
        assigned=_held(value.assigned, value.epoch),
        revoking=_held(value.revoking, value.epoch),
    )


def _held(topics: tuple[HeldPartitions, ...], epoch: int) -> Held:
    held: Held = {}
    for one in topics:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            epochs = (epoch,) * len(one.partitions)
        held.setdefault(one.topic_id, {}).update(zip(one.partitions, epochs, strict=True))
    return held


def current_value(current: Current) -> CurrentValue:
    """The record of a place."""
    return CurrentValue(
        epoch=current.epoch,
        previous_epoch=current.previous_epoch,
        state=current.state,
        assigned=_held_value(current.assigned),
        revoking=_held_value(current.revoking),
    )


def _held_value(held: Held) -> tuple[HeldPartitions, ...]:
    topics = []
    for topic_id in sorted(held):
        rows = sorted(held[topic_id].items())
        partitions, epochs = tuple(one for one, _ in rows), tuple(epoch for _, epoch in rows)
        topics.append(
            HeldPartitions(topic_id=topic_id, partitions=partitions, assignment_epochs=epochs)
        )
    return tuple(topics)


def target_of(value: TargetValue) -> Target:
    """The target that a record says."""
    return {one.topic_id: frozenset(one.partitions) for one in value.topics}


def target_value(target: Target) -> TargetValue:
    """The record of a target."""
    topics = [
        TargetPartitions(topic_id=topic_id, partitions=tuple(sorted(target[topic_id])))
        for topic_id in sorted(target)
    ]
    return TargetValue(topics=tuple(topics))
