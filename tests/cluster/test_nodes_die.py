"""Stock clients write and read while nodes of a cluster are killed, stopped and come back: nothing
acknowledged is lost, doubled or out of order, and at the end all replicas are the same.

PENSTOCK_TEST_KILLS=200 goes on for so many rounds, PENSTOCK_TEST_SEED begins another story.
"""

import os
from random import Random

import pytest

from tests.cluster.cluster_load import KILLS, PARTITIONS, ClusterLoad
from tests.cluster.nodes import Nodes

SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
pytestmark = pytest.mark.timeout(600 + 60 * KILLS)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with Nodes(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def test_one_after_the_other_is_killed_and_stopped(nodes):
    """The leader of a partition, the active controller, and one that ends in order."""
    nodes.create("each", PARTITIONS)
    with ClusterLoad(nodes, "each") as load:
        load.go_on()
        victim = nodes.partition("each").leader
        nodes.kill(victim)
        load.go_on()
        load.wait_back(victim)
        victim = nodes.quorum_leader()
        nodes.kill(victim)
        load.go_on()
        load.wait_back(victim)
        victim = nodes.partition("each", 1).leader
        assert nodes.stop(victim) in (0, 143)  # a JVM says so
        load.go_on()
        load.wait_back(victim)
        load.go_on()
        load.finish_level()


def test_all_are_killed_at_once(nodes):
    """What was acknowledged is in their page caches, or on their disks."""
    nodes.create("all", PARTITIONS)
    with ClusterLoad(nodes, "all") as load:
        load.go_on()
        for number in list(nodes.living):
            nodes.kill(number)
        load.wait_back(1, 2, 3)
        load.go_on()
        load.finish_level()


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
        load.finish_level()
