"""Entry of the control process: format or open the folder, lead the metadata log, answer requests.

One turn: requests of all netprocs are decided and appended in order, one fdatasync covers them
all, then rows of the partition table, the committed offset and the answers become visible, in
that order. A storage failure ends the process; its successor reads what is on the disk. A full disk
ends nothing: what needs room is refused, and a start without room leads the log later.
"""

import os
from contextlib import suppress
from typing import Final

from appliance.base.clock import OsClock
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.base.reserve import ReservedDisk
from appliance.config.broker import BrokerConfig
from appliance.control.metadata_log import MetadataLog
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
from appliance.shell.links import Links
from appliance.shell.log import ERROR, NOTICE, WARNING, Log
from appliance.shell.loop import LONGEST_WAIT_MS, STOP, Loop
from appliance.shell.seat import Seat
from appliance.wire import kraft_records as kraft

DRAIN_STAGE: Final = 3
"""The stage of the orderly end in which control stops (`ProcessTable.drain`)."""


class Control:
    """The shell of control (`loop.Shell`)."""

    def __init__(self, seat: Seat, links: Links, log: Log, started: Started) -> None:
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
        self._changes: list[Change] = []
        self._pending: list[tuple[int, int, int, bytes]] = []
        self._mutations = Mutations(seat, self._clock, self._metadata.image)
        self._answers = {
            index: Answers(links.writer(NETPROC, index)) for index in range(seat.netprocs)
        }

    def open_for_business(self) -> None:
        """What the start appended is synced and published: everyone may follow."""
        self._commit()
        self._links.set_state(READY)

    def peers_changed(self, peers: list[Peer]) -> None:
        """Answers to a dead netproc go nowhere; what it asked for is done all the same."""
        for peer in peers:
            if peer.kind == NETPROC:
                self._answers[peer.index].drop()
                self._pending = [one for one in self._pending if one[0] != peer.index]

    def handle(self, peer: Peer, messages: list[Message]) -> None:
        """Decide on what one netproc asks; answered when the turn's sync is done."""
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
            self._pending.append((peer.index, message.token, code, body))
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

    def turn(self, now_ns: int) -> int:
        """Sync, publish, answer; now and then a snapshot."""
        self._room.tick(now_ns)
        if not self._leading.begun:
            self._changes += self._leading.again(now_ns, self._clock.wall_ms())
        if self._metadata.uncommitted:
            self._commit()
        for index, token, code, body in self._pending:
            self._answers[index].put(token, code, body)
        self._pending.clear()
        full = [answers for answers in self._answers.values() if not answers.push()]
        now_ms = self._clock.wall_ms()
        if self._metadata.snapshot_due(now_ms):
            self._snapshot(now_ms)
        if self._trash.due(now_ms):
            metadata = self._metadata
            self._trash.tick(metadata.image, self._settings(), metadata.committed, now_ms)
        if self._seat.processes.drain >= DRAIN_STAGE:
            return STOP
        return 1 if full else LONGEST_WAIT_MS

    def _snapshot(self, now_ms: int) -> None:
        """Without a new snapshot the log only gets longer: a full disk is no reason to end."""
        try:
            self._metadata.snapshot(now_ms)
        except StorageFailed as failure:
            self._log.event(ERROR, "metadata-snapshot-failed", cause=str(failure))
        else:
            self._log.event(NOTICE, "metadata-snapshot", offset=self._metadata.committed)

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

    def _commit(self) -> None:
        """Make everything appended durable, then visible: rows first, then the offset."""
        self._metadata.sync()
        changes, self._changes = self._changes, []
        for change in changes:
            self._rows.apply(change, self._metadata.committed)
            self._tell(change)
        self._mutations.follow(changes, self._metadata.image)
        table = self._seat.processes
        table.publish_metadata(self._metadata.committed, self._metadata.active_size)
        table.set_applied(self._seat.me, self._metadata.committed)
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
    control = Control(seat, links, log, start(seat, disk, OsClock(), os.urandom, log))
    control.open_for_business()
    loop.run(control)
    control.close()
    return 0
