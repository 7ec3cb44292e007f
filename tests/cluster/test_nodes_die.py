"""Stock clients write and read while nodes of a cluster are killed, stopped and come back: nothing
acknowledged is lost, doubled or out of order, and at the end all replicas are the same.

PENSTOCK_TEST_KILLS=200 goes on for so many rounds, PENSTOCK_TEST_SEED begins another story.
"""

import os
from random import Random

import pytest

from tests.cluster.nodes import Nodes
from tests.faults.load import Load

KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", 0))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
PARTITIONS = 3
pytestmark = pytest.mark.timeout(600 + 60 * KILLS)


class ClusterLoad(Load):
    """An idempotent producer with acks=all and a consumer, on a cluster."""

    at_most = 20_000 if KILLS else 500

    def __init__(self, nodes, topic):
        super().__init__(nodes.bootstrap, topic, PARTITIONS)
        self.nodes = nodes

    def wait_served(self):
        self.nodes.wait(lambda: self.nodes.whole(self.topic, PARTITIONS), "all are in sync")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with Nodes(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def ends(nodes, load):
    """All replicas are level and the same, and what was acknowledged is there."""
    load.finish()
    load.check_errors()
    load.check_content()
    nodes.wait(lambda: nodes.level(load.topic, PARTITIONS), "all replicas are level")
    nodes.compare_replicas(load.topic, PARTITIONS)


def comes_back(nodes, load, *numbers):
    nodes.start(*numbers)
    load.wait_served()


def test_one_after_the_other_is_killed_and_stopped(nodes):
    """The leader of a partition, the active controller, and one that ends in order."""
    nodes.create("each", PARTITIONS)
    with ClusterLoad(nodes, "each") as load:
        load.go_on()
        victim = nodes.partition("each").leader
        nodes.kill(victim)
        load.go_on()
        comes_back(nodes, load, victim)
        victim = nodes.quorum_leader()
        nodes.kill(victim)
        load.go_on()
        comes_back(nodes, load, victim)
        victim = nodes.partition("each", 1).leader
        assert nodes.stop(victim) in (0, 143)  # a JVM says so
        load.go_on()
        comes_back(nodes, load, victim)
        load.go_on()
        ends(nodes, load)


def test_all_are_killed_at_once(nodes):
    """What was acknowledged is in their page caches, or on their disks."""
    nodes.create("all", PARTITIONS)
    with ClusterLoad(nodes, "all") as load:
        load.go_on()
        for number in list(nodes.living):
            nodes.kill(number)
        comes_back(nodes, load, 1, 2, 3)
        load.go_on()
        ends(nodes, load)


@pytest.mark.skipif(not KILLS, reason="for a night: PENSTOCK_TEST_KILLS=200")
def test_a_night_of_deaths(nodes):
    rng = Random(SEED)
    nodes.create("night", PARTITIONS)
    with ClusterLoad(nodes, "night") as load:
        for number in range(KILLS):
            load.go_on(rng.randint(1, 2000))
            count = rng.choice((1, 1, 1, 1, 2, 3))
            victims = rng.sample(sorted(nodes.all), count)
            for victim in victims:
                in_order = rng.random() < 0.3
                print(f"{number}: node {victim} {'ends' if in_order else 'is killed'}", flush=True)
                (nodes.stop if in_order else nodes.kill)(victim)
            if count == 1:
                load.go_on(rng.randint(1, 2000))
            nodes.start(*victims)
            if rng.random() < 0.7:
                load.wait_served()
        load.go_on()
        ends(nodes, load)
