"""Which version each node of a cluster says it is, where not all of them are of one, or of ours."""

from types import SimpleNamespace

import pytest

from appliance.handlers import this_node
from console.model.asking.failure import Failure
from console.model.cluster import versions
from console.model.cluster.nodes import BROKER, FENCED, RUNNING, VOTER, Node, Nodes, Quorum
from console.model.cluster.versions import ENDING, Told, read_versions

INVALID_REQUEST = 42


def node(number, life=RUNNING, *, broker=True):
    address, roles = (f"h{number}:1", (BROKER, VOTER)) if broker else ("", (VOTER,))
    return Node(number, address, None, roles, life, 0.0, 0, 0.0)


def cluster(*every):
    quorum = Quorum(1, 1, 1, tuple(one.id for one in every), ())
    return Nodes("c", quorum, {one.id: one for one in every})


def answer(code=0, **settings):
    rows = [SimpleNamespace(name=name, value=value) for name, value in settings.items()]
    return SimpleNamespace(results=[SimpleNamespace(error_code=code, configs=rows)])


@pytest.fixture
def says(monkeypatch):
    """What is told by the address that is asked; a Failure is raised."""
    answers = {}

    def ask(link, key, version, values, server):
        (resource,) = values["resources"]
        assert (key, resource["resource_name"]) == (32, this_node.NODE)
        found = answers[server]
        if isinstance(found, Failure):
            raise found
        return found

    monkeypatch.setattr(versions, "ask_server", ask)
    return answers


def test_each_node_tells_its_own_and_any_of_them_who_ends(says):
    says["h1:1"] = answer(version="1.4.0", ending="2,3")
    says["h2:1"] = Failure("h2:1 refused the connection", "")
    every = cluster(node(1), node(2), node(3, FENCED))
    said = read_versions(None, every)
    assert said == Told({1: "1.4.0"}, frozenset((2, 3)))
    states = [said.state(one) for one in every.all.values()]
    assert states == [RUNNING, ENDING, FENCED], "of the last one the cluster knows better by now"


def test_who_does_not_know_the_question_is_left_out(says):
    """As Apache Kafka's node, and an older one of ours."""
    says["h1:1"] = answer(INVALID_REQUEST)
    says["h2:1"] = answer(version="1.4.0", ending="")
    assert read_versions(None, cluster(node(1), node(2))) == Told({2: "1.4.0"})
    assert Told().state(node(1)) == RUNNING


def test_a_controller_alone_is_asked_where_controllers_listen(says, monkeypatch):
    monkeypatch.setattr(versions, "controllers", lambda link: {1: "h1:9"})
    says["h1:9"] = answer(version="1.4.0", ending="")
    assert read_versions(None, cluster(node(1, broker=False))) == Told({1: "1.4.0"})


def test_a_node_knows_which_brokers_end():
    def broker(number, *, ends):
        return SimpleNamespace(broker_id=number, in_controlled_shutdown=ends)

    every = (broker(1, ends=False), broker(3, ends=True), broker(2, ends=True))
    situation = SimpleNamespace(
        image=SimpleNamespace(brokers={one.broker_id: one for one in every})
    )
    found = this_node.explain_node(SimpleNamespace(situation=situation, version="1.4.0"))
    assert {one.name: one.value for one in found} == {"version": "1.4.0", "ending": "2,3"}
