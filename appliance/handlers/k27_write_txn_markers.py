"""WriteTxnMarkers, API key 27, versions 1, 2 (1: flexible, 2: transaction.version, KIP-1228): end
the transactions of producers in some partitions, whatever their coordinator says.

For coordinators on other nodes, and for tools that end a transaction which nobody coordinates any
more. Coordinators here write markers in their own node's partitions without it
(`ioproc/coordination/marker_sender.py`).
"""

from collections.abc import Iterable
from typing import Any

from appliance.authorization.apis import NEEDS, declared
from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host, Steps
from appliance.handlers.gather import Values
from appliance.ring.messages import MARK, MARK_COMMIT, Message


@dataclass(slots=True)
class Marking:
    """markers: (producer id, rows by topic), as they were asked. rows: one for each partition, in
    the order of the completions."""

    markers: list[tuple[int, list[tuple[str, list[Values]]]]]
    rows: list[Values]


def begin_write_txn_markers(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    x.state = Marking([], [])
    refused = x.rights.refusal(NEEDS[x.handler.key])
    steps = _mark(host, x, request.markers, refused)
    count = sum(len(topic.partition_indexes) for one in request.markers for topic in one.topics)
    gather.in_turns(host, x, count, steps, lambda: _finish_if_complete(host, x))


def _mark(host: Host, x: Exchange, markers: Iterable[Any], refused: int) -> Steps:
    for marker in markers:
        wrong = refused
        if not wrong and (marker.producer_id < 0 or marker.producer_epoch < 0):
            wrong = errors.UNKNOWN_SERVER_ERROR  # nobody's marker: what Apache Kafka says
        topics: list[tuple[str, list[Values]]] = []
        for topic in marker.topics:
            rows: list[Values] = []
            for index in topic.partition_indexes:
                rows.append(_ask(host, x, marker, topic.name, index, wrong))
                if len(x.state.rows) % gather.MANY == 0:
                    yield
            topics.append((topic.name, rows))
        if topics:
            x.state.markers.append((marker.producer_id, topics))


def _finish_if_complete(host: Host, x: Exchange) -> None:
    if not x.pending and x.answer is None:
        _finish(host, x)


def _ask(host: Host, x: Exchange, marker: Any, topic: str, partition: int, wrong: int) -> Values:
    """The row of one partition, which its home is asked for unless something is wrong."""
    state: Marking = x.state
    row: Values = {"partition_index": partition, "error_code": wrong}
    state.rows.append(row)
    if wrong:
        return row
    route = host.route(topic.encode(), partition, by_id=False)
    if route is None:
        follows = host.replica(topic.encode(), partition, by_id=False) is not None
        row["error_code"] = (
            errors.NOT_LEADER_OR_FOLLOWER if follows else errors.UNKNOWN_TOPIC_OR_PARTITION
        )
        return row
    host.ask_home(
        x,
        len(state.rows) - 1,
        route,
        MARK,
        MARK_COMMIT if marker.transaction_result else 0,
        marker.producer_id,
        marker.coordinator_epoch,
        marker.producer_epoch,
        getattr(marker, "transaction_version", 0),
    )
    return row


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    code = errors.NOT_LEADER_OR_FOLLOWER if message is None else message.flags - 1
    x.state.rows[index]["error_code"] = code
    _finish_if_complete(host, x)


def _finish(host: Host, x: Exchange) -> None:
    markers = [
        {
            "producer_id": producer_id,
            "topics": [{"name": name, "partitions": rows} for name, rows in topics],
        }
        for producer_id, topics in x.state.markers
    ]
    gather.reply_in_turns(host, x, {"markers": markers}, len(x.state.rows))


HANDLER = Handler(*declared(27), begin_write_txn_markers, complete, slices=True)
