"""One partition: its log, how far it is, and who waits for that to move.

How far it is says `progress`, a value machine: with `flush.policy=group` the disk is the replica
that must have a record before anybody sees it, so the high watermark rises with syncs alone. What
is staged in a turn is committed or failed in the same turn, so nothing here holds arena memory
between turns. The core and its parts are the only callers; `append` is the hot function of this
room.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from appliance.base.errors import KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, StorageFailed
from appliance.base.space import SpaceGuard
from appliance.config.log_config import LogConfig
from appliance.ioproc.netproc_peer import Asker, NetprocPeer, refusal
from appliance.ioproc.partitions.file_positions import UNKNOWN, FilePositions
from appliance.ioproc.partitions.purgatory import ParkedRead
from appliance.logstore.aborted import AbortedTransactions
from appliance.logstore.log import PartitionLog
from appliance.replication.progress import Progress
from appliance.replication.role import ALONE, ELSEWHERE, PartitionRole
from appliance.ring.messages import ADDS, APPENDED, TRUSTED, Message
from appliance.wire import markers
from appliance.wire.batch import Walk, validate
from appliance.wire.batch_header import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    read_header,
)
from appliance.wire.compression import IDS as CODECS
from appliance.wire.markers import Marker
from appliance.wire.recompression import find_batch_walk, recompress

AT_ONCE: Final = 0
VISIBLE: Final = 1
DURABLE: Final = 2

Staged = tuple[Asker, int, int, int, int, int]
"""asker, token, base offset, append time (ms or -1), end offset, and when it is answered: once it
is written, below the high watermark (acks=all), on the disk (flush.messages), or both."""
Waiting = tuple[Asker, int, int, int, int, int, int, int]
"""The same, when it was taken, and when written (ns)."""

_UNGUARDED: Final = SpaceGuard(0, 0)


class Partition:
    """The home of one partition. handle: its row in the partition table. directory: number of the
    log folder that it lies in, space: the guard of that. future: while it moves, number + 1 of the
    folder it moves to, log end of the copy, bytes of the copy. start_unsaved: DeleteRecords moved
    the log start, which could not be written down yet. unreadable: files that a read failed on.
    aborted: its aborted transactions, once somebody asked for them. on_marker: who is told of each
    marker when it is staged: producer id, and whether it commits.
    asking: who asked where the log ends, and the end that must be visible before the answer.
    changing: its log is taking a batch. codec: of its batches, -1: as the producer has it.
    role: what the metadata says of it and this node, in `leader_epoch`. shared: it leads, and other
    nodes have replicas. short: fewer than min.insync.replicas are in sync. disk_counts: the disk is
    a replica that must have a record before it is visible."""

    __slots__ = (
        "_all_wait",
        "_stamps",
        "aborted",
        "asking",
        "batches_in",
        "broken",
        "bytes_in",
        "changing",
        "codec",
        "directory",
        "disk_counts",
        "future",
        "handle",
        "index",
        "leader_epoch",
        "log",
        "on_marker",
        "parked",
        "places",
        "progress",
        "records_in",
        "risen",
        "role",
        "rules",
        "shared",
        "short",
        "space",
        "staged",
        "start_unsaved",
        "synced",
        "syncing",
        "topic",
        "topic_id",
        "unreadable",
        "waiting",
    )

    def __init__(
        self,
        handle: int,
        topic: str,
        index: int,
        topic_id: bytes,
        log: PartitionLog,
        leader_epoch: int,
        role: PartitionRole = ALONE,
        high_watermark: int = -1,
        now_ms: int = 0,
    ) -> None:
        """high_watermark: as far as it is known that all in sync have the records; where there are
        no other replicas, what is there is visible. Raises StorageFailed as `lead`."""
        self.handle = handle
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.role = role
        self.serve_log(log, high_watermark if role.replicas else log.end_offset)
        self.syncing = False
        self.batches_in = 0
        self.bytes_in = 0
        self.records_in = 0
        self.directory = 0
        self.future = (0, 0, 0)
        self.space = _UNGUARDED
        self.broken: StorageFailed | None = None
        self.changing = False
        self.unreadable: set[str] = set()
        self.aborted: AbortedTransactions | None = None
        self.staged: list[Staged] = []
        self.waiting: deque[Waiting] = deque()
        self.asking: deque[tuple[NetprocPeer, Message, int]] = deque()
        self.parked: dict[int, ParkedRead] = {}
        self.start_unsaved = False
        self.on_marker: Callable[[int, bool], None] | None = None
        self.rules = log.config
        if role.leads:
            self.lead(leader_epoch, role, now_ms)
        else:
            self.follow(leader_epoch, role)
        self.set_rules(log.config)

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def serve_log(self, log: PartitionLog, high_watermark: int) -> None:
        """Serve this log from now on, visible as far as that."""
        assert log.recovery_point >= log.end_offset, "what is served from the start is on the disk"
        self.log = log
        self.synced = log.recovery_point
        self.risen = False
        start, end = log.log_start_offset, log.end_offset
        visible = max(start, min(high_watermark, end))
        self.progress = Progress(start, end, visible)
        for producer_id, first in log.producers.open.items():
            self.progress.begun(producer_id, first)
        log.producers.news = []
        self.places = FilePositions(log.active_base, log.active_size)
        if self.progress.last_stable < end:
            self.places.stable = UNKNOWN
        if visible < end:
            self.places.visible = UNKNOWN
            self.places.ends.append((end, log.active_base, log.active_size))

    @property
    def high_watermark(self) -> int:
        """Below it records are visible. Hot paths read `progress` themselves."""
        return self.progress.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction has ended, visibly."""
        return self.progress.last_stable

    @property
    def leads(self) -> bool:
        """True if this node is the leader."""
        return self.progress.leads

    def unverified(self, batch: memoryview, flags: int, guard: int, now_ms: int) -> int:
        """For a batch of a transactional request: 0 when it may be appended, else the guard with
        which its coordinator must verify it (UNVERIFIED).
        """
        if flags & TRUSTED or len(batch) < HEADER_SIZE:
            return 0
        header = HEADER.unpack_from(batch)
        if not header[5] & TRANSACTIONAL_BIT or header[9] < 0:
            return 0
        adds = bool(flags & ADDS)
        states = self.log.producers
        return states.guard(header[9], header[10], header[11], guard, now_ms, adds=adds)

    def append(
        self,
        asker: NetprocPeer,
        token: int,
        batch: memoryview,
        acks: int,
        now_ms: int,
        transactional: bool = False,
        walk: Walk | None = None,
    ) -> None:
        """Check one produced batch and stage it; it is answered after `commit` or after a sync.

        transactional: it may be of a transaction, verified. walk: of a LongWalk that this raised
        for the same batch, at its end. Raises PeerError with the code to answer; then nothing was
        staged.
        """
        self.changing = False
        walked = None if walk is None else find_batch_walk(walk)
        header = validate(batch, self.rules, now_ms, transactional=transactional, walk=walked)
        codec = self.codec
        if codec >= 0 and header[5] & CODEC_MASK != codec:
            batch = recompress(batch, codec, walk)
            header = read_header(batch)
        log = self.log
        if header[9] >= 0:  # a producer id
            original = log.producers.check(header)
            if original >= 0:  # a duplicate: durable when the first one is, and answered as it was
                self._stage(asker, token, acks, original, -1, original + header[6] + 1)
                return
        self.changing = True
        base = log.active.stage(batch, header, self.leader_epoch, now_ms)
        if base < 0:  # it is full, or the epoch is new
            base = log.stage(batch, header, self.leader_epoch, now_ms)
        self.bytes_in += len(batch)
        self.records_in += header[12]
        self.batches_in += 1
        time = now_ms if self._stamps else -1
        self._stage(asker, token, acks, base, time, base + header[6] + 1)
        self.changing = False

    def append_own(
        self, asker: Asker, token: int, batch: memoryview, now_ms: int, acks: int = -1
    ) -> None:
        """Stage a batch that the appliance made itself: it is right, however big. By default it
        waits for a sync as acks=all does. Raises StorageFailed."""
        header = read_header(batch)
        self.changing = True
        base = self.log.stage(batch, header, self.leader_epoch, now_ms)
        self.bytes_in += len(batch)
        self.records_in += header[12]
        self.batches_in += 1
        self._stage(asker, token, acks, base, -1, base + header[6] + 1)
        if self.on_marker is not None and header[5] & CONTROL_BIT:
            marker = markers.read(batch)
            if marker is not None:
                self.on_marker(header[9], marker.committed)
        self.changing = False

    def mark(
        self,
        asker: Asker,
        token: int,
        producer: tuple[int, int],
        marker: Marker,
        version: int,
        now_ms: int,
    ) -> None:
        """Stage the marker that ends a transaction; answered as acks=all is. One that is there
        already is not written again, and answered when everything is visible that is there.

        producer: id and epoch. version: transaction.version. Raises PeerError when the marker comes
        too late, and StorageFailed."""
        log = self.log
        producers, (producer_id, epoch) = log.producers, producer
        producers.check_end(producer_id, epoch, marker, version)
        if producers.has_marker(producer_id, epoch, marker.coordinator_epoch):
            self.await_end(asker, token)
            return
        batch = markers.build(producer_id, epoch, marker, now_ms)
        self.append_own(asker, token, memoryview(batch), now_ms)

    def await_end(self, asker: Asker, token: int) -> None:
        """Answer when everything is visible that is there."""
        self._stage(asker, token, -1, -1, -1, self.log.end_offset)

    def _stage(self, asker: Asker, token: int, acks: int, base: int, time: int, end: int) -> None:
        waits = AT_ONCE
        if end - self.synced >= self.rules.flush_messages:
            waits = DURABLE
        if acks == -1 and self._all_wait and end > self.progress.high_watermark:
            waits |= VISIBLE
        self.staged.append((asker, token, base, time, end, waits))

    @property
    def unseen(self) -> bool:
        """True if some records stay invisible until a sync covers them."""
        return self.progress.held < self.progress.log_end

    def commit(self, now_ms: int = 0, taken_ns: int = 0, now_ns: int = 0) -> None:
        """Write what was staged and answer what need not wait. taken_ns: when this turn began.

        Raises StorageFailed when the log refused; the caller then calls `fail`, after DiskFull
        `no_room`.
        """
        log = self.log
        active = log.active
        active.commit()
        if log.producers.news:
            self.tell_transactions()
        progress = self.progress
        held = progress.held
        log_start = log.log_start_offset
        epoch = self.leader_epoch
        for waiting in self.staged:
            asker, token, base, time, end, waits = waiting
            if end > held and waits < DURABLE:
                held = end
            if waits:
                self.waiting.append((*waiting, taken_ns, now_ns))
                continue
            told = (APPENDED, 1, self.handle, token, base, time, log_start, epoch)
            asker.out.append((*told, taken_ns))
        self.staged.clear()
        end = active.end_offset
        if self.disk_counts:
            held = progress.held
        self.places.ends.append((end, active.base, active.size))
        if progress.appended(end, held, now_ms):
            self.raise_visible()
            if self.shared:
                self.release()

    def tell_transactions(self) -> None:
        """Applies the transaction state of written batches, before it becomes visible."""
        log, progress, told = self.log, self.progress, 0
        known = self.aborted
        news = log.producers.news
        assert news is not None
        for producer_id, first, end, stable in news:
            if max(first + 1, end) > log.written_end:
                break  # it is held
            if end < 0:
                progress.begun(producer_id, first)
            else:
                progress.ended(producer_id, end)
            if stable >= 0 and known is not None and known.layout == log.layout:
                known.add((producer_id, first, end - 1, stable))
            told += 1
        del news[:told]

    def on_synced(self, end: int) -> None:
        """Everything below `end` is on the disk: answer who waited for that."""
        if end > self.synced:
            self.synced = end
        if self.progress.holds(end):
            self.raise_visible()
        visible, durable = self.progress.high_watermark, self.synced
        limits = (0, visible, durable, min(visible, durable))
        waiting = self.waiting
        log_start = self.log.log_start_offset
        epoch = self.leader_epoch
        while waiting:
            asker, token, base, time, end, waits, taken_ns, written_ns = waiting[0]
            if end > limits[waits]:
                break
            waiting.popleft()
            told = (APPENDED, 1, self.handle, token, base, time, log_start, epoch)
            asker.out.append((*told, taken_ns, written_ns))

    def release(self) -> None:
        """The high watermark rose, not by a sync: answer who waited for that."""
        if self.waiting:
            self.on_synced(self.synced)

    def raise_visible(self) -> None:
        """Readers see more."""
        self.risen = True
        self.places.set_visible(self.progress.high_watermark, self.progress.last_stable)

    def fail(self, failure: StorageFailed) -> None:
        """The log refused a write or a sync: final. Everybody who waits is told, nothing is
        appended again."""
        self.broken = failure
        self.refuse_all(KAFKA_STORAGE_ERROR)

    def no_room(self) -> None:
        """Refuses requests whose batches are staged but not written, so that clients retry. The log
        holds them, so that a retry is known for a duplicate. Batches held before may have been
        written at the end of their segment.
        """
        active, progress = self.log.active, self.progress
        end = active.written_end
        if end > progress.log_end:
            if self.log.producers.news:
                self.tell_transactions()
            self.places.ends.append((end, active.base, active.size))
            if progress.appended(end, progress.held if self.disk_counts else end):
                self.raise_visible()
        for asker, token, *_ in self.staged:
            asker.out.append(refusal(APPENDED, KAFKA_STORAGE_ERROR, self.handle, token))
        self.staged.clear()

    def refuse_all(self, code: int) -> None:
        """Tell all whose appends are not acknowledged yet that they failed."""
        for asker, token in [w[:2] for w in self.waiting] + [s[:2] for s in self.staged]:
            asker.out.append(refusal(APPENDED, code, self.handle, token))
        self.waiting.clear()
        self.staged.clear()

    def forget_asker(self, asker: NetprocPeer) -> None:
        """A netproc died; what it asked for is appended all the same, but nobody is told."""
        if self.waiting:
            self.waiting = deque(w for w in self.waiting if w[0] is not asker)
        if self.asking:
            self.asking = deque(a for a in self.asking if a[0] is not asker)

    def is_spare(self, *, checked: bool) -> bool:
        """True if others can do without this replica until it is rebuilt. checked: its checksums
        prove damage, which followers have verified: then one in sync is enough. Else all of them,
        or min.insync.replicas: the same fault everywhere would take one after the other.
        """
        role = self.role
        if not (role.leads or role.leader >= 0):
            return False
        left, others = len(role.isr), len(role.replicas)
        least = min(self.rules.min_insync_replicas, 1 + others)
        return left > 0 and (checked or left == others or left >= least)

    def trimmed(self) -> None:
        """The log start moved."""
        self.progress.starts_at(self.log.log_start_offset)
        if self.aborted is not None:
            self.aborted.forget_below(self.log.log_start_offset)

    def new_layout(self) -> None:
        """Full segments are about to be replaced: positions in them hold no more."""
        self.log.layout += 1
        progress = self.progress
        active = self.log.active_base
        self.places.drop_places(active, progress.high_watermark, progress.last_stable)

    def lead(self, leader_epoch: int, role: PartitionRole = ALONE, now_ms: int = 0) -> None:
        """This node leads, in this epoch; a new one begins at the log end (KIP-101). The same again
        says who is in sync now."""
        assert role.leads
        self.role = role
        self._decide()
        self.leader_epoch = leader_epoch
        self.wait_for(role.isr, leader_epoch, now_ms)
        if leader_epoch > self.log.latest_epoch:
            self.log.begin_epoch(leader_epoch)

    def wait_for(self, in_sync: tuple[int, ...], leader_epoch: int, now_ms: int) -> None:
        """These other replicas must have a record from now on before it is visible."""
        replicas, enough = self.role.replicas, not self.short
        if self.progress.lead(leader_epoch, replicas, in_sync, now_ms, enough=enough):
            self.raise_visible()
            self.release()

    def follow(self, leader_epoch: int, role: PartitionRole = ELSEWHERE) -> None:
        """Another node leads, in this epoch: who waits for what was appended here is told."""
        assert not role.leads
        self.progress.follow(leader_epoch)
        self.role = role
        self._decide()
        self.leader_epoch = leader_epoch
        self.refuse_all(NOT_LEADER_OR_FOLLOWER)

    def replace(self, log: PartitionLog, directory: int, now_ms: int = 0) -> None:
        """It lies in another log folder now, all of it synced."""
        role, visible, in_sync = self.role, self.progress.high_watermark, self.progress.in_sync
        log.producers.unverified = self.log.producers.unverified
        self.serve_log(log, visible if role.replicas else log.end_offset)
        self.directory = directory
        self.future = (0, 0, 0)
        if role.leads:
            self.wait_for(in_sync, self.leader_epoch, now_ms)
        else:
            self.progress.follow(self.leader_epoch)
        self.set_rules(self.rules)

    def set_rules(self, rules: LogConfig) -> None:
        """The topic's settings changed."""
        self.rules = rules
        self.log.set_config(rules)
        short = self.short
        self._decide()
        if self.short != short:
            self.wait_for(self.progress.in_sync, self.leader_epoch, 0)
        self._stamps = rules.message_timestamp_type == "LogAppendTime"
        self.codec = CODECS.get(rules.compression_type, -1)

    def _decide(self) -> None:
        """Derives from the topic's settings and the role which acknowledgements acks=all waits for
        (decision 0046).
        """
        rules, role = self.rules, self.role
        others = len(role.replicas)
        least = min(rules.min_insync_replicas, 1 + others)  # as Apache Kafka since 4.0
        self.shared = role.leads and others > 0
        self.short = self.shared and 1 + len(role.isr) < least
        policy = rules.flush_policy
        self.disk_counts = policy == "group" or (policy == "auto" and least < 2)
        self._all_wait = self.disk_counts or self.shared
