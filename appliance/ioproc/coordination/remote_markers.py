"""Markers for partitions that other nodes lead: WriteTxnMarkers (27) to each node, as a broker; and
what their coordinators have open: ListTransactions (66).

One request for markers is under way to a node at a time, so what comes meanwhile goes together in
the next one. A value machine but for who asks; `marker_sender.py` says which markers go where, and
when again.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.runtime.transaction_effects import Ending, Partition
from appliance.coordinators.transactions.states import (
    NAMES,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
)

KEY: Final = 27
VERSIONS: Final = range(1, 3)
LIST_KEY: Final = 66
LIST_VERSIONS: Final = range(1)
OPEN: Final = tuple(
    NAMES[one] for one in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT, PREPARE_EPOCH_FENCE)
)
TIMEOUT_MS: Final = 5_000
"""Then a node that says nothing is asked again, whoever leads by then."""

Marker = tuple[int, Ending, Partition]
"""The number by which its answer is known."""
Answered = Callable[[int, int, int], None]
"""(node, number of a marker, error code)"""


class BrokerRequests(Protocol):
    """Connections to other brokers (`peers.brokers.Brokers`)."""

    def ask_peer(
        self,
        node: int,
        api_key: int,
        versions: range,
        message: Mapping[str, Any],
        done: Callable[[Any], None],
        timeout_ms: int,
    ) -> bool:
        """False: it cannot be asked, and `done` hears nothing."""
        ...


class RemoteMarkers:
    """node_id: of this node. under_way: nodes whose answer is not there yet."""

    __slots__ = ("_asks", "node_id", "under_way")

    def __init__(self, node_id: int, asks: BrokerRequests) -> None:
        self.node_id = node_id
        self._asks = asks
        self.under_way: set[int] = set()

    def send_markers(self, node: int, markers: list[Marker], answered: Answered) -> None:
        """Ask for these; answered: called for each of them, now or later."""
        assert node not in self.under_way, "one request at a time"
        assert markers
        numbers = {
            (ending.producer_id, *partition): number for number, ending, partition in markers
        }
        assert len(numbers) == len(markers), "two markers of a producer for one partition"

        def done(answer: Any) -> None:
            self.under_way.discard(node)
            codes, other = _codes(answer)
            for key, number in numbers.items():
                answered(node, number, codes.get(key, other))

        self.under_way.add(node)
        if not self._asks.ask_peer(node, KEY, VERSIONS, _request(markers), done, TIMEOUT_MS):
            done(PeerError(errors.BROKER_NOT_AVAILABLE, "it is not registered"))

    def open_of(
        self, node: int, producer_id: int, timeout_ms: int, done: Callable[[Any], None]
    ) -> None:
        """Ask which transactions of this producer are open at the coordinators of that node. done:
        gets ListTransactions' answer or a PeerError, or hears nothing of who is not registered."""
        values = {"state_filters": OPEN, "producer_id_filters": (producer_id,)}
        self._asks.ask_peer(node, LIST_KEY, LIST_VERSIONS, values, done, timeout_ms)


def _codes(answer: Any) -> tuple[dict[tuple[int, str, int], int], int]:
    """Error codes by producer id, topic and partition; and that of all others."""
    if isinstance(answer, PeerError):
        return {}, answer.code
    codes = {
        (marker.producer_id, topic.name, one.partition_index): int(one.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for one in topic.partitions
    }
    return codes, errors.UNKNOWN_SERVER_ERROR


def _request(markers: list[Marker]) -> dict[str, Any]:
    topics: dict[Ending, dict[str, list[int]]] = {}
    for _, ending, (name, index) in markers:
        topics.setdefault(ending, {}).setdefault(name, []).append(index)
    return {
        "markers": [
            {
                "producer_id": ending.producer_id,
                "producer_epoch": ending.epoch,
                "transaction_result": ending.committed,
                "coordinator_epoch": ending.coordinator_epoch,
                "transaction_version": ending.version,
                "topics": [
                    {"name": name, "partition_indexes": tuple(indexes)}
                    for name, indexes in found.items()
                ],
            }
            for ending, found in topics.items()
        ]
    }
