"""Transactional batches of a Produce request: from the home to the coordinator and back (KIP-890).

A batch goes to its partition's home as any does. A home that does not know the producer's
transaction as open does not append it but gives a guard (UNVERIFIED). All such partitions of a
request are asked of the coordinator at once, and those that belong to the transaction are sent
again with their guards.

A client sends several requests ahead, whose batches must arrive in their order. So requests of a
connection stand in line: only the oldest may ask, and what comes meanwhile is held. When it knows,
and what the others have sent is answered, it sends its batches again, and behind them go those of
the others that were held or not appended. Invariant: a batch that is not appended is sent again
before any that came after it.
"""

from collections.abc import Generator, Iterator
from typing import Final

from kio.schema.errors import ErrorCode

from appliance.authorization.needs import WRITE_TRANSACTION
from appliance.base import errors
from appliance.handlers.exchange import Exchange, Host, Line, Route
from appliance.handlers.gather import MANY
from appliance.handlers.transaction_verification import TransactionalProducer, VerificationRequest
from appliance.ring.messages import ADDS, APPEND, TRANSACTIONAL, TRUSTED, Message
from appliance.wire.batch_header import (
    HEADER_SIZE,
    INT16,
    INT64,
    MAGIC,
    MAGIC_AT,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    TRANSACTIONAL_BIT,
)
from appliance.wire.produce import Batch, ProduceRequest

FIRST_ABORTABLE: Final = 11
FIRST_ADDING: Final = 12
FLAGS_AT: Final = 22
"""The byte of the attributes that has TRANSACTIONAL_BIT; a time in message formats 0 and 1."""
OWN: Final = 1 << 31
"""From here on indexes of what is pending are those of this room, below those of batches."""
_QUESTION: Final = OWN
_HELD: Final = OWN + 1
_RESUMED: Final = OWN + 2

RETRIED: Final = frozenset(
    (
        errors.CONCURRENT_TRANSACTIONS,
        errors.NETWORK_EXCEPTION,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
    )
)
"""What a client must try again, and would not: it is told NOT_ENOUGH_REPLICAS."""


def has_transactional(memory: memoryview, batches: list[Batch]) -> bool:
    """True if one of them belongs to a transaction."""
    for _, _, position, length in batches:
        if (
            length >= HEADER_SIZE
            and memory[position + FLAGS_AT] & TRANSACTIONAL_BIT
            and memory[position + MAGIC_AT] == MAGIC
        ):
            return True
    return False


