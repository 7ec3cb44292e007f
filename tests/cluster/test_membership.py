"""Three appliances as brokers of one cluster: they come, change the metadata through any of them,
die and go, and the others lead. A session lasts for ever here: what is fenced is fenced because
somebody saw that it is gone."""

import os
import signal

import pytest

from appliance.observer.door import Observer
from appliance.ring.process_table import CONTROL, IOPROC, Peer
from tests.broker_process import KAFKA
from tests.cluster.nodes import METADATA, Nodes

pytestmark = pytest.mark.skipif(KAFKA, reason="it looks into the tables of the appliance")

CREATE_TOPICS, INIT_PRODUCER_ID = 19, 22
SETTINGS = {"broker.session.timeout.ms": "600000"}
TOPIC = "t"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with Nodes(tmp_path_factory.mktemp("brokers"), settings=SETTINGS) as nodes:
        nodes.create(TOPIC, 6)
        yield nodes


def table(nodes, number):
    return Observer(str(nodes[number].data)).tables.processes


def controller(nodes):
    """Who leads the metadata log, when all agree; and the others."""

    def agreed():
        told = {table(nodes, number).leader[0] for number in nodes.living}
        return told.pop() if len(told) == 1 and told <= set(nodes.living) else None

    leads = nodes.wait(agreed, "one leads")
    return leads, [one for one in nodes.living if one != leads]


def counted(nodes, number, event):
    return nodes[number].output().count(f" {event}")


def create(nodes, topic, number):
    wanted = {"name": topic, "num_partitions": 2, "replication_factor": 3, "assignments": [],
              "configs": []}  # fmt: skip
    values = {"topics": [wanted], "timeout": 30_000, "validate_only": False}
    (told,) = nodes.ask(CREATE_TOPICS, 7, values, number)["topics"]
    return told["error_code"].upper(), str(told["topic_id"])


def known(nodes, topic, number, creates=False):
    values = {"topics": [{"name": topic}], "allow_auto_topic_creation": creates}
    (told,) = nodes.ask(METADATA, 9, values, number)["topics"]
    return told["error_code"].upper(), len(told["partitions"])


def led_by(nodes, number):
    """Partitions that any living node believes to be led by it."""
    return {
        at
        for living in nodes.living
        for at, one in nodes.partitions(TOPIC, living).items()
        if one.leader == number
    }


def test_who_asks_any_node_for_a_change_finds_it_there_at_once(nodes):
    leads, others = controller(nodes)
    for number in (leads, *others):
        code, topic_id = create(nodes, f"made-{number}", number)
        assert code == "NONE" and topic_id
        assert known(nodes, f"made-{number}", number) == ("NONE", 2)
        assert create(nodes, TOPIC, number)[0] == "TOPIC_ALREADY_EXISTS"
        assert known(nodes, f"auto-{number}", number, creates=True)[1] in (0, 1)
        nodes.wait(lambda n=number: known(nodes, f"auto-{n}", n) == ("NONE", 1), "it is created")


def test_producer_ids_are_everybodys_own(nodes):
    values = {"transactional_id": None, "transaction_timeout": 1000, "producer_id": -1,
              "producer_epoch": -1}  # fmt: skip

    def given(number):
        told = nodes.ask(INIT_PRODUCER_ID, 4, values, number)
        return told["producer_id"] if told["error_code"].upper() == "NONE" else None

    ids = [
        nodes.wait(lambda n=number: given(n) is not None and given(n), "an id")
        for number in nodes.living * 3
    ]
    assert len(set(ids)) == len(ids)


def test_the_death_of_control_alone_fences_nobody(nodes):
    leads, (number, _) = controller(nodes)
    before = counted(nodes, number, "broker-registered")
    ran = counted(nodes, number, "broker-running")
    os.kill(table(nodes, number).pid(Peer(CONTROL, 0)), signal.SIGKILL)
    os.kill(table(nodes, number).pid(Peer(IOPROC, 0)), signal.SIGKILL)
    nodes.wait(lambda: counted(nodes, number, "broker-running") > ran, "its successor is heard of")
    assert counted(nodes, number, "broker-registered") == before, "it is registered already"
    assert counted(nodes, leads, "broker-fenced") == 0
    nodes.wait(lambda: nodes.whole(TOPIC, 6), "all are in sync again")


def test_a_killed_broker_is_fenced_at_once_and_comes_back(nodes):
    leads, (number, _) = controller(nodes)
    nodes.kill(number)
    gone = f"broker-gone broker={number}"  # it may have led nothing just then
    nodes.wait(lambda: sum(counted(nodes, one, gone) for one in nodes.living), "it is missed")
    nodes.wait(lambda: not led_by(nodes, number), "others lead")
    nodes.wait(lambda: number not in nodes.brokers(leads), "it is fenced for all")
    assert create(nodes, "made-by-two", leads)[0] == "NONE"
    nodes.start(number)
    nodes.wait(lambda: nodes.whole(TOPIC, 6), "all are in sync again")


def test_when_the_controller_is_killed_the_next_one_fences_it(nodes):
    leads, (number, _) = controller(nodes)
    nodes.kill(leads)
    nodes.wait(lambda: not led_by(nodes, leads), "others lead")
    nodes.wait(lambda: leads not in nodes.brokers(number), "it is fenced")
    assert create(nodes, "made-meanwhile", number)[0] == "NONE"
    nodes.start(leads)
    nodes.wait(lambda: nodes.whole(TOPIC, 6), "all are in sync again")


def test_all_come_back_that_were_killed_at_once(nodes):
    for number in nodes.living:
        nodes.kill(number)
    nodes.start()
    nodes.wait(lambda: nodes.whole(TOPIC, 6), "all are in sync again")


@pytest.mark.parametrize("which", ["the controller", "another one"])
def test_who_ends_in_order_has_handed_over_what_it_leads(nodes, which):
    leads, (number, third) = controller(nodes)
    if which == "the controller":
        number, leads = leads, number
    gone = counted(nodes, leads, "broker-gone") + counted(nodes, third, "broker-gone")
    assert nodes.stop(number) == 0
    nodes.wait(lambda: not led_by(nodes, number), "others lead")
    later = counted(nodes, leads, "broker-gone") + counted(nodes, third, "broker-gone")
    assert later == gone, "nobody was surprised"
    if which == "the controller":
        nodes.start(number)
        nodes.wait(lambda: nodes.whole(TOPIC, 6), "all are in sync again")
