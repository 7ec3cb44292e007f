"""What is seen of a cluster by who looks again and again, without one: rates, who left the ISR,
what needs attention, and whom to ask when the broker that was named is gone."""

import socket
from collections import Counter
from dataclasses import replace

import pytest

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import _first
from console.model.cluster import cluster_watch, nodes
from console.model.cluster.cluster_watch import Count, Pace, Paces, Watch
from console.model.cluster.nodes import Nodes, Quorum
from console.model.local.attention import BAD, WARN, of_cluster
from console.model.topics import copies, move_changes, moves
from console.model.topics.moves import Move
from console.model.topics.partitions import Partition
from console.model.topics.replicas import BEHIND, Behind, Health, Held, Missing
from tests.console import calm_cluster


def test_a_rate_is_that_of_the_last_half_minute():
    paces = Paces()
    key, other = ("t", 0, 1), ("t", 1, 1)
    assert paces.update_paces(100.0, {key: 1000}) == {key: Pace()}
    assert paces.update_paces(110.0, {key: 800, other: 5})[key] == Pace(20.0, 40.0)
    assert paces.update_paces(120.0, {key: 900, other: 5})[other] == Pace(0.0, None), "it stands"
    assert paces.update_paces(150.0, {key: 300})[key] == Pace(20.0, 15.0), "since the look at 120"
    assert paces.update_paces(151.0, {other: 5})[other] == Pace(), "what was gone starts over"


class FakeCluster:
    """What a cluster tells, as a test says. asked: how often each was asked for."""

    def __init__(self, monkeypatch, seen):
        self.nodes, self.partitions, self.behind, self.moves = seen.nodes, [], [], []
        self.asked = Counter()
        for where, name, what in (
            (nodes, "read_nodes", lambda link: self.nodes),
            (cluster_watch, "partitions", lambda link: self.partitions),
            (moves, "under_way", lambda link, nodes, names=None: self.moves),
        ):
            monkeypatch.setattr(where, name, self._counted(name, what))
        monkeypatch.setattr(
            cluster_watch.replicas, "health",
            lambda link, every, nodes: Health(len(every), 0, 0, 0, 0, tuple(self.behind)),
        )  # fmt: skip

    def _counted(self, name, what):
        def ask(*given, **named):
            self.asked[name] += 1
            return what(*given, **named)

        return ask


@pytest.fixture
def link():
    return Link("127.0.0.1:1", {}, 1.0, read_only=True)


def partition(number, leader, isr, replicas=(1, 2, 3)):
    return Partition("t", number, leader, replicas, isr, (), ())


def test_a_broker_alone_is_asked_for_nothing_more(monkeypatch, link):
    fake = FakeCluster(monkeypatch, calm_cluster.alone())
    seen = Watch(link).read_cluster(1.0)
    assert not seen.several and seen.health is None and set(fake.asked) == {"read_nodes"}
    assert of_cluster(seen) == []


def test_leaders_replicas_and_who_left_the_isr_are_counted_by_node(monkeypatch, link):
    fake = FakeCluster(monkeypatch, calm_cluster.cluster())
    watch = Watch(link)
    fake.partitions = [partition(0, 1, (1, 2, 3)), partition(1, 2, (2, 3), (2, 3))]
    first = watch.read_cluster(0.0)
    assert first.counts == {1: Count(1, 1, 0), 2: Count(1, 2, 0), 3: Count(0, 2, 0)}
    fake.partitions = [partition(0, 1, (1,)), partition(1, 2, (2, 3), (2, 3))]
    watch.read_cluster(1.0)
    fake.partitions = [partition(0, 1, (1, 2)), partition(1, 2, (2,), (2, 3))]
    seen = watch.read_cluster(2.0)
    assert {node: one.left for node, one in seen.counts.items()} == {1: 0, 2: 1, 3: 2}


