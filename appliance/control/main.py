"""Entry of the control process: format or open the folder, lead the metadata log, answer requests.

One turn: requests of all netprocs are decided and appended in order, and a thread begins one
fdatasync for them all. When it has ended, rows of the partition table, the committed offset and the
answers become visible, in that order; what was appended meanwhile waits for the next one. So the
image is ahead of what is committed, but nobody is told of it before. Snapshots are written on a
thread, too. A storage failure ends the process; its successor reads what is on the disk.
"""

import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, Protocol

from appliance.base.clock import OsClock
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.base.reserve import ReservedDisk
from appliance.config.broker import BrokerConfig
from appliance.control.metadata_log import MetadataLog, Unwritten
from appliance.control.mutations import Mutations
from appliance.control.requests import Requests
from appliance.control.room import Room
from appliance.control.startup import Started, start
from appliance.control.topic_trash import TopicTrash
from appliance.controller.decision import Record, Situation
from appliance.controller.placement import assign_directory
from appliance.controller.producer_ids import ProducerIds
from appliance.handlers.admin import AdminContext, Quorum
from appliance.metadata import effective
from appliance.metadata.changes import Change, PartitionAdded, TopicAdded, TopicRemoved
from appliance.metadata.identity import META_PROPERTIES, new_uuid
from appliance.ring import partition_table as columns
from appliance.ring.messages import ASSIGN, ENSURE_TOPIC, FORWARD, Message
from appliance.ring.process_table import IOPROC, NETPROC, READY, Peer
from appliance.shell.answers import Answers
from appliance.shell.flusher import Done, Flusher, Tag
from appliance.shell.links import Links
from appliance.shell.log import ERROR, NOTICE, WARNING, Log
from appliance.shell.loop import LONGEST_WAIT_MS, STOP, Loop
from appliance.shell.seat import Seat
from appliance.wire import kraft_records as kraft

DRAIN_STAGE: Final = 3
"""The stage of the orderly end in which control stops (`ProcessTable.drain`)."""


class Pending(NamedTuple):
    """An answer that waits. seen: the end of the metadata that it was decided over."""

    netproc: int
    token: int
    code: int
    body: bytes
    seen: int


class Threads(Protocol):
    """Runs jobs that block: `Flusher`, or a test that decides when they end."""

    def submit(self, tag: Tag, job: Callable[[], None]) -> None:
        """Run `job` somewhere else."""
        ...

    def take(self) -> list[Done]:
        """Jobs that ended since the last call."""
        ...

    def hush(self) -> None:
        """Somebody looks."""
        ...


