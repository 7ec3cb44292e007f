"""A node whose partition table is smaller than what it was given while it was down: others lead
what it cannot. From then on it is known how large its table is: it is given no more."""

import pytest

from tests.broker_process import KAFKA
from tests.cluster.nodes import Nodes
from tests.console_process import typing

pytestmark = pytest.mark.skipif(KAFKA, reason="rows of partitions are ours")
SETTINGS = {"offsets.topic.num.partitions": "1"}


def test_what_a_node_has_no_row_for_is_led_by_others_and_named(tmp_path):
    with Nodes(tmp_path, settings=SETTINGS) as nodes:
        leader = nodes.quorum_leader()
        small = min(one for one in nodes.all if one != leader)
        nodes.stop(small)
        run = typing(nodes.bootstrap)
        run("topic", "create", "wide", "-p", "12", "-r", "3")
        nodes[small].settings = SETTINGS | {"penstock.partitions.max": "4"}
        nodes.start(small)
        nodes.wait(lambda: "partition-table-full" in nodes[small].output(), "it lacks rows")

        def led():
            found = nodes.partitions("wide", leader).values()
            return sum(small in one.isr for one in found) == 4 and all(
                small in one.isr for one in found if one.leader == small
            )

        nodes.wait(led, "others lead what it has no row for")
        run("produce", "wide", stdin="".join(f"{n}\n" for n in range(100)))
        assert len(run("consume", "wide", "-e").stdout.splitlines()) == 100
        told = run("cluster", "status", code=1).stdout
        assert f"node {small} has lost the folder that it was in, or has no row" in told
        told = run("topic", "create", "more", "-r", "3", code=1)
        told = told.stdout + told.stderr
        assert f"room on node {small} for 0 more (penstock.partitions.max=4)" in told
        run("topic", "create", "more", "-p", "8", "-r", "2")
        others = sorted(one for one in nodes.all if one != small)
        found = nodes.partitions("more", leader).values()
        assert [sorted(one.replicas) for one in found] == [others] * 8
