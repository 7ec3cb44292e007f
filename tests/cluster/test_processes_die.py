"""Single processes of a node die while stock clients write and read: nothing acknowledged is lost,
the node keeps what it leads, and what one that stays away led is led elsewhere until it is back."""

import os
import signal
from contextlib import suppress

import pytest

from appliance.observer.door import Observer
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, READY, Peer
from tests.broker_process import KAFKA
from tests.cluster.cluster_load import PARTITIONS, ClusterLoad
from tests.cluster.nodes import Nodes

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="a node of Apache Kafka is one process"),
]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    settings = {
        "penstock.io.processes": "2", "penstock.net.processes": "1",
        "offsets.topic.num.partitions": "3",
    }  # fmt: skip
    with Nodes(tmp_path_factory.mktemp("cluster"), settings=settings) as running:
        yield running


def processes(node):
    return Observer(str(node.data)).tables.processes


def kill(nodes, number, peer):
    """kill -9, and wait until the successor serves."""
    before = processes(nodes[number]).generation(peer)
    os.kill(processes(nodes[number]).pid(peer), signal.SIGKILL)

    def back():
        table = processes(nodes[number])
        return table.generation(peer) > before and table.state(peer) == READY

    nodes.wait(back, f"{peer} of node {number} is back")


def test_one_that_dies_is_back_before_anybody_else_leads(nodes):
    nodes.create("back", PARTITIONS)
    before = nodes.partitions("back")
    with ClusterLoad(nodes, "back") as load:
        load.go_on()
        node = before[0].leader
        for peer in (Peer(NETPROC, 0), Peer(IOPROC, 0), Peer(IOPROC, 1), Peer(CONTROL, 0)):
            kill(nodes, node, peer)
            load.go_on()
        kill(nodes, nodes.quorum_leader(), Peer(CONTROL, 0))
        load.go_on()
        load.wait_served()
        load.finish_level()
    said = "".join(node.output() for node in nodes.all.values())
    if "ioproc-away" not in said and "broker-fenced" not in said:  # on a machine with time for it
        led = {index: one.leader for index, one in nodes.partitions("back").items()}
        assert led == {index: one.leader for index, one in before.items()}


def test_what_one_that_stays_away_led_is_led_elsewhere(nodes):
    nodes.create("away", PARTITIONS)
    node, epoch, *_ = nodes.partition("away")
    other = next(number for number in nodes.living if number != node)
    with ClusterLoad(nodes, "away") as load:
        load.go_on()

        def moved():
            table = processes(nodes[node])
            for peer in (Peer(IOPROC, 0), Peer(IOPROC, 1)):
                if table.state(peer) == READY:
                    with suppress(ProcessLookupError):
                        os.kill(table.pid(peer), signal.SIGKILL)
            leaders = {one.leader for one in nodes.partitions("away", other).values()}
            return node not in leaders

        nodes.wait(moved, "all are led elsewhere")
        load.go_on()
        load.wait_served()
        load.finish_level()
    assert nodes.partition("away").epoch > epoch
    assert nodes[node].runs
