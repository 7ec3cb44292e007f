"""One turn of a shard: what its decisions may look at, where their results go, who is to be woken.

Everything that decides takes a Turn, reads `state` and `now_ms`, writes records and answers. A
record is applied the moment it is written, so the next line of the decision sees its effect.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from appliance.base.compiled import mypyc_attr
from appliance.coordinators.runtime.call import NEVER, Call, Note, Outcome, Producer
from appliance.coordinators.runtime.records import encode_key, encode_value

S = TypeVar("S")
"""What a kind of coordinator keeps of one partition."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Timed(ABC):
    """Something that has deadlines. scheduled_ms: its next wake-up, NEVER when it has none."""

    def __init__(self) -> None:
        self.scheduled_ms = NEVER

    @abstractmethod
    def wake_up(self, turn: "Turn[Any]") -> None:
        """Do what is due at turn.now_ms, and say when to be woken next. It may be no longer there:
        then there is nothing to do."""


class Timers:
    """The wake-ups of one shard, earliest first; a later one that an earlier replaced is void."""

    def __init__(self) -> None:
        self._wakes: list[tuple[int, int, Timed]] = []
        self._number = 0

    @property
    def next_ms(self) -> int:
        """When the first wake-up is due, NEVER when there is none. It may be a void one."""
        return self._wakes[0][0] if self._wakes else NEVER

    def wake_at(self, who: Timed, deadline_ms: int) -> None:
        """See to it that it is woken by then."""
        if deadline_ms < who.scheduled_ms:
            who.scheduled_ms = deadline_ms
            self._number += 1
            heappush(self._wakes, (deadline_ms, self._number, who))

    def due(self, now_ms: int) -> Iterator[Timed]:
        """Yields the objects whose deadline has passed; each may schedule its next wake-up before
        the next one comes.
        """
        while self._wakes and self._wakes[0][0] <= now_ms:
            deadline_ms, _, who = heappop(self._wakes)
            if who.scheduled_ms == deadline_ms:
                who.scheduled_ms = NEVER
                yield who

    def clear(self) -> None:
        """Cancels all wake-ups."""
        self._wakes.clear()


class Turn(Outcome, Generic[S]):
    """The outcome so far, and what it comes from. state: of the shard. now_ms: level time
    (`base.level`), read once: for whatever is waited for in this life. wall_ms: the wall clock at
    that moment: for what is stored, and for the age of what was.

    apply: changes the state as a record says. hold: keeps a record of a producer's transaction.
    """

    __slots__ = ("_apply", "_hold", "_timers", "now_ms", "state", "wall_ms")

    def __init__(
        self,
        state: S,
        now_ms: int,
        ahead_ms: int,
        apply: Callable[[Any, Any], None],
        hold: Callable[[int, Any, Any], None],
        timers: Timers,
    ) -> None:
        self.records = []
        self.responses = []
        self.producer = None
        self.unverified = False
        self.notes = []
        self.state = state
        self.now_ms = now_ms
        self.wall_ms = now_ms + ahead_ms
        self._apply = apply
        self._hold = hold
        self._timers = timers

    def write_record(self, key: Any, value: Any, version: int = 0) -> None:
        """Append a record in this version of its value, and apply it. value None: a tombstone."""
        encoded = None if value is None else encode_value(value, version)
        self.write_encoded(key, value, encode_key(key), encoded)

    def write_encoded(
        self, key: Any, value: Any, encoded_key: bytes, encoded_value: bytes | None
    ) -> None:
        """`write` for a record whose bytes the caller has made by hand."""
        self.records.append((encoded_key, encoded_value))
        self._apply(key, value)

    def write_pending(
        self,
        producer: Producer,
        key: Any,
        value: Any,
        encoded_key: bytes,
        encoded_value: bytes | None,
    ) -> None:
        """`write_encoded` of a record that belongs to a producer's transaction."""
        assert self.producer == producer or not self.records, "a turn writes for one transaction"
        self.producer = producer
        self.records.append((encoded_key, encoded_value))
        self._hold(producer[0], key, value)

    def answer(self, call: Call, values: Mapping[str, Any]) -> None:
        """Answer a request, now or one that was parked."""
        self.responses.append((call.token, values))

    def add_note(
        self, event: str, about: str, fields: Mapping[str, object], *, is_loss: bool
    ) -> None:
        """Say in the log what was done; a Note."""
        self.notes.append(Note(event, about, is_loss, fields))

    def wake_at(self, who: Timed, deadline_ms: int) -> None:
        """See to it that its `wake_up` is called by then."""
        self._timers.wake_at(who, deadline_ms)
