"""Fetch sessions (KIP-227): a client names its partitions once and afterwards only what changed.

A value machine: ids come from the caller's random source. A session belongs to one network process;
after a reconnect to another one the client is told FETCH_SESSION_ID_NOT_FOUND and opens a new
session by itself.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.base import errors
from appliance.wire.fetch import FetchPartition, FetchRequest

Key = tuple[bytes, int]  # topic (name, or id from version 13 on) and partition
FINAL_EPOCH = -1
INITIAL_EPOCH = 0


@dataclass(slots=True)
class Session:
    """`partitions` in the order in which they are served; `sent` is what the client knows of
    each."""

    session_id: int
    by_id: bool
    epoch: int = 1  # the epoch the next request must carry
    partitions: "OrderedDict[Key, FetchPartition]" = field(default_factory=OrderedDict)
    sent: dict[Key, tuple[int, int]] = field(default_factory=dict)  # (high watermark, log start)
    names: dict[bytes, str] = field(default_factory=dict)  # of topic ids that were there once


@dataclass(slots=True, frozen=True)
class Resolved:
    """What to serve. error: a code for the whole response, with nothing to serve."""

    error: int
    session: Session | None
    incremental: bool
    partitions: list[FetchPartition]


class FetchSessions:
    """At most `slots` sessions; the one unused for longest makes room (its client starts a new
    one)."""

    def __init__(self, slots: int, random_id: Callable[[], int]) -> None:
        self._slots = slots
        self._random_id = random_id
        self._sessions: OrderedDict[int, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, request: FetchRequest, by_id: bool) -> Resolved:
        """Decide what a Fetch request asks for. by_id: the topics in it are ids (version ≥ 13)."""
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == FINAL_EPOCH or self._slots == 0:
                asked = request.partitions
                if len(asked) > 1:
                    asked = _once(asked)
                return Resolved(errors.NONE, None, False, asked)
            return self._open(request, by_id)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Resolved(errors.FETCH_SESSION_ID_NOT_FOUND, None, False, [])
        if session.epoch != request.session_epoch:
            return Resolved(errors.INVALID_FETCH_SESSION_EPOCH, None, False, [])
        if session.by_id != by_id:
            return Resolved(errors.FETCH_SESSION_TOPIC_ID_ERROR, None, False, [])
        self._sessions.move_to_end(session.session_id)
        session.epoch = session.epoch % 0x7FFFFFFF + 1
        for partition in request.partitions:
            session.partitions[partition.topic, partition.partition] = partition
        for key in request.forgotten:
            session.partitions.pop(key, None)
            session.sent.pop(key, None)
        return Resolved(errors.NONE, session, True, list(session.partitions.values()))

    def _open(self, request: FetchRequest, by_id: bool) -> Resolved:
        if len(self._sessions) >= self._slots:
            self._sessions.popitem(last=False)
        number = self._random_id()
        while number == 0 or number in self._sessions:
            number = self._random_id()
        session = Session(number, by_id)
        for partition in request.partitions:
            session.partitions[partition.topic, partition.partition] = partition
        self._sessions[number] = session
        return Resolved(errors.NONE, session, False, list(session.partitions.values()))


def _once(partitions: list[FetchPartition]) -> list[FetchPartition]:
    """Each partition once, with what was said of it last."""
    return list({(one.topic, one.partition): one for one in partitions}.values())


def must_tell(session: Session, key: Key, error: int, length: int, marks: tuple[int, int]) -> bool:
    """Whether an incremental response has to mention this partition; remembers what the client then
    knows.

    length: bytes of records in the answer. marks: (high watermark, log start offset).
    """
    if error:
        session.sent.pop(key, None)
        return True
    news = length > 0 or session.sent.get(key) != marks
    session.sent[key] = marks
    if length > 0 and key in session.partitions:
        session.partitions.move_to_end(key)  # served now, so others go first next time
    return news
