"""Fetching from one leader node: which partitions, from where, in which session; and what an answer
means for each of them.

    at ─▶ ask ─▶ answered ─▶ outcome ─┬▶ TAKE: its records follow the log ─▶ at
                                      ├▶ PART: the logs part (KIP-595): truncate ─▶ at
                                      ├▶ BEGIN: nothing follows the log there any more ─▶ at
                                      ├▶ TIERED: what follows it is in a remote store alone ─▶ at
                                      └▶ REFUSED: asked again after a pause that grows

One request at a time. In a session (KIP-227) it names what changed since the one before alone;
whatever goes wrong with that, the next one opens a session anew. Invariant: an answer counts for a
partition only when it still is where it was when that was asked, so nothing late is taken; who is
held is not in the session, or the leader would send the same again. No clock, no log: positions and
times come in, in ms.
"""

from typing import Final, NamedTuple

from appliance.base import errors

Key = tuple[bytes, int]
"""Topic id, partition."""

TAKE: Final = 1
PART: Final = 2
BEGIN: Final = 3
REFUSED: Final = 4
TIERED: Final = 5

NEVER: Final = 1 << 62
SOON_MS: Final = 5
"""When somebody who is held is looked at again."""
_FIRST_PAUSE_MS: Final = 20
_LAST_EPOCH: Final = 0x7FFFFFFF
_NO_SESSION: Final = 0
_OUTSIDE: Final = {
    errors.OFFSET_OUT_OF_RANGE: BEGIN,
    errors.OFFSET_MOVED_TO_TIERED_STORAGE: TIERED,
}
_SESSION_ERRORS: Final = (errors.FETCH_SESSION_ID_NOT_FOUND, errors.INVALID_FETCH_SESSION_EPOCH)


class Position(NamedTuple):
    """Where a follower's log is. leader_epoch: the one in which its leader is asked. offset: log
    end. last_epoch: the newest in the log, -1: none."""

    leader_epoch: int
    offset: int
    last_epoch: int
    log_start: int


_AGAIN: Final = Position(-1, -1, -1, -1)
"""The leader has it in its session, and it is to be named again."""


class FollowerFetch(NamedTuple):
    """A fetch. partitions: what the leader does not know yet. wait_ms: for how long it may wait for
    records at most, since somebody here will want to be asked for then."""

    session_id: int
    session_epoch: int
    partitions: list[tuple[Key, Position]]
    forgotten: list[Key]
    wait_ms: int


class FetchResult(NamedTuple):
    """The part of a Fetch response for one partition. diverging: the largest epoch that it has up
    to the one it was told, and where that ends there; None: the logs agree up to the offset."""

    key: Key
    error: int
    diverging: tuple[int, int] | None = None


def parts_at(diverging: tuple[int, int], mine: tuple[int, int], log_end: int) -> int:
    """To which offset a follower truncates whose leader answered with a diverging epoch.

    mine: the largest epoch up to the leader's that the follower has, and where it ends here
    (`LeaderEpochs.end_of`). When that is a smaller one, the follower has nothing of the leader's
    epoch: its own ends first, and the next answer says the rest (KIP-279). Never behind `log_end`.
    """
    epoch, end = diverging
    known, my_end = mine
    if known < 0 or my_end < 0:
        return min(end, log_end)
    if known != epoch:
        return min(my_end, log_end)
    return min(end, my_end, log_end)


