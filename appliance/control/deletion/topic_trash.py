"""Control's record of deleted topics: noted before they are removed, dropped when their time is
over or the disk is full; their names are protected from automatic creation by consumers that still
ask for them.

Invariant: control is the only writer of the file. A topic enters it before anybody else on this
node sees the record of its deletion, and leaves it when it is back with all its folders or can
never come back; so a crash at any step leaves a topic that is there, or one that can be brought
back, or none. What was said to be kept here is kept for a while (`PROMISE_MS`), whatever else
happens: others are told what leads, and what is cut off, by it. Called by
`control/deletion/deletion_journal.py`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.base.ids import INTERNAL_TOPICS
from appliance.config.broker import BrokerConfig
from appliance.logstore.files import DELETED_FOLDER
from appliance.logstore.partition_metadata import read_topic_id
from appliance.metadata import trash as trash_file
from appliance.metadata.image import MetadataImage
from appliance.metadata.trash import NO_AUTO_CREATE_MS, RETENTION_MS, Buried, DeletedTopics, Kept
from appliance.shell.log import NOTICE, WARNING, Log
from appliance.wire import kraft_records as kraft

LOOK_EVERY_MS: Final = 1000
REST_MS: Final = 5000  # after making room: the I/O processes need a moment to remove the files
PROMISE_MS: Final = 120_000
"""What another node was told of is decided in some seconds. Who has not replayed that by then was
fenced long before, and is elected by what is known of it later."""
_NAMES: Final = 2000  # deleted names that are remembered at most, and topics that are kept:
_TOPICS: Final = 1000  # the file is written with each deletion
KEEP_FREE_PERCENT: Final = 3
KEEP_FREE_TIMES: Final = 3
"""Of what `base/space.py` keeps free: the trash goes before any produce is refused."""

Sizes = Callable[[bytes, int], tuple[int, int]]
"""(topic id, partition) → (bytes, records) of its log."""


class TopicTrash:
    """The trash of this appliance. view: what is in it; read it, never write it.

    before → job → (a thread) → wrote: the file is written away from control's loop."""

    def __init__(
        self,
        disk: Disk,
        dirs: Sequence[str],
        node_id: int,
        everyone_has: Callable[[int], bool],
        log: Log,
        several: bool = False,
        monotonic_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """everyone_has: whether all other processes of this node have replayed the metadata below
        an offset. several: other nodes may keep what this one does not."""
        self._disk = disk
        self._node_id = node_id
        self._several = several
        self._monotonic_ms = monotonic_ms
        self._ends: dict[bytes, int] = {}  # topic id → an offset behind its removal
        self._promised: dict[bytes, int] = {}  # topic id → until when it is kept
        self._everyone_has = everyone_has
        self._back_at: dict[bytes, int] = {}  # topic id → an offset behind its return
        self._dirs = dirs
        self._log = log
        self._next_look_ms = 0
        self._next_room_ms = 0
        self._wanted = self._begun = 0
        self._new: dict[bytes, int] = {}  # topic id → the first note that has it
        try:
            self.view = trash_file.read(disk, dirs[0])
        except (ValueError, StorageFailed) as cause:
            log.event(WARNING, "topic-trash-unreadable", cause=str(cause))
            self.view = DeletedTopics()
        self._entries = {key: trash_file.entry(one) for key, one in self.view.topics.items()}

    def before(
        self,
        records: Iterable[object],
        image: MetadataImage,
        config: BrokerConfig,
        sizes: Sizes,
        now_ms: int,
        *,
        end: int = 0,
    ) -> int:
        """Take note of what these records, decided at now_ms, delete and create: the note that must
        be on the disk before they come true, or 0. end: offset behind them."""
        changed = False
        for record in records:
            if isinstance(record, kraft.TopicRecord):
                self.view.names.pop(record.name, None)
            elif isinstance(record, kraft.RemoveTopicRecord):
                topic = image.topics_by_id.get(record.topic_id)
                if topic is None or topic.name in INTERNAL_TOPICS:
                    continue
                if config.int(NO_AUTO_CREATE_MS):
                    self.view.names[topic.name] = now_ms
                    changed = True
                if config.int(RETENTION_MS):
                    self._bury(image, topic.topic_id, sizes, now_ms)
                    self._ends[topic.topic_id] = end
                    self._new[topic.topic_id] = self._begun + 1
                    changed = True
        if not changed:
            return 0
        self._wanted = self._begun + 1
        return self._wanted

    def job(self) -> tuple[int, Callable[[], None]] | None:
        """The next note and what writes it, on any thread, one at a time; None: nothing is to be
        written. `wrote` when it has ended."""
        if not self.unwritten:
            return None
        self._begun = self._wanted
        entries, names = tuple(self._entries.values()), dict(self.view.names)
        return self._begun, partial(
            trash_file.write_trash, self._disk, self._dirs[0], entries, names
        )

    @property
    def unwritten(self) -> bool:
        """True if `job` has something to write."""
        return self._wanted > self._begun

    def wrote(self, note: int, failure: Exception | None) -> None:
        """The job has ended. A full disk is a reason to delete, not to refuse it: then what is not
        in the file is not kept."""
        new = [topic_id for topic_id, since in self._new.items() if since <= note]
        for topic_id in new:
            del self._new[topic_id]
        if failure is not None:
            if not isinstance(failure, StorageFailed):
                raise failure
            self._log.event(WARNING, "topic-trash-not-written", cause=str(failure))
            for topic_id in new:
                self._drop(topic_id)

    def _drop(self, topic_id: bytes) -> None:
        self._ends.pop(topic_id, None)
        if self.view.topics.pop(topic_id, None) is not None:
            del self._entries[topic_id]

    def _let_go(self, buried: Buried) -> None:
        """Its folders go. What others keep of it may come back, with what groups committed."""
        if self._several:
            gone = self.view.topics[buried.topic_id] = replace(buried, let_go=True)
            self._entries[buried.topic_id] = trash_file.entry(gone)
        else:
            self._drop(buried.topic_id)

    def _bury(self, image: MetadataImage, topic_id: bytes, sizes: Sizes, now_ms: int) -> None:
        topic = image.topics_by_id[topic_id]
        found = [sizes(topic_id, one.index) for one in topic.partitions]
        size, records = sum(one[0] for one in found), sum(one[1] for one in found)
        self._back_at.pop(topic_id, None)
        before = self.view.topics.pop(topic_id, None)
        if before is not None:  # not all of it may have been open again yet
            size, records = max(size, before.size), max(records, before.records)
        buried = trash_file.bury(image, topic, now_ms, size=size, records=records)
        self.view.topics[topic_id] = buried
        self._entries.pop(topic_id, None)  # the file has the oldest deletion first
        self._entries[topic_id] = trash_file.entry(buried)
        self._log.event_seldom(NOTICE, "topic-kept", topic=topic.name, bytes=size)

    def blocked_ms(self, name: str, config: Callable[[], BrokerConfig], now_ms: int) -> int:
        """For how long the name must not be created just because a consumer goes on asking for
        it; 0: it may."""
        deleted_ms = self.view.names.get(name)
        if deleted_ms is None:
            return 0
        return max(0, deleted_ms + config().int(NO_AUTO_CREATE_MS) - now_ms)

    def kept(self, name: str) -> list[Kept]:
        """This node's deleted topics of this name, the oldest deletion first; they stay for
        `PROMISE_MS`.
        """
        found = [one for one in self.view.topics.values() if one.name == name]
        for one in found:
            self._promised[one.topic_id] = self._monotonic_ms() + PROMISE_MS
        return [Kept(one, self._held(one)) for one in found]

    def settled(self, name: str) -> bool:
        """True if every deletion of this name is noted."""
        return not any(self.view.topics[one].name == name for one in self._new)

    def _held(self, buried: Buried) -> frozenset[int]:
        """The partitions whose folders are here, renamed yet or not. A topic without records may
        be without folders: some that had just been made were never opened."""
        if not buried.records and self._alone(buried):
            return frozenset(range(buried.partitions))
        held: set[int] = set()
        for path in self._dirs if not buried.let_go else ():
            held |= self._held_in(path, buried)
            if len(held) < buried.partitions:
                # An I/O process may have renamed a folder between the listing and the look at it.
                held |= self._held_in(path, buried)
        return frozenset(held)

    def _held_in(self, path: str, buried: Buried) -> set[int]:
        """The partitions whose folders are in this log directory, as one listing has them."""
        names = set(self._names_in(path))
        held = {int(found[1]) for name in names if (found := _kept(name, buried.topic_id))}
        for index in range(buried.partitions):
            folder = f"{path}/{buried.name}-{index}"
            if f"{buried.name}-{index}" in names and self._is_of(folder, buried.topic_id):
                held.add(index)
        return held

    def _alone(self, buried: Buried) -> bool:
        """True if no other node has a replica of it."""
        records = (kraft.decode(value) for value in buried.values)
        replicas = [one.replicas for one in records if isinstance(one, kraft.PartitionRecord)]
        return all(one == (self._node_id,) for one in replicas)

    def _is_of(self, folder: str, topic_id: bytes) -> bool:
        try:
            return read_topic_id(self._disk, folder) == topic_id
        except StorageFailed:
            return False

    def due(self, now_ms: int) -> bool:
        """True if `tick` should be called."""
        if not self.view.topics and not self.view.names:
            return False
        # The wall clock may be set back: then it is time, too.
        return not self._next_look_ms - 2 * LOOK_EVERY_MS < now_ms < self._next_look_ms

    def tick(self, image: MetadataImage, config: BrokerConfig, committed: int, now_ms: int) -> None:
        """Now and then: let go of what is over, of what is back, and of what there is no room
        for. committed: end of the metadata log that made the image."""
        self._next_look_ms = now_ms + LOOK_EVERY_MS
        self._forget_names(config, now_ms)
        over_ms = self._monotonic_ms()
        self._promised = {key: end for key, end in self._promised.items() if end > over_ms}
        changed = False
        for buried in list(self.view.topics.values()):
            if buried.topic_id in image.topics_by_id:
                if not self._is_back(buried, committed):
                    continue
                del self._back_at[buried.topic_id]
            elif buried.topic_id in self._promised or not self._is_over(buried, config, now_ms):
                continue
            else:
                self._tell_gone(buried, "time")
            self._drop(buried.topic_id)
            changed = True
        changed = self._make_room(image, config, now_ms) or changed
        if changed:
            self._wanted = self._begun + 1

    def _is_over(self, buried: Buried, config: BrokerConfig, now_ms: int) -> bool:
        return buried.deleted_ms + config.int(RETENTION_MS) <= now_ms

    def _forget_names(self, config: BrokerConfig, now_ms: int) -> None:
        """That is no reason to write: a name that the file still has is over for whoever reads
        it."""
        names = self.view.names
        delay_ms = config.int(NO_AUTO_CREATE_MS)
        over = [name for name, deleted_ms in names.items() if deleted_ms + delay_ms <= now_ms]
        over += list(names)[: max(0, len(names) - _NAMES)]
        for name in over:
            names.pop(name, None)

    def _is_back(self, buried: Buried, committed: int) -> bool:
        """No folder of it is in the trash, and nobody will still put one there."""
        if committed < self._ends.get(buried.topic_id, 0):
            return False  # it has not gone yet
        if not self._everyone_has(self._back_at.setdefault(buried.topic_id, committed)):
            return False
        return not any(
            _kept(name, buried.topic_id) for path in self._dirs for name in self._names_in(path)
        )

    def _make_room(self, image: MetadataImage, config: BrokerConfig, now_ms: int) -> bool:
        lacking = self._lacking(config) if now_ms >= self._next_room_ms else 0
        dead = [
            one
            for one in self.view.topics.values()
            if one.topic_id not in image.topics_by_id and one.topic_id not in self._promised
        ]
        went = False
        for left, buried in zip(range(len(dead), 0, -1), dead, strict=True):
            if lacking <= 0 and left <= _TOPICS:
                break
            if buried.let_go and left <= _TOPICS:
                continue
            if left > _TOPICS:
                self._drop(buried.topic_id)
            else:
                self._let_go(buried)
            if not buried.let_go:
                self._tell_gone(buried, "space")
                lacking -= buried.size
            went = True
        if went:
            self._next_room_ms = now_ms + REST_MS
        return went

    def _lacking(self, config: BrokerConfig) -> int:
        """How many bytes more should be free on the fullest disk."""
        keep = KEEP_FREE_TIMES * config.int("penstock.disk.free.min.bytes")
        most = 0
        for path in self._dirs:
            try:
                total, free = self._disk.space(path)
            except StorageFailed:
                continue
            most = max(most, max(keep, total * KEEP_FREE_PERCENT // 100) - free)
        return most

    def _tell_gone(self, buried: Buried, cause: str) -> None:
        self._log.event_seldom(
            NOTICE, "topic-trash-emptied", topic=buried.name, bytes=buried.size, cause=cause
        )

    def _names_in(self, path: str) -> list[str]:
        try:
            return self._disk.listdir(path)
        except StorageFailed:
            return []


def _kept(name: str, topic_id: bytes) -> re.Match[str] | None:
    """Matches the folder of a deleted partition of the topic; group 1 is the partition."""
    return re.search(rf"-(\d+)\.{topic_id.hex()}{DELETED_FOLDER}\Z", name)
