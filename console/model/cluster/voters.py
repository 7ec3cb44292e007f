"""The votes on the metadata log as they are, and giving and taking one (KIP-853).

Kafka's own requests: DescribeQuorum v2, AddRaftVoter and RemoveRaftVoter, passed on to who leads.
"""

from dataclasses import dataclass
from typing import Any, Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.cluster.nodes import SILENT_MS, quorum_nodes, quorum_told

_ADD: Final = (80, 1)
_REMOVE: Final = (81, 0)
_WAIT_MS: Final = 5_000
_AGAIN: Final = ("REQUEST_TIMED_OUT", "NOT_CONTROLLER", "NOT_LEADER_OR_FOLLOWER")


@dataclass(slots=True, frozen=True)
class Vote:
    """The vote of one node id. votes: whether it has one. voter: the id of the folder that has it,
    None where the settings fix the voters. heard: that voter still fetches the log. observer: the
    id of a folder that fetches it without a vote. listeners: its controller's addresses, as
    AddRaftVoter takes them.
    """

    votes: bool
    voter: bytes | None
    heard: bool
    observer: bytes | None
    listeners: tuple[dict[str, Any], ...]

    @property
    def stands(self) -> bool:
        """True if the running node of this id is a voter."""
        return self.votes and self.heard and self.observer is None

    @property
    def waits(self) -> bool:
        """True if an observer's folder should get the vote: there is no vote, or a lost folder has
        it.
        """
        movable = self.voter is not None or not self.votes
        return self.observer is not None and movable and not self.heard


def dynamic(told: Any) -> bool:
    """True if voters can change (kraft.version 1): they have directory ids then."""
    return told is not None and all(_folder(one) for one in told.current_voters)


def vote_of(link: Link, number: int) -> Vote | None:
    """None while nobody leads. Raises Failure."""
    told = quorum_told(link)
    if told is None:
        return None
    states = [*told.current_voters, *told.observers]
    now_ms = max((int(one.last_fetch_timestamp) for one in states), default=-1)

    def is_heard(one: Any) -> bool:
        return now_ms - int(one.last_fetch_timestamp) <= SILENT_MS

    def is_free(one: Any) -> bool:
        return int(one.replica_id) == number and is_heard(one) and _folder(one) != its

    mine = next((one for one in told.current_voters if int(one.replica_id) == number), None)
    its = None if mine is None else _folder(mine)
    return Vote(
        mine is not None,
        its,
        mine is not None and is_heard(mine),
        next((_folder(one) for one in told.observers if is_free(one)), None),
        tuple(
            {"name": str(one.name), "host": str(one.host), "port": int(one.port)}
            for node in quorum_nodes(link)
            if int(node.node_id) == number
            for one in node.listeners
        ),
    )


def remove(link: Link, number: int, folder: bytes) -> None:
    """Raises Failure."""
    values = {"cluster_id": None, "voter_id": number, "voter_directory_id": folder}
    answer = ask_server(link, *_REMOVE, values)
    check(int(answer.error_code), answer.error_message, f"the vote of node {number}")


def hand_over(link: Link, number: int, vote: Vote, listeners: tuple[dict[str, Any], ...]) -> None:
    """The vote of a folder that is gone goes to the one that reads the log in its place, as soon as
    that has caught up: to be asked for until it stands. The node itself may do the same at the same
    time. listeners: where it is reached. Raises Failure for what does not come right by itself."""
    assert vote.waits, "nobody takes it"
    try:
        if vote.voter is not None:
            remove(link, number, vote.voter)
        values = {
            "cluster_id": None, "timeout": _WAIT_MS, "voter_id": number,
            "voter_directory_id": vote.observer, "listeners": list(listeners),
            "ack_when_committed": True,
        }  # fmt: skip
        answer = ask_server(link, *_ADD, values)
        check(int(answer.error_code), answer.error_message, f"the vote of node {number}")
    except Failure as failure:
        if failure.name not in (*_AGAIN, "VOTER_NOT_FOUND", "DUPLICATE_VOTER"):
            raise


def _folder(told: Any) -> bytes | None:
    """The directory id of a voter or observer; None without one."""
    folder = told.replica_directory_id
    return folder.bytes if folder is not None and any(folder.bytes) else None
