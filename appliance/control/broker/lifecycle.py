"""The life of this node as a broker of a cluster (KIP-631): what it says to the active controller,
and when.

    NEW ─ registered ─▶ FENCED ─ unfenced ─▶ RUNNING ─ leave ─▶ LEAVING ─ it may go ─▶ GONE
     ▲                    │ ▲── fenced ────────┘                   │
     └─── its epoch is not known any more ─────────────────────────┘

It has no socket and no clock: times come in, in ms of a clock that never goes back. One request at
a time; each is answered by one of `registered`, `beaten`, `refused` or `failed`.

Invariant: a broker asks to be unfenced only while it knows its own registration, and every I/O
process does (`ready`), so nobody is led by who does not know that it leads.
"""

from enum import Enum
from typing import Final, NamedTuple

from appliance.base import errors
from appliance.shell.patience import LEAVE_S

NEVER: Final = 1 << 62
_FIRST_PAUSE_MS: Final = 20
_LONGEST_PAUSE_MS: Final = 1_000
_LEAVING_MS: Final = 20
"""So often who leaves asks whether it may go."""
_LEAVE_MS: Final = int(LEAVE_S * 1000)
"""After that it goes without being told."""

UNKNOWN: Final = -1
_FORGOTTEN: Final = (errors.STALE_BROKER_EPOCH, errors.BROKER_ID_NOT_REGISTERED)


class State(Enum):
    NEW = "new"
    FENCED = "fenced"
    RUNNING = "running"
    LEAVING = "leaving"
    GONE = "gone"


_MOVES: Final = {
    State.NEW: (State.FENCED, State.GONE),
    State.FENCED: (State.NEW, State.RUNNING, State.LEAVING, State.GONE),
    State.RUNNING: (State.NEW, State.FENCED, State.LEAVING, State.GONE),
    State.LEAVING: (State.GONE,),
    State.GONE: (),
}


class Register(NamedTuple):
    """BrokerRegistration is to be asked for."""


class Beat(NamedTuple):
    """BrokerHeartbeat. offset: of the last metadata record that this node knows."""

    epoch: int
    offset: int
    want_fence: bool
    want_shut_down: bool


