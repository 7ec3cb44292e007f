"""When an empty node may take the place of a lost one, and what keeps a node from leaving; decided
without a broker."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from appliance.wire.build import build
from appliance.wire.messages import request_type
from console.model.asking.failure import Failure
from console.model.cluster import leaving, replacing
from console.model.cluster.nodes import FENCED, RUNNING, Node, Nodes, Quorum
from console.model.topics.partitions import Partition
from console.model.topics.replica_changes import NOTHING


@pytest.fixture
def cluster(monkeypatch):
    """fenced: nodes of 1 to 3 that do not run."""

    def made(*found, fenced=(), voters=(1, 2, 3)):
        roles = ("broker", "voter")
        nodes = {
            number: Node(
                number, f"h:{number}", None, roles if number in voters else roles[:1],
                FENCED if number in fenced else RUNNING, 0, 0, 0,
            )
            for number in (1, 2, 3)
        }  # fmt: skip
        whole = Nodes("id", Quorum(1, 1, 9, voters, ()), nodes)
        for model in (leaving, replacing):
            monkeypatch.setattr(model, "read_nodes", lambda _: whole)
        monkeypatch.setattr(leaving.partitions, "partitions", lambda *_: list(found))
        monkeypatch.setattr("console.model.topics.replica_changes.disk.sizes", lambda *_: {})

    return made


def partition(leader, replicas, isr, elr=()):
    return Partition("t", 0, leader, replicas, isr, elr, ())


def test_a_lost_node_can_be_replaced_when_others_have_everything(cluster):
    cluster(partition(1, (1, 3), (1,)), fenced=(3,))
    assert not replacing.replaceable(None, 3).lives
    assert replacing.replaceable(None, 1).lives


@pytest.mark.parametrize(
    "one",
    [partition(-1, (3,), (3,)), partition(-1, (3, 1), (3,)), partition(-1, (1, 3), (), (3,))],
)
def test_what_only_the_lost_node_has_would_be_lost(cluster, one):
    cluster(one, fenced=(3,))
    with pytest.raises(Failure, match="only node 3 has all records of t:0"):
        replacing.replaceable(None, 3)


def test_a_voter_is_replaced_only_while_all_others_run(cluster):
    cluster(fenced=(2, 3))
    with pytest.raises(Failure, match="so is node 2, which does not run"):
        replacing.replaceable(None, 3)
    cluster(fenced=(2, 3), voters=(1, 2))
    assert not replacing.replaceable(None, 3).lives, "it has no vote"


def test_who_leaves_gives_its_replicas_away_or_has_none(cluster):
    cluster(partition(3, (3, 1), (3, 1)))
    plan = leaving.leaving(None, 3, fewer=False)
    assert plan.rows == (("t:0", "3,1", "2,1"),) and not plan.says
    with pytest.raises(Failure) as none:
        leaving.leaving(None, 2, fewer=False)
    assert none.value.name == NOTHING
    cluster(partition(3, (3, 1, 2), (3, 1)))
    with pytest.raises(Failure) as few:
        leaving.leaving(None, 3, fewer=False)
    assert "--fewer-replicas" in few.value.hint
    plan = leaving.leaving(None, 3, fewer=True)
    assert plan.says == ("1 of these partitions then have one replica less.",)


@pytest.mark.parametrize("directory", [None, UUID(int=7)])
def test_a_dynamic_voter_loses_its_vote(monkeypatch, directory):
    asked = []

    def ask(_, *request):
        asked.append(request)
        return SimpleNamespace(error_code=0, error_message=None)

    voters = [
        SimpleNamespace(replica_id=1, replica_directory_id=UUID(int=1)),
        SimpleNamespace(replica_id=3, replica_directory_id=directory),
    ]
    told = SimpleNamespace(current_voters=voters)
    monkeypatch.setattr(leaving, "quorum_told", lambda _: told)
    monkeypatch.setattr("console.model.cluster.voters.ask_server", ask)
    leaving.take_vote(None, 3)
    if directory is None:
        assert not asked
        return
    values = {"cluster_id": None, "voter_id": 3, "voter_directory_id": directory.bytes}
    assert asked == [(81, 0, values)]
    build(request_type(81, 0), values)


def test_who_runs_is_not_forgotten(cluster):
    cluster()
    with pytest.raises(Failure, match="it would register again"):
        leaving.unregister(None, 3)
