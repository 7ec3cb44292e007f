"""Throttles of replicas on their way, as Kafka's tools set them: a rate for each node, and by topic
the replicas that it holds for. Replicas in sync are never throttled."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from console.model.asking import configs
from console.model.asking.configs import BROKER, DELETE, SET, TOPIC, Changes, Target
from console.model.asking.link import Link
from console.model.topics.placing import Place, Wanted

_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_LEADERS: Final = "leader.replication.throttled.replicas"
_FOLLOWERS: Final = "follower.replication.throttled.replicas"


def throttle_moves(
    link: Link, wanted: Wanted, before: Mapping[Place, tuple[int, ...]], nodes: Iterable[int],
    rate: int,
) -> None:  # fmt: skip
    """Copy at most `rate` bytes/s to, and from, each node. wanted: replicas that partitions are to
    have; before: those that they have. Raises Failure."""
    sources: dict[str, list[str]] = defaultdict(list)
    targets: dict[str, list[str]] = defaultdict(list)
    for (topic, number), replicas in wanted.items():
        new = [node for node in replicas if node not in before[topic, number]]
        targets[topic] += [f"{number}:{node}" for node in new]
        if new:
            sources[topic] += [f"{number}:{node}" for node in before[topic, number]]
    for topic in sources:
        changes: Changes = {
            _LEADERS: (SET, ",".join(sources[topic])),
            _FOLLOWERS: (SET, ",".join(targets[topic])),
        }
        configs.write_settings(link, Target(TOPIC, topic), changes)
    for node in nodes if sources else ():
        rates: Changes = dict.fromkeys(_RATES, (SET, str(rate)))
        configs.write_settings(link, Target(BROKER, str(node)), rates)


def end_throttle(link: Link, topics: Iterable[str], nodes: Iterable[int]) -> None:
    """Take back what `throttle_moves` has set. Raises Failure."""
    for node in nodes:
        rates: Changes = dict.fromkeys(_RATES, (DELETE, None))
        configs.write_settings(link, Target(BROKER, str(node)), rates)
    for topic in sorted(set(topics)):
        lists: Changes = dict.fromkeys((_LEADERS, _FOLLOWERS), (DELETE, None))
        configs.write_settings(link, Target(TOPIC, topic), lists)
