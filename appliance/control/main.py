"""Entry of the control process: format or open the folder, lead or follow the metadata log, answer
requests.

One turn: requests of all netprocs are decided over the speculative image and appended in order, and
a thread begins one fdatasync for them all. When it has ended, rows of the partition table, the
committed offset and the answers become visible, in that order; what was appended meanwhile waits
for the next one. When leadership is lost, whatever is not committed is answered NOT_CONTROLLER.
Snapshots are written on a thread, too. A storage failure ends the process; its successor reads what
is on the disk.
"""

import os
import select
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from appliance.authorization.rights import Callers, Rights
from appliance.base.clock import OsClock
from appliance.base.errors import DiskFull, PeerError, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.base.reserve import ReservedDisk
from appliance.config.broker import BrokerConfig
from appliance.control import quorum_wire
from appliance.control.asked import read
from appliance.control.id_blocks import IdBlocks
from appliance.control.keeping import Keeper
from appliance.control.leadership import NotController
from appliance.control.leading import Leading
from appliance.control.mutations import Mutations
from appliance.control.quorum_driver import QuorumDriver
from appliance.control.requests import USUAL, Requests
from appliance.control.room import Room
from appliance.control.snapshots import Unwritten
from appliance.control.startup import Started, first_time, start
from appliance.control.topic_trash import TopicTrash
from appliance.control.waiting import LOST, UNDONE, WaitingAnswers
from appliance.controller.decision import NO_LIMIT, Record, Situation
from appliance.controller.placement import assign_directory
from appliance.controller.producer_ids import ProducerIds
from appliance.controller.registration import Incarnation
from appliance.handlers.admin import AdminContext, Quorum
from appliance.metadata import effective
from appliance.metadata.changes import Change, TopicAdded, TopicRemoved
from appliance.metadata.identity import META_PROPERTIES, new_uuid
from appliance.peers.link import Link, Watcher
from appliance.ring import partition_table as columns
from appliance.ring.messages import ASSIGN, ENSURE_TOPIC, FORWARD, PRODUCER_IDS, Message
from appliance.ring.process_table import IOPROC, NETPROC, READY, Peer
from appliance.shell.answers import Answers
from appliance.shell.flusher import Done, Flusher, Tag
from appliance.shell.links import Links
from appliance.shell.log import ERROR, NOTICE, WARNING, Log
from appliance.shell.loop import STOP, Loop
from appliance.shell.seat import Seat
from appliance.wire import kraft_records as kraft

