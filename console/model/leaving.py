"""Taking a node out of a cluster for good, and an empty one in the place of one that is lost: what
must be so before, as plans.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from console.model import configs, partitions, placing, replicas
from console.model.change import Change
from console.model.configs import BROKER, DELETE, SET, Target
from console.model.failure import Failure
from console.model.link import Link
from console.model.nodes import VOTER, Node, Nodes, look, quorum_told
from console.model.partitions import Partition
from console.model.plain_request import ask
from console.model.refusals import check
from console.model.replica_changes import NOTHING, change

_UNREGISTER: Final = (64, 0)
_REMOVE_VOTER: Final = (81, 0)
_CORDONED: Final = "cordoned.log.dirs"
_LOOK: Final = "penstock cluster status shows the nodes that there are"


def leaving(link: Link, number: int, *, fewer: bool) -> Change:
    """The replicas of this node go to others. fewer: where nobody is left to take one, there is one
    less. Raises Failure (NOTHING) when it has none, and for what cannot be."""
    found = look(link)
    _known(found, number)
    if len(found.brokers) == 1:
        raise Failure(f"node {number} is the only one: nobody can take what it has", _LOOK)
    every = partitions.partitions(link)
    mine = [one for one in every if number in one.replicas]
    if not mine:
        raise Failure(f"node {number} has no replica", name=NOTHING)
    try:
        wanted = placing.without(mine, number, found.brokers, placing.load_of(every), fewer=fewer)
    except Failure as failure:
        if not fewer:
            failure.hint = "--fewer-replicas lets such partitions have one replica less"
        raise
    chosen = {one.place: one for one in mine}
    less = sum(len(to) < len(chosen[place].replicas) for place, to in wanted.items())
    says = (f"{less} of these partitions have one replica less then.",) if less else ()
    words = ("cluster", "leave", str(number), *(("--fewer-replicas",) if fewer else ()))
    return change(link, wanted, chosen=chosen, brokers=found.brokers, words=words, says=says)


def cordon(link: Link, number: int) -> bool:
    """Nothing new is placed on this node any more (KIP-1066); whether the cluster knows how to do
    that. Raises Failure."""
    return _cordon(link, number, SET, "*")


def uncordon(link: Link, number: int) -> bool:
    """The setting is gone; the controller's view stays as it is until the node says otherwise."""
    return _cordon(link, number, DELETE, None)


def _cordon(link: Link, number: int, kind: int, value: str | None) -> bool:
    try:
        configs.put(link, Target(BROKER, str(number)), {_CORDONED: (kind, value)})
    except Failure as failure:
        if failure.name in ("INVALID_CONFIG", "INVALID_REQUEST"):  # of an older version
            return False
        raise
    return True


def take_vote(link: Link, number: int) -> None:
    """Of a node that is one of dynamic voters (KIP-853), while it still runs: of two voters both
    have to agree to it. Nothing happens to others. Raises Failure."""
    told = quorum_told(link)
    for one in told.current_voters if told is not None else ():
        if int(one.replica_id) == number and one.replica_directory_id is not None:
            values = {
                "cluster_id": None,
                "voter_id": number,
                "voter_directory_id": one.replica_directory_id.bytes,
            }
            answer = ask(link, *_REMOVE_VOTER, values)
            check(int(answer.error_code), answer.error_message, f"the vote of node {number}")


def unregister(link: Link, number: int) -> None:
    """The cluster forgets the node. Raises Failure, also while it runs: it would come back."""
    found = look(link)
    if _known(found, number).lives:
        raise Failure(f"node {number} runs: it would register again", "stop it first")
    told = ask(link, *_UNREGISTER, {"broker_id": number})
    check(int(told.error_code), told.error_message, f"node {number}")


def still_votes(found: Nodes, number: int) -> str:
    """What is to be done about its vote; "" when it has none."""
    if number not in found.quorum.voters:
        return ""
    return (
        f"node {number} still has a vote, which counts against the others until it is taken out of"
        " controller.quorum.voters in the settings of all of them and they are started again, one"
        " after the other"
    )


# Replacing ----------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class Refill:
    """How far a node is with the replicas that it is to have. whole: so many of the partitions are
    in sync. records, bytes: that it is behind in the others, as far as nodes tell."""

    runs: bool
    partitions: int
    whole: int
    records: int
    bytes: int

    @property
    def finished(self) -> bool:
        return self.runs and self.whole == self.partitions


def replaceable(link: Link, number: int) -> Node:
    """A dead node, whose place an empty one may take without anything being lost that others have
    acknowledged. Raises Failure when that is not so."""
    found = look(link)
    node = _known(found, number)
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
    """Whether nobody else who may lead it lives: those in sync, and the eligible ones."""
    able = {*partition.isr, *partition.elr}
    return partition.leader < 0 and not any(
        one != number and one in nodes and nodes[one].lives for one in able
    )


def refilled(link: Link, number: int) -> Refill:
    """How far it is now. Raises Failure."""
    found = look(link)
    node = _known(found, number)
    mine = [one for one in partitions.partitions(link) if number in one.replicas]
    sick = [one for one in mine if number not in one.isr]
    behind = _behind(replicas.behind(link, sick, found.all) if node.lives else (), number)
    return Refill(
        node.lives, len(mine), len(mine) - len(sick),
        sum(one.records or 0 for one in behind), sum(one.bytes or 0 for one in behind),
    )  # fmt: skip


def _behind(found: Iterable[replicas.Behind], number: int) -> list[replicas.Missing]:
    return [each for one in found for each in one.missing if each.node == number]


def _known(found: Nodes, number: int) -> Node:
    node = found.brokers.get(number)
    if node is None:
        raise Failure(f"there is no broker {number}", _LOOK, name="BROKER_ID_NOT_REGISTERED")
    return node
