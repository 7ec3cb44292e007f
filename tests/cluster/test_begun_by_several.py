"""Nodes whose settings name each other by `controller.quorum.bootstrap.servers`: how the first of
them vote (KIP-853), in the words of Apache Kafka's format step, and what is said while nobody does.
"""

import os

from appliance.wire.uuids import format_uuid
from benchmarks import nodes as places
from tests.cluster.nodes import Node, Nodes
from tests.cluster.test_voters_come_and_go import DESCRIBE_QUORUM, METADATA
from tests.console_process import typing


class Worded(Node):
    """words: behind its `penstock up`."""

    words = ()

    def command(self):
        return [*super().command(), *self.words]


class Named(Nodes):
    """They begin in empty folders, without static voters."""

    def __init__(self, folder, count):
        where = places.places(count)
        super().__init__(folder, places=where)
        self.all = {one.number: Worded(folder, one, where, {}, False) for one in where}
        seeds = ",".join(f"{one.host}:{one.controller_port}" for one in where)
        for node in self.all.values():
            del node.properties["controller.quorum.voters"]
            node.properties["controller.quorum.bootstrap.servers"] = seeds

    def voters(self, number):
        """Number → directory id of each."""
        (told,) = self.ask(DESCRIBE_QUORUM, 2, METADATA, number)["topics"]
        return {one["replica_id"]: str(one["replica_directory_id"]).replace("-", "")
                for one in told["partitions"][0]["current_voters"]}  # fmt: skip


class Several(Named):
    """All of them vote from the beginning."""

    def __init__(self, folder, count=3):
        super().__init__(folder, count)
        self.directories = {number: os.urandom(16) for number in self.all}
        self.list = ",".join(
            f"{one.number}@{one.host}:{one.controller_port}:"
            + format_uuid(self.directories[one.number])
            for one in self.places
        )
        for node in self.all.values():
            node.words = ("--initial-controllers", self.list)


def test_three_vote_from_the_beginning_and_start_again_by_the_same_line(tmp_path):
    with Several(tmp_path) as nodes:
        wanted = {number: found.hex() for number, found in nodes.directories.items()}
        assert nodes.voters(1) == wanted
        nodes.create("t")
        leader = nodes.quorum_leader()
        nodes.kill(leader)
        other = min({1, 2, 3} - {leader})
        nodes.wait(lambda: nodes.quorum_leader(other) not in (-1, leader), "another one leads")
        nodes.start(leader)
        nodes.wait(lambda: nodes.whole("t"), "it fetches")
        assert "--initial-controllers is left out, its log says who votes" in (
            nodes[leader].output()
        )
        assert nodes.voters(leader) == wanted


def test_nobody_votes_until_one_stands_alone_and_the_others_are_told_so(tmp_path):
    nodes = Named(tmp_path, 2)
    try:
        for node in nodes.all.values():
            node.start(wait=False)
        one, run = nodes[1], typing(nodes.bootstrap)
        nodes.wait(lambda: "nobody-votes" in one.output(), "it says so")
        assert "--standalone" in one.output()
        waited = run("wait", "--data", str(one.data), "--timeout", "0", code=4)
        assert "not ready: no voter yet" in waited.stderr and "--standalone" in waited.stderr
        assert "no voter yet" in run("status", "--data", str(one.data), code=2).stdout
        nodes.stop(1)
        one.words = ("--standalone",)
        nodes.start(1)
        nodes.wait(lambda: sorted(nodes.brokers()) == [1, 2], "the other one finds it")
        assert set(nodes.voters(1)) == {1}
        run("wait", "--data", str(nodes[2].data))
        nodes.stop(1)
        nodes.start(1)
        assert "--standalone is left out" in one.output()
        assert set(nodes.voters(1)) == {1}
    finally:
        nodes.__exit__()
