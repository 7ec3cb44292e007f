"""One leader node and what this I/O process fetches from it: a connection, a session, an answer
that is being taken. There may be two of them for a node: one for what is far behind
(`fetch_lanes.py`).

    settle ─▶ ask ─▶ (answer) ─▶ take, a piece in each turn ─▶ settle

Fetching from an offset says that everything below is held (docs/decisions/0002): so the next
question waits for the syncs of what came, and goes without those that take long. Invariant: one
question is under way at a time; nothing of an answer is kept behind it. Driven by `fetchers.py`.
"""

from collections.abc import Iterator
from functools import partial
from time import monotonic_ns
from typing import Any, Final

from appliance.base.errors import MalformedRequest, PeerError
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.replica_fetcher.divergence import DivergencePoint, is_unconfirmed
from appliance.ioproc.replica_fetcher.fetch_lanes import FetchLane, Went
from appliance.ioproc.replica_fetcher.fetcher_context import FetcherContext
from appliance.peers.conversation import Undecoded
from appliance.peers.link import Link
from appliance.replication.follower import (
    BEGIN,
    NEVER,
    PART,
    REFUSED,
    SOON_MS,
    TAKE,
    TIERED,
    Fetcher,
    FetchResult,
    FollowerFetch,
    Key,
    Position,
)
from appliance.wire import fetch_follower
from appliance.wire.fetch_follower import FollowerFetchLimits, FollowerPartitionAnswer

PATIENCE_MS: Final = 50
"""So long the others wait for the slowest sync before they are asked for without it."""
HURRY_MS: Final = 20
"""A question that has waited for so long at the leader is given up for partitions that came since:
who has just been elected waits for its followers."""
AFTER_BUG_MS: Final = 1000
"""A leader rests for so long when the handling of its answer raised an exception."""
AGAIN_MS: Final = 1000
"""Who is throttled is looked at after so long at the latest: the limit may be another."""
_HURRY_EACH: Final = 20
"""So many partitions of the session are another ms: a new session tells the leader all of them."""
_LIST_OFFSETS: Final = 2
_EARLIEST: Final = -2
_EARLIEST_LOCAL: Final = -4


