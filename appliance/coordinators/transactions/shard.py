"""One partition of `__transaction_state` as a transaction coordinator (`runtime.shard` says how it
is driven): the transactional ids that hash to it, from their first InitProducerId to their expiry.

Besides answers it has endings: after every turn `take_endings` says which transactions were decided
in it. When all records of that turn are committed, and no sooner, their markers are written;
`marked` is told of each partition that has its one durably. A new coordinator hands all endings out
again when it is activated: a marker that comes twice changes nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from appliance.authorization.needs import READ_GROUP, WRITE_TRANSACTION
from appliance.base import errors
from appliance.base.level import LevelTime
from appliance.coordinators.runtime.call import Call, Outcome, expiry_time
from appliance.coordinators.runtime.records import RecordTypes, fits
from appliance.coordinators.runtime.room import ShardRoom
from appliance.coordinators.runtime.shard import Apply, Handlers, Prepare, Refusals, Shard, Values
from appliance.coordinators.runtime.transaction_effects import Ending, Partition, PartitionsAdded
from appliance.coordinators.transactions import (
    partitions,
    producer,
    replay,
    transaction_descriptions,
    transaction_end,
)
from appliance.coordinators.transactions.delayed_requests import AN_ID, patient, resume
from appliance.coordinators.transactions.records import RECORDS
from appliance.coordinators.transactions.settings import TransactionSettings
from appliance.coordinators.transactions.state import TransactionsState, Turn
from appliance.coordinators.transactions.states import ONGOING, PREPARED
from appliance.metadata.image import MetadataImage

_ADD_PARTITIONS: Final = 24
_ADD_OFFSETS: Final = 25


def _one_id(call: Call, request: Any) -> str | None:
    """The one transactional id that a request is about, if it is about one."""
    if call.api_key == _ADD_PARTITIONS and call.version < partitions.OF_BROKERS:
        name: str = request.v3_and_below_transactional_id
        return name
    return getattr(request, "transactional_id", None)


class TransactionShard(Shard[TransactionsState]):
    """epoch: leader epoch of the partition. take_id: gives a producer id that nobody had, or None
    while one must be asked for."""

    HANDLERS: ClassVar[Handlers] = {
        22: patient(_one_id, producer.init, producer.init_refused),
        24: patient(_one_id, partitions.add_partitions, partitions.partitions_refused),
        25: patient(_one_id, partitions.add_offsets, partitions.offsets_refused),
        26: transaction_end.end_transaction,
        65: transaction_descriptions.describe,
        66: transaction_descriptions.list_all,
    }
    PREPARE: ClassVar[Mapping[int, Prepare]] = {_ADD_PARTITIONS: partitions.look_at_all}
    REFUSALS: ClassVar[Refusals] = {
        22: producer.init_refused,
        24: partitions.partitions_refused,
        25: partitions.offsets_refused,
        26: transaction_end.end_refused,
        65: transaction_descriptions.describe_refused,
        66: transaction_descriptions.list_refused,
    }
    RECORDS: ClassVar[RecordTypes] = RECORDS
    ENDS: ClassVar[bool] = True
    APPLY: ClassVar[Apply] = replay.APPLY

    def __init__(
        self,
        partition: int,
        epoch: int,
        settings: TransactionSettings,
        image: MetadataImage,
        take_id: Callable[[], int | None],
        believed: Callable[[int], int] = expiry_time,
        time: LevelTime | None = None,
        room: ShardRoom | None = None,
    ) -> None:
        super().__init__(
            TransactionsState(
                partition, epoch, settings, image, take_id, transaction_end.due, believed, room
            ),
            time,
        )

    def follow(self, image: MetadataImage) -> None:
        self.state.image = image

    def wrong(self, call: Call, request: Any) -> int:
        name = _one_id(call, request)
        if name is None:
            return errors.NONE
        if code := call.rights.refusal(WRITE_TRANSACTION, name):
            return code
        if not name or not fits(name):
            return errors.INVALID_REQUEST
        if call.api_key == _ADD_OFFSETS:
            return call.rights.refusal(READ_GROUP, request.group_id)
        return errors.NONE

    def owns_request(self, request: Any) -> bool:
        name = getattr(request, "transactional_id", None)
        if name is None:
            name = getattr(request, "v3_and_below_transactional_id", None)
        return name is None or self.state.owns(name)

    def loaded(self, turn: Turn) -> None:
        for known in list(self.state.known.values()):
            if known.transaction.state in PREPARED:
                transaction_end.hand_out(turn, known)
            else:
                turn.wake_at(known, known.deadline_ms(turn))

    def parked(self) -> Iterator[tuple[Call, Callable[[Call, int], Values]]]:
        turn = self._turn(0)
        for waiting in self.state.waiting.values():
            for one in waiting.values():
                yield one.call, lambda _, code, one=one: one.refused(turn, code)  # type: ignore[misc]

    def forget_state(self) -> None:
        self.state.known.clear()
        self.state.held_bytes = 0
        self.state.endings.clear()
        self.state.openings.clear()
        self.state.waiting.clear()

    def forget_topic(self, turn: Turn, name: str, topic_id: bytes) -> None:
        transaction_end.forget_topic(turn, name)

    def ids_came(self, now_ms: int) -> Outcome:
        turn = self._turn(now_ms)
        resume(turn, AN_ID)
        return turn

    def size(self) -> int:
        return len(self.state.known)

    def held_bytes(self) -> int:
        return self.state.held_bytes

    def knows(self, producer_id: int, where: Partition) -> int:
        for known in self.state.known.values():
            found = known.transaction
            if found.producer_id == producer_id and where in found.partitions:
                if found.state == ONGOING or where in known.unmarked:
                    return errors.CONCURRENT_TRANSACTIONS
                return errors.COORDINATOR_LOAD_IN_PROGRESS  # it was not there when that was decided
        return errors.NONE

    # Markers --------------------------------------------------------------------------------------

    def take_endings(self) -> list[Ending]:
        taken, self.state.endings = self.state.endings, []
        return taken

    def take_openings(self) -> list[PartitionsAdded]:
        taken, self.state.openings = self.state.openings, []
        return taken

    def marked(self, one: Ending, where: tuple[Partition, ...], now_ms: int) -> Outcome:
        """The markers of an ending are durable in these partitions."""
        turn = self._turn(now_ms)
        transaction_end.marked(turn, one, where)
        return turn
