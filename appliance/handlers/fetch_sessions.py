"""Fetch sessions (KIP-227): a client names its partitions once and afterwards only what changed.

A value machine: ids come from the caller's random source. A session belongs to one network process;
after a reconnect to another one the client is told FETCH_SESSION_ID_NOT_FOUND and opens a new
session by itself. It belongs to a principal, too: to everybody else it is not there, so who guesses
an id neither learns what others read nor ends their session.

A session may have a thousand partitions with news in one of them, so each remembers at which
version of its row nothing was left to tell: while the row stands there, one word is all that is
looked at.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from appliance.base import errors
from appliance.base.caller import Principal
from appliance.handlers import gather
from appliance.handlers.exchange import Host, Route
from appliance.ring.partition_table import LEADER_EPOCH, VERSION
from appliance.wire.fetch import FetchPartition, FetchRequest

Key = tuple[bytes, int]  # topic (name, or id from version 13 on) and partition
FINAL_EPOCH = -1
INITIAL_EPOCH = 0

EVICTION_NS: Final = 120_000_000_000
"""KIP-227: a session that has not been used for so long makes room for any other, and one that is
older only for a larger one."""
_REFUSAL_NS: Final = 100_000_000
"""For so long nobody looks again whether a session could be evicted for one that is no larger."""

UNSETTLED: Final = -1
"""No row has this version."""


@dataclass(slots=True)
class SessionPartition:
    """One partition of a fetch. row: where its row begins in the partition table, with a route.

    settled: the version of that row at which it had nothing to tell, or UNSETTLED. told: what the
    client of a session knows, (high watermark, log start); None: nothing. heard: the partition's
    home knows that this replica fetches from there.
    """

    partition: FetchPartition
    route: Route | None = None
    row: int = 0
    settled: int = UNSETTLED
    told: tuple[int, int] | None = None
    heard: bool = False


@dataclass(slots=True)
class Session:
    """owner: who opened it. `partitions` in the order in which they are served. routing,
    read_committed, replica: for which their routes and what is settled hold. created_ns, used_ns:
    when its client opened it and asked last."""

    session_id: int
    owner: Principal
    by_id: bool
    routing: int
    read_committed: bool
    replica: int
    created_ns: int
    used_ns: int
    epoch: int = 1  # the epoch the next request must carry
    partitions: dict[Key, SessionPartition] = field(default_factory=dict)
    names: dict[bytes, str] = field(default_factory=dict)  # of topic ids that were there once

    def ask_partition(self, partition: FetchPartition) -> None:
        """The client names it: anew, or because its offset moved. An answer that is under way goes
        on with what it was asked."""
        key = (partition.topic, partition.partition)
        before = self.partitions.get(key)
        if before is None:
            self.partitions[key] = SessionPartition(partition)
        else:
            route, row, told = before.route, before.row, before.told
            self.partitions[key] = SessionPartition(partition, route, row, UNSETTLED, told)

    def renew(self, routing: int, request: FetchRequest) -> None:
        """Partitions may live elsewhere, or end elsewhere: look at all of them again."""
        self.routing, self.read_committed = routing, request.read_committed
        self.replica = request.replica_id
        for asked in self.partitions.values():
            asked.route = None
            asked.settled = UNSETTLED
            asked.heard = False


Resolved = tuple[int, Session | None, bool, list[SessionPartition]]
"""What to serve: (a code for the whole response, with nothing to serve; the session, if there is
one; whether only news are told; the partitions)."""


class FetchSessions:
    """At most `slots` sessions. Where all are taken, KIP-227 decides which one makes room (its
    client opens another one); where none does, the newcomer is served without a session, and
    `on_full` is called. Those of followers count as larger than all others."""

    def __init__(
        self,
        slots: int,
        random_id: Callable[[], int],
        on_full: Callable[[], object] | None = None,
    ) -> None:
        self._slots = slots
        self._random_id = random_id
        self._on_full = on_full
        self._sessions: OrderedDict[int, Session] = OrderedDict()  # the one used last at the end
        self._refused = (False, 0)  # the weight that could evict nothing
        self._refused_until_ns = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, host: Host, request: FetchRequest, by_id: bool, owner: Principal) -> Resolved:
        """Decide what a Fetch request asks for. by_id: the topics in it are ids (version ≥ 13).
        owner: who asks."""
        session = self._sessions.get(request.session_id)
        if session is not None and session.owner != owner:
            session = None
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            if session is not None:
                del self._sessions[session.session_id]
            if request.session_epoch == FINAL_EPOCH or self._slots == 0:
                return _without_session(request)
            return self._open(host, request, by_id, owner)
        if session is None:
            return errors.FETCH_SESSION_ID_NOT_FOUND, None, False, []
        if session.epoch != request.session_epoch:
            return errors.INVALID_FETCH_SESSION_EPOCH, None, False, []
        if session.by_id != by_id:
            return errors.FETCH_SESSION_TOPIC_ID_ERROR, None, False, []
        self._sessions.move_to_end(session.session_id)
        session.used_ns = host.now_ns
        session.epoch = session.epoch % 0x7FFFFFFF + 1
        if (
            session.routing != host.routing
            or session.read_committed != request.read_committed
            or session.replica != request.replica_id
        ):
            session.renew(host.routing, request)
        for partition in request.partitions:
            session.ask_partition(partition)
        for key in request.forgotten:
            session.partitions.pop(key, None)
        return errors.NONE, session, True, list(session.partitions.values())

    def _open(self, host: Host, request: FetchRequest, by_id: bool, owner: Principal) -> Resolved:
        if len(self._sessions) >= self._slots and not self._evict(host.now_ns, request):
            if self._on_full is not None:
                self._on_full()
            return _without_session(request)
        number = self._random_id()
        while number == 0 or number in self._sessions:
            number = self._random_id()
        session = Session(
            number,
            owner,
            by_id,
            host.routing,
            request.read_committed,
            request.replica_id,
            host.now_ns,
            host.now_ns,
        )
        session.partitions = {
            (one.topic, one.partition): SessionPartition(one) for one in request.partitions
        }
        self._sessions[number] = session
        return errors.NONE, session, False, list(session.partitions.values())

    def _evict(self, now_ns: int, request: FetchRequest) -> bool:
        """Make room for the session of a request, if KIP-227 allows that.

        The session that is stale goes first. Else the smallest goes, if the new one is larger: of
        those of clients for a follower, of those that are old enough for anybody.
        """
        oldest = next(iter(self._sessions.values()))
        weight = (request.replica_id >= 0, len(request.partitions))
        if now_ns - oldest.used_ns <= EVICTION_NS:
            if now_ns < self._refused_until_ns and weight <= self._refused:
                return False
            oldest = min(
                (one for one in self._sessions.values() if _may_go(one, now_ns, weight[0])),
                key=_weight,
                default=oldest,
            )
            if not _may_go(oldest, now_ns, weight[0]) or weight <= _weight(oldest):
                self._refused, self._refused_until_ns = weight, now_ns + _REFUSAL_NS
                return False
        del self._sessions[oldest.session_id]
        return True


def _weight(session: Session) -> tuple[bool, int]:
    return session.replica >= 0, len(session.partitions)


def _may_go(session: Session, now_ns: int, for_follower: bool) -> bool:
    """True if a larger session may take its place."""
    old = now_ns - session.created_ns > EVICTION_NS
    return old or (for_follower and session.replica < 0)


def _without_session(request: FetchRequest) -> Resolved:
    partitions = request.partitions
    if len(partitions) > 1:
        partitions = _once(partitions)
    return errors.NONE, None, False, list(map(SessionPartition, partitions))


def _once(partitions: list[FetchPartition]) -> list[FetchPartition]:
    """Each partition once, with what was said of it last."""
    return list({(one.topic, one.partition): one for one in partitions}.values())


def must_tell(
    session: Session, asked: SessionPartition, error: int, length: int, marks: tuple[int, int]
) -> bool:
    """True if an incremental response has to include this partition; remembers what the client then
    knows.

    length: bytes of records in the answer. marks: (high watermark, log start offset).
    """
    if error:
        asked.told = None
        return True
    news = length > 0 or asked.told != marks
    asked.told = marks
    if length > 0:
        partitions = session.partitions
        key = (asked.partition.topic, asked.partition.partition)
        if key in partitions:
            partitions[key] = partitions.pop(key)  # served now, so others go first next time
    return news


def settled(row: list[int], route: Route) -> int:
    """The version of a row that has nothing to tell; while its home leads in another epoch than
    we know of, it is asked."""
    version = row[VERSION]
    return UNSETTLED if version & 1 or row[LEADER_EPOCH] != route.leader_epoch else version


def absent(host: Host, session: Session | None, asked: FetchPartition, by_id: bool) -> int:
    """The code for a partition that is not here. A session knows the name that an id had: when
    the topic was made anew the id does not fit the name any more."""
    topic = asked.topic
    name = session.names.get(topic) if by_id and session is not None else None
    if name is None or topic in host.image.topics_by_id:
        return gather.absent(host, topic, asked.partition, by_id, asked.current_leader_epoch)
    if name in host.image.topics_by_name:
        return errors.INCONSISTENT_TOPIC_ID
    return errors.UNKNOWN_TOPIC_OR_PARTITION
