"""What somebody who is no node of the cluster sends to its quorum, or a node that has gone mad:
requests that are well-formed, and of which a field is not sound."""

from typing import NamedTuple

from appliance.wire.build import build
from appliance.wire.messages import encode_request, request_type

FETCH, VOTE, BEGIN, END, SNAPSHOT, DESCRIBE, UPDATE = 1, 52, 53, 54, 59, 55, 82
LOG, LOG_ID = "__cluster_metadata", bytes(15) + b"\x01"
DIRECTORY = bytes(range(16))
LAST = (1 << 31) - 1
AHEAD = (1, 1_000_000, LAST - 1, LAST)
BELOW = (-1, -LAST - 1)
STRANGER = 4242


class Request(NamedTuple):
    """One request. name: for people. sound: its code may be NONE."""

    name: str
    key: int
    version: int
    body: bytes


def epochs(now):
    """Those that are asked in, while the quorum is in epoch `now`."""
    return sorted({min(now + ahead, LAST) for ahead in AHEAD} | set(BELOW))


def every(cluster, now, end, voters, target):
    """Every API of the quorum, in each of `epochs`, in the name of another voter and of a stranger,
    to the node `target`. end: what the sender claims for the end of its log."""
    others = [one for one in voters if one != target]
    for epoch in epochs(now):
        for who in (others[0], STRANGER, LAST, -1):
            for key in (VOTE, BEGIN, END, FETCH, SNAPSHOT, DESCRIBE, UPDATE):
                for version in {VOTE: (0, 2), FETCH: (12, 17)}.get(key, (0,)):
                    yield made(cluster, key, version, epoch, who, end, target)


def made(cluster, key, version, epoch, who, end, target, last=None):
    """One of them. last: the epoch of its last record, as it claims."""
    last = max(epoch - 1, 0) if last is None else last
    values = _VALUES[key](epoch, who, end, last, target)
    values = {"cluster_id": cluster, "voter_id": target, **values}
    body = encode_request(build(request_type(key, version), values))
    return Request(f"API {key} v{version}, epoch {epoch}, node {who}", key, version, body)


def _one(**row):
    return {"topics": [{"topic_name": LOG, "partitions": [{"partition_index": 0, **row}]}]}


def _vote(epoch, who, end, last, target):
    return _one(
        replica_epoch=epoch, replica_id=who, candidate_epoch=epoch, candidate_id=who,
        replica_directory_id=bytes(16), voter_directory_id=bytes(16),
        last_offset_epoch=last, last_offset=end, pre_vote=False,
    )  # fmt: skip


def _begin(epoch, who, end, last, target):
    row = _one(leader_id=who, leader_epoch=epoch, voter_directory_id=bytes(16))
    return {**row, "leader_endpoints": []}


def _ends(epoch, who, end, last, target):
    row = _one(
        leader_id=who, leader_epoch=epoch, preferred_successors=[target, LAST],
        preferred_candidates=[],
    )  # fmt: skip
    return {**row, "leader_endpoints": []}


def _fetch(epoch, who, end, last, target):
    row = {
        "partition": 0, "current_leader_epoch": epoch, "fetch_offset": end,
        "last_fetched_epoch": last, "partition_max_bytes": LAST,
        "replica_directory_id": bytes(16), "log_start_offset": -1,
    }  # fmt: skip
    topics = [{"topic": LOG, "topic_id": LOG_ID, "partitions": [row]}]
    return {
        "replica_id": who, "replica_state": {"replica_id": who}, "max_wait": 0, "min_bytes": 0,
        "max_bytes": LAST, "topics": topics, "forgotten_topics_data": [],
    }  # fmt: skip


def _snapshot(epoch, who, end, last, target):
    row = {
        "partition": 0, "current_leader_epoch": epoch, "position": end,
        "snapshot_id": {"end_offset": end, "epoch": last},
    }  # fmt: skip
    return {"replica_id": who, "max_bytes": LAST, "topics": [{"name": LOG, "partitions": [row]}]}


def _describe(epoch, who, end, last, target):
    return _one()


def _update(epoch, who, end, last, target):
    return {
        "current_leader_epoch": epoch, "voter_id": who, "voter_directory_id": DIRECTORY,
        "listeners": [{"name": "CONTROLLER", "host": "localhost", "port": 65535}],
        "k_raft_version_feature": {"min_supported_version": 0, "max_supported_version": 1},
    }  # fmt: skip


_VALUES = {
    VOTE: _vote, BEGIN: _begin, END: _ends, FETCH: _fetch, SNAPSHOT: _snapshot,
    DESCRIBE: _describe, UPDATE: _update,
}  # fmt: skip
