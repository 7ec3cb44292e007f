"""An end-to-end probe of a node: it writes a record to each I/O process and reads it again, and
joins and leaves a consumer group, over one connection as any client.

It is made when somebody asks, and never else. What it writes goes into a topic of the node's own
that keeps a few minutes, a partition for each I/O process and all of them on this node. The group
has a new name each time, so that two who probe do not wait for each other, and is deleted at the
end.
"""

import os
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from appliance.base import errors
from appliance.base.errors import MalformedRequest
from appliance.exporter.dialogue import Dialogue, NoAnswer, WantsCertificate
from appliance.exporter.knock import plain_first
from appliance.exporter.post import Address
from appliance.observer.names import error_name
from appliance.observer.shown import ANYWHERE
from appliance.wire.own_batch import build as batch_of

PATIENCE_S: Final = 10.0
_AGAIN_S: Final = 0.05
_METADATA, _CREATE, _PRODUCE, _FETCH = (3, 9), (19, 5), (0, 7), (1, 11)
_FIND, _JOIN, _SYNC, _LEAVE, _DELETE = (10, 3), (11, 3), (14, 2), (13, 2), (42, 1)
_CONFIGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "600000",
    "retention.bytes": "1048576",
    "segment.ms": "600000",
    "segment.bytes": "1048576",
    "min.insync.replicas": "1",
}
_SESSION_MS: Final = 10_000
_MOST: Final = 1 << 20
_SOON: Final = frozenset(
    (
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.LEADER_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""Errors after which every client asks again."""


class NotProbed(Exception):
    """Raised if the probe cannot run: its topic does not exist and cannot be created now."""


class _Refused(Exception):
    """An answer that is no success, in words. soon: a client asks again then."""

    def __init__(self, why: str, *, soon: bool) -> None:
        super().__init__(why)
        self.soon = soon


def topic_of(node_id: int) -> str:
    """The topic that a node is probed with."""
    return f"__penstock_probe_{node_id}"


def failed(
    addresses: Sequence[Address],
    node_id: int,
    cluster_id: str,
    ioprocs: int,
    patience_s: float = PATIENCE_S,
) -> str:
    """Why the node with these listeners does not serve; "" when it does. One without TLS is asked,
    or the first that wants neither certificate nor login. cluster_id: of its own cluster, so that
    nobody else is taken for it. Takes at most about so long. Raises NotProbed."""
    until_s = time.monotonic() + patience_s
    for address in plain_first(addresses):
        if address.logs_in:
            break
        with suppress(WantsCertificate):
            return _failed(address, node_id, cluster_id, ioprocs, until_s)
    login = " or a login" if any(one.logs_in for one in addresses) else ""
    raise NotProbed(f"every listener asks for a certificate{login}")


def _failed(where: Address, node_id: int, cluster_id: str, ioprocs: int, until_s: float) -> str:
    address = ANYWHERE.get(where.host, where.host), where.port
    while True:
        try:
            with Dialogue(address, until_s, tls=where.tls) as node:
                offsets = _written(node, _partitions(node, node_id, cluster_id, ioprocs), node_id)
                _read(node, offsets, node_id)
                _joined(node, where, node_id, until_s)
        except _Refused as why:
            if time.monotonic() + _AGAIN_S > until_s or not why.soon:
                return str(why)
        except WantsCertificate:
            raise
        except (NoAnswer, MalformedRequest) as why:
            return str(why)
        else:
            return ""
        time.sleep(_AGAIN_S)


def _refuse(what: str, code: int) -> None:
    if code:
        raise _Refused(f"{what}: {error_name(code)}", soon=code in _SOON)


def _first(rows: Sequence[Any]) -> Any:
    """The row of what was asked for."""
    if not rows:
        raise NoAnswer("an answer leaves out what was asked for")
    return rows[0]


def _partitions(node: Dialogue, node_id: int, cluster_id: str, ioprocs: int) -> list[int]:
    """Those of the topic that this node leads; it is made where there is none."""
    topic = topic_of(node_id)
    answer = node.ask_server(*_METADATA, _about(topic))
    if answer.cluster_id != cluster_id:
        raise _Refused(f"a node of another cluster answers: {answer.cluster_id}", soon=False)
    found = _first(answer.topics)
    if found.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION:
        _make(node, topic, node_id, ioprocs)
        found = _first(node.ask_server(*_METADATA, _about(topic)).topics)
    _refuse(f"topic {topic}", found.error_code)
    led = [one.partition_index for one in found.partitions if one.leader_id == node_id]
    if not led:
        raise _Refused(
            f"topic {topic} has no partition that this node leads; deleted, it is made anew here",
            soon=True,
        )
    return led


def _about(topic: str) -> Mapping[str, Any]:
    return {
        "topics": [{"name": topic}],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }


def _make(node: Dialogue, topic: str, node_id: int, ioprocs: int) -> None:
    assignments = [{"partition_index": n, "broker_ids": (node_id,)} for n in range(ioprocs)]
    wanted = {
        "name": topic, "num_partitions": -1, "replication_factor": -1, "assignments": assignments,
        "configs": [{"name": key, "value": value} for key, value in _CONFIGS.items()],
    }  # fmt: skip
    try:
        asked = {"topics": [wanted], "timeout": node.left_ms, "validate_only": False}
        made = _first(node.ask_server(*_CREATE, asked).topics)
    except NoAnswer as why:
        raise NotProbed(f"topic {topic}, which it is probed with, is not made: {why}") from None
    if made.error_code not in (errors.NONE, errors.TOPIC_ALREADY_EXISTS):
        told = made.error_message or error_name(made.error_code)
        raise NotProbed(f"topic {topic}, which it is probed with, cannot be made now: {told}")


def _written(node: Dialogue, partitions: list[int], node_id: int) -> dict[int, int]:
    """A record in each of them: at which offset."""
    now_ms = time.time_ns() // 1_000_000
    record = bytes(batch_of([(b"probe", b"")], now_ms))
    data = [{"index": one, "records": record} for one in partitions]
    topic = {"name": topic_of(node_id), "partition_data": data}
    asked = {"transactional_id": None, "acks": -1, "timeout": node.left_ms, "topic_data": [topic]}
    offsets = {}
    for one in _first(node.ask_server(*_PRODUCE, asked).responses).partition_responses:
        _refuse(f"a record is refused by {topic_of(node_id)}-{one.index}", one.error_code)
        offsets[one.index] = one.base_offset
    return offsets


def _read(node: Dialogue, offsets: Mapping[int, int], node_id: int) -> None:
    """Checks that the written record comes back."""
    left = dict(offsets)
    while left:
        name = topic_of(node_id)
        asked = [
            {
                "partition": one, "current_leader_epoch": -1, "fetch_offset": offset,
                "log_start_offset": -1, "partition_max_bytes": _MOST,
            }
            for one, offset in left.items()
        ]  # fmt: skip
        found = node.ask_server(
            *_FETCH,
            {
                "replica_id": -1, "max_wait": min(500, node.left_ms), "min_bytes": 1,
                "max_bytes": _MOST, "isolation_level": 0, "session_id": 0, "session_epoch": -1,
                "topics": [{"topic": name, "partitions": asked}], "forgotten_topics_data": [],
                "rack_id": "",
            },
        )  # fmt: skip
        for topic in found.responses:
            for one in topic.partitions:
                _refuse(f"{name}-{one.partition_index} is not read", one.error_code)
                if one.records:
                    left.pop(one.partition_index, None)


def _joined(node: Dialogue, where: Address, node_id: int, until_s: float) -> None:
    """A group of one is joined, led, left and deleted, at whoever coordinates it: by that node's
    listener of the same name."""
    group = f"__penstock_probe_{node_id}_{os.urandom(6).hex()}"
    found = node.ask_server(*_FIND, {"key": group, "key_type": 0})
    _refuse("no coordinator is found for a group", found.error_code)
    if found.node_id == node_id:
        _join(node, group)
        return
    with Dialogue((found.host, found.port), until_s, tls=where.tls) as other:
        _join(other, group)


def _join(coordinator: Dialogue, group: str) -> None:
    protocol = {"name": "range", "metadata": struct.pack(">hii", 0, 0, -1)}
    member = {
        "group_id": group, "session_timeout": _SESSION_MS, "rebalance_timeout": _SESSION_MS,
        "member_id": "", "protocol_type": "consumer", "protocols": [protocol],
    }  # fmt: skip
    joined = coordinator.ask_server(*_JOIN, member)
    _refuse("a group is not joined", joined.error_code)
    me = {"group_id": group, "member_id": joined.member_id}
    nothing = {"member_id": joined.member_id, "assignment": b""}
    synced = coordinator.ask_server(
        *_SYNC, {**me, "generation_id": joined.generation_id, "assignments": [nothing]}
    )
    _refuse("a group does not come together", synced.error_code)
    _refuse("a group is not left", coordinator.ask_server(*_LEAVE, me).error_code)
    gone = _first(coordinator.ask_server(*_DELETE, {"groups_names": [group]}).results)
    _refuse("a group is not deleted", gone.error_code)
