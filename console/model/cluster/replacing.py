"""An empty node in the place of one that is lost: whether that loses anything, how it is started,
and how far it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.cluster import joining, voters
from console.model.cluster.invitations import only_invited
from console.model.cluster.nodes import VOTER, Node, Nodes, broker_of, quorum_told, read_nodes
from console.model.topics import partitions, replicas
from console.model.topics.partitions import Partition


@dataclass(slots=True, frozen=True)
class Refill:
    """How far a node is with the replicas that it is to have, and with its vote. whole: so many of
    the partitions are in sync. records, bytes: that it is behind in the others, as far as nodes
    tell. votes: as it is to, or it is to have none."""

    runs: bool
    partitions: int
    whole: int
    records: int
    bytes: int
    votes: bool

    @property
    def finished(self) -> bool:
        return self.runs and self.votes and self.whole == self.partitions


class Replacing:
    """The replacement of one node. old: its state when this began, dead unless started since."""

    def __init__(self, link: Link, number: int) -> None:
        """Raises Failure where an empty folder would lose what others have acknowledged."""
        self._link, self._number = link, number
        self.old = replaceable(link, number)
        vote = voters.vote_of(link, number)
        self._voted = VOTER in self.old.roles
        self._reached: tuple[dict[str, Any], ...] = () if vote is None else vote.listeners

    def make_instructions(self, *, only_look: bool) -> str:
        """The instructions to start it. only_look: make no token. Raises Failure."""
        link, found = self._link, read_nodes(self._link)
        own = f"penstock up --data NEW --cluster-id {found.cluster_id} --config FILE"
        its = f"its settings (node.id={self._number}, at {self.old.address})"
        invited = only_invited(link)
        joins = voters.dynamic(quorum_told(link)) and (invited or self._voted)
        if not joins:
            return f"start an empty folder where it was, with {its}:\n  {own}"
        line = "penstock up --join …, which this command prints without --check"
        if not (invited and only_look):
            line = self._line(found, invited=invited)
        return (
            f"start an empty folder where it was (at {self.old.address}):\n  {line}\nor, where"
            f" there is a file with {its}:\n  {own}"
        )

    def _line(self, found: Nodes, *, invited: bool) -> str:
        """invited: with a token, which is only made on the host of a node."""
        try:
            return joining.line_in_place(self._link, found, self._number, invited=invited)
        except Failure as refused:
            if refused.name != "CLUSTER_AUTHORIZATION_FAILED":
                raise
            return "penstock up --join …, which this command prints on the host of one of its nodes"

    def move_vote(self) -> Refill:
        """A vote of the folder that is lost goes to the one that is there; how far it is now.
        Raises Failure."""
        link, number = self._link, self._number
        vote = voters.vote_of(link, number) if self._voted and self._reached else None
        if vote is not None and vote.waits and broker_of(read_nodes(link), number).lives:
            voters.hand_over(link, number, vote, self._reached)
        return self.read_refill()

    def read_refill(self) -> Refill:
        """How far it is now. Raises Failure."""
        link, number = self._link, self._number
        found = read_nodes(link)
        node = broker_of(found, number)
        vote = voters.vote_of(link, number) if self._voted else None
        mine = [one for one in partitions.partitions(link) if number in one.replicas]
        sick = [one for one in mine if number not in one.isr]
        behind = _behind(replicas.behind(link, sick, found.all) if node.lives else (), number)
        return Refill(
            node.lives, len(mine), len(mine) - len(sick),
            sum(one.records or 0 for one in behind), sum(one.bytes or 0 for one in behind),
            not self._voted or (vote is not None and vote.stands),
        )  # fmt: skip


def replaceable(link: Link, number: int) -> Node:
    """A dead node, whose place an empty one may take without anything being lost that others have
    acknowledged. Raises Failure when that is not so."""
    found = read_nodes(link)
    node = broker_of(found, number)
    if node.lives:
        return node
    if VOTER in node.roles:
        _others_vote(found, number)
    mine = [one for one in partitions.partitions(link) if number in one.replicas]
    if only := [one for one in mine if _only(one, number, found.all)]:
        names = ", ".join(f"{one.topic}:{one.partition}" for one in only[:3])
        more = f" and {len(only) - 3} more" if only[3:] else ""
        raise Failure(
            f"only node {number} has all records of {names}{more}",
            "start it with its own folder; an empty one would lose them",
            name="WOULD_LOSE_RECORDS",
        )
    return node


def _others_vote(found: Nodes, number: int) -> None:
    """A voter that comes back empty has forgotten what it agreed to: safe only while all others
    have it."""
    for one in found.quorum.voters:
        other = found.all[one]
        if one != number and not other.lives:
            raise Failure(
                f"node {number} is a voter, and so is node {one}, which does not run either: what"
                " both had agreed to might be forgotten",
                f"start node {one} first",
                name="WOULD_FORGET_VOTES",
            )


def _only(partition: Partition, number: int, nodes: Mapping[int, Node]) -> bool:
    """True if no other node that may lead the partition, in sync or eligible, lives."""
    able = {*partition.isr, *partition.elr}
    return partition.leader < 0 and not any(
        one != number and one in nodes and nodes[one].lives for one in able
    )


def _behind(found: Iterable[replicas.Behind], number: int) -> list[replicas.Missing]:
    return [each for one in found for each in one.missing if each.node == number]
