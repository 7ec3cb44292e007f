"""Three nodes whose settings fix the voters are raised to kraft.version 1 (KIP-853), as
`kafka-features upgrade` does it, and keep their files: the log says who votes from then on."""

import shutil

import pytest

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.cluster import features
from tests.cluster.nodes import Nodes
from tests.cluster.test_one_becomes_three import told_until
from tests.cluster.test_voters_come_and_go import Growing


class Raised(Growing):
    def __init__(self, folder):
        Nodes.__init__(self, folder)

    def __enter__(self):
        return Nodes.__enter__(self)

    def led(self, *but):
        """The leader, as all that live say, and none of these."""
        told = {self.quorum_leader(number) for number in self.living} - {-1}
        return told.pop() if len(told) == 1 and not told & set(but) else None


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with Raised(tmp_path_factory.mktemp("raised")) as nodes:
        nodes.create("t")
        nodes.wait(lambda: raised(nodes), "each voter has told of itself")
        yield nodes


def raised(nodes):
    """Whether kraft.version could be raised: the leader has to know each voter's folder."""
    try:
        features.raise_to(Link(nodes.bootstrap, {}, 30), features.KRAFT, 1)
    except Failure as why:
        if "have not told of themselves yet" not in why.message:
            raise
        return False
    return True


def test_the_same_three_vote_whoever_dies_and_after_a_start_of_all(nodes):
    voters = nodes.wait(lambda: nodes.voters(), "somebody says who votes")
    assert set(voters) == {1, 2, 3} and all(voters.values())
    first = nodes.wait(nodes.led, "one leads")
    nodes.kill(first)
    nodes.wait(lambda: nodes.led(first), "another one leads")
    nodes.start(first)
    nodes.wait(lambda: nodes.whole("t"), "it fetches")
    for number in nodes.living:
        nodes.kill(number)
    nodes.start()
    leader = nodes.wait(nodes.led, "one leads")
    assert nodes.voters(leader) == voters
    nodes.create("later")


def test_a_voter_goes_and_comes_again(nodes):
    leader = nodes.wait(nodes.led, "one leads")
    goes = min({1, 2, 3} - {leader})
    nodes.remove(goes, through=leader)
    nodes.wait(lambda: goes not in nodes.voters(leader), "two vote")
    nodes.kill(goes)
    nodes.start(goes)  # with a file that names it as a voter
    nodes.wait(lambda: nodes.led() == leader, "it follows")
    assert goes not in nodes.voters(leader), "the log says who votes"
    nodes.add(goes)
    assert set(nodes.voters(nodes.wait(nodes.led, "one leads"))) == {1, 2, 3}


def test_an_empty_folder_gets_the_vote_of_a_lost_one_though_it_does_not_ask(nodes):
    leader = nodes.wait(nodes.led, "one leads")
    lost = max({1, 2, 3} - {leader})
    before = nodes.voters(leader)
    nodes.kill(lost)
    nodes.wait(lambda: lost not in nodes.brokers(), "it is fenced")
    shutil.rmtree(nodes[lost].data)
    with told_until(nodes, "--config FILE", "cluster", "replace", str(lost)) as (_, end):
        nodes.start(lost)
        row = end()
    assert row["status"] == "whole" and row["votes"]
    after = nodes.voters(leader)
    assert set(after) == {1, 2, 3} and after[lost] != before[lost]
    nodes.wait(lambda: nodes.whole("t"), "all are in sync")