class Control:
    """The shell of control (`loop.Shell`)."""

    def __init__(
        self, seat: Seat, links: Links, log: Log, started: Started, threads: Threads
    ) -> None:
        self._seat = seat
        self._links = links
        self._log = log
        self._clock = OsClock()
        self._disk = started.disk
        self._metadata: MetadataLog = started.metadata
        self._identity = started.identity
        self._rows = started.rows
        self._dirs = started.dirs
        self._producer_ids = ProducerIds()
        self._trash = TopicTrash(self._disk, seat.log_dirs, self._rows.everyone_has, log)
        self._leading = started.leading
        keep = seat.config.int("penstock.disk.free.min.bytes")
        self._room = Room(self._disk, started.dirs, keep, log)
        self._requests = Requests(
            self._append, self._report, self._blocked_ms, lambda: self._room.told(0)
        )
        self._threads = threads
        self._syncing = False
        self._writing = False  # a snapshot
        self._frozen: Unwritten | None = None  # to be written once its records are committed
        self._changes: list[Change] = []
        self._pending: deque[Pending] = deque()
        self._mutations = Mutations(seat, self._clock, self._metadata.image)
        self._answers = {
            index: Answers(links.writer(NETPROC, index)) for index in range(seat.netprocs)
        }

    def open_for_business(self) -> None:
        """What the start appended is synced and published: everyone may follow."""
        self._metadata.sync()
        self._show(len(self._changes), self._metadata.active_size)
        self._links.set_state(READY)

    def peers_changed(self, peers: list[Peer]) -> None:
        """Answers to a dead netproc go nowhere; what it asked for is done all the same."""
        for peer in peers:
            if peer.kind == NETPROC:
                self._answers[peer.index].drop()
                self._pending = deque(one for one in self._pending if one.netproc != peer.index)

    def handle(self, peer: Peer, messages: list[Message]) -> None:
        """Decide on what one netproc asks; answered when all that it could see is committed."""
        if peer.kind == IOPROC:
            for message in messages:
                self._assign(message)
        if peer.kind != NETPROC:
            return
        context = self._context()
        for message in messages:
            context.situation.permit = self._mutations.permit(message)
            if message.op == FORWARD:
                arena = self._seat.arenas[peer.index]
                code, body = self._requests.forwarded(message, arena, context)
            elif message.op == ENSURE_TOPIC:
                code, body = self._requests.ensure_topic(message, context)
            else:
                continue
            seen = self._metadata.end_offset
            self._pending.append(Pending(peer.index, message.token, code, body, seen))
            self._refresh(context)

    def _assign(self, message: Message) -> None:
        """A partition has moved, or nearly so: write down the folder that it is in."""
        found = self._seat.partitions.holder(message.handle)
        if message.op == ASSIGN and found is not None and 0 <= message.a < len(self._dirs.ids):
            directory_id = self._dirs.ids[message.a]
            node_id, image = self._identity.node_id, self._metadata.image
            topic = image.topics_by_id.get(found.topic_id)
            if topic is not None and directory_id is not None:
                partition = topic.partitions[found.partition]
                new = assign_directory(topic.topic_id, partition, node_id, directory_id)
                if new:  # an ioproc asks again when it does not see it yet
                    with suppress(DiskFull):
                        self._append(new)

    def ready(self, mask: int) -> None:
        """A job ended: the turn that follows takes the result."""
        self._threads.hush()

    def turn(self, now_ns: int) -> int:
        """Sync, publish, answer; now and then a snapshot."""
        self._room.tick(now_ns)
        if not self._leading.begun:
            self._changes += self._leading.again(now_ns, self._clock.wall_ms())
        now_ms = self._clock.wall_ms()
        self._take(now_ms)
        self._begin(now_ms)
        self._take(now_ms)  # it may have been quick
        metadata, pending = self._metadata, self._pending
        while pending and pending[0].seen <= metadata.committed:
            one = pending.popleft()
            self._answers[one.netproc].put(one.token, one.code, one.body)
        full = [answers for answers in self._answers.values() if not answers.push()]
        if self._trash.due(now_ms):
            self._trash.tick(metadata.image, self._settings(), metadata.end_offset, now_ms)
        if self._seat.processes.drain >= DRAIN_STAGE and not self._syncing:
            return STOP
        return 1 if full else LONGEST_WAIT_MS

    def _begin(self, now_ms: int) -> None:
        """A sync for all that was appended; with it the view for a snapshot, which is of just that.

        A snapshot that is being written when control ends is written by its successor."""
        metadata = self._metadata
        if self._syncing:
            return
        idle = self._frozen is None and not self._writing
        if idle and metadata.snapshot_due(now_ms) and metadata.image.pending is None:
            self._frozen = metadata.begin_snapshot(now_ms)
        if metadata.uncommitted:
            job = metadata.begin_sync()
            assert job is not None, "there is something to sync"
            self._syncing = True
            tag = (job, len(self._changes), metadata.active_size)
            self._threads.submit(tag, job.run)
        elif self._frozen is not None:
            self._write_snapshot()

    def _write_snapshot(self) -> None:
        """All of it is committed."""
        frozen, self._frozen = self._frozen, None
        assert frozen is not None and frozen.snapshot.offset <= self._metadata.committed
        self._writing = True
        self._threads.submit((frozen,), partial(frozen.write, self._disk, self._metadata.folder))

    def _take(self, now_ms: int) -> None:
        for done in self._threads.take():
            if len(done.tag) == 1:
                self._writing = False
                self._snapshot_written(done.tag[0], done.failure, now_ms)
                continue
            job, changes, position = done.tag
            self._syncing = False
            self._metadata.end_sync(job, done.failure)
            self._show(changes, position)
            if self._frozen is not None:
                self._write_snapshot()

    def _snapshot_written(self, frozen: Unwritten, failure: Exception | None, now_ms: int) -> None:
        """Without a new snapshot the log only gets longer: a full disk is no reason to end."""
        try:
            if failure is not None:
                raise failure
            self._metadata.end_snapshot(frozen, now_ms)
        except StorageFailed as cause:
            self._log.event(ERROR, "metadata-snapshot-failed", cause=str(cause))
        else:
            self._log.event(NOTICE, "metadata-snapshot", offset=frozen.snapshot.offset)

    def close(self) -> None:
        """The orderly end: the log is synced, nobody asks any more."""
        self._metadata.close()

    def _append(self, records: list[Record]) -> None:
        """Raises DiskFull: none of it is there then."""
        self._leading.check()
        image, now_ms = self._metadata.image, self._clock.wall_ms()
        if any(isinstance(one, kraft.TopicRecord | kraft.RemoveTopicRecord) for one in records):
            self._trash.before(records, image, self._settings(), self._size, now_ms)
        self._changes += self._metadata.append(records, now_ms)

    def _settings(self) -> BrokerConfig:
        """Those of the file with what was set while we run on top."""
        return effective.broker_config(self._metadata.image, self._seat.config)

    def _blocked_ms(self, name: str) -> int:
        return self._trash.blocked_ms(name, self._settings, self._clock.wall_ms())

    def _size(self, topic_id: bytes, index: int) -> tuple[int, int]:
        handle = self._rows.handles.get((topic_id, index))
        if handle is None:
            return 0, 0
        row = self._seat.partitions.read_row(handle)
        return row[columns.SIZE_BYTES], row[columns.LOG_END] - row[columns.LOG_START]

    def _show(self, count: int, position: int) -> None:
        """The first changes are committed: rows first, then the offset. position: the bytes of the
        active segment that are."""
        committed = self._metadata.committed
        changes = self._changes[:count]
        del self._changes[:count]
        for change in changes:
            self._rows.apply(change, committed)
            self._tell(change)
        self._mutations.follow(changes, self._metadata.image)
        table = self._seat.processes
        table.publish_metadata(committed, position)
        table.set_applied(self._seat.me, committed)
        self._links.wake_sleepers()

    def _tell(self, change: Change) -> None:
        if isinstance(change, TopicAdded):
            back = change.topic_id in self._trash.view.topics
            event = "topic-undeleted" if back else "topic-created"
            self._log.event_seldom(NOTICE, event, topic=change.name)
        elif isinstance(change, TopicRemoved):
            self._log.event_seldom(NOTICE, "topic-deleted", topic=change.name)

    def _report(self, event: str, cause: str) -> None:
        level = ERROR if event == "bug" else WARNING
        self._log.event_seldom(level, event, cause=cause)

    def _context(self) -> AdminContext:
        situation = Situation(
            image=self._metadata.image,
            config=self._seat.config,
            node_id=self._identity.node_id,
            directory_id=self._identity.directory_id,
            new_id=lambda: new_uuid(os.urandom),
            free_rows=0,
            directories=self._directories(),
        )
        context = AdminContext(
            situation=situation,
            producer_ids=self._producer_ids,
            partitions=self._seat.partitions,
            handles=self._rows.handles,
            quorum=Quorum(0, 0, 0, ()),
            dirs=self._dirs,
            volume=self._volume,
            trash=self._trash.view,
            missing=self._trash.missing,
            now_ms=0,
            usage=self._mutations.usage,
        )
        self._refresh(context)
        return context

    def _refresh(self, context: AdminContext) -> None:
        """What the request before may have changed."""
        metadata = self._metadata
        waiting = sum(isinstance(change, PartitionAdded) for change in self._changes)
        context.situation.free_rows = self._rows.free - waiting
        context.situation.counts = None
        context.situation.no_room = self._room.lacking()
        context.now_ms = self._clock.wall_ms()
        voters = metadata.quorum.voters(self._identity.node_id)
        context.quorum = Quorum(metadata.epoch, metadata.committed, metadata.end_offset, voters)

    def _directories(self) -> tuple[bytes, ...]:
        """Ids of the folders that take new partitions: those that are there."""
        found = [(self._dirs.ids[n], path) for n, path in self._dirs.online()]
        if len(found) > 1:
            found = [one for one in found if self._disk.exists(f"{one[1]}/{META_PROPERTIES}")]
            roomy = [one for one in found if not self._room.low(one[1])]
            found = roomy or found
        return tuple(one for one, _ in found if one is not None)

    def _volume(self, path: str) -> tuple[int, int] | None:
        try:
            space = self._disk.space(path)
        except StorageFailed:
            return None
        return space.total, space.free


def run(seat: Seat) -> int:
    """Control until the appliance drains; 0 is an orderly end."""
    log = Log(str(seat.me))
    links = Links(seat, log)
    loop = Loop(seat, links)
    folders = [path for one in seat.log_dirs for path in (one, os.path.abspath(one))]
    disk = ReservedDisk(OsDisk(), folders)
    threads = Flusher(2)  # a sync does not wait for a snapshot
    control = Control(seat, links, log, start(seat, disk, OsClock(), os.urandom, log), threads)
    loop.register(threads.fd, select.EPOLLIN, control)
    control.open_for_business()
    loop.run(control)
    control.close()
    return 0
