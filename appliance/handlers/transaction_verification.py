"""Verifies that partitions belong to an open transaction: asks its coordinator while another
request waits (KIP-890).

The question is an AddPartitionsToTxn of brokers, in the appliance's own name: whoever asks has
checked what its client may do. A coordinator on another node is asked over the network. A handler
makes a Question, calls `ask`, and gives it each completion of that index (`hear`) until it says
that all is known; `codes` are what Kafka's brokers make of the coordinator's answer. Invariant: a
question asked is answered by a completion, never within `ask`.
"""

from typing import Any, Final, NamedTuple

from appliance.base import errors
from appliance.base.ids import TRANSACTIONS_TOPIC
from appliance.coordinators.runtime.kind import partition_of
from appliance.handlers.exchange import WAITED, Exchange, Host
from appliance.ring.messages import Message
from appliance.ring.slots import answer_goes_on
from appliance.wire import messages
from appliance.wire.build import build

KEY: Final = 24
VERSION: Final = 5
_MS: Final = 1_000_000
_FIRST_WAIT_NS: Final = _MS
NOBODY: Final = -1  # leads

Partition = tuple[str, int]
"""Topic and index."""


class TransactionalProducer(NamedTuple):
    """A transactional producer, by its request."""

    transactional_id: str
    producer_id: int
    epoch: int


class VerificationRequest:
    """adds: the partitions are added to the transaction, else they must belong to it already.
    abortable: the client knows TRANSACTION_ABORTABLE. patient: while an earlier transaction of the
    producer is being ended ask again: soon at first, then as add.partitions.to.txn.retry.backoff.ms
    and …max.ms say.

    codes: an error code for each partition, NONE where it belongs to the transaction, once `hear`
    has said so.
    """

    __slots__ = (
        "_abortable",
        "_adds",
        "_longest_ns",
        "_partitions",
        "_patient",
        "_pieces",
        "_producer",
        "_refused",
        "_until_ns",
        "_wait_ns",
        "codes",
    )

    def __init__(
        self,
        producer: TransactionalProducer,
        partitions: list[Partition],
        *,
        adds: bool,
        abortable: bool,
        patient: bool = False,
    ) -> None:
        self._producer = producer
        self._partitions = partitions
        self._adds = adds
        self._abortable = abortable
        self._patient = patient
        self._pieces: list[bytes] = []
        self._refused = errors.NONE
        self._until_ns = self._longest_ns = 0
        self._wait_ns = _FIRST_WAIT_NS
        self.codes: dict[Partition, int] = {}

    def ask_coordinator(self, host: Host, x: Exchange, index: int) -> None:
        """Ask the coordinator; what comes back is completed with `index`."""
        if not self._until_ns:
            number = host.config.int
            self._longest_ns = number("add.partitions.to.txn.retry.backoff.ms") * _MS
            patience_ms = number("add.partitions.to.txn.retry.backoff.max.ms")
            self._until_ns = host.now_ns + patience_ms * _MS
        name = self._producer.transactional_id
        topic = host.image.topics_by_name.get(TRANSACTIONS_TOPIC)
        route, leader = None, NOBODY
        if topic is not None:
            at = partition_of(name, len(topic.partitions))
            route = host.route(TRANSACTIONS_TOPIC.encode(), at, False)
            leader = topic.partitions[at].leader
        if not name:
            self._refused = errors.INVALID_REQUEST
        elif route is None and leader in (NOBODY, host.node_id):
            self._refused = errors.COORDINATOR_NOT_AVAILABLE
        if self._refused:
            host.later(x, index, 0)
        elif route is not None:
            host.question(x, index, route, KEY, VERSION, self._request())
        else:
            host.question_node(x, index, leader, KEY, VERSION, self._request())

    def take_completion(
        self, host: Host, x: Exchange, index: int, message: Message | None, payload: bytes
    ) -> bool:
        """A completion has come; whether `codes` are known now."""
        if message is WAITED and not self._refused:
            self.ask_coordinator(host, x, index)
            return False
        code = self._refused
        if message is None:
            code = errors.NETWORK_EXCEPTION
        elif message.flags != 1:
            code = errors.UNKNOWN_SERVER_ERROR
        if code:
            self.codes = dict.fromkeys(self._partitions, code)
            return True
        assert message is not None
        self._pieces.append(payload)
        if answer_goes_on(message):
            return False
        answer = messages.decode_response(KEY, VERSION, b"".join(self._pieces))
        self._pieces.clear()
        self.codes = self._told(answer)
        if self._patient and self._is_early(host.now_ns):
            host.later(x, index, self._wait_ns)
            self._wait_ns = min(2 * self._wait_ns, self._longest_ns)
            return False
        return True

    def _request(self) -> bytes:
        topics: dict[str, list[int]] = {}
        for topic, index in self._partitions:
            topics.setdefault(topic, []).append(index)
        one = {
            "transactional_id": self._producer.transactional_id,
            "producer_id": self._producer.producer_id,
            "producer_epoch": self._producer.epoch,
            "verify_only": not self._adds,
            "topics": [
                {"name": name, "partitions": tuple(found)} for name, found in topics.items()
            ],
        }
        request = build(messages.request_type(KEY, VERSION), {"transactions": [one]})
        return messages.encode_request(request)

    def _told(self, answer: Any) -> dict[Partition, int]:
        """The result of each partition. One missing in the answer was asked of a former
        coordinator.
        """
        told = dict.fromkeys(self._partitions, answer.error_code or errors.NOT_COORDINATOR)
        for one in answer.results_by_transaction:
            for topic in one.topic_results:
                for result in topic.results_by_partition:
                    partition = topic.name, result.partition_index
                    told[partition] = self._as_brokers_say(int(result.partition_error_code))
        return {partition: told[partition] for partition in self._partitions}

    def _as_brokers_say(self, code: int) -> int:
        if code == errors.PRODUCER_FENCED:
            return errors.INVALID_PRODUCER_EPOCH
        if code == errors.TRANSACTION_ABORTABLE and not self._abortable:
            return errors.INVALID_TXN_STATE
        return code

    def _is_early(self, now_ns: int) -> bool:
        """True if an earlier transaction is still ending, and waiting for that is worthwhile."""
        return now_ns < self._until_ns and errors.CONCURRENT_TRANSACTIONS in self.codes.values()
