"""`penstock cluster balance` on three nodes: even loads, no record lost, nothing left behind."""

import pytest

from console.model.asking import configs
from console.model.asking.configs import BROKER, TOPIC, Target
from console.model.asking.link import Link
from console.model.topics import partitions
from console.model.topics.balancing import balance_of
from tests.cluster.nodes import Nodes
from tests.console_process import rows, typing

NODES = [1, 2, 3]
RECORDS = 50


@pytest.fixture
def nodes(tmp_path):
    with Nodes(tmp_path) as nodes:
        nodes.create("two", assignment=[[1, 2]] * 6)
        nodes.create("one", assignment=[[1]] * 3, factor=1)
        yield nodes


@pytest.fixture
def run(nodes):
    return typing(nodes.bootstrap)


def named(link):
    return [one for one in partitions.partitions(link) if one.topic in ("one", "two")]


def test_a_lopsided_cluster_is_made_even_by_leaders_first_and_then_whole(nodes, run):
    link = Link(nodes.bootstrap, {}, 30)
    for topic, count in (("one", 3), ("two", 6)):
        for number in range(count):
            run("produce", topic, "-p", str(number), stdin="x\n" * RECORDS)
    nodes.wait(lambda: nodes.whole("two", 2), "all are in sync")
    before = {one.place: one.replicas for one in named(link)}

    planned = rows(run("cluster", "balance", "--leaders", "--dry-run", "-o", "json"))
    assert planned and {one["status"] for one in planned} == {"would be"}
    assert {one.place: one.replicas for one in named(link)} == before, "nothing was done"
    run("cluster", "balance", "--leaders", "--yes")
    assert {one.place: {*one.replicas} for one in named(link)} == {
        place: {*replicas} for place, replicas in before.items()
    }, "no replica moves"

    def led():
        return [one.leader == one.replicas[0] for one in named(link)]

    nodes.wait(lambda: all(led()), "the first replica leads each partition")
    found = balance_of((one.replicas for one in named(link)), NODES)
    assert found.leaders[2] > 0

    run("cluster", "balance", "--throttle", "10000000", "--yes")
    every = [one.replicas for one in partitions.partitions(link)]
    found = balance_of(every, NODES)
    assert max(found.replicas.values()) - min(found.replicas.values()) <= 1
    assert max(found.leaders.values()) - min(found.leaders.values()) <= 1
    nodes.wait(lambda: all(led()), "the first replica leads each partition")
    for topic, count in (("one", 3), ("two", 6)):
        for number in range(count):
            ends = {end for _, end in nodes.watermarks(topic, number).values()}
            assert ends == {RECORDS}, f"{topic}-{number}"
    told = configs.values_of(link, BROKER, ["1", "2", "3"], ("leader.replication.throttled.rate",))
    assert {one.get("leader.replication.throttled.rate") for one in told.values()} <= {
        None, str((1 << 63) - 1)
    }  # fmt: skip
    left = configs.settings(
        link, Target(TOPIC, "two"), ("follower.replication.throttled.replicas",)
    )
    assert not left[0].value, "the throttle is gone"

    again = run("cluster", "balance", "--yes", "-o", "json")
    assert rows(again) == [] and "it is even already" in again.stderr
