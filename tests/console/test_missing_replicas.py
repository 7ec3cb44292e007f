"""Why replicas are missing, decided without a broker; one appliance alone."""

import pytest

from console.model.cluster.nodes import FENCED, RUNNING, Node
from console.model.topics import replicas
from console.model.topics.partitions import Partition
from console.model.topics.replicas import (
    BEHIND,
    FOLDER,
    LEVEL,
    NOT_KNOWN,
    UNREGISTERED,
    Held,
    Missing,
)
from console.show.replicas import describe_missing
from tests.console_process import rows

PLACE = ("t", 0)


def node(number, state=RUNNING, heard_s=0.1):
    return Node(number, f"h:{number}", None, ("broker",), state, heard_s, 0, 0)


NODES = {1: node(1), 2: node(2), 3: node(3, FENCED, 200.0)}


@pytest.fixture
def behind(monkeypatch):
    """has: address → what the node there has of the partition."""

    def judged(replica, has, offline=()):
        def tell(_, server, places):
            assert set(places) == {PLACE}
            return {PLACE: has[server]} if server in has else {}

        monkeypatch.setattr(replicas, "read_replicas", tell)
        one = Partition("t", 0, 1, (1, replica), (1,), (), offline)
        (found,) = replicas.behind(None, [one], NODES)
        (missing,) = found.missing
        return missing, describe_missing(missing, NODES.get(replica))

    return judged


LEADS = Held(1500, 90_000)


@pytest.mark.parametrize(
    ("replica", "own", "offline", "missing", "words"),
    [
        (9, None, (9,), Missing(9, UNREGISTERED), "node 9 is not registered"),
        (3, None, (3,), Missing(3, FENCED), "node 3 is fenced, not heard of for 3 min"),
        (
            2, None, (2,), Missing(2, FOLDER),
            "node 2 has lost the folder that it was in, or has no row for it (see its log)",
        ),
        (2, Held(300, 20_000), (), Missing(2, BEHIND, 1200, 70_000),
         "node 2 is 1,200 records, 70.0 kB behind"),
        (2, Held(1499, None), (), Missing(2, BEHIND, 1, None), "node 2 is 1 record behind"),
        (2, LEADS, (), Missing(2, LEVEL, 0, 0), "node 2 has caught up and joins in a moment"),
        (2, None, (), Missing(2, NOT_KNOWN), "node 2 does not say how far it is"),
    ],
)  # fmt: skip
def test_why_a_replica_is_missing(behind, replica, own, offline, missing, words):
    has = {"h:1": LEADS} | ({f"h:{replica}": own} if own else {})
    assert behind(replica, has, offline) == (missing, words)


def test_one_appliance_alone_is_one_line(run):
    told = run("cluster", "status").stdout
    assert told.startswith("one node alone, 1 at ") and told.count("\n") == 1
    assert "nothing is replicated" in told
    (found,) = rows(run("cluster", "status", "-o", "json"))
    assert found["whole"] and found["quorum"]["voters"] == [1]
