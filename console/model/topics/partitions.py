"""Partitions as any broker tells of them, page by page (DescribeTopicPartitions, KIP-966)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check

_DESCRIBE: Final = (75, 0)
_PAGE: Final = 500
"""Partitions of a page."""


@dataclass(slots=True, frozen=True)
class Partition:
    """One partition; all but its number are ids of nodes. leader: -1 when there is none. replicas:
    the first one is to lead. elr: who may lead without a loss although not in sync (KIP-966).
    offline: replicas whose node is fenced or whose folder failed."""

    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    offline: tuple[int, ...]

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def missing(self) -> tuple[int, ...]:
        """The replicas that are not in sync."""
        return tuple(one for one in self.replicas if one not in self.isr)


def pages(
    link: Link, names: Iterable[str] = (), breathe: Callable[[], None] = lambda: None
) -> Iterator[Any]:
    """The answer's topics, each perhaps in several parts, of these names or all. breathe: called
    between pages. Raises Failure."""
    topics = [{"name": name} for name in sorted(set(names))]
    at: tuple[str, int] | None = None
    while True:
        cursor = None if at is None else {"topic_name": at[0], "partition_index": at[1]}
        asked = {"topics": topics, "response_partition_limit": _PAGE, "cursor": cursor}
        answer = ask_server(link, *_DESCRIBE, asked)
        yield from answer.topics
        if (rest := answer.next_cursor) is None:
            return
        before, at = at, (rest.topic_name, rest.partition_index)
        if before is not None and at <= before:
            raise Failure("its pages of topics never end", name="BROKEN")
        breathe()


def partitions(link: Link, names: Iterable[str] = ()) -> list[Partition]:
    """The partitions of these topics, or of all. Raises Failure, also for a topic that does not
    exist.
    """
    found = []
    for topic in pages(link, names):
        check(int(topic.error_code), None, str(topic.name))
        found += [_partition(str(topic.name), one) for one in topic.partitions]
    return found


def _partition(topic: str, told: Any) -> Partition:
    return Partition(
        topic,
        int(told.partition_index),
        int(told.leader_id),
        tuple(map(int, told.replica_nodes)),
        tuple(map(int, told.isr_nodes)),
        tuple(map(int, told.eligible_leader_replicas or ())),
        tuple(map(int, told.offline_replicas)),
    )