class Lifecycle:
    """epoch: the broker's, UNKNOWN before it is registered. interval_ms: between heartbeats.
    was_registered: the controller knows of this start, or did."""

    __slots__ = ("_asking", "_due_ms", "_duplicate_ms", "_interval_ms", "_leave_ms",
                 "_said", "_tries", "epoch", "state", "was_registered")  # fmt: skip

    def __init__(self, interval_ms: int) -> None:
        assert interval_ms > 0
        self._interval_ms = interval_ms
        self._asking = False
        self._due_ms = 0
        self._tries = 0
        self._said = (True, False)  # want fence, want shut down: of the last heartbeat
        self._leave_ms = NEVER
        self._duplicate_ms = NEVER  # since when it is refused as another living one's duplicate
        self.epoch = UNKNOWN
        self.was_registered = False
        self.state = State.NEW

    @property
    def leaving(self) -> bool:
        """It was asked to leave."""
        return self._leave_ms != NEVER

    def due_ms(self) -> int:
        """When to look again at the latest; what changes (`ready`, `found`, `leave`) counts at
        once."""
        if self.state is State.GONE:
            return NEVER
        return self._leave_ms if self._asking else min(self._due_ms, self._leave_ms)

    def next_request(self, now_ms: int, offset: int, ready: bool) -> Register | Beat | None:
        """The next request to the active controller, or None. offset: of the last metadata record
        that this node knows to be committed. ready: every I/O process serves, and has replayed as
        much.
        """
        if self._asking or self.state is State.GONE:
            return None
        if self.state is State.NEW:
            if now_ms < self._due_ms:
                return None
            self._asking = True
            return Register()
        knows = offset >= self.epoch and ready
        want_fence = self.state is State.FENCED and not knows
        wants = want_fence, self.leaving
        if now_ms < self._due_ms and (wants == self._said or self._tries):
            return None
        self._asking, self._said = True, wants
        return Beat(self.epoch, offset, *wants)

    def duplicate_ms(self, now_ms: int) -> int:
        """Returns for how long the controller has refused this node because another living node
        has its id; 0 when it does not. A node that was killed is refused like that by its own
        former life, until that one's session ends."""
        return max(now_ms - self._duplicate_ms, 0) if self._duplicate_ms != NEVER else 0

    def resume(self, epoch: int) -> None:
        """This start of this node is registered already: the control process before was killed."""
        assert self.state is State.NEW and not self._asking
        self._fence(epoch)

    def found(self, now_ms: int) -> None:
        """There is an active controller, another one or the same again: it is asked at once."""
        self._tries = 0
        self._due_ms = now_ms

    def hurry(self, now_ms: int) -> None:
        """Somebody waits for what the next heartbeat says: how far this node has read."""
        if not self._tries:
            self._due_ms = min(self._due_ms, now_ms)

    def leave(self, now_ms: int) -> None:
        """The node is to end. Who was never registered may go at once."""
        if self.leaving:
            return
        self._leave_ms = now_ms + _LEAVE_MS
        if self.state is State.NEW:
            self._move(State.GONE)
        elif self.state is not State.GONE:
            self._move(State.LEAVING)

    def tick(self, now_ms: int) -> None:
        """Time has passed: who waits too long to be told goes."""
        if now_ms >= self._leave_ms and self.state is not State.GONE:
            self._move(State.GONE)

    # Answers --------------------------------------------------------------------------------------

    def registered(self, epoch: int, now_ms: int) -> None:
        """The controller has registered this start of this node."""
        assert epoch >= 0
        self._answered()
        self._tries = 0
        self._duplicate_ms = NEVER
        if self.state is State.NEW:
            self._fence(epoch)
            self._due_ms = now_ms + self._interval_ms

    def beaten(self, fenced: bool, may_go: bool, now_ms: int) -> None:
        """The answer to a heartbeat."""
        self._answered()
        self._tries = 0
        if self.state is State.LEAVING:
            self._due_ms = now_ms + _LEAVING_MS
            if may_go:
                self._move(State.GONE)
            return
        self._due_ms = now_ms + self._interval_ms
        if self.state is State.FENCED and not fenced:
            self._move(State.RUNNING)
        elif self.state is State.RUNNING and fenced:
            self._fence(self.epoch)

    def refused(self, code: int, now_ms: int) -> None:
        """The controller says no. Who is not known there registers again."""
        self._answered()
        if code != errors.DUPLICATE_BROKER_REGISTRATION:
            self._duplicate_ms = NEVER
        elif self._duplicate_ms == NEVER:
            self._duplicate_ms = now_ms
        if code in _FORGOTTEN and self.state in (State.FENCED, State.RUNNING):
            self.epoch = UNKNOWN
            self._due_ms = now_ms
            self._move(State.NEW)
        elif code in _FORGOTTEN and self.state is State.LEAVING:
            self._move(State.GONE)
        else:
            self._pause(now_ms)

    def failed(self, now_ms: int) -> None:
        """Handles a request without an answer."""
        self._answered()
        self._pause(now_ms)

    def _answered(self) -> None:
        assert self._asking, "an answer to nothing"
        self._asking = False

    def _fence(self, epoch: int) -> None:
        """As soon as it may, it asks to be unfenced."""
        self.epoch = epoch
        self.was_registered = True
        self._said = (True, False)
        self._move(State.FENCED)

    def _pause(self, now_ms: int) -> None:
        self._due_ms = now_ms + min(_FIRST_PAUSE_MS << min(self._tries, 10), _LONGEST_PAUSE_MS)
        self._tries += 1

    def _move(self, state: State) -> None:
        assert state in _MOVES[self.state], f"{self.state.name} → {state.name}"
        self.state = state
