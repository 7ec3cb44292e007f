"""Reports of I/O processes to the active controller, batched into one request: new ISRs
(AlterPartition), folders that partitions lie in (AssignReplicasToDirs).

Invariant: one request of a kind is under way at a time, and what came meanwhile goes with the next
one, the newest of each partition only. Nothing is asked twice: the answer is the metadata, and an
I/O process that does not see it says it again, unless it is told that a new ISR is out of the
question. Called by `node.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.control.broker.channel import Values
from appliance.control.broker.forwarding import ControllerChannel
from appliance.control.broker.lifecycle import UNKNOWN
from appliance.replication.isr_change import IsrChange

ALTER_PARTITION: Final = 56
ASSIGN_REPLICAS: Final = 73
_TIMEOUT_MS: Final = 5_000
MOST: Final = 1_000
"""Partitions in one request: the active controller decides it in one turn (docs/decisions/0017)."""
_NEVER_DONE: Final = (errors.INELIGIBLE_REPLICA, errors.OPERATION_NOT_ATTEMPTED)

What = TypeVar("What")
Key = tuple[bytes, int]
"""(topic id, partition)"""


class Proposal(NamedTuple):
    """A new ISR. ioproc, handle: the home that proposes it, and the row of the partition."""

    ioproc: int
    handle: int
    change: IsrChange


class Report(Generic[What]):
    """Things of one kind. values: those of a request, beside who asks. heard: is given what a
    request was about and the answer to it, kio's or a PeerError."""

    __slots__ = ("_api_key", "_asks", "_broker_id", "_heard", "_under_way", "_values", "_waiting")

    def __init__(
        self,
        api_key: int,
        broker_id: int,
        asks: ControllerChannel,
        values: Callable[[Mapping[Key, What]], Values],
        heard: Callable[[Mapping[Key, What], Any], None] = lambda _, answer: None,
    ) -> None:
        self._api_key = api_key
        self._broker_id = broker_id
        self._asks = asks
        self._values = values
        self._heard = heard
        self._waiting: dict[Key, What] = {}
        self._under_way = False

    def add_report(self, key: Key, what: What) -> None:
        """This is so of the partition, whatever was said before."""
        self._waiting[key] = what

    def send_report(self, epoch: int) -> None:
        """Ask, if there is something to ask for and somebody who may. epoch: the broker's."""
        if not self._waiting or self._under_way or epoch == UNKNOWN or not self._asks.known:
            return
        some = dict(list(self._waiting.items())[:MOST])
        for key in some:
            del self._waiting[key]
        self._under_way = True
        who = {"broker_id": self._broker_id, "broker_epoch": epoch}
        values = {**who, **self._values(some)}
        self._asks.ask_controller(self._api_key, values, partial(self._answered, some), _TIMEOUT_MS)

    def _answered(self, some: Mapping[Key, What], answer: Any) -> None:
        self._under_way = False
        self._heard(some, answer)


def new_isrs(proposals: Mapping[Key, Proposal]) -> Values:
    """Fields of AlterPartition, version 3."""
    topics: dict[bytes, list[Values]] = {}
    for (topic_id, index), proposal in proposals.items():
        change = proposal.change
        isr = [{"broker_id": one, "broker_epoch": epoch} for one, epoch in change.isr.items()]
        topics.setdefault(topic_id, []).append(
            {
                "partition_index": index,
                "leader_epoch": change.leader_epoch,
                "new_isr_with_epochs": isr,
                "leader_recovery_state": 0,
                "partition_epoch": change.partition_epoch,
            }
        )
    return {"topics": [{"topic_id": key, "partitions": rows} for key, rows in topics.items()]}


def not_done(proposals: Mapping[Key, Proposal], answer: Any) -> Iterator[tuple[Proposal, int]]:
    """(proposal, error code) of those that the controller will certainly not do any more."""
    if isinstance(answer, PeerError) or answer.error_code:
        return
    for topic in answer.topics:
        topic_id = topic.topic_id.bytes if topic.topic_id else bytes(16)
        for row in topic.partitions:
            proposal = proposals.get((topic_id, row.partition_index))
            if proposal is not None and row.error_code in _NEVER_DONE:
                yield proposal, int(row.error_code)


def folders(assigned: Mapping[Key, bytes]) -> Values:
    """Fields of AssignReplicasToDirs, version 0. assigned: the id of the folder of each."""
    found: dict[bytes, dict[bytes, list[Values]]] = {}
    for (topic_id, index), folder in assigned.items():
        rows = found.setdefault(folder, {}).setdefault(topic_id, [])
        rows.append({"partition_index": index})
    return {
        "directories": [
            {
                "id_": folder,
                "topics": [{"topic_id": key, "partitions": rows} for key, rows in topics.items()],
            }
            for folder, topics in found.items()
        ]
    }
