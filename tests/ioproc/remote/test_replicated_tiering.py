"""A tiered partition with replicas: whoever leads next serves and copies on, whatever dies."""

from random import Random

import pytest

from appliance.logstore.log import PartitionLog
from appliance.remotelog.manifests import LeaderFenced, RemoteManifests, Term
from appliance.remotelog.objects import RemoteFilesMissing
from tests.ioproc.remote.replicated_world import Cluster, Node
from tests.ioproc.remote.test_tiering import LOCAL, expected, value
from tests.seeds import each_seed

RULES = {**LOCAL, "retention_bytes": -1}


def filled(cluster, some=12):
    for _ in range(some):
        cluster.append(value(cluster.leader.life.log.end_offset))


def settle(cluster):
    """Everybody hears, fetches, copies and drops until nothing is left to do."""
    for node in cluster.nodes:
        if node.life is None:
            node.start()
        elif not node.knows_role:
            node.hear_role()
    if cluster.leader is None:
        cluster.elect()
        for node in cluster.nodes:
            node.hear_role()
    for _ in range(2):
        cluster.leader.life.finish()
        for node in cluster.nodes:
            assert node is cluster.leader or cluster.replicate(node), node.number
            for _ in range(10):
                node.step(100_000, lambda: True)
            node.life.retain()
        cluster.check()


@pytest.fixture
def cluster():
    return Cluster(Random(1), **RULES)


def test_the_next_leader_serves_what_is_remote_and_copies_on(cluster):
    filled(cluster)
    settle(cluster)
    first = cluster.leader
    copied = first.life.log.copied_end
    assert copied == first.life.log.active_base > 0
    for node in cluster.nodes:
        assert node.life.log.local_start == copied, "followers drop what is copied"
        assert node.life.values() == expected(range(12))
    cluster.kill(first, power=False)
    assert cluster.leader is not first
    filled(cluster)
    settle(cluster)
    assert cluster.leader.life.log.copied_end > copied
    assert cluster.leader.life.values() == expected(range(24))
    assert first.life.values() == expected(range(24)), "and the first one follows"


def test_a_new_replica_begins_where_the_local_log_does(cluster):
    filled(cluster, 24)
    settle(cluster)
    late = cluster.nodes[0] if cluster.leader is not cluster.nodes[0] else cluster.nodes[1]
    cluster.kill(late, power=True)
    cluster.nodes.remove(late)
    fresh = Node(9, cluster)
    cluster.nodes.append(fresh)
    fresh.start()
    settle(cluster)
    local = cluster.leader.life.log.local_start
    assert fresh.life.log.segments[0].base == local > 0
    assert fresh.life.log.log_start_offset == 0
    assert fresh.life.log.epochs.starts == cluster.leader.life.log.epochs.starts
    while cluster.leader is not fresh:
        cluster.elect()
    settle(cluster)
    assert fresh.life.values() == expected(range(24))


def test_a_deposed_leader_neither_copies_nor_deletes(cluster):
    filled(cluster)
    old = cluster.leader
    while cluster.leader is old:
        cluster.elect()
    cluster.leader.life.finish()
    held = dict(cluster.store.held)
    for _ in range(50):
        old.step(10_000, lambda: True)
    assert cluster.store.held == held, "it did not even try"
    settle(cluster)
    cluster.leader.life.set_rules(retention_bytes=1)
    old = cluster.leader
    while cluster.leader is old:
        cluster.elect()
    cluster.leader.life.finish()
    held = cluster.store.of_segments()
    for _ in range(50):
        old.step(10_000, lambda: True)
    assert cluster.store.of_segments() == held


def act(cluster, rng):
    what = rng.randrange(20)
    alive = [node for node in cluster.nodes if node.life is not None]
    if what < 5 and cluster.leader is not None:
        filled(cluster, rng.randrange(1, 4))
    elif what < 9:
        fail_or_return(cluster, rng, alive)
    elif what < 11 and alive:
        rng.choice(alive).hear_role()
    elif what < 12 and cluster.late:
        cluster.late.pop(rng.randrange(len(cluster.late))).run_one()
    elif what < 13 and cluster.leader is not None and cluster.end:
        target = min(cluster.allowed + rng.randrange(6), cluster.end)
        cluster.allowed = max(cluster.allowed, target)
        cluster.leader.life.trim_to(target)
    elif what < 15 and alive:
        rng.choice(alive).life.retain()
    elif alive:
        node = rng.choice(alive)
        if node is not cluster.leader and rng.random() < 0.3:
            cluster.replicate(node)
        for _ in range(rng.randrange(8)):
            node.step(rng.choice((1, 100_000)), lambda: rng.random() < 0.6)
    cluster.check()


def fail_or_return(cluster, rng, alive):
    down = [node for node in cluster.nodes if node.life is None]
    if down and rng.random() < 0.5:
        rng.choice(down).start()
        if cluster.leader is None:
            cluster.elect()
    elif alive and rng.random() < 0.5:
        cluster.kill(rng.choice(alive), power=rng.random() < 0.5)
    else:
        cluster.elect()


@each_seed(60)
def test_nothing_that_is_kept_is_lost_whoever_leads(seed):
    play(seed)


def play(seed):
    rng = Random(seed)
    cluster = Cluster(rng, **RULES)
    for _ in range(150):
        act(cluster, rng)
    settle(cluster)
    for node in cluster.nodes:
        assert node.life.values().keys() >= set(range(cluster.allowed, cluster.end))
    for link in cluster.late:
        link.run_one()
    cluster.leader.life.finish(2_000_000)
    whole = {one.remote_log_segment_id.id.hex() for one in cluster.leader.life.known().finished()}
    names = cluster.store.of_segments()
    held = {name.rpartition("/")[2].partition(".")[0].partition("-")[2] for name in names}
    assert held == whole, "objects that nobody knows are left in the store"


def believe_steps(monkeypatch):
    """A leader believes in a step without looking for later claims."""
    publish = RemoteManifests.publish

    def publish_blindly(self, topic_id, partition, term, entries):
        try:
            return publish(self, topic_id, partition, term, entries)
        except LeaderFenced:
            return Term(term.epoch, term.number + 1)

    monkeypatch.setattr(RemoteManifests, "publish", publish_blindly)


def begin_without_journal(monkeypatch):
    """A log begins behind remote segments that it does not know."""
    monkeypatch.setattr(PartitionLog, "join_remote", lambda self, start, copied_end: None)


@pytest.mark.interpreted("plants a rule in a class that is compiled")
@pytest.mark.parametrize("plant", [believe_steps, begin_without_journal])
def test_rules_of_leaders_that_are_broken_are_found_out(plant, monkeypatch):
    plant(monkeypatch)

    def play_some():
        for seed in range(60):
            play(seed)

    with pytest.raises((AssertionError, RemoteFilesMissing, KeyError)):
        play_some()
