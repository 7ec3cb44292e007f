"""Changing who votes on the metadata log (KIP-853), as the leader of its quorum decides it.

A change is the whole `Electorate` that is to hold, as a record among those of an answer: control
appends it as KRaft's control records. One at a time: while one is not agreed, the next one is told
to come again. Errors and their order are Apache Kafka's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.quorum.voters import ANY, STATIC, ControllerEndpoint, Electorate, Voter
from appliance.wire.uuids import format_uuid


class VoterProbe(NamedTuple):
    """The answer of a node that is to vote: an error, or the levels of kraft.version that it
    supports.
    """

    code: int
    lowest: int = 0
    highest: int = 0


@dataclass(slots=True, frozen=True)
class VoterChanges:
    """The quorum as its leader sees it. electorate: who votes, agreed or not. begun: a record of
    this epoch is agreed. settled: so is the last change. probing: somebody is asked who is to vote.
    caught_up: whether this node with this directory id has fetched all there was, in the last
    hour. told: static voters as they told of themselves, by `note`."""

    electorate: Electorate
    begun: bool
    settled: bool
    probing: bool
    caught_up: Callable[[int, bytes], bool]
    told: Electorate
    note: Callable[[Voter], None]

    @property
    def dynamic(self) -> bool:
        """True if voters can change."""
        return self.electorate.kraft_version > STATIC

    def check(self, doing: str) -> None:
        """Raises PeerError while nobody can come or go."""
        if self.probing:
            raise PeerError(
                errors.REQUEST_TIMED_OUT, f"{_WAITED} handle previous {_CHANGE} request"
            )
        if not self.begun:
            raise PeerError(
                errors.REQUEST_TIMED_OUT, f"{_WAITED} establish HWM and fence previous {_CHANGE}s"
            )
        if not self.dynamic:
            level = self.electorate.kraft_version
            raise PeerError(
                errors.UNSUPPORTED_VERSION,
                f"Cluster doesn't support {doing} voter because the kraft.version feature is"
                f" {level}",
            )
        if not self.settled:
            raise PeerError(
                errors.REQUEST_TIMED_OUT,
                f"Request timed out waiting for voters to commit the latest {_CHANGE}",
            )

    def added(self, voter: Voter) -> Electorate:
        """With this one, who was probed and has caught up. Raises PeerError."""
        name = _key(voter.node_id, voter.directory)
        if not voter.lowest <= self.electorate.kraft_version <= voter.highest:
            raise PeerError(
                errors.INVALID_REQUEST,
                f"Aborted add voter operation for {name} since the kraft.version range (min:"
                f" {voter.lowest}, max: {voter.highest}) doesn't support the finalized version"
                f" {self.electorate.kraft_version}",
            )
        if not self.caught_up(voter.node_id, voter.directory):
            raise PeerError(
                errors.REQUEST_TIMED_OUT,
                f"Aborted add voter operation for {name} since it is lagging behind",
            )
        return self.electorate.with_voter(voter)

    def check_new(self, node_id: int) -> None:
        """Raises PeerError when a voter has this number."""
        if self.electorate.find_voter(node_id) is not None:
            raise PeerError(
                errors.DUPLICATE_VOTER,
                f"The voter id for {node_id} is already part of the set of voters"
                f" {_keys(self.electorate)}.",
            )

    def removed(self, node_id: int, directory: bytes) -> Electorate:
        """Without this one. Raises PeerError: it is none, or the only one."""
        voters = self.electorate
        found = voters.find_voter(node_id)
        if found is None or found.directory != directory or len(voters.voters) == 1:
            raise PeerError(
                errors.VOTER_NOT_FOUND,
                f"Cannot remove voter {_key(node_id, directory)} from the set of voters"
                f" {_keys(voters)}",
            )
        return voters.without(node_id)

    def dynamic_from(self, level: int) -> Electorate:
        """The same voters by the log. Raises PeerError while not all of them are known."""
        unknown = [one.node_id for one in self.told.voters if one.directory == ANY]
        if unknown or not self.settled:
            raise PeerError(
                errors.INVALID_UPDATE_VERSION,
                "Unable to upgrade kraft.version: these voters have not told of themselves yet:"
                f" {unknown}. Try again.",
            )
        return Electorate(level, self.told.voters)


_WAITED = "Request timed out waiting for leader to"
_CHANGE = "voter change"


def _key(node_id: int, directory: bytes) -> str:
    """As Kafka writes it."""
    return f"ReplicaKey(id={node_id}, directoryId={format_uuid(directory)})"


def _keys(electorate: Electorate) -> str:
    return f"[{', '.join(_key(*one) for one in electorate.keys.items())}]"


def listeners(rows: Any) -> tuple[ControllerEndpoint, ...]:
    """As a request names them."""
    return tuple(ControllerEndpoint(one.name, one.host, one.port) for one in rows)


def check_cluster(asked: str | None, mine: str) -> None:
    """Raises PeerError when another cluster is meant."""
    if asked not in (None, mine):
        raise PeerError(
            errors.INCONSISTENT_CLUSTER_ID,
            f'The given id "{asked}" doesn\'t match the cluster id "{mine}"',
        )
