"""Converts messages between replicas to Kafka's: Vote (52), BeginQuorumEpoch (53), EndQuorumEpoch
(54), Fetch (1) of `__cluster_metadata`-0 and FetchSnapshot (59).

Only what decides is in `quorum/messages.py`; here it gets the cluster's id, the topic, codes and
where leaders are reached.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

from appliance.base.errors import (
    FENCED_LEADER_EPOCH,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    INVALID_VOTER_KEY,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
    PeerError,
)
from appliance.base.ids import METADATA_TOPIC
from appliance.control.quorum.metadata_log import METADATA_TOPIC_ID
from appliance.control.quorum.snapshot_fetch import Download
from appliance.quorum.messages import (
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    Message,
    Vote,
    Voted,
)
from appliance.quorum.replica import Replica
from appliance.quorum.voters import ANY, ControllerEndpoint

FETCH: Final = 1
VOTE: Final = 52
BEGIN: Final = 53
END: Final = 54
SNAPSHOT: Final = 59
SERVED: Final = {
    FETCH: range(12, 19),
    VOTE: range(3),
    BEGIN: range(2),
    END: range(2),
    SNAPSHOT: range(2),
}
"""API key → versions that are served."""
LOWEST: Final = {FETCH: 12, VOTE: 2, BEGIN: 0, END: 0}
HIGHEST: Final = {FETCH: 18, VOTE: 2, BEGIN: 1, END: 1}
"""Versions that we ask in: pre-votes came with Vote v2, diverging epochs with Fetch v12."""

_ALWAYS: Final = (1 << 63) - 1

Values = dict[str, Any]
Places = Mapping[int, tuple[str, int]]
"""(host, port) of controllers by their ids."""


class QuorumFetchLimits(NamedTuple):
    """Limits of one fetch: its longest wait in ms, and bytes. high_watermark: the follower's; a
    different one is worth an answer.
    """

    max_wait_ms: int
    max_bytes: int
    high_watermark: int


# As who asks --------------------------------------------------------------------------------------


class Sender(NamedTuple):
    """The node that sends a request. voters: id → directory id. endpoints: where it is reached as a
    controller.
    """

    cluster_id: str
    voters: Mapping[int, bytes]
    endpoints: tuple[ControllerEndpoint, ...]


def request(
    what: Message, target: int, sender: Sender, limits: QuorumFetchLimits
) -> tuple[int, Values]:
    """(API key, values) of what is said to the voter `target`."""
    directory = sender.voters.get(target, ANY)
    match what:
        case Vote():
            row = {
                "replica_epoch": what.epoch,
                "replica_id": what.candidate,
                "replica_directory_id": what.directory,
                "voter_directory_id": directory,
                "last_offset_epoch": what.last_epoch,
                "last_offset": what.end,
                "pre_vote": what.pre_vote,
            }
            return VOTE, _asked(row, sender, target)
        case BeginEpoch():
            row = {
                "leader_id": what.leader,
                "leader_epoch": what.epoch,
                "voter_directory_id": directory,
            }
            return BEGIN, _asked(row, sender, target)
        case EndEpoch():
            successors = what.successors
            row = {
                "leader_id": what.leader,
                "leader_epoch": what.epoch,
                "preferred_successors": list(successors),
                "preferred_candidates": [
                    {"candidate_id": one, "candidate_directory_id": sender.voters.get(one, ANY)}
                    for one in successors
                ],
            }
            return END, _asked(row, sender, target)
        case Fetch():
            return FETCH, _fetch(what, sender.cluster_id, limits)
        case Voted() | Fetched():
            raise AssertionError(f"{type(what).__name__} is an answer")


def _asked(row: Values, sender: Sender, target: int) -> Values:
    return {
        "cluster_id": sender.cluster_id,
        "voter_id": target,
        "topics": [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0, **row}]}],
        "leader_endpoints": [one._asdict() for one in sender.endpoints],
    }


def _fetch(what: Fetch, cluster_id: str, limits: QuorumFetchLimits) -> Values:
    row = {
        "partition": 0,
        "current_leader_epoch": what.epoch,
        "fetch_offset": what.end,
        "last_fetched_epoch": what.last_epoch,
        "partition_max_bytes": limits.max_bytes,
        "replica_directory_id": what.directory,
        "high_watermark": limits.high_watermark,
    }
    return {
        "cluster_id": cluster_id,
        "replica_id": what.replica,
        "replica_state": {"replica_id": what.replica},
        "max_wait": limits.max_wait_ms,
        "min_bytes": 0,
        "max_bytes": limits.max_bytes,
        "topics": [
            {"topic": METADATA_TOPIC, "topic_id": bytes(METADATA_TOPIC_ID), "partitions": [row]}
        ],
        "forgotten_topics_data": [],
    }


class Heard(NamedTuple):
    """The content of a response, None: nothing new. records: those of a fetch."""

    what: Voted | Fetched | BeginEpoch | None
    records: bytes = b""


def places(answer: Any) -> dict[int, tuple[str, int]]:
    """Where an answer says that controllers are reached."""
    told = getattr(answer, "node_endpoints", ())
    return {one.node_id: (one.host, one.port) for one in told if one.port > 0}


def answered(asked: Message, answer: Any) -> Heard:
    """Parses a decoded response. Raises PeerError for one that tells of nothing but an error."""
    if answer.error_code != NONE:
        raise PeerError(int(answer.error_code), f"it answers {answer.error_code.name}")
    if isinstance(asked, Fetch):
        return _fetched(asked, answer)
    row = _only(answer.topics)
    if row.error_code in (INVALID_REQUEST, INVALID_VOTER_KEY):
        raise PeerError(int(row.error_code), f"it answers {row.error_code.name}")
    if isinstance(asked, Vote):
        return Heard(Voted(row.leader_epoch, row.leader_id, row.vote_granted, asked.pre_vote))
    newer = row.leader_id >= 0 and row.leader_epoch > asked.epoch
    return Heard(BeginEpoch(row.leader_epoch, row.leader_id) if newer else None)


def _fetched(asked: Fetch, answer: Any) -> Heard:
    row = _only(answer.responses)
    leader = row.current_leader
    if row.error_code != NONE:
        if leader.leader_epoch < 0:
            raise PeerError(int(row.error_code), f"it answers {row.error_code.name}")
        return Heard(Fetched(leader.leader_epoch, leader.leader_id))
    epoch = leader.leader_epoch if leader.leader_epoch >= 0 else asked.epoch
    parts, snapshot = row.diverging_epoch, row.snapshot_id
    told = Fetched(
        epoch,
        leader.leader_id,
        leads=True,
        high_watermark=max(row.high_watermark, 0),
        parts=None if parts.epoch < 0 else (parts.epoch, parts.end_offset),
        snapshot=None if snapshot.epoch < 0 else (snapshot.end_offset, snapshot.epoch),
    )
    return Heard(told, bytes(row.records or b""))


def _only(topics: Any) -> Any:
    """The row of the metadata log. Raises PeerError."""
    rows = [row for topic in topics for row in topic.partitions]
    if len(rows) != 1:
        raise PeerError(INVALID_REQUEST, f"it answers for {len(rows)} partitions")
    return rows[0]


# As who is asked ----------------------------------------------------------------------------------


class QuorumRequest(NamedTuple):
    """A request as it came: what decides, and what else its answer needs. voter, directory: for
    whom it is, -1 and ANY for whoever reads it. endpoints: where it says that its sender is
    reached."""

    what: Vote | BeginEpoch | EndEpoch | Fetch
    limits: QuorumFetchLimits
    voter: int
    directory: bytes = ANY
    endpoints: tuple[ControllerEndpoint, ...] = ()


def read(key: int, asked: Any, cluster_id: str) -> QuorumRequest:
    """Raises PeerError with the code that the whole answer has."""
    if asked.cluster_id not in (None, cluster_id):
        raise PeerError(INCONSISTENT_CLUSTER_ID, f"it belongs to the cluster {asked.cluster_id}")
    rows = [(topic, row) for topic in asked.topics for row in topic.partitions]
    if len(rows) != 1:
        raise PeerError(INVALID_REQUEST, f"it asks for {len(rows)} partitions, not for one")
    (topic, row), limits = rows[0], QuorumFetchLimits(0, 0, 0)
    if key == FETCH:
        named = getattr(topic, "topic", None) == METADATA_TOPIC
        by_id = getattr(topic, "topic_id", None)
        mine = named or (by_id is not None and by_id.bytes == METADATA_TOPIC_ID)
        number = row.partition
    else:
        mine, number = topic.topic_name == METADATA_TOPIC, row.partition_index
    if not mine or number:
        code = UNKNOWN_TOPIC_OR_PARTITION if key == FETCH else INVALID_REQUEST
        raise PeerError(code, "it asks for something else than the metadata log")
    voter, directory = getattr(asked, "voter_id", -1), uuid_of(row, "voter_directory_id")
    if key == VOTE:
        last, end, pre_vote = (
            row.last_offset_epoch,
            row.last_offset,
            getattr(row, "pre_vote", False),
        )
        sender = uuid_of(row, "replica_directory_id")
        vote = Vote(row.replica_epoch, row.replica_id, last, end, pre_vote, sender)
        return QuorumRequest(vote, limits, voter, directory)
    if key == BEGIN:
        begin = BeginEpoch(row.leader_epoch, row.leader_id)
        told = getattr(asked, "leader_endpoints", ())
        ends = tuple(ControllerEndpoint(one.name, one.host, one.port) for one in told)
        return QuorumRequest(begin, limits, voter, directory, ends)
    if key == END:
        successors = getattr(row, "preferred_successors", ()) or tuple(
            one.candidate_id for one in getattr(row, "preferred_candidates", ())
        )
        return QuorumRequest(EndEpoch(row.leader_epoch, row.leader_id, successors), limits, voter)
    state = getattr(asked, "replica_state", None)
    replica = asked.replica_id if state is None else state.replica_id
    limits = QuorumFetchLimits(
        max_wait_ms=asked.max_wait // timedelta(milliseconds=1),
        max_bytes=min(asked.max_bytes, row.partition_max_bytes),
        high_watermark=getattr(row, "high_watermark", _ALWAYS),
    )
    what = Fetch(
        row.current_leader_epoch,
        replica,
        row.fetch_offset,
        row.last_fetched_epoch,
        uuid_of(row, "replica_directory_id"),
    )
    return QuorumRequest(what, limits, voter)


def uuid_of(row: Any, name: str) -> bytes:
    """16 bytes; ANY where an older version has none."""
    found = getattr(row, name, None)
    return ANY if found is None else bytes(found.bytes)


def refusal(key: int, code: int) -> Values:
    """An answer with nothing but an error."""
    return {"error_code": code, "throttle_time": 0, "topics": [], "responses": []}


def make_answer(
    what: Message,
    leadership: tuple[int, int],
    reached: Places,
    granted: bool = False,
    code: int = NONE,
) -> Values:
    """The answer to a Vote, a BeginEpoch or an EndEpoch. leadership: (leader, epoch) as they are
    known now. reached: where controllers are."""
    leader, epoch = leadership
    if code == NONE and what.epoch < epoch:
        code = FENCED_LEADER_EPOCH
    row = {
        "partition_index": 0,
        "error_code": code,
        "leader_id": leader,
        "leader_epoch": epoch,
        "vote_granted": granted,
    }
    topics = [{"topic_name": METADATA_TOPIC, "partitions": [row]}]
    return {"error_code": NONE, "topics": topics, "node_endpoints": _nodes(leader, reached)}


def _nodes(leader: int, reached: Places) -> list[Values]:
    """Where the leader is reached, for who does not know it."""
    if leader not in reached:
        return []
    host, port = reached[leader]
    return [{"node_id": leader, "host": host, "port": port, "rack": None}]


def not_leading(asked: int, epoch: int, *, leads: bool) -> int:
    """The code for who asks the leader of the epoch `asked`, of this one."""
    if asked != epoch:
        return FENCED_LEADER_EPOCH if asked < epoch else UNKNOWN_LEADER_EPOCH
    return NONE if leads else NOT_LEADER_OR_FOLLOWER


def records(
    answer: Fetched, asked: Fetch, data: bytes, reached: Places, code: int = NONE
) -> Values:
    """The answer to a Fetch. reached: where controllers are. code: of a refusal by its fields."""
    row: Values = {
        "partition_index": 0,
        "error_code": NONE,
        "high_watermark": answer.high_watermark,
        "log_start_offset": 0,
        "current_leader": {"leader_id": answer.leader, "leader_epoch": answer.epoch},
        "aborted_transactions": [],
        "records": data,
    }
    if not answer.leads:
        row["error_code"] = code or not_leading(asked.epoch, answer.epoch, leads=False)
        row["high_watermark"] = -1
    elif answer.parts is not None:
        row["diverging_epoch"] = {"epoch": answer.parts[0], "end_offset": answer.parts[1]}
    elif answer.snapshot is not None:
        row["snapshot_id"] = _snapshot(answer.snapshot)
    topic = {"topic": METADATA_TOPIC, "topic_id": bytes(METADATA_TOPIC_ID), "partitions": [row]}
    return {
        "throttle_time": 0,
        "error_code": NONE,
        "responses": [topic],
        "node_endpoints": _nodes(answer.leader, reached),
    }


# Snapshots ----------------------------------------------------------------------------------------


class SnapshotAsked(NamedTuple):
    """A FetchSnapshot. snapshot: (end, epoch). epoch: of the leader that is asked."""

    snapshot: tuple[int, int]
    position: int
    max_bytes: int
    epoch: int
    replica: int
    directory: bytes


def snapshot_asked(replica: Replica, cluster_id: str, download: Download, limit: int) -> Values:
    """The request for what comes next, of `limit` bytes at most."""
    row = {
        "partition": 0,
        "current_leader_epoch": download.epoch,
        "snapshot_id": _snapshot(download.snapshot),
        "position": download.position,
        "replica_directory_id": replica.directory,
    }
    return {
        "cluster_id": cluster_id,
        "replica_id": replica.node_id,
        "max_bytes": limit,
        "topics": [{"name": METADATA_TOPIC, "partitions": [row]}],
    }


def snapshot_part(answer: Any, download: Download) -> tuple[int, bytes]:
    """(size of all of it, bytes) of an answer. Raises PeerError for any other one."""
    if answer.error_code != NONE:
        raise PeerError(int(answer.error_code), f"it answers {answer.error_code.name}")
    row = _only(answer.topics)
    if row.error_code != NONE:
        raise PeerError(int(row.error_code), f"it answers {row.error_code.name}")
    sent = row.snapshot_id.end_offset, row.snapshot_id.epoch
    if sent != download.snapshot or row.position != download.position or not row.unaligned_records:
        raise PeerError(INVALID_REQUEST, f"it sends another part than {download.position}")
    return row.size, bytes(row.unaligned_records)


def read_snapshot(asked: Any, cluster_id: str) -> SnapshotAsked:
    """Raises PeerError with the code that the whole answer has."""
    if asked.cluster_id not in (None, cluster_id):
        raise PeerError(INCONSISTENT_CLUSTER_ID, f"it belongs to the cluster {asked.cluster_id}")
    rows = [(topic, row) for topic in asked.topics for row in topic.partitions]
    if len(rows) != 1:
        raise PeerError(INVALID_REQUEST, f"it asks for {len(rows)} partitions, not for one")
    ((topic, row),) = rows
    if topic.name != METADATA_TOPIC or row.partition:
        raise PeerError(UNKNOWN_TOPIC_OR_PARTITION, "it asks for something else than the metadata")
    snapshot = row.snapshot_id.end_offset, row.snapshot_id.epoch
    if min(snapshot) < 0:
        raise PeerError(INVALID_REQUEST, f"there is no snapshot {snapshot}")
    return SnapshotAsked(
        snapshot,
        row.position,
        asked.max_bytes,
        row.current_leader_epoch,
        asked.replica_id,
        uuid_of(row, "replica_directory_id"),
    )


def snapshot_told(
    asked: SnapshotAsked, leader: tuple[int, int], code: int, size: int = 0, data: bytes = b""
) -> Values:
    """The answer to a FetchSnapshot."""
    row = {
        "index": 0,
        "error_code": code,
        "snapshot_id": _snapshot(asked.snapshot),
        "current_leader": {"leader_id": leader[0], "leader_epoch": leader[1]},
        "size": size,
        "position": asked.position,
        "unaligned_records": data,
    }
    topics = [{"name": METADATA_TOPIC, "partitions": [row]}]
    return {"throttle_time": 0, "error_code": NONE, "topics": topics}


def _snapshot(snapshot: tuple[int, int]) -> Values:
    return {"end_offset": snapshot[0], "epoch": snapshot[1]}
