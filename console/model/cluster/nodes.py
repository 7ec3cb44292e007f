"""The nodes of a cluster: brokers and controllers, which of them live, and how far each is in the
metadata log.

Stock requests: DescribeCluster v2 (KIP-1073: the fenced ones too) and DescribeQuorum v2 (KIP-853).
Whoever is asked answers; the second is the active controller's answer.
"""

from dataclasses import dataclass
from typing import Any, Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check

_CLUSTER: Final = (60, 2)
_QUORUM: Final = (55, 2)
_BROKERS: Final = 1
_METADATA: Final = "__cluster_metadata"
SILENT_MS: Final = 3_000
"""A voter or observer that has asked for nothing for so long is gone: it asks twice a second."""

LOOK: Final = "penstock cluster status shows the nodes"
"""The remedy for a number that nobody has."""
RUNNING: Final = "running"
FENCED: Final = "fenced"
GONE: Final = "gone"  # a controller alone that is not heard of
BROKER: Final = "broker"
VOTER: Final = "voter"
OBSERVER: Final = "observer"


@dataclass(slots=True, frozen=True)
class Node:
    """One node. address: HOST:PORT for clients, "" of who is no broker. roles: BROKER, and VOTER or
    OBSERVER of the metadata log. heard_s: since when the active controller has not heard of it in
    the metadata log, None where it does not say. behind, behind_s: records and seconds of that
    log that it has not got."""

    id: int
    address: str
    rack: str | None
    roles: tuple[str, ...]
    state: str
    heard_s: float | None
    behind: int | None
    behind_s: float | None

    @property
    def lives(self) -> bool:
        """True if the node runs, as far as the cluster knows."""
        return self.state == RUNNING


@dataclass(slots=True, frozen=True)
class Quorum:
    """The metadata quorum. leader: a node's id, None without a leader. epoch, end: of the log, -1
    where unknown. voters, observers: ids.
    """

    leader: int | None
    epoch: int
    end: int
    voters: tuple[int, ...]
    observers: tuple[int, ...]


@dataclass(slots=True, frozen=True)
class Nodes:
    """A cluster by its nodes. all: by id."""

    cluster_id: str
    quorum: Quorum
    all: dict[int, Node]

    @property
    def brokers(self) -> dict[int, Node]:
        """Those that can have replicas, fenced or not."""
        return {number: one for number, one in self.all.items() if BROKER in one.roles}


def read_nodes(link: Link) -> Nodes:
    """Raises Failure."""
    told = ask_server(
        link, *_CLUSTER,
        {"include_cluster_authorized_operations": False, "endpoint_type": _BROKERS,
         "include_fenced_brokers": True},
    )  # fmt: skip
    check(int(told.error_code), told.error_message, "the cluster")
    found = quorum_told(link)
    brokers = {int(one.broker_id): one for one in told.brokers}
    states = {} if found is None else _states(found)
    voters = () if found is None else tuple(int(one.replica_id) for one in found.current_voters)
    observers = () if found is None else tuple(int(one.replica_id) for one in found.observers)
    quorum = Quorum(
        int(found.leader_id) if found is not None and found.leader_id >= 0 else None,
        int(found.leader_epoch) if found is not None else -1,
        max((int(one.log_end_offset) for one in states.values()), default=-1),
        voters,
        observers,
    )
    now_ms = max((int(one.last_fetch_timestamp) for one in states.values()), default=-1)
    return Nodes(
        str(told.cluster_id),
        quorum,
        {
            number: _node(number, brokers.get(number), states.get(number), quorum, now_ms)
            for number in sorted(brokers.keys() | states.keys())
            if number in brokers or number in voters or not _silent(states[number], now_ms)
        },
    )


def broker_of(found: Nodes, number: int) -> Node:
    """This one. Raises Failure where there is none."""
    node = found.brokers.get(number)
    if node is None:
        raise Failure(f"there is no broker {number}", LOOK, name="BROKER_ID_NOT_REGISTERED")
    return node


def _silent(state: Any, now_ms: int) -> bool:
    """True if an observer no longer fetches the metadata log: a node that is neither broker nor
    voter has left, and the leader forgets it minutes later.
    """
    return now_ms - int(state.last_fetch_timestamp) > SILENT_MS


def quorum_told(link: Link) -> Any:
    """The metadata log as its leader tells it (a partition of DescribeQuorum v2); None while nobody
    leads. Raises Failure."""
    try:
        (partition,) = _quorum(link).topics[0].partitions
        check(int(partition.error_code), partition.error_message, "the quorum")
    except Failure as failure:
        if failure.name in ("NOT_LEADER_OR_FOLLOWER", "NOT_CONTROLLER", "REQUEST_TIMED_OUT"):
            return None
        raise
    return partition


def controllers(link: Link) -> dict[int, str]:
    """HOST:PORT of the voters that are reached by a listener for controllers. Raises Failure."""
    from appliance.config.listeners import in_url

    return {
        int(node.node_id): f"{in_url(str(one.host))}:{int(one.port)}"
        for node in _quorum(link).nodes
        for one in node.listeners[:1]
    }


def quorum_nodes(link: Link) -> Any:
    """The voters' listeners for controllers, as DescribeQuorum v2 has them. Raises Failure."""
    return _quorum(link).nodes


def _quorum(link: Link) -> Any:
    topic = {"topic_name": _METADATA, "partitions": [{"partition_index": 0}]}
    answer = ask_server(link, *_QUORUM, {"topics": [topic]})
    check(int(answer.error_code), answer.error_message, "the quorum")
    return answer


def _states(partition: Any) -> dict[int, Any]:
    return {int(one.replica_id): one for one in (*partition.current_voters, *partition.observers)}


def _node(number: int, broker: Any, state: Any, quorum: Quorum, now_ms: int) -> Node:
    """now_ms: the leader's clock when it answered: its own last time is that."""
    heard_s = behind = behind_s = None
    if state is not None and state.log_end_offset >= 0:
        behind = max(0, quorum.end - int(state.log_end_offset))
        if state.last_caught_up_timestamp > 0:
            behind_s = max(0, now_ms - int(state.last_caught_up_timestamp)) / 1000 if behind else 0
    if state is not None and state.last_fetch_timestamp > 0:
        heard_s = max(0, now_ms - int(state.last_fetch_timestamp)) / 1000
    roles = [BROKER] if broker is not None else []
    roles += [VOTER] if number in quorum.voters else []
    roles += [OBSERVER] if number in quorum.observers else []
    if broker is not None:
        life = FENCED if broker.is_fenced else RUNNING
    else:
        silent = heard_s is None or _silent(state, now_ms)
        life = GONE if silent and number != quorum.leader else RUNNING
    return Node(
        number,
        f"{broker.host}:{broker.port}" if broker is not None else "",
        broker.rack if broker is not None else None,
        tuple(roles), life, heard_s, behind, behind_s,
    )  # fmt: skip
