"""The metadata of any Kafka cluster: its brokers, its topics and the partitions without a
leader.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.topics.partitions import pages


@dataclass(slots=True, frozen=True)
class Cluster:
    """id: "" where none is told. controller: the id of a node, None when nobody is. brokers: id →
    HOST:PORT."""

    id: str
    controller: int | None
    brokers: dict[int, str]


@dataclass(slots=True, frozen=True)
class Seen:
    """A topic by its metadata. leaderless: how many partitions nobody leads."""

    name: str
    partitions: int
    replicas: int
    leaderless: int


def read_cluster(link: Link) -> Cluster:
    """Raises Failure."""
    answer = link.wait(link.admin().describe_cluster(request_timeout=link.timeout_s))
    controller = answer.controller
    brokers = {node.id: f"{node.host}:{node.port}" for node in answer.nodes}
    link.knows(brokers.values())
    return Cluster(
        answer.cluster_id or "", controller.id if controller is not None else None, brokers
    )


class Topics:
    """Every topic of a broker, asked again and again: by pages (DescribeTopicPartitions, KIP-966)
    where it knows them. confluent-kafka makes objects of all that a Metadata answer has in one go,
    and no other thread of ours runs meanwhile."""

    def __init__(self, link: Link, breathe: Callable[[], None] = lambda: None) -> None:
        """breathe: called now and then while much is read."""
        self._link = link
        self._breathe = breathe
        self._by_pages = link.is_asked

    def read_topics(self) -> dict[str, Seen]:
        """By name. Raises Failure."""
        if not self._by_pages:
            return self._whole()
        try:
            return self._paged()
        except Failure:
            found = self._whole()  # it raises when nobody is there
            self._by_pages = False
            return found

    def _whole(self) -> dict[str, Seen]:
        metadata = self._link.admin().list_topics(timeout=self._link.timeout_s)
        return {
            name: Seen(
                name,
                len(topic.partitions),
                max((len(one.replicas) for one in topic.partitions.values()), default=0),
                sum(one.leader < 0 for one in topic.partitions.values()),
            )
            for name, topic in sorted(metadata.topics.items())
        }

    def _paged(self) -> dict[str, Seen]:
        found: dict[str, Seen] = {}
        for one in pages(self._link, breathe=self._breathe):
            found[one.name] = _seen(one, found.get(one.name))
        return dict(sorted(found.items()))


def _seen(one: Any, before: Seen | None) -> Seen:
    """A topic, or more of one that did not end with its page."""
    copies = max((len(part.replica_nodes) for part in one.partitions), default=0)
    lost = sum(part.leader_id < 0 for part in one.partitions)
    if before is None:
        return Seen(one.name, len(one.partitions), copies, lost)
    return Seen(
        one.name, before.partitions + len(one.partitions), max(before.replicas, copies),
        before.leaderless + lost,
    )  # fmt: skip