class LeaderFetcher:
    """node: its id. partitions: that it leads, by key. moving: those of them that are to be fetched
    in the other manner; whoever drives this drops them here and adds them there."""

    def __init__(self, node: int, env: FetcherContext, manner: FetchLane) -> None:
        self.node = node
        self.partitions: dict[Key, Partition] = {}
        self.moving: dict[Key, Partition] = {}
        self._env = env
        self._manner = manner
        self._line: dict[Key, Partition] = {}  # who waits until there is room for it
        self._fetcher = Fetcher(env.pause_ms)
        self._link: Link | None = None
        self._unsettled: dict[Key, Partition] = {}  # whose position is to be told
        self._since_ms = 0  # since when there are some
        self._came: Any = None  # an answer, or why there is none
        self._asked_ms = 0
        self._waits = False  # whether the leader may wait long for records
        self._hurried = False
        self._answers: Iterator[FollowerPartitionAnswer] | None = (
            None  # of what came, not taken yet
        )
        self._answer: FollowerPartitionAnswer | None = None
        self._at = 0  # how many bytes of its records are taken
        self._begun = 0  # where the log ended before them
        self._begins: dict[Key, Partition] = {}  # where does the leader's log start?
        self._tiered: set[Key] = set()  # of those, where does its local log?
        self._asks_start = False
        self._replica = (-1, -1)  # who we said that we are

    # Partitions -----------------------------------------------------------------------------------

    def add(self, key: Key, partition: Partition) -> None:
        """It follows this node, and is fetched from nowhere else."""
        self.partitions[key] = partition
        self._begins.pop(key, None)
        self._tiered.discard(key)
        self._line[key] = partition
        self._fill()

    def _fill(self) -> None:
        """Some of those who wait come to be fetched."""
        line = self._line
        while line and len(self.partitions) - len(line) < self._manner.at_once:
            key = next(iter(line))
            self.settle_partition(key, line.pop(key))

    def settle_partition(self, key: Key, partition: Partition) -> None:
        """It is to be fetched from where its log ends, when all of that is held."""
        self._fetcher.hold_partition(key)
        self._unsettled[key] = partition

    def drop(self, key: Key) -> None:
        """It follows this node no more."""
        self._fetcher.drop(key)
        self._manner.forget_partition(key)
        for known in (self.partitions, self._unsettled, self._begins, self._line, self.moving):
            known.pop(key, None)
        self._tiered.discard(key)
        self._fill()

    def close(self) -> None:
        """Hang up."""
        if self._link is not None:
            self._link.close()

    # A turn ---------------------------------------------------------------------------------------

    def run_once(self, now_ns: int, wall_ms: int) -> int:
        """Go on. In how many ms at most to come again, NEVER when nothing is due. An exception
        costs the answer that is being taken: all is asked for anew, on another connection."""
        try:
            return self._turn(now_ns, wall_ms)
        except Exception as bug:
            self._env.report_bug("fetching from a leader", bug, node=self.node)
            self._ask_anew(now_ns // 1_000_000)
            return AFTER_BUG_MS

    def _ask_anew(self, now_ms: int) -> None:
        self._came = self._answers = self._answer = None
        self._asks_start = self._hurried = False
        self._begins.clear()
        self._tiered.clear()
        self._fetcher.lost(now_ms)
        self.close()
        self._link = None
        self._came = None  # told by the link that it is closed
        for key, partition in self.partitions.items():
            if key not in self._line:
                self.settle_partition(key, partition)
                self._fetcher.pause(key, now_ms + AFTER_BUG_MS)

    def _turn(self, now_ns: int, wall_ms: int) -> int:
        now_ms = now_ns // 1_000_000
        if self._came is not None:
            came, self._came = self._came, None
            self._heard(came, now_ms)
        takes = self._answers is not None
        if takes and not self._take(now_ns, wall_ms):
            return 0
        self._settle(now_ms, wall_ms)
        due = min(self._go_on(now_ns), self._hurry(now_ms))
        if self._link is not None:
            due = min(due, self._link.run_once())
        if takes or self._came is not None:
            return 0
        if self._unsettled:
            due = min(due, SOON_MS)
        return min(due, max(0, self._fetcher.due_ms() - now_ms))

    def _go_on(self, now_ns: int) -> int:
        """The next question, when it may go; else in how many ms."""
        now_ms = now_ns // 1_000_000
        if self._fetcher.asked or self._asks_start:
            return NEVER
        if self._begins:
            self._ask_starts()
        elif not self._unsettled or now_ms >= self._since_ms + PATIENCE_MS:
            rest_ms = self._manner.rest_ms(now_ns)
            if rest_ms:
                return rest_ms
            self._fill()
            self._ask(now_ns)
        return NEVER

    def _settle(self, now_ms: int, wall_ms: int) -> None:
        """Those whose log is held as far as it goes may be asked for."""
        for key, partition in list(self._unsettled.items()):
            if partition not in self._env.parted and self._env.is_level(partition, wall_ms):
                del self._unsettled[key]
                self._fetcher.at(key, _position(partition))
        if not self._unsettled:
            self._since_ms = now_ms

    def _hurry(self, now_ms: int) -> int:
        if self._manner.patient or not self._waits or not self._fetcher.newcomers:
            return NEVER
        rest_ms = self._asked_ms + HURRY_MS + len(self._fetcher) // _HURRY_EACH - now_ms
        if rest_ms > 0:
            return rest_ms
        self._hurried = True
        self.close()
        return 0

    # Asking ---------------------------------------------------------------------------------------

    def _connected(self) -> Link | None:
        where = self._env.endpoint(self.node)
        link = self._link
        if link is not None and where != (link.host, link.port):
            self._link = None
            link.close()
        if self._link is None and where is not None:
            self._link = self._env.link(self.node, *where)
        return self._link

    def _ask(self, now_ns: int) -> None:
        now_ms = now_ns // 1_000_000
        replica = self._env.replica()
        if replica != self._replica:
            self._replica = replica
            self._fetcher.renew()
        if self._env.throttle.on:
            self._hold_back(now_ms)
        question = self._fetcher.next_fetch(now_ms)
        if question is None:
            return
        link = self._connected()
        if link is None:
            self._came = PeerError(0, f"node {self.node} is not known")
            return
        self._asked_ms, self._waits = now_ms, question.wait_ms > HURRY_MS
        limits = self._manner.asks(now_ns)
        encode = partial(_encode, limits, replica, question)
        versions = fetch_follower.VERSIONS
        link.ask_raw(1, versions[-1], encode, self._hear, self._env.timeout_ms, lowest=versions[0])

    def _hold_back(self, now_ms: int) -> None:
        """Pauses throttled partitions until they may be fetched again."""
        throttle = self._env.throttle
        wait_ms = min(throttle.wait_ms(now_ms), AGAIN_MS)
        for key in self.partitions if wait_ms else ():
            if key in throttle.keys:
                self._fetcher.pause(key, now_ms + wait_ms)

    def _ask_starts(self) -> None:
        """Where the leader's logs start, for those that lie outside."""
        link = self._connected()
        if link is None:
            return
        topics: dict[str, list[Any]] = {}
        for key, partition in self._begins.items():
            epoch = partition.leader_epoch
            asked = {
                "partition_index": partition.index,
                "current_leader_epoch": epoch,
                "timestamp": _EARLIEST_LOCAL if key in self._tiered else _EARLIEST,
            }
            topics.setdefault(partition.topic, []).append(asked)
        named = [{"name": name, "partitions": some} for name, some in topics.items()]
        values = {"replica_id": self._env.node_id, "isolation_level": 0, "topics": named}
        self._asks_start = True
        lowest = 8 if self._tiered else 4
        link.ask_peer(_LIST_OFFSETS, 9, values, self._hear, self._env.timeout_ms, lowest=lowest)

    def _hear(self, answer: Any) -> None:
        """From within the link: what came is looked at in the next turn."""
        assert self._came is None
        self._came = answer

    # Answers --------------------------------------------------------------------------------------

    def _heard(self, came: Any, now_ms: int) -> None:
        if self._asks_start:
            self._asks_start = False
            self._told_starts(came, now_ms)
        elif isinstance(came, Undecoded):
            try:
                self._told(came, now_ms)
            except MalformedRequest as cause:
                self._broken(cause, now_ms)
        else:
            self._fetcher.lost(now_ms)
            if not self._hurried:
                self._env.warn("leader-not-reached", node=self.node, cause=came)
            self._hurried = False

    def _broken(self, cause: MalformedRequest, now_ms: int) -> None:
        self._env.warn("leader-not-understood", node=self.node, cause=cause)
        self._answers = self._answer = None
        self._fetcher.lost(now_ms)
        self.close()

    def _told(self, came: Undecoded, now_ms: int) -> None:
        error, session_id, partitions = fetch_follower.decode(came.body)
        if error:
            self._env.warn("fetch-refused", node=self.node, cause=f"error {error}")
        self._fetcher.answered(error, session_id, now_ms)
        self._answers = iter(()) if error else partitions

    def _take(self, now_ns: int, wall_ms: int) -> bool:
        """A piece of the answer, and more while there is time; whether that was all of it."""
        assert self._answers is not None
        while True:
            if self._answer is None:
                try:
                    self._answer = next(self._answers, None)
                except MalformedRequest as cause:
                    self._broken(cause, now_ns // 1_000_000)
                    return True
                if self._answer is None:
                    self._answers = None
                    self._fetcher.taken()
                    return True
                self._at = 0
            if self._take_piece_of(self._answer, now_ns, wall_ms):
                self._answer = None
            if monotonic_ns() >= self._env.until_ns:
                return False

    def _take_piece_of(self, answer: FollowerPartitionAnswer, now_ns: int, wall_ms: int) -> bool:
        """`_take_piece`; an exception in it costs the partition, whose log may be half changed."""
        try:
            return self._take_piece(answer, now_ns, wall_ms)
        except Exception as bug:
            partition = self.partitions.get((answer.topic_id, answer.partition))
            if partition is None:
                raise
            self._env.confine_bug("records of a leader", partition, bug)
            return True

    def _take_piece(self, answer: FollowerPartitionAnswer, now_ns: int, wall_ms: int) -> bool:
        """Appends a piece of an answer; True if that was all of this partition's."""
        key = answer.topic_id, answer.partition
        told = FetchResult(key, answer.error, answer.diverging)
        what = self._fetcher.outcome(told, now_ns // 1_000_000)
        partition = self.partitions.get(key)
        if partition is None or not what:
            return True
        if what == TAKE and not self._at and is_unconfirmed(partition, answer.log_start):
            self._fetcher.hold_partition(key)
            what = BEGIN
        if what == TAKE:
            return self._take_records(key, partition, answer, now_ns, wall_ms)
        if what == PART:
            assert answer.diverging is not None
            self._part(key, partition, DivergencePoint(partition.leader_epoch, answer.diverging))
        elif what in (BEGIN, TIERED):
            self._begins[key] = partition
            (self._tiered.add if what == TIERED else self._tiered.discard)(key)
        else:
            assert what == REFUSED
            self._env.refused(partition, answer.error)
            self._make_room(key, partition)
        return True

    def _take_records(
        self,
        key: Key,
        partition: Partition,
        answer: FollowerPartitionAnswer,
        now_ns: int,
        wall_ms: int,
    ) -> bool:
        rest = answer.records[self._at :]
        if not self._at:
            self._begun = partition.log.end_offset
        if rest:
            try:
                self._at += self._env.taking.records(partition, rest, now_ns, wall_ms)
            except PeerError as cause:
                if cause.code or not self._at:
                    self._fetcher.refused(key, now_ns // 1_000_000)
                    self._env.warn("records-not-taken", partition=partition, cause=cause.message)
                    if self._at:
                        self.settle_partition(key, partition)
                    self._make_room(key, partition)
                    return True
                self._at = len(answer.records)  # the leader cut it in a batch
            if partition.broken is not None:
                return True
            if self._at < len(answer.records):
                return False
        self._env.taking.ends(partition, answer)
        went = Went(key, self._begun, partition.log.end_offset, answer.high_watermark)
        if self._manner.ends(went, len(answer.records), now_ns):
            self.moving[key] = partition
        throttle = self._env.throttle
        if throttle.on and key in throttle.keys:
            throttle.spend(len(answer.records), now_ns // 1_000_000)
        if answer.records:
            self.settle_partition(key, partition)
        else:
            self._fetcher.at(key, _position(partition))
        return True

    def _make_room(self, key: Key, partition: Partition) -> None:
        """Lets the others in line go ahead of a refused partition."""
        if self._line:
            self.moving[key] = partition

    # Outside of the leader's log, or beside it ----------------------------------------------------

    def _part(self, key: Key, partition: Partition, cut: DivergencePoint) -> None:
        self._env.parted[partition] = cut
        self.settle_partition(key, partition)

    def _told_starts(self, came: Any, now_ms: int) -> None:
        asked, self._begins = self._begins, {}
        tiered, self._tiered = self._tiered, set()
        found: dict[tuple[str, int], int] = {}
        for topic in () if isinstance(came, PeerError) else came.topics:
            for one in topic.partitions:
                if one.error_code == 0:
                    found[topic.name, one.partition_index] = one.offset
        for key, partition in asked.items():
            start = found.get((partition.topic, partition.index), -1)
            if start >= 0:
                epoch = partition.leader_epoch
                self._part(key, partition, DivergencePoint(epoch, None, start, key in tiered))
            else:
                self.settle_partition(key, partition)
                self._fetcher.refused(key, now_ms)


def _position(partition: Partition) -> Position:
    log = partition.log
    return Position(partition.leader_epoch, log.end_offset, log.latest_epoch, log.log_start_offset)


def _encode(
    limits: FollowerFetchLimits, replica: tuple[int, int], question: FollowerFetch, version: int
) -> bytes:
    asked = [(key, *position) for key, position in question.partitions]
    session = question.session_id, question.session_epoch
    if question.wait_ms < limits.wait_ms:
        limits = limits._replace(wait_ms=max(question.wait_ms, 0))
    return fetch_follower.encode(version, replica, limits, session, asked, question.forgotten)
