"""A transaction coordinator's state of one partition of `__transaction_state`.

Invariant: only `replay` changes the Transaction of an id. What a Known has besides is volatile: a
coordinator that loads the log begins without it, and is right all the same.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from appliance.base.errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_ID_MAPPING,
    PeerError,
)
from appliance.config.bounds import TRANSACTION_BYTES, setting_of
from appliance.coordinators.runtime import turn as runtime
from appliance.coordinators.runtime.call import NEVER, expiry_time
from appliance.coordinators.runtime.kind import partition_of
from appliance.coordinators.runtime.room import ShardRoom
from appliance.coordinators.runtime.transaction_effects import Ending, Partition, PartitionsAdded
from appliance.coordinators.transactions.delayed_requests import AN_ID, TooEarly, WaitingRequest
from appliance.coordinators.transactions.record_bytes import (
    FEW,
    NOBODY,
    EncodedPartitions,
    key_bytes,
    members,
    value_bytes,
)
from appliance.coordinators.transactions.records import TransactionLogKey
from appliance.coordinators.transactions.settings import TransactionSettings
from appliance.coordinators.transactions.states import ONGOING, PREPARED, RESTING
from appliance.coordinators.transactions.transaction import (
    NO_EPOCH,
    UNLIMITED_MS,
    Transaction,
)
from appliance.metadata.image import MetadataImage

_SHOWN: Final = 100  # characters of a name in an event
_DOUBT_MS: Final = 60_000
"""Between two looks whether a clock that jumped ahead is believed by now."""


class TransactionalId(runtime.Timed):
    """One transactional id. last_epoch: what its producer had before its present one, so that the
    same InitProducerId again gets the same answer (KIP-360), or -1. ending: number of the one under
    way, and unmarked: its partitions that have no marker yet. members: of its last record.
    held_bytes: of memory, as counted in the state."""

    __slots__ = (
        "_begun",
        "_due",
        "ending",
        "held_bytes",
        "last_epoch",
        "members",
        "transaction",
        "transactional_id",
        "unmarked",
    )

    def __init__(
        self,
        transactional_id: str,
        transaction: Transaction,
        due: "Callable[[Turn, TransactionalId], None]",
    ) -> None:
        super().__init__()
        self.transactional_id = transactional_id
        self.transaction = transaction
        self.last_epoch = NO_EPOCH
        self.ending = 0
        self.members = NOBODY
        self.held_bytes = 0
        self.unmarked: set[Partition] = set()
        self._begun = (-1, NEVER)  # as the log says, and when that transaction is aborted
        self._due = due

    def deadline_ms(self, turn: "Turn") -> int:
        """When an open transaction is aborted, or one at rest looked at whether it is forgotten;
        NEVER for others. The wall clock of its beginning counts when it is first asked for, and
        level time from then on."""
        one = self.transaction
        if one.state in RESTING:
            return turn.now_ms + self._forgotten_ms(turn) - turn.wall_ms
        if one.state != ONGOING or one.timeout_ms == UNLIMITED_MS:
            return NEVER
        if self._begun[0] != one.started_ms:
            left_ms = one.started_ms + one.timeout_ms - turn.wall_ms
            self._begun = one.started_ms, turn.now_ms + min(left_ms, one.timeout_ms)
        return self._begun[1]

    def _forgotten_ms(self, turn: "Turn") -> int:
        """Wall-clock time (ms) at which a resting id expires."""
        return self.transaction.updated_ms + turn.state.settings.expiration_ms

    def wake_up(self, turn: "Turn") -> None:
        if turn.state.known.get(self.transactional_id) is not self:
            return
        deadline = self.deadline_ms(turn)
        if deadline > turn.now_ms:
            turn.wake_at(self, deadline)
        elif self.transaction.state in RESTING and (
            self._forgotten_ms(turn) > turn.state.believed(turn.wall_ms)
        ):
            turn.wake_at(self, turn.now_ms + _DOUBT_MS)
        else:
            self._due(turn, self)


ID_BYTES: Final = 400
"""Of memory that a transactional id takes besides its text."""
PARTITION_BYTES: Final = 160
"""The same of a partition in a transaction."""


class TransactionsState:
    """partition: of `__transaction_state`. epoch: leader epoch in which this coordinator serves;
    it goes into its markers. known: by transactional id. endings: decided, and not taken yet.
    ended: how many there were. openings: of what was added, and not taken yet. waiting: by
    transactional id, for its markers, or under AN_ID for a producer id; then by token.

    image: the metadata that this process follows. take_id: a producer id that nobody had, None when
    one must be asked for first. due: what to do when an id's deadline has come. believed: as `Lent`
    has it. room: for more ids, and what belongs to them. held_bytes: of memory that all of them
    take.
    """

    def __init__(
        self,
        partition: int,
        epoch: int,
        settings: TransactionSettings,
        image: MetadataImage,
        take_id: Callable[[], int | None],
        due: "Callable[[Turn, TransactionalId], None]",
        believed: Callable[[int], int] = expiry_time,
        room: ShardRoom | None = None,
    ) -> None:
        self.room = ShardRoom() if room is None else room
        self.partition = partition
        self.epoch = epoch
        self.settings = settings
        self.image = image
        self.take_id = take_id
        self.due = due
        self.believed = believed
        self.known: dict[str, TransactionalId] = {}
        self.endings: list[Ending] = []
        self.ended = 0
        self.openings: list[PartitionsAdded] = []
        self.waiting: dict[str, dict[int, WaitingRequest]] = {}
        self.held_bytes = 0

    def count_bytes(self, known: TransactionalId, held: int) -> None:
        """An id takes so many bytes now."""
        self.held_bytes += held - known.held_bytes
        known.held_bytes = held
        assert self.held_bytes >= 0

    @property
    def version(self) -> int:
        """The finalized transaction.version."""
        return self.image.features.get("transaction.version", 0)

    def owns(self, transactional_id: str) -> bool:
        """True if the id belongs to this partition."""
        return partition_of(transactional_id, self.settings.partitions) == self.partition

    def fresh_id(self) -> int:
        """A producer id. Raises TooEarly (COORDINATOR_LOAD_IN_PROGRESS) while there is none."""
        taken = self.take_id()
        if taken is None:
            raise TooEarly(AN_ID)
        return taken

    def of(
        self, transactional_id: str, producer_id: int, *, pending: bool = False
    ) -> TransactionalId:
        """The id that a producer works with. Raises PeerError: CONCURRENT_TRANSACTIONS while its
        transaction is decided (its producer id may be about to change), unless `pending` is set;
        INVALID_PRODUCER_ID_MAPPING when there is no such id or it is another producer's."""
        known = self.known.get(transactional_id)
        if known is not None and known.transaction.state in PREPARED and not pending:
            raise PeerError(
                CONCURRENT_TRANSACTIONS, f"the transaction of {transactional_id} is being ended"
            )
        if known is None or known.transaction.producer_id != producer_id:
            raise PeerError(
                INVALID_PRODUCER_ID_MAPPING,
                f"producer {producer_id} is not the one of transactional id {transactional_id}",
            )
        return known


