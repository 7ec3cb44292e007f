"""A host that its peers cannot reach, though clients can, leads: they write and read on elsewhere.

Needs root and `ip`.
"""

import pytest

from tests.broker_process import KAFKA
from tests.cluster import hosts
from tests.cluster.cluster_load import PARTITIONS, ClusterLoad
from tests.cluster.nodes import Nodes

SETTINGS = {"offsets.topic.num.partitions": "1", "min.insync.replicas": "2"}
VICTIM = 2
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="Apache Kafka's goes on telling that it leads"),
]


def test_clients_of_a_leader_that_its_peers_cannot_reach_go_on(tmp_path):
    if reason := hosts.unavailable():
        pytest.skip(reason)
    with hosts.Hosts() as network:
        nodes = Nodes(tmp_path, settings=SETTINGS, places=network.places)
        for number, node in nodes.all.items():
            node.within = network.within(number)
        with nodes:
            nodes.create("load", assignment=[[VICTIM, 3, 1]] * PARTITIONS)
            with ClusterLoad(nodes, "load") as load:
                load.go_on()
                network.part(VICTIM)
                nodes.wait(lambda: " isolated " in nodes[VICTIM].output(), "it notices")
                seen = len(load.consumed)
                nodes.wait(lambda: len(load.consumed) >= seen + 2 * load.at_most, "they read on")
                assert all(one.leader < 0 for one in nodes.partitions("load", VICTIM).values())
                network.heal()
                load.wait_served()
                load.go_on()
                load.finish_level()
