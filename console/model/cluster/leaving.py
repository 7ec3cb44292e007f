"""Taking a node out of a cluster for good: what must be so before, as plans."""

from typing import Final

from console.model.asking import configs
from console.model.asking.change import Change
from console.model.asking.configs import BROKER, DELETE, SET, Target
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.cluster import voters
from console.model.cluster.nodes import LOOK, Nodes, broker_of, quorum_told, read_nodes
from console.model.topics import partitions, placing
from console.model.topics.replica_changes import NOTHING, change

_UNREGISTER: Final = (64, 0)
_CORDONED: Final = "cordoned.log.dirs"


def leaving(link: Link, number: int, *, fewer: bool) -> Change:
    """The replicas of this node go to others. fewer: where nobody is left to take one, there is one
    less. Raises Failure (NOTHING) when it has none, and for what cannot be."""
    found = read_nodes(link)
    broker_of(found, number)
    if len(found.brokers) == 1:
        raise Failure(f"node {number} is the only node: no other node can take its replicas", LOOK)
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
    says = (f"{less} of these partitions then have one replica less.",) if less else ()
    words = ("cluster", "leave", str(number), *(("--fewer-replicas",) if fewer else ()))
    return change(link, wanted, chosen=chosen, brokers=found.brokers, words=words, says=says)


def cordon(link: Link, number: int) -> bool:
    """Excludes this node from new replicas (KIP-1066); False if the cluster has no such feature.
    Raises Failure.
    """
    return _cordon(link, number, SET, "*")


def uncordon(link: Link, number: int) -> bool:
    """The setting is gone; the controller's view stays as it is until the node says otherwise."""
    return _cordon(link, number, DELETE, None)


def _cordon(link: Link, number: int, kind: int, value: str | None) -> bool:
    try:
        configs.write_settings(link, Target(BROKER, str(number)), {_CORDONED: (kind, value)})
    except Failure as failure:
        if failure.name in ("INVALID_CONFIG", "INVALID_REQUEST"):  # of an older version
            return False
        raise
    return True


def take_vote(link: Link, number: int) -> None:
    """Removes a node from the dynamic voters (KIP-853), while it still runs: of two voters both
    must agree. Does nothing for other nodes. Raises Failure.
    """
    told = quorum_told(link)
    for one in told.current_voters if told is not None else ():
        if int(one.replica_id) == number and one.replica_directory_id is not None:
            voters.remove(link, number, one.replica_directory_id.bytes)


def unregister(link: Link, number: int) -> None:
    """The cluster forgets the node. Raises Failure, also while it runs: it would come back."""
    found = read_nodes(link)
    if broker_of(found, number).lives:
        raise Failure(f"node {number} runs: it would register again", "stop it first")
    told = ask_server(link, *_UNREGISTER, {"broker_id": number})
    check(int(told.error_code), told.error_message, f"node {number}")


def still_votes(found: Nodes, number: int) -> str:
    """The remedy for a node that still has a vote; "" when it has none."""
    if number not in found.quorum.voters:
        return ""
    return (
        f"node {number} still has a vote, which counts against the others until it is taken out of"
        " controller.quorum.voters in the settings of all of them and they are started again, one"
        " after the other"
    )
