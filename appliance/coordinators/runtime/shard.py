"""One partition of a coordinator's topic as a value machine: what every kind has in common.

How the shell drives it, for every partition of the topic that its process leads:

1. A new shard is LOADING: every request is answered at once with COORDINATOR_LOAD_IN_PROGRESS. Read
   the partition from its start to the high watermark and call `replay(key, value, offset)` for each
   record of it, in order, with the producer id if its batch is transactional; and `ended` for each
   marker.
2. `activate(now_ms)` makes it ACTIVE and gives what was loaded fresh deadlines.
3. `handle(call, request, now_ms)` for a request, `tick(now_ms)` when `next_deadline_ms` has come,
   `on_topic_deleted(...)` when the image lost a topic: each gives an Outcome. Append its records in
   order before the next call (one batch, or several when they are many; max.message.bytes does not
   count); never call `replay` for them, they are applied already. Send its
   responses when the high watermark has reached the log end offset of that moment. An Outcome
   without records waits for what is in flight in the same way: nobody is told of what a power loss
   could take back. Records with a `producer` are a transactional batch; `ended(producer_id,
   committed=…)` when a marker is appended, in the order of the log.
4. A parked request is answered by a later Outcome under its own token. A token whose connection is
   gone may come: drop the answer.
5. When an append fails, or the partition is led here no more: `resign()`, whose responses are sent
   at once. What waits for the failed append is answered by `refuse(call, request,
   NOT_COORDINATOR)`. A resigned shard answers NOT_COORDINATOR; replace it by a new one to serve
   again.

Invariant: `apply` is the only thing that changes durable state, live (called by `Turn.write`, with
the typed record) and at load (called by `replay`, with the decoded one). Parked requests and
deadlines are volatile and change directly.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, ClassVar, Final, Generic

from appliance.base import errors
from appliance.base.compiled import mypyc_attr
from appliance.base.errors import PeerError
from appliance.base.level import LevelTime
from appliance.coordinators.runtime.call import Call, Outcome
from appliance.coordinators.runtime.records import RecordTypes
from appliance.coordinators.runtime.transaction_effects import Ending, Partition, PartitionsAdded
from appliance.coordinators.runtime.turn import S, Timers, Turn
from appliance.metadata.image import MetadataImage

LOADING: Final = "loading"
ACTIVE: Final = "active"
RESIGNED: Final = "resigned"

Values = Mapping[str, Any]
"""The plain values of an answer."""
Handlers = Mapping[int, Callable[[Turn[Any], Call, Any], None]]
Prepare = Callable[[Any, Call, Any], Generator[None, None, Any]]
"""(state, call, request) → steps, and what the decision finds in `Call.prepared`."""
Refusals = Mapping[int, Callable[[Turn[Any], Call, Any, int], Values]]
Apply = Mapping[type, Callable[[Any, Any, Any], None]]
Hold = Mapping[type, Callable[[Any, int, Any, Any], None]]
NO_PRODUCER: Final = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class Shard(ABC, Generic[S]):
    """state: what replaying the partition gives. phase: LOADING, ACTIVE or RESIGNED.

    A kind of coordinator says in its class, by API key, who decides a request and how an answer
    looks that carries one error for all of it, which records there are, and, by the class of a
    record's key, what the record changes, or what becomes of it while its transaction is open (a
    record of another class counts at once).
    """

    HANDLERS: ClassVar[Handlers]
    REFUSALS: ClassVar[Refusals]
    PREPARE: ClassVar[Mapping[int, Prepare]] = {}
    """Of APIs whose long requests are decided as a whole: what can be done over several turns
    before that, and changes nothing."""
    RECORDS: ClassVar[RecordTypes]
    APPLY: ClassVar[Apply]
    HOLD: ClassVar[Hold] = {}
    ENDS: ClassVar[bool] = False
    """Whether it has endings, and openings."""

    def __init__(self, state: S, time: LevelTime | None = None) -> None:
        """time: of what every now_ms is; without it the wall clock's."""
        self.state = state
        self._time = time or LevelTime()
        self.phase = LOADING
        self._timers = Timers()

    # What a kind adds -----------------------------------------------------------------------------

    @abstractmethod
    def follow(self, image: MetadataImage) -> None:
        """The image of this process is another one now."""

    @abstractmethod
    def wrong(self, call: Call, request: Any) -> int:
        """The error code of a request that nobody would look at, whatever the phase; or NONE."""

    @abstractmethod
    def owns_request(self, request: Any) -> bool:
        """True if the thing asked for belongs to this partition."""

    @abstractmethod
    def loaded(self, turn: Turn[S]) -> None:
        """All was replayed: deadlines begin."""

    @abstractmethod
    def parked(self) -> Iterator[tuple[Call, Callable[[Call, int], Values]]]:
        """The requests that wait, each with what makes its answer of an error code."""

    @abstractmethod
    def forget_state(self) -> None:
        """Let go of the state."""

    @abstractmethod
    def forget_topic(self, turn: Turn[S], name: str, topic_id: bytes) -> None:
        """Remove what is kept of a topic that exists no more."""

    @abstractmethod
    def size(self) -> int:
        """How many things it keeps: groups, transactions, …"""

    def held_bytes(self) -> int:
        """Bytes that clients have said and that it keeps in memory, where they are bounded."""
        return 0

    # Loading and ending ---------------------------------------------------------------------------

    def replay(
        self,
        key: bytes | None,
        value: bytes | None,
        offset: int,
        producer_id: int = NO_PRODUCER,
    ) -> None:
        """Apply one record of the partition while loading; value None removes. producer_id: of the
        transaction that it belongs to.

        Raises PeerError(CORRUPT_MESSAGE) for bytes that are no such record; types that nobody here
        knows are skipped. offset: of the record, for the text of an error.
        """
        assert self.phase == LOADING, "live records are applied when they are decided"
        try:
            decoded = self.RECORDS.decode(key, value)
        except PeerError as cause:
            raise PeerError(cause.code, f"offset {offset}: {cause.message}") from cause
        if decoded is None:
            return
        if producer_id == NO_PRODUCER:
            self.apply(*decoded)
        else:
            self.hold_record(producer_id, *decoded)

    def apply(self, key: Any, value: Any) -> None:
        """Change durable state as a record says; value None: a tombstone."""
        assert self.phase != RESIGNED, "who resigned decides nothing"
        self.APPLY[type(key)](self.state, key, value)

    def hold_record(self, producer_id: int, key: Any, value: Any) -> None:
        """Keep a record of an open transaction, live and at load alike."""
        assert self.phase != RESIGNED, "who resigned decides nothing"
        hold = self.HOLD.get(type(key))
        if hold is None:
            self.apply(key, value)
        else:
            hold(self.state, producer_id, key, value)

    def ended(self, producer_id: int, *, committed: bool) -> None:
        """A producer's transaction has its marker in this partition, live and at load alike."""

    def activate(self, now_ms: int) -> Outcome:
        """All was replayed: begin to serve."""
        assert self.phase == LOADING
        self.phase = ACTIVE
        turn = self._turn(now_ms)
        self.loaded(turn)
        return turn

    def resign(self) -> Outcome:
        """Stop serving: every parked request is answered NOT_COORDINATOR."""
        self.phase = RESIGNED
        turn = self._turn(0)
        for call, refusal in self.parked():
            turn.answer(call, refusal(call, errors.NOT_COORDINATOR))
        self.forget_state()
        self._timers.clear()
        return turn

    def _turn(self, now_ms: int) -> Turn[S]:
        return Turn(
            self.state, now_ms, self._time.ahead_ms, self.apply, self.hold_record, self._timers
        )

    # Requests -------------------------------------------------------------------------------------

    def handle(self, call: Call, request: Any, now_ms: int) -> Outcome:
        """Decide a request. request: the decoded message (`wire.messages.decode_request`).

        One that asks for things of several partitions comes to every shard concerned: each answers
        for its own, and the kind's `splice` makes one answer of them.
        """
        turn = self._turn(now_ms)
        code = self._refused(call, request)
        if code == errors.NONE:
            try:
                self.HANDLERS[call.api_key](turn, call, request)
            except PeerError as refused:
                code = refused.code
        if code != errors.NONE:
            turn.answer(call, self.REFUSALS[call.api_key](turn, call, request, code))
        return turn

    def refuse(self, call: Call, request: Any, code: int) -> Values:
        """The answer with this error, for a request whose Outcome could not be carried out."""
        return self.REFUSALS[call.api_key](self._turn(0), call, request, code)

    def _refused(self, call: Call, request: Any) -> int:
        code = self.wrong(call, request)
        if code != errors.NONE:
            return code
        if self.phase == ACTIVE:
            return errors.NONE if self.owns_request(request) else errors.NOT_COORDINATOR
        if self.phase == LOADING:
            return errors.COORDINATOR_LOAD_IN_PROGRESS
        return errors.NOT_COORDINATOR

    # What follows a decision elsewhere ------------------------------------------------------------

    def take_endings(self) -> list[Ending]:
        """Returns the ends decided since the last call, to send once all records so far commit."""
        return []

    def take_openings(self) -> list[PartitionsAdded]:
        """The same for what was opened."""
        return []

    def marked(self, one: Ending, where: tuple[Partition, ...], now_ms: int) -> Outcome:
        """An ending is carried out in these partitions, durably."""
        raise AssertionError("nothing was decided that ends elsewhere")

    def ids_came(self, now_ms: int) -> Outcome:
        """There are producer ids again: who waits for one goes on."""
        return self._turn(now_ms)

    def knows(self, producer_id: int, where: Partition) -> int:
        """Checks whether this producer has an open transaction there that this shard knows. NONE:
        it has not. CONCURRENT_TRANSACTIONS: the marker will come. COORDINATOR_LOAD_IN_PROGRESS: ask
        again.
        """
        return errors.NONE

    # Time and topics ------------------------------------------------------------------------------

    @property
    def next_deadline_ms(self) -> int:
        """When `tick` wants to be called at the latest, NEVER when nothing is due."""
        return self._timers.next_ms

    def tick(self, now_ms: int) -> Outcome:
        """Do what is due."""
        turn = self._turn(now_ms)
        for who in self._timers.due(now_ms):
            who.wake_up(turn)
        return turn

    def on_topic_deleted(self, name: str, topic_id: bytes, now_ms: int) -> Outcome:
        """Remove what is kept of a topic that exists no more."""
        turn = self._turn(now_ms)
        if self.phase == ACTIVE:
            self.forget_topic(turn, name, topic_id)
        return turn
