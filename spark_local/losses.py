"""Losses, decided: which records of a topic are gone before a job has read them.

A position is an offset, and offsets start again when a topic is deleted and created again: only the
topic's id tells the two apart. Pure: what the job keeps and what the broker says come in;
engine/source_topics.py asks, counts and moves the checkpoint.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from spark_local.cause import JobError

RECREATED: Final = "recreated"
DELETED: Final = "deleted"
TRUNCATED: Final = "truncated"
Offsets = Mapping[str, int]
"""Partition → offset."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as the broker describes it. id: "" where it has none. first, end: first offset and
    next offset of each partition; empty where they were not asked for."""

    id: str
    first: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    """A topic as the job keeps it in topics.json. counted: partition → the offset below which lost
    records are counted already."""

    id: str = ""
    counted: Offsets = field(default_factory=dict)

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Known":
        """From the content of topics.json; empty when there is none."""
        return cls(str(told.get("id") or ""), dict(told.get("counted") or {}))

    def content(self) -> dict[str, Any]:
        """For topics.json."""
        return {"id": self.id, "counted": dict(self.counted)}


@dataclass(frozen=True, slots=True)
class Loss:
    """Records of one topic that a job cannot read any more. kind: RECREATED, of the whole topic;
    DELETED or TRUNCATED, of one partition. records: how many offsets, None where that is unknown.
    position: what the job had read up to. begin: partition → where it can go on."""

    topic: str
    kind: str
    records: int | None
    begin: Offsets
    partition: str = ""
    position: int = 0

    @property
    def text(self) -> str:
        """One sentence."""
        if self.kind == RECREATED:
            return f"topic {self.topic} was deleted and created again: it is another topic"
        where = f"topic {self.topic}, partition {self.partition}"
        if self.kind == TRUNCATED:
            return f"{where} was truncated below offset {self.position}, where the job is"
        span = f"offsets {self.position} to {self.position + (self.records or 0) - 1}"
        return f"records of {where}, were deleted before the job read them ({span})"


def losses(topic: str, known: Known, state: TopicState, position: Offsets) -> list[Loss]:
    """Returns the losses between what a job has read up to and what its topic has now. A partition
    that it has not begun to read has none."""
    if not position:
        return []
    if known.id and state.id and known.id != state.id:
        return [Loss(topic, RECREATED, None, state.first)]
    found = []
    for partition, at in position.items():
        first, end = state.first.get(partition), state.end.get(partition)
        since = max(at, known.counted.get(partition, 0))
        begin = {partition: first or 0}
        if first is not None and first > since:
            found.append(Loss(topic, DELETED, first - since, begin, partition, since))
        elif end is not None and end < at:
            found.append(Loss(topic, TRUNCATED, None, begin, partition, at))
    return found


def after(known: Known, state: TopicState, found: list[Loss]) -> Known:
    """Returns what the job keeps of the topic when these losses are counted."""
    if any(one.kind == RECREATED for one in found):
        return Known(state.id)
    counted = dict(known.counted)
    for one in found:
        if one.kind == DELETED:
            counted |= one.begin
        else:
            counted.pop(one.partition, None)
    return replace(known, id=known.id or state.id, counted=counted)


def stopped(job: str, one: Loss) -> JobError:
    """The end of a job with on_loss = "stop"."""
    skips = "skips them" if one.kind == DELETED else f"starts with the first record of {one.topic}"
    remedy = (
        f"penstock job reset {job} starts over with the records that exist; "
        f'on_loss = "continue" {skips}'
    )
    return JobError(one.text, remedy)


def continued(one: Loss) -> str:
    """The line in the log of a job with on_loss = "continue"."""
    if one.records is not None:
        return f"{one.records} {one.text}; the job continues without them"
    begin = ", ".join(f"{p}: {at}" for p, at in sorted(one.begin.items(), key=_number))
    return (
        f"{one.text}; the job continues at its start (partition: offset {begin}), and the number "
        "of lost records is unknown"
    )


def _number(place: tuple[str, int]) -> int:
    return int(place[0])
