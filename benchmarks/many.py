"""Three nodes with very many partitions: their start, and the election of a third of the leaders.

Rows of `benchmarks.cluster`.
"""

import time
from collections.abc import Callable
from functools import partial

from benchmarks.nodes import LIMIT_S, Cluster

Figures = dict[str, float]
LED, SERVED = "s until all have leaders", "s from exec until all have leaders"
WHOLE, MADE = "s from its start to a whole ISR", "s to create them"
MOST_OF_A_TOPIC = 1000
"""Partitions: Kafka's controller refuses a request that would take more than 10,000 records."""


class Many:
    """Topics with very many partitions in all; each node is to lead a third of them. Each cluster
    makes them once and keeps them."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._made: dict[str, list[str]] = {}

    def of(self, cluster: Cluster) -> tuple[list[str], Figures]:
        """The topics, all whole and led as they should be. What it took to make them, if it did."""
        figures: Figures = {}
        if cluster.name not in self._made:
            begun = time.perf_counter()
            self._made[cluster.name] = [
                cluster.create(replicas=[_from(at) for at in range(count)])
                for count in self._counts()
            ]
            figures[MADE] = time.perf_counter() - begun
        topics = self._made[cluster.name]
        each(cluster, topics, cluster.whole, "it is whole")
        cluster.elect_preferred()
        each(cluster, topics, partial(_led_as_wished, cluster), "the first ones lead")
        return topics, figures

    def _counts(self) -> list[int]:
        rest = self.partitions % MOST_OF_A_TOPIC
        return [MOST_OF_A_TOPIC] * (self.partitions // MOST_OF_A_TOPIC) + [rest] * (rest > 0)


def _from(index: int) -> list[int]:
    """The replicas of a partition: all three nodes, each first for a third of the partitions."""
    return [(index + turn) % 3 + 1 for turn in range(3)]


def _led_as_wished(cluster: Cluster, topic: str) -> bool:
    _, partitions = cluster.known(topic)
    return all(one.leader == _from(index)[0] for index, one in partitions.items())


def each(cluster: Cluster, topics: list[str], fact: Callable[[str], bool], what: str) -> None:
    """Wait for a fact of one topic after the other, so that one is asked about at a time."""
    for topic in topics:
        cluster.wait(partial(fact, topic), f"{topic}: {what}", 10 * LIMIT_S)


def elections(many: Many, *, kill: bool) -> Callable[[Cluster], Figures]:
    """A node that leads a third of very many partitions ends."""

    def once(cluster: Cluster) -> Figures:
        topics, figures = many.of(cluster)
        active = cluster.controller()
        victim = next(number for number in cluster.nodes if number != active)
        moment = time.perf_counter()
        (cluster.kill if kill else cluster.terminate)(victim)
        each(cluster, topics, partial(cluster.led, without=victim), "another leads")
        led = time.perf_counter() - moment
        cluster.stop(victim)
        begun = time.perf_counter()
        cluster.start(victim)
        each(cluster, topics, cluster.whole, "the ISR is whole")
        whole = time.perf_counter() - begun
        cluster.settle()
        return {LED: led, WHOLE: whole, **figures}

    return once


def start(many: Many) -> Callable[[Cluster], Figures]:
    """All nodes ended in order and start at once with very many partitions."""

    def once(cluster: Cluster) -> Figures:
        topics, figures = many.of(cluster)
        for number in cluster.nodes:
            cluster.terminate(number)
        for number in cluster.nodes:
            cluster.stop(number)
        begun = time.perf_counter()
        cluster.start()
        each(cluster, topics, cluster.led, "all have leaders")
        served = time.perf_counter() - begun
        each(cluster, topics, cluster.whole, "the ISR is whole")
        whole = time.perf_counter() - begun
        cluster.settle()
        return {SERVED: served, WHOLE: whole, "PSS MB": cluster.memory() / 1e6, **figures}

    return once
