"""Each node of a cluster ends in order and comes back, one after the other, while stock clients
work, transactions among them: nothing is lost, doubled or out of order.

Where the repository has its commits the nodes that end are of an earlier version, so that both
versions are one cluster meanwhile.
"""

import contextlib

import pytest

from appliance.shell.version import current
from benchmarks import kafka
from console.model.asking.link import Link
from console.model.cluster.nodes import read_nodes
from console.model.cluster.versions import read_versions
from console.model.local.succession import restart
from tests.broker_process import KAFKA
from tests.cluster.cluster_load import PARTITIONS, ClusterLoad
from tests.cluster.nodes import Nodes
from tests.cluster.verifiable import Verifiable
from tests.transactions.bank import Bank
from tests.transactions.writers import Confluent
from tests.upgrade.installed import sources
from tests.upgrade.versions import earlier

pytestmark = pytest.mark.timeout(600)
BEFORE = "0.0.1"
SOME = 10
"""Records, or transactions, that go through before and after each step."""
TELLERS = (Confluent,)
TOPICS = {"rolling": PARTITIONS, "bank": Bank.partitions(TELLERS), "verified": 2}


def called(tree, version):
    """What runs there takes itself for this version, not for that which is installed."""
    (tree / "penstock-0.dist-info").mkdir()
    (tree / "penstock-0.dist-info/METADATA").write_text(f"Version: {version}\n")


@pytest.fixture
def nodes(tmp_path):
    made = Nodes(tmp_path)
    (before,) = earlier(1)
    tree = None if KAFKA else sources(before, tmp_path / "before")
    for node in made.all.values() if tree else ():
        node.within = ("env", "-C", str(tree), "PENSTOCK_SEVERAL=1")
    if tree:
        called(tree, BEFORE)
    with made:
        for topic, partitions in TOPICS.items():
            made.create(topic, partitions)
        yield made


def check_versions(nodes, restarted):
    """Each node that was restarted says that it is of this version, and no other one does."""
    link = Link(nodes.bootstrap, {}, 30)
    found = read_versions(link, read_nodes(link)).versions
    mixed = bool(nodes[max(nodes.all)].within)
    for number in nodes.all:
        if number in restarted or not mixed:
            assert found[number] == current()
        else:
            assert found.get(number) in (None, BEFORE), "some of before do not say it"


def test_each_node_in_turn(nodes, tmp_path):
    with contextlib.ExitStack() as stack:
        load = stack.enter_context(ClusterLoad(nodes, "rolling"))
        bank = stack.enter_context(Bank(nodes.bootstrap, "bank", TELLERS))
        clients = [load, bank]
        if not kafka.unavailable():
            clients.append(stack.enter_context(Verifiable(nodes.bootstrap, "verified", tmp_path)))
        for number in nodes.all:
            for client in clients:
                client.go_on(SOME)
            assert nodes.stop(number) in (0, 143)  # a JVM says so
            nodes[number].within = ()
            load.go_on(SOME)
            load.wait_back(number)
            if not KAFKA:
                check_versions(nodes, range(1, number + 1))
        for client in clients:
            client.go_on(SOME)
        load.finish_level()
        for client in clients[1:]:
            client.finish()
        outcomes = bank.check()
        assert outcomes["committed"] and outcomes["aborted"], outcomes
    for topic, partitions in TOPICS.items():
        nodes.wait(lambda name=topic, n=partitions: nodes.level(name, n), f"{topic} is level")
        nodes.compare_replicas(topic, partitions)


@pytest.mark.skipif(KAFKA, reason="penstock restart")
def test_each_node_in_its_process(tmp_path):
    with Nodes(tmp_path) as nodes:
        nodes.create("rolling", PARTITIONS)
        with ClusterLoad(nodes, "rolling") as load:
            for number in nodes.all:
                load.go_on(SOME)
                pid = nodes[number].process.pid
                assert restart(str(nodes[number].data)).pid == pid
                load.wait_served()
            load.go_on(SOME)
            load.finish_level()
