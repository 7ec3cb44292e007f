"""Links between the nodes of a cluster are cut, one way or both, while stock clients write: nothing
acknowledged is lost, and all is well when they heal.

For a night, as root: PENSTOCK_TEST_CUTS=50, PENSTOCK_TEST_SEED for another story.
"""

import os
from random import Random

import pytest

from tests.cluster import hosts
from tests.cluster.nodes import Nodes
from tests.cluster.test_nodes_die import PARTITIONS, ClusterLoad, ends

CUTS = int(os.environ.get("PENSTOCK_TEST_CUTS", 0))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
pytestmark = [
    pytest.mark.skipif(not CUTS, reason="for a night: PENSTOCK_TEST_CUTS=50"),
    pytest.mark.timeout(600 + 120 * CUTS),
]


@pytest.fixture
def network():
    if reason := hosts.unavailable():
        pytest.skip(reason)
    with hosts.Hosts() as made:
        yield made


@pytest.fixture
def nodes(network, tmp_path):
    made = Nodes(tmp_path, places=network.places)
    for number, node in made.all.items():
        node.within = network.within(number)
    with made:
        yield made


def part_leader(rng, network, nodes):
    network.part(nodes.partition("cut", rng.randrange(PARTITIONS)).leader)


def part_controller(_, network, nodes):
    network.part(nodes.quorum_leader())


def part_two(rng, network, _):
    """Both still hear the third."""
    one, other = rng.sample(list(network.numbers), 2)
    network.part(one, [other])


def one_way(rng, network, _):
    network.cut(*rng.sample(list(network.numbers), 2))


def deaf(rng, network, _):
    """It sends, and hears nothing."""
    number = rng.choice(list(network.numbers))
    for other in network.numbers:
        if other != number:
            network.cut(other, number)


def test_a_night_of_cuts(network, nodes):
    rng = Random(SEED)
    nodes.create("cut", PARTITIONS)
    with ClusterLoad(nodes, "cut") as load:
        for number in range(CUTS):
            load.go_on(rng.randint(1, 1000))
            fault = rng.choice((part_leader, part_controller, part_two, one_way, deaf))
            print(f"{number}: {fault.__name__}", flush=True)
            fault(rng, network, nodes)
            load.go_on(rng.randint(1, 1000))
            network.heal()
            load.wait_served()
        load.go_on()
        ends(nodes, load)