Turn: TypeAlias = runtime.Turn[TransactionsState]
"""A turn of a transaction coordinator."""


def lacks_bytes(turn: Turn, transactional_id: str, code: int) -> PeerError:
    """The refusal of what its room lacks the bytes for."""
    what = f"transactional ids and their partitions take {turn.state.room.most_bytes} bytes"
    return refuse(turn, TRANSACTION_BYTES, transactional_id, what, code)


def refuse(turn: Turn, bound: str, transactional_id: str, what: str, code: int) -> PeerError:
    """The refusal of what is beyond a bound, which the log is told of."""
    why = f"{what}: {setting_of(bound)}"
    told = {"bound": bound, "transaction": transactional_id[:_SHOWN], "why": why}
    turn.add_note("bound-reached", bound, told, is_loss=True)
    return PeerError(code, why)


def move_transaction(
    turn: Turn, transactional_id: str, to: Transaction, more: EncodedPartitions | None = None
) -> TransactionalId:
    """Take a step: into the log, and into what is known. more: what it adds, where that is long."""
    key = TransactionLogKey(transactional_id=transactional_id)
    encoded = NOBODY
    if len(to.partitions) > FEW:
        encoded = members(turn.state.known[transactional_id].members, to, more)
    turn.write_encoded(key, to, key_bytes(transactional_id), value_bytes(to, encoded))
    known = turn.state.known[transactional_id]
    known.members = encoded
    turn.wake_at(known, known.deadline_ms(turn))
    return known
