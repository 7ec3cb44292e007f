"""A node that still waits for the others of its cluster ends in order when it is told to: nothing
had begun, so that nothing is lost, and it says what it waited for."""

import signal

import pytest

from tests.broker_process import KAFKA
from tests.cluster.nodes import Nodes

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(KAFKA, reason="what a node says of its end is ours"),
]
CLEAN = ".kafka_cleanshutdown"
WAITS = "control metadata-leader"


@pytest.fixture
def nodes(tmp_path):
    nodes = Nodes(tmp_path)
    yield nodes
    nodes.__exit__()


def alone(nodes, number):
    """It is started, and waits."""
    node = nodes[number]
    said = node.output().count(WAITS) if node.log.exists() else 0
    node.start(wait=False)
    nodes.wait(lambda: node.output().count(WAITS) > said, "it waits for the others")
    return node


def ends(node, number=signal.SIGTERM):
    node.process.send_signal(number)
    return node.process.wait(60)


def last_line(node):
    return node.output().strip().splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_new_node_that_waits_for_the_others_ends_in_order(nodes, number):
    node = alone(nodes, 1)
    assert ends(node, number) == 0, nodes.said()
    assert "ended" in last_line(node) and "it had not begun" in last_line(node)
    assert "not everything was flushed" not in node.output()


def test_what_was_flushed_before_counts_as_flushed_after(nodes):
    """It may be asked again and again to start without the others: its logs are as they were."""
    nodes.start()
    nodes.create("t")
    for number in nodes.all:
        nodes.stop(number)
    folder = nodes[1].data
    assert (folder / CLEAN).exists()
    for _ in range(2):
        node = alone(nodes, 1)
        assert not (folder / CLEAN).exists(), "as long as it may write"
        assert ends(node) == 0, nodes.said()
        assert "clean=yes" in last_line(node) and "it had not begun" in last_line(node)
        assert (folder / CLEAN).exists()
    nodes.start()
    nodes.wait(lambda: nodes.whole("t"), "all are in sync")


def test_what_was_not_flushed_before_is_not_after(nodes):
    nodes.start()
    nodes.create("t")
    for number in nodes.all:
        nodes.kill(number)
    node = alone(nodes, 1)
    assert ends(node) == 0, nodes.said()
    assert "clean=no" in last_line(node) and "it had not begun" in last_line(node)
    assert not (nodes[1].data / CLEAN).exists(), "the next start checks"
    nodes.start()
    nodes.wait(lambda: nodes.whole("t"), "all are in sync")