class ProduceSteps:
    """The open steps of a request with transactional batches. routes: of the batches that may be
    written, by their index. wants: index → guard (or 0) of those to be appended when it is this
    request's turn.
    """

    __slots__ = (
        "_flags", "_producer", "_question", "_request", "_unsent", "_version", "routes", "wants",
    )  # fmt: skip

    def __init__(self, host: Host, version: int, request: ProduceRequest) -> None:
        self._version = version
        self._request = request
        self._producer: TransactionalProducer | None = None
        self._question: VerificationRequest | None = None
        self._flags = TRANSACTIONAL
        if version >= FIRST_ADDING:
            self._flags |= ADDS
        elif not host.verifies:
            self._flags |= TRUSTED
        self.routes: dict[int, Route] = {}
        self.wants: dict[int, int] = {}
        self._unsent: dict[int, int] = {}  # wanted, and not asked for yet

    def refusal(self, host: Host, x: Exchange) -> int:
        """The error code for the request as a whole, or NONE."""
        for code in self._checks(host, x):
            if code >= 0:
                return code
        raise AssertionError("the last check says what holds")

    def refusal_in_turns(self, host: Host, x: Exchange) -> Generator[None, None, int]:
        """The same, with a stop after MANY batches."""
        for code in self._checks(host, x):
            if code >= 0:
                return code
            yield
        raise AssertionError("the last check says what holds")

    def _checks(self, host: Host, x: Exchange) -> Iterator[int]:
        """-1 after every MANY batches, and in the end the error code."""
        request = self._request
        if request.transactional_id is None:
            yield errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return
        name = request.transactional_id.decode(errors="replace")
        if code := x.rights.refusal(WRITE_TRANSACTION, name):
            yield code
            return
        found: set[tuple[int, int]] = set()
        memory = host.memory
        for number, (_, _, at, length) in enumerate(request.batches, 1):
            if (
                length >= HEADER_SIZE
                and memory[at + FLAGS_AT] & TRANSACTIONAL_BIT
                and memory[at + MAGIC_AT] == MAGIC
            ):
                (producer_id,) = INT64.unpack_from(memory, at + PRODUCER_ID_AT)
                (epoch,) = INT16.unpack_from(memory, at + PRODUCER_EPOCH_AT)
                found.add((producer_id, epoch))
            if number % MANY == 0:
                yield -1
        if len(found) > 1:
            yield errors.INVALID_PRODUCER_ID_MAPPING
            return
        self._producer = TransactionalProducer(name, *found.pop())
        yield errors.NONE

    def begin_batches(self, host: Host, x: Exchange) -> None:
        """Append, or stand in line."""
        line = host.line(x)
        line.under_way.append(x)
        self.wants = dict.fromkeys(self.routes, 0)
        if line.asking is None:
            self._append(host, x)
        else:
            host.hold_pending(x, _HELD)

    def _append(self, host: Host, x: Exchange) -> None:
        """Ask for what is wanted: for MANY batches now, for the next ones when they are answered.
        Requests behind one with more wait for its answer, so that none overtakes it."""
        if len(self.wants) <= MANY:
            self._ask_for(host, x, self.wants)
            self.wants.clear()
            return
        self._unsent.update(self.wants)
        self.wants.clear()
        self._append_part(host, x)

    def _append_part(self, host: Host, x: Exchange) -> None:
        unsent = self._unsent
        self._ask_for(host, x, {index: unsent.pop(index) for index in list(unsent)[:MANY]})

    def _ask_for(self, host: Host, x: Exchange, guards: dict[int, int]) -> None:
        """guards: by the index of a batch."""
        request = self._request
        for index, guard in guards.items():
            _, _, position, length = request.batches[index]
            route = self.routes[index]
            host.ask_home(
                x, index, route, APPEND, self._flags, position, guard, length, request.acks
            )

    def unverified(self, x: Exchange, index: int, guard: int) -> None:
        """The home does not know the transaction as open."""
        if x.answer is None:
            self.wants[index] = guard

    def take_completion(
        self, host: Host, x: Exchange, index: int, message: Message | None, payload: bytes
    ) -> dict[int, tuple[int, str | None]]:
        """A completion that is no batch's; index of batch → error code and text of those that the
        transaction may not write, now that it is known."""
        question, line = self._question, host.line(x)
        assert question is not None and line.asking is x
        if index == _QUESTION and not question.take_completion(host, x, index, message, payload):
            return {}
        if not _quiet(line):
            host.hold_pending(x, _HELD)
            return {}
        self._question = None
        refused = {}
        for at in list(self.wants):
            route = self.routes[at]
            code = question.codes[route.topic, route.partition]
            if code:
                refused[at] = _told(code)
                del self.wants[at]
        self._append(host, x)
        line.asking = None
        _send_on(host, line, x)
        return refused

    def continue_batches(self, host: Host, x: Exchange) -> None:
        """Something has come: verify what must be when nothing else will, or leave the line."""
        if self._unsent and not x.pending:
            self._append_part(host, x)
            return
        line = host.line(x)
        if line.asking is not None and line.asking is not x:
            _resume(host, line, line.asking)
        if x.pending:
            return
        if not self.wants:
            _leave(host, line, x)
        elif line.under_way[0] is x and line.asking is None:
            self._ask(host, x, line)
        else:
            host.hold_pending(x, _HELD)

    def give_up(self, host: Host, x: Exchange) -> None:
        """Drops the request; batches under way may still be appended."""
        self.wants.clear()
        self._unsent.clear()
        x.pending.pop(_HELD, None)
        self.continue_batches(host, x)

    def _ask(self, host: Host, x: Exchange, line: Line) -> None:
        assert self._producer is not None
        line.asking = x
        adds = self._version >= FIRST_ADDING
        routes = (self.routes[index] for index in self.wants)
        self._question = VerificationRequest(
            self._producer,
            [(route.topic, route.partition) for route in routes],
            adds=adds,
            abortable=self._version >= FIRST_ABORTABLE,
            patient=adds,
        )
        self._question.ask_coordinator(host, x, _QUESTION)

    def sent_on(self, host: Host, x: Exchange) -> None:
        """Those before it are on their way."""
        if self.wants:
            x.pending.pop(_HELD, None)
            self.wants = dict.fromkeys(self.wants, 0)
            self._append(host, x)

    def comes_first(self, host: Host, x: Exchange, line: Line) -> None:
        """It is the oldest now."""
        if x.pending.keys() == {_HELD}:
            del x.pending[_HELD]
            self._ask(host, x, line)


def _told(code: int) -> tuple[int, str | None]:
    """The client's error code and text for the coordinator's code, in Kafka's words."""
    if code in RETRIED:
        why = "Unable to verify the partition has been added to the transaction."
        text = f"{why} Underlying error: {ErrorCode(code).name.upper()}"
        return errors.NOT_ENOUGH_REPLICAS, text
    if code == errors.INVALID_TXN_STATE:
        return code, "Partition was not added to the transaction"
    return code, None


def _leave(host: Host, line: Line, x: Exchange) -> None:
    """All of it is answered."""
    line.under_way.remove(x)
    if line.asking is x:
        line.asking = None
        _send_on(host, line, x)
    if line.under_way and line.asking is None:
        first = line.under_way[0]
        step: ProduceSteps = first.state[2]
        step.comes_first(host, first, line)


def _quiet(line: Line) -> bool:
    """True if no batch of the other requests is under way: one may come back."""
    return all(index >= OWN for x in line.under_way if x is not line.asking for index in x.pending)


def _resume(host: Host, line: Line, asking: Exchange) -> None:
    """It may have waited for what has just come."""
    if _HELD in asking.pending and _quiet(line):
        del asking.pending[_HELD]
        host.later(asking, _RESUMED, 0)


def _send_on(host: Host, line: Line, asked: Exchange) -> None:
    for x in line.under_way:
        if x is not asked:
            step: ProduceSteps = x.state[2]
            step.sent_on(host, x)