_SYNC: Final = 0
_SNAPSHOT: Final = 1
_NOTE: Final = 2
DRAIN_STAGE: Final = 3
"""The stage of the orderly end in which control stops (`ProcessTable.drain`)."""


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
        self,
        seat: Seat,
        links: Links,
        log: Log,
        started: Started,
        threads: Threads,
        watcher: Watcher | None = None,
    ) -> None:
        """watcher: the loop, for connections to other nodes."""
        self.keeper: Keeper | None = None  # of the history
        self._seat = seat
        self._links = links
        self._log = log
        self._clock = started.clock
        self._random = started.random
        self._disk = started.disk
        self._quorum = started.quorum
        self._identity = started.identity
        self._rows = started.rows
        self._dirs = started.dirs
        self._producer_ids = ProducerIds()
        self._trash = TopicTrash(self._disk, seat.log_dirs, self._rows.everyone_has, log)
        self._leading = Leading(
            seat, self._disk, self._quorum, self._identity, self._random, self._register, log
        )
        keep = seat.config.int("penstock.disk.free.min.bytes")
        self._room = Room(self._disk, started.dirs, keep, log)
        self._requests = Requests(
            self._append, self._report, self._blocked_ms, lambda: self._room.told(0), seat.errors
        )
        self._driver = QuorumDriver(
            self._quorum, self._identity, seat.config, self._disk, self._clock, log, self
        )
        if watcher is not None:
            self._driver.connect(
                lambda voter, name: Link(
                    voter.node_id, voter.host, voter.port, watcher, self._clock, name
                )
            )
        self._published = False  # what is committed, by this process
        self._threads = threads
        self._syncing = False
        self._noting = False
        self._writing = False  # a snapshot
        self._waiting = WaitingAnswers()
        self._id_blocks = IdBlocks(
            {index: links.writer(IOPROC, index) for index in range(seat.ioprocs)}
        )
        self._callers = Callers(seat.authorizer)
        self._mutations = Mutations(seat, self._clock, self._quorum.images.committed)
        self._answers = {
            index: Answers(links.writer(NETPROC, index)) for index in range(seat.netprocs)
        }

    def open_for_business(self) -> None:
        """Who is alone leads, and publishes what that appended: everyone may follow. Others wait
        for what is agreed. Raises as `first_time`."""
        with first_time(self._seat):
            if self._quorum.alone:
                self.lead()
                self._show(self._quorum.sync())
            else:
                self._quorum.snapshots.began(self._clock.wall_ms())
        self._links.set_state(READY)

    def lead(self) -> None:
        """The only voter of a quorum leads, whenever it does not. Raises StorageFailed."""
        self._quorum.elected(self._clock.wall_ms())
        self._driver.settle()

    def resign(self) -> None:
        """Lead no more."""
        self._quorum.replica.resign(self._clock.monotonic_ns() // 1_000_000)
        self._driver.settle()

    # What the quorum says (`quorum_driver.Roles`) -------------------------------------------------

    def led(self) -> None:
        """This node was elected. Raises StorageFailed."""
        self._leading.lead(self._clock.wall_ms())

    def lost(self) -> None:
        """Another node leads, or nobody: what is not committed was never decided here, and whoever
        waits for it hears so."""
        self._leading.resign()
        self._refuse(LOST)

    def leader_changed(self) -> None:
        """Everyone here may know who leads."""
        leadership = self._quorum.leadership
        leader, epoch = leadership.leader_id, leadership.epoch
        self._seat.processes.publish_leader(leader, epoch)
        if not self._quorum.alone:
            self._log.event(NOTICE, "metadata-leader", node=leader, epoch=epoch)

    def reply(self, netproc: int, token: int, code: int, body: bytes) -> None:
        """The answer to a request of another node."""
        self._answers[netproc].put(token, code, body)

    def _refuse(self, why: int) -> None:
        """What was decided behind all that the image knows will not be."""
        for netproc, token, code, body in self._waiting.refuse(self._quorum.seen, why):
            self._answers[netproc].put(token, code, body)
        self._id_blocks.undo(self._quorum.seen)

    def _register(self, incarnation: Incarnation) -> None:
        context = self._context()
        context.situation.directories = tuple(one for one in self._dirs.ids if one is not None)
        self._requests.register(incarnation, context, self._quorum.seen)

    def peers_changed(self, peers: list[Peer]) -> None:
        """Answers to a dead netproc go nowhere; what it asked for is done all the same."""
        for peer in peers:
            if peer.kind == NETPROC:
                self._answers[peer.index].drop()
                self._waiting.forget(peer.index)
                self._driver.served.forget(peer.index)
            elif peer.kind == IOPROC:
                self._id_blocks.forget(peer.index)

    def handle(self, peer: Peer, messages: list[Message]) -> None:
        """Decide on what one netproc asks; answered when all that it could see is committed."""
        if peer.kind == IOPROC:
            for message in messages:
                if message.op == PRODUCER_IDS:
                    self._give_ids(peer.index)
                else:
                    self._assign(message)
        if peer.kind != NETPROC:
            return
        context = self._context()
        leads = self._quorum.leadership.leads
        for message in messages:
            if message.op not in (FORWARD, ENSURE_TOPIC):
                continue
            asked = read(message, self._callers)
            if message.op == FORWARD and message.b >> 16 in quorum_wire.SERVED:
                self._serve_voter(peer.index, message, asked.rights)
                context, leads = self._context(), self._quorum.leadership.leads
                continue
            context.rights = asked.rights
            context.situation.permit = NO_LIMIT
            if leads:
                context.situation.permit = self._mutations.permit(message, asked.rights.caller)
            if message.op == FORWARD:
                arena = self._seat.arenas[peer.index]
                decision = self._requests.forwarded(message, arena, context, leads=leads)
            else:
                decision = self._requests.ensure_topic(message, asked.topic, context, leads=leads)
            self._waiting.put(peer.index, message.token, decision, self._quorum.seen)
            self._refresh(context)

    def _serve_voter(self, netproc: int, message: Message, rights: Rights) -> None:
        key, version = message.b >> 16, message.b & 0xFFFF
        body = bytes(self._seat.arenas[netproc][message.a : message.a + message.e])
        self._driver.served.serve(netproc, message.token, key, version, body, rights)

    def _give_ids(self, ioproc: int) -> None:
        """A block of producer ids, once it is written down that it is taken."""
        try:
            records, first = self._producer_ids.block(self._context().situation)
            self._append(records)
        except (DiskFull, NotController, PeerError):
            self._id_blocks.refuse(ioproc)
        else:
            self._id_blocks.put(ioproc, first, self._quorum.seen)

    def _assign(self, message: Message) -> None:
        """A partition has moved, or nearly so: write down the folder that it is in."""
        found = self._seat.partitions.holder(message.handle)
        if message.op == ASSIGN and found is not None and 0 <= message.a < len(self._dirs.ids):
            directory_id = self._dirs.ids[message.a]
            node_id, image = self._identity.node_id, self._quorum.image
            topic = image.topics_by_id.get(found.topic_id)
            if topic is not None and directory_id is not None:
                partition = topic.partitions[found.partition]
                new = assign_directory(topic.topic_id, partition, node_id, directory_id)
                if new:  # an ioproc asks again when it does not see it yet
                    with suppress(DiskFull, NotController):
                        self._append(new)

    def ready(self, mask: int) -> None:
        """A job ended: the turn that follows takes the result."""
        self._threads.hush()

    def turn(self, now_ns: int) -> int:
        """Sync, publish, answer; now and then a snapshot."""
        self._room.tick(now_ns)
        if self.keeper is not None:
            self.keeper.turn(now_ns)
        now_ms = self._clock.wall_ms()
        quorum, driver = self._quorum, self._driver
        drain = self._seat.processes.drain
        if drain:
            driver.leave()
        driver.tick(now_ns // 1_000_000)
        self._leading.again(now_ns, now_ms)
        self._take(now_ms)
        while self._begin(now_ms):
            self._take(now_ms)  # it may have been quick
        wait_ms = driver.flush(now_ns // 1_000_000)
        if quorum.behind or (driver.level and not self._published):
            self._show(quorum.advance())
        for netproc, token, code, body in self._waiting.release(quorum.committed):
            self._answers[netproc].put(token, code, body)
        full = [answers for answers in self._answers.values() if not answers.push()]
        said = self._id_blocks.release(quorum.committed)
        self._links.flush()
        if quorum.leadership.leads and self._trash.due(now_ms):
            self._trash.tick(quorum.image, self._settings(), quorum.seen, now_ms)
        if drain >= DRAIN_STAGE and not (self._syncing or self._noting):
            return STOP
        if quorum.behind or (quorum.log.unsynced and not self._syncing):
            return 0
        return 1 if full or not said else wait_ms

    def _begin(self, now_ms: int) -> bool:
        """A sync for all that was appended, a note of what is to be deleted, and a snapshot of what
        is committed; whether there was something to begin.

        A snapshot that is being written when control ends is written by its successor."""
        quorum = self._quorum
        begun = False
        if not self._noting and (note := self._trash.job()) is not None:
            self._noting = begun = True
            self._threads.submit((_NOTE, note[0]), note[1])
        if not self._writing and quorum.snapshot_due(now_ms):
            frozen = quorum.begin_snapshot(now_ms)
            self._writing = begun = True
            self._threads.submit(
                (_SNAPSHOT, frozen), partial(frozen.write, self._disk, quorum.log.folder)
            )
        if not self._syncing and quorum.log.unsynced:
            job = quorum.log.begin_sync()
            assert job is not None, "there is something to sync"
            self._syncing = begun = True
            self._threads.submit((_SYNC, job), job.run)
        return begun

    def _take(self, now_ms: int) -> None:
        for done in self._threads.take():
            kind, what = done.tag
            if kind == _SNAPSHOT:
                self._writing = False
                self._snapshot_written(what, done.failure, now_ms)
            elif kind == _NOTE:
                self._noting = False
                self._trash.wrote(what, done.failure)
                self._noted(what, now_ms)
            else:
                self._syncing = False
                self._show(self._quorum.end_sync(what, done.failure))

    def _noted(self, note: int, now_ms: int) -> None:
        """The deletions that waited for it go into the log."""
        try:
            self._quorum.noted(note, now_ms)
        except DiskFull:
            self._refuse(UNDONE)

    def _snapshot_written(self, frozen: Unwritten, failure: Exception | None, now_ms: int) -> None:
        """Without a new snapshot the log only gets longer: a full disk is no reason to end."""
        try:
            if failure is not None:
                raise failure
            self._quorum.snapshots.end(frozen, now_ms)
        except StorageFailed as cause:
            self._log.event(ERROR, "metadata-snapshot-failed", cause=str(cause))
        else:
            self._log.event(NOTICE, "metadata-snapshot", offset=frozen.snapshot.offset)

    def close(self) -> None:
        """The orderly end: the log is synced, nobody asks any more."""
        self._quorum.log.close()
        if self.keeper is not None:
            self.keeper.close()

    def name_of(self, topic_id: bytes) -> str:
        """Of a topic that is committed, "" when there is none."""
        topic = self._quorum.images.committed.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    def _append(self, records: list[Record]) -> None:
        """Raises DiskFull and NotController: none of it is there then."""
        self._leading.check()
        image, now_ms = self._quorum.image, self._clock.wall_ms()
        note = 0
        if any(isinstance(one, kraft.TopicRecord | kraft.RemoveTopicRecord) for one in records):
            note = self._trash.before(records, image, self._settings(), self._size, now_ms)
        self._quorum.append(records, now_ms, behind=note)

    def _settings(self) -> BrokerConfig:
        """Those of the file with what was set while we run on top."""
        return effective.broker_config(self._quorum.image, self._seat.config)

    def _blocked_ms(self, name: str) -> int:
        return self._trash.blocked_ms(name, self._settings, self._clock.wall_ms())

    def _size(self, topic_id: bytes, index: int) -> tuple[int, int]:
        handle = self._rows.handles.get((topic_id, index))
        if handle is None:
            return 0, 0
        row = self._seat.partitions.read_row(handle)
        return row[columns.SIZE_BYTES], row[columns.LOG_END] - row[columns.LOG_START]

    def _show(self, changes: list[Change]) -> None:
        """These changes are committed: rows first, then the offset."""
        committed = self._quorum.committed
        for change in changes:
            self._rows.apply(change, committed)
            self._tell(change)
        self._mutations.follow(changes, self._quorum.images.committed)
        if not self._driver.level:
            return  # others begin with what is agreed now, not with what was once
        self._published = True
        table = self._seat.processes
        table.publish_metadata(committed)
        table.set_applied(self._seat.me, committed)
        self._links.wake_sleepers()

    def _tell(self, change: Change) -> None:
        if isinstance(change, TopicAdded):
            back = change.topic_id in self._trash.view.topics
            event = "topic-undeleted" if back else "topic-created"
            self._log.event_kept(NOTICE, event, topic=change.name)
        elif isinstance(change, TopicRemoved):
            self._log.event_kept(NOTICE, "topic-deleted", topic=change.name)

    def _report(self, event: str, fields: Mapping[str, object]) -> None:
        if event in USUAL:
            self._log.note(NOTICE, event, **fields)
        else:
            self._log.event_seldom(ERROR if event == "bug" else WARNING, event, **fields)

    def _context(self) -> AdminContext:
        situation = Situation(
            image=self._quorum.image,
            config=self._seat.config,
            node_id=self._identity.node_id,
            directory_id=self._identity.directory_id,
            new_id=lambda: new_uuid(self._random),
            free_rows=0,
            directories=self._directories(),
        )
        context = AdminContext(
            situation=situation,
            producer_ids=self._producer_ids,
            partitions=self._seat.partitions,
            handles=self._rows.handles,
            quorum=Quorum(-1, 0, 0),
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
        context.situation.free_rows = self._rows.free - self._quorum.images.partitions
        context.situation.counts = None
        context.situation.no_room = self._room.lacking()
        context.now_ms = self._clock.wall_ms()
        context.quorum = self._driver.described(context.now_ms)

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
    log = seat.log()
    links = Links(seat, log)
    loop = Loop(seat, links)
    folders = [path for one in seat.log_dirs for path in (one, os.path.abspath(one))]
    disk = ReservedDisk(OsDisk(), folders)
    threads = Flusher(3)  # a sync does not wait for a snapshot, nor for a note
    started = start(seat, disk, OsClock(), os.urandom, log)
    control = Control(seat, links, log, started, threads, loop)
    loop.register(threads.fd, select.EPOLLIN, control)
    one = Flusher(1)  # of the history: nothing waits for it
    loop.register(one.fd, select.EPOLLIN, one)
    control.keeper = Keeper(seat, disk, OsClock(), control.name_of, one, log)
    control.open_for_business()
    loop.run(control)
    control.close()
    return 0
