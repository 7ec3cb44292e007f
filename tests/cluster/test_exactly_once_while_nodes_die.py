"""The bank and the copiers of tests/transactions on a cluster whose nodes are killed: every
transaction is there whole or not at all, on all replicas.

For a night: PENSTOCK_TEST_KILLS=100, PENSTOCK_TEST_SEED for another story.
"""

import os
from random import Random

import pytest

from tests.cluster.nodes import Nodes
from tests.transactions.test_exactly_once import Load
from tests.transactions.writers import Aiokafka, Confluent

KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", 0))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
pytestmark = [
    pytest.mark.skipif(not KILLS, reason="for a night: PENSTOCK_TEST_KILLS=100"),
    pytest.mark.timeout(600 + 120 * KILLS),
]
LIBRARIES = (Confluent, Aiokafka)
"""kafka-python asks a coordinator that is gone again and again, and no other node."""


class Maker:
    """What `Load` asks of a broker, of a cluster. made: topic → its partitions."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.bootstrap = nodes.bootstrap
        self.peer = self
        self.made = {}

    def create(self, partitions, configs, topic):
        self.nodes.create(topic, partitions, configs)
        self.made[topic] = partitions
        return topic

    def whole(self):
        return all(self.nodes.whole(*topic) for topic in self.made.items())


def test_a_night_of_deaths(tmp_path):
    chance = Random(SEED)
    with Nodes(tmp_path) as nodes:
        maker = Maker(nodes)
        with Load(maker, "cluster", 2_000 * (KILLS + 8), LIBRARIES) as load:
            load.go_on()
            for number in range(KILLS):
                victim = chance.choice(sorted(nodes.all))
                in_order = chance.random() < 0.3
                print(f"{number}: node {victim} {'ends' if in_order else 'is killed'}", flush=True)
                (nodes.stop if in_order else nodes.kill)(victim)
                load.go_on()
                nodes.start(victim)
                nodes.wait(maker.whole, "all are in sync")
                load.go_on()
            outcomes = load.finish()
            assert outcomes["committed"] and outcomes["aborted"], outcomes
        for topic, partitions in maker.made.items():
            nodes.wait(lambda name=topic, n=partitions: nodes.level(name, n), f"{topic} is level")
            nodes.compare_replicas(topic, partitions)
