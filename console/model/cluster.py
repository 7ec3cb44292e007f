"""What any Kafka says of itself: its brokers, its topics and the partitions that nobody leads."""

from dataclasses import dataclass

from console.model.link import Link


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


def look(link: Link) -> Cluster:
    """Raises Failure."""
    answer = link.wait(link.admin().describe_cluster(request_timeout=link.timeout_s))
    controller = answer.controller
    return Cluster(
        answer.cluster_id or "",
        controller.id if controller is not None else None,
        {node.id: f"{node.host}:{node.port}" for node in answer.nodes},
    )


def topics(link: Link) -> dict[str, Seen]:
    """Every topic, by name. Raises Failure."""
    metadata = link.admin().list_topics(timeout=link.timeout_s)
    return {
        name: Seen(
            name,
            len(topic.partitions),
            max((len(one.replicas) for one in topic.partitions.values()), default=0),
            sum(one.leader < 0 for one in topic.partitions.values()),
        )
        for name, topic in sorted(metadata.topics.items())
    }
