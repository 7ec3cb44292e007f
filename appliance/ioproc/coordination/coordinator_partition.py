"""One partition of a coordinator's topic that this node leads: its shard, and what waits between
the shard and the log.

Invariants: records go to the log in the order in which the shard decided them, in the leader epoch
in which it decided them; an answer is due when everything that was in the log at the end of its
turn is committed. Called by `host`.
"""

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Final

from appliance.base import errors
from appliance.coordinators.runtime.call import NEVER, Call, Producer
from appliance.coordinators.runtime.shard import ACTIVE, Shard
from appliance.coordinators.runtime.transaction_effects import Ending, PartitionsAdded
from appliance.ioproc.partitions.partition import Partition
from appliance.ring.messages import NO_GUARD, TRUSTED_GUARD
from appliance.wire.own_batch import NOBODY, build

Responses = list[tuple[int, Mapping[str, Any]]]
_NO_SEQUENCE: Final = -1
_RECORD_OVERHEAD: Final = 32  # bytes of a record beside key and value, at most


class LedCoordinator:
    """epoch: the leader epoch of all of this; another epoch has another `LedCoordinator`.

    now_ms, records, responses, openings, endings: of this turn. producer: of the transaction that
    these records belong to. unawaited: nobody waits for the newest records in the log. waiting:
    (log end offset that must be committed, answers). decided: the same for openings and endings.
    loading: what is left of reading the log, None once it is read. deleted: topics that went away
    meanwhile, as (name, id). lost: records found no room, so the shard knows what is not in the
    log, and begins again at the end of the turn.
    """

    __slots__ = (
        "_patience_ms",
        "decided",
        "deleted",
        "endings",
        "epoch",
        "late_ms",
        "loading",
        "lost",
        "now_ms",
        "openings",
        "partition",
        "producer",
        "records",
        "responses",
        "shard",
        "unawaited",
        "waiting",
    )

    def __init__(self, partition: Partition, shard: Shard[Any], patience_ms: int = NEVER) -> None:
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.shard = shard
        self.records: list[tuple[bytes, bytes | None]] = []
        self.producer: Producer = NOBODY
        self.unawaited = False
        self.responses: Responses = []
        self.openings: list[PartitionsAdded] = []
        self.endings: list[Ending] = []
        self.waiting: deque[tuple[int, Responses, int]] = deque()
        self.late_ms = NEVER
        self._patience_ms = patience_ms
        self.decided: deque[tuple[int, list[PartitionsAdded], list[Ending]]] = deque()
        self.loading: Iterator[bool] | None = None
        self.lost = False
        self.deleted: list[tuple[str, bytes]] = []
        self.now_ms = 0

    def prepare(self, call: Call, request: Any) -> Generator[None, None, Any]:
        """Steps that give what the decision on a long request finds prepared; None before the shard
        serves, and where there is nothing to prepare."""
        shard = self.shard
        prepare = shard.PREPARE.get(call.api_key)
        if prepare is None or shard.phase != ACTIVE:
            return None
        return (yield from prepare(shard.state, call, request))

    def standing(self, request: Any, given: int, now_ms: int, *, adds: bool) -> tuple[int, int]:
        """(error code, guard or NO_GUARD) of a request that writes within a transaction. given: the
        guard that it came with. adds: it may add its partition."""
        states = self.partition.log.producers
        producer_id, epoch = request.producer_id, request.producer_epoch
        known = states.producers.get(producer_id)
        if known is not None and epoch < known.epoch:
            return errors.INVALID_PRODUCER_EPOCH, NO_GUARD
        if given == TRUSTED_GUARD:
            return errors.NONE, NO_GUARD
        guard = states.guard(producer_id, epoch, _NO_SEQUENCE, given, now_ms, adds=adds)
        return errors.NONE, guard

    def take_batches(self) -> list[bytearray]:
        """The records of this turn as batches, each within max.message.bytes if its records are."""
        records, self.records = self.records, []
        producer, self.producer = self.producer, NOBODY
        if not records:
            return []
        assert self.epoch == self.partition.leader_epoch, "decided in an epoch that is over"
        limit = self.partition.rules.max_message_bytes
        if len(records) == 1:
            return [build(records, self.now_ms, producer)]
        return [build(part, self.now_ms, producer) for part in split(records, limit)]

    def staged(self, level_ms: int) -> None:
        """The records of this turn are in the log: its answers and endings wait for the log end of
        now."""
        if self.responses:
            until_ms = min(NEVER, level_ms + self._patience_ms)
            self.waiting.append((self.partition.log.end_offset, self.responses, until_ms))
            self.late_ms = self.waiting[0][2]
            self.responses = []
        if self.openings or self.endings:
            self.decided.append((self.partition.log.end_offset, self.openings, self.endings))
            self.openings, self.endings = [], []

    def due_decisions(self) -> Iterator[tuple[list[PartitionsAdded], list[Ending]]]:
        """The openings and endings that are committed."""
        high_watermark = self.partition.high_watermark
        decided = self.decided
        while decided and decided[0][0] <= high_watermark:
            yield decided.popleft()[1:]

    def begin_again(self, shard: Shard[Any]) -> None:
        """Another shard goes on from what is in the log."""
        self.shard = shard
        self.openings.clear()
        self.endings.clear()
        self.decided.clear()

    def due(self) -> Responses:
        """The answers that may be sent."""
        high_watermark = self.partition.high_watermark
        waiting = self.waiting
        found: Responses = []
        while waiting and waiting[0][0] <= high_watermark:
            found += waiting.popleft()[1]
        self.late_ms = waiting[0][2] if waiting else NEVER
        return found

    def take_late(self, level_ms: int) -> list[int]:
        """The tokens of the answers that have waited too long for their records to be committed;
        they are not due any more."""
        waiting, tokens = self.waiting, list[int]()
        while waiting and waiting[0][2] <= level_ms:
            tokens += [token for token, _ in waiting.popleft()[1]]
        self.late_ms = waiting[0][2] if waiting else NEVER
        return tokens

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """A marker is in the log behind all that was decided for its transaction. A shard that
        loads meets it there."""
        if self.shard.phase == ACTIVE:
            self.shard.ended(producer_id, committed=committed)

    def take_unsent(self) -> list[int]:
        """The tokens of all answers that were not due yet, because they never will be; records
        that are not in the log never will be there either."""
        tokens = [token for _, responses, _ in self.waiting for token, _ in responses]
        tokens += [token for token, _ in self.responses]
        self.waiting.clear()
        self.late_ms = NEVER
        self.responses.clear()
        self.records.clear()
        return tokens


def split(
    records: Sequence[tuple[bytes, bytes | None]], limit: int
) -> Iterator[Sequence[tuple[bytes, bytes | None]]]:
    """Runs of records that take at most `limit` bytes as a batch; at least one record each."""
    begin = size = 0
    for at, (key, value) in enumerate(records):
        bytes_of_it = len(key) + len(value or b"") + _RECORD_OVERHEAD
        if at > begin and size + bytes_of_it > limit - 2 * _RECORD_OVERHEAD:
            yield records[begin:at]
            begin, size = at, 0
        size += bytes_of_it
    if begin < len(records):
        yield records[begin:]