class Fetcher:
    """The replica fetcher of one I/O process for one leader node. longest_pause_ms:
    replica.fetch.backoff.ms."""

    __slots__ = (
        "_asked",
        "_changed",
        "_epoch",
        "_failures",
        "_goes_on",
        "_held",
        "_not_before_ms",
        "_pauses",
        "_positions",
        "_session_id",
        "_told",
        "longest_pause_ms",
    )

    def __init__(self, longest_pause_ms: int) -> None:
        self.longest_pause_ms = longest_pause_ms
        self._positions: dict[Key, Position] = {}  # those that may be asked for
        self._held: dict[Key, None] = {}  # the others
        self._pauses: dict[Key, int] = {}  # until when, of those that were refused
        self._failures: dict[Key, int] = {}  # in a row
        self._told: dict[Key, Position] = {}  # what the leader's session knows
        self._changed: dict[Key, None] = {}  # what it may have to be told
        self._session_id = _NO_SESSION
        self._epoch = 0  # 0: a session is to be opened
        self._not_before_ms = 0
        self._asked = False
        self._goes_on = False  # whether the session does, behind this answer

    def __len__(self) -> int:
        return len(self._positions) + len(self._held)

    @property
    def asked(self) -> bool:
        """True if a response is outstanding."""
        return self._asked

    # Partitions -----------------------------------------------------------------------------------

    def at(self, key: Key, position: Position) -> None:
        """The partition is to be fetched, from there."""
        self._held.pop(key, None)
        self._failures.pop(key, None)
        if self._positions.get(key) != position:
            self._positions[key] = position
            self._changed[key] = None

    def hold_partition(self, key: Key) -> None:
        """The partition is not to be fetched until `at` says where it is then."""
        self._positions.pop(key, None)
        self._held[key] = None
        self._changed[key] = None

    def drop(self, key: Key) -> None:
        """This leader is not the partition's any more."""
        self._positions.pop(key, None)
        for known in (self._held, self._pauses, self._failures):
            known.pop(key, None)
        self._changed[key] = None

    def refused(self, key: Key, now_ms: int) -> None:
        """Backs off a partition whose fetched data could not be appended."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(_FIRST_PAUSE_MS << min(failures - 1, 16), self.longest_pause_ms)
        self._pauses[key] = now_ms + pause
        self._changed[key] = None

    def pause(self, key: Key, until_ms: int) -> None:
        """The partition is not to be asked for before then, though nothing is wrong with it."""
        self._pauses[key] = max(until_ms, self._pauses.get(key, 0))
        self._changed[key] = None

    # The conversation -----------------------------------------------------------------------------

    def due_ms(self) -> int:
        """When `ask` may have something that it has not now; NEVER: when something happens."""
        if self._asked:
            return NEVER
        if self._changed and self._not_before_ms:
            return self._not_before_ms
        return max(min(self._pauses.values(), default=NEVER), self._not_before_ms)

    @property
    def newcomers(self) -> bool:
        """True if the outstanding request lacks a partition, or has an outdated leader epoch or
        position of it."""
        return self._asked and any(
            key in self._positions
            and key not in self._pauses
            and self._told.get(key) != self._positions[key]
            for key in self._changed
        )

    def next_fetch(self, now_ms: int) -> FollowerFetch | None:
        """Returns the next Fetch request, None for nothing to fetch. The response, or `lost`, comes
        before the next call."""
        assert not self._asked, "one request at a time"
        if now_ms < self._not_before_ms:
            return None
        self._not_before_ms = 0
        for key in [key for key, until in self._pauses.items() if until <= now_ms]:
            del self._pauses[key]
            self._changed[key] = None
        partitions, forgotten = [], []
        for key in self._changed:
            position = None if key in self._pauses else self._positions.get(key)
            before = self._told.get(key)
            if position is None:
                if before is not None:
                    del self._told[key]
                    forgotten.append(key)
            elif position != before:
                self._told[key] = position
                partitions.append((key, position))
        self._changed.clear()
        if not self._told:
            self._begin_session()
            return None
        self._asked = True
        wait_ms = min(self._pauses.values(), default=NEVER) - now_ms
        if self._held:
            wait_ms = min(wait_ms, SOON_MS)
        return FollowerFetch(self._session_id, self._epoch, partitions, forgotten, wait_ms)

    def answered(self, error: int, session_id: int, now_ms: int) -> None:
        """An answer came, or an error for all of it. Each partition in it has its `outcome`, then
        comes `taken`."""
        assert self._asked
        if error == errors.FETCH_SESSION_ID_NOT_FOUND or not session_id:
            self._session_id, self._goes_on = _NO_SESSION, False
        elif error or (self._epoch and session_id != self._session_id):
            self._goes_on = False
        else:
            self._session_id, self._goes_on = session_id, True
        if error not in (errors.NONE, *_SESSION_ERRORS):
            self._not_before_ms = now_ms + self.longest_pause_ms

    def outcome(self, told: FetchResult, now_ms: int) -> int:
        """Returns the action for a partition of the response: TAKE (`at` says how far that came),
        PART, BEGIN or TIERED (it is held until `at`), REFUSED; 0 when it is not where it was when
        this was asked for."""
        key = told.key
        position = self._told.get(key)
        if position is None or self._positions.get(key) != position:
            return 0
        if not told.error and told.diverging is None:
            return TAKE
        self._told[key] = _AGAIN
        what = PART if not told.error else _OUTSIDE.get(told.error, REFUSED)
        if what == REFUSED:
            self.refused(key, now_ms)
        else:
            self.hold_partition(key)
        return what

    def taken(self) -> None:
        """All of the answer was: the next one can be asked for."""
        self._asked = False
        if self._goes_on:
            self._epoch = self._epoch % _LAST_EPOCH + 1
        else:
            self._begin_session()

    def renew(self) -> None:
        """The next question opens a session: what the leader was told of this node holds no more
        (KIP-903)."""
        assert not self._asked
        self._begin_session()

    def lost(self, now_ms: int) -> None:
        """There will be no answer, and no session: the connection is gone."""
        self._asked = False
        self._not_before_ms = now_ms + _FIRST_PAUSE_MS
        self._begin_session()

    def _begin_session(self) -> None:
        self._epoch = 0
        self._told.clear()
        self._changed.update(dict.fromkeys(self._positions))