def test_what_comes_and_what_moves_has_a_pace(monkeypatch, link):
    fake = FakeCluster(monkeypatch, calm_cluster.cluster())
    watch = Watch(link)
    for now, left, copied in ((0.0, 900, 100), (10.0, 400, 350)):
        fake.behind = [Behind("t", 0, 1, (1, 2), (1,), (Missing(2, BEHIND, left, 1),))]
        fake.moves = [Move("t", 1, (1, 2), (2,), (), copied, 600), Move("t", 2, (1,), (), (), None,
                                                                       None)]  # fmt: skip
        seen = watch.read_cluster(now)
    assert seen.paces == {("t", 0, 2): Pace(50.0, 8.0)}
    assert seen.move_paces == {("t", 1): Pace(25.0, 10.0)}


def test_who_is_away_stays_a_node_of_the_cluster(monkeypatch, link):
    several = calm_cluster.cluster()
    fake = FakeCluster(monkeypatch, several)
    watch = Watch(link)
    watch.read_cluster(0.0)
    alone = {1: several.nodes.all[1]}
    fake.nodes = Nodes("c", Quorum(None, -1, -1, (), ()), alone)
    seen = watch.read_cluster(1.0)
    assert seen.several and seen.voters == (1, 2, 3), "nobody leads who could tell the voters"
    assert fake.asked["under_way"] == 1, "nobody could answer: all of it would not be told"
    (notice,) = of_cluster(replace(seen, health=None))
    assert notice.level == BAD and "no majority of the voters 1, 2, 3" in notice.what


def test_a_cluster_says_what_is_wrong_the_worst_first():
    seen = calm_cluster.cluster()
    sick = replace(seen, health=replace(seen.health, offline=1))
    found = of_cluster(sick)
    assert [one.level for one in found] == [BAD, BAD, WARN, WARN]
    assert [one.what.split(":")[0] for one in found] == [
        "1 partition without a leader", "2 partitions under min.insync.replicas",
        "node 3 missing", "3 partitions under-replicated",
    ]  # fmt: skip
    assert {one.place for one in found} == {"nodes"}


def test_copies_are_compared_with_their_leader(monkeypatch, link):
    parts = [
        Partition("t", 0, 2, (1, 2, 3), (2,), (1,), (3,)),
        Partition("t", 1, -1, (3,), (), (), ()),
    ]
    has = {1: {("t", 0): Held(80, 800)}, 2: {("t", 0): Held(100, 900)}}
    asked = []

    def held(link, server, places):
        node = int(server.split(":")[0][-1])
        asked.append(node)
        return has[node]

    monkeypatch.setattr(copies, "partitions", lambda link, names: parts)
    monkeypatch.setattr(copies, "read_replicas", held)
    found = copies.placed(link, "t", calm_cluster.cluster().nodes.all)
    assert sorted(asked) == [1, 2], "who is fenced is not asked"
    first, leader, gone = found[0].copies
    assert (first.behind, first.eligible, first.in_sync, first.bytes) == (20, True, False, 800)
    assert leader.leads and leader.behind == 0
    assert (gone.lives, gone.end, gone.behind, gone.offline) == (False, None, None, True)
    assert found[1].copies[0].behind is None


def test_taking_back_is_planned_and_done_once(monkeypatch, link):
    begun, left = [], [Move("t", 0, (1, 2, 3), (3,), (2,), 5, 9)]
    monkeypatch.setattr(moves, "under_way", lambda link, nodes, names: list(left))
    monkeypatch.setattr(moves, "alter_reassignments", lambda link, wanted: begun.append(wanted))
    change = move_changes.cancelling(link, "t")
    assert change.rows == (("t:0", "1,2,3", "1,2"),)
    assert change.words == ("topic", "replicas", "cancel", "t")
    assert change.seen(link) is None
    assert change.apply(link) == "taken back" and begun == [{("t", 0): None}]
    left.clear()
    assert change.seen(link) == "taken back"
    with pytest.raises(Failure, match="no reassignment in progress"):
        move_changes.cancelling(link, "t")


def test_when_the_broker_that_was_named_is_gone_another_one_is_asked():
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    named, other = (f"127.0.0.1:{one.getsockname()[1]}" for one in servers)
    link = Link(named, {}, 1.0, read_only=True)
    assert link.living == named
    link.knows([named, other])
    assert (_first(link), link.living) == (named, named)
    servers[0].close()
    link.reach()
    assert (_first(link), link.living) == (other, f"{named},{other}")
    servers[1].close()
    with pytest.raises(Failure, match=named):
        link.reach()
