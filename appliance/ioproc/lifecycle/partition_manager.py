"""Which partitions this ioproc serves, kept level with the cluster's metadata.

Invariant: `core.partitions` holds exactly the partitions of the image whose hash is ours and whose
log could be opened; a log that could not be opened is reported once and its row says OFFLINE; where
only room was missing that is tried again.
Where other nodes have replicas nothing is led before this life of the appliance is registered: by
what the metadata says of an earlier life its log may be shorter than the epoch it would lead in.
Called by the shell: `opening` step by step at the start, then `apply` for what changes.
"""

import errno
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic_ns
from typing import Final

from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.home import home_of
from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig
from appliance.ioproc.deletion.deleted_folders import key_of, read_mark
from appliance.ioproc.deletion.partition_deletion import PartitionDeletion
from appliance.ioproc.deletion.undelete import PartitionUndelete
from appliance.ioproc.lifecycle.lost_offsets import say_cut, say_missing
from appliance.ioproc.lifecycle.opened_partition import find_wanted
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.lifecycle.partition_roles import Key, PartitionRoles
from appliance.ioproc.lifecycle.replica_rebuild import ReplicaRebuild
from appliance.ioproc.log_folders import folder_names
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.turn.job_context import JobContext
from appliance.logstore.files import deleted_folder
from appliance.logstore.partition_metadata import read_topic_id
from appliance.logstore.removal import Removal
from appliance.metadata.changes import (
    BrokerChanged,
    Change,
    ConfigChanged,
    PartitionAdded,
    PartitionChanged,
    TopicAdded,
    TopicRemoved,
)
from appliance.metadata.effective import broker_config, log_config
from appliance.metadata.follower import Follower
from appliance.metadata.image import TOPIC, MetadataImage
from appliance.metadata.log_dirs import directory_of
from appliance.metadata.parts import TopicImage
from appliance.shell.log import ERROR, NOTICE
from appliance.shell.seat import Seat

OPENING_NS: Final = 4_000_000
"""Of one turn at most, with what new roles took in it, so that many new partitions do not hold up
the rest."""
_TRY_AGAIN_NS: Final = 1_000_000_000


class PartitionManager:
    """The partitions of the ioproc in this seat.

    New partitions are opened some in each turn, and at once when somebody asks for them. leaving:
    those whose topic was deleted, into the trash and out of it."""

    def __init__(
        self,
        seat: Seat,
        ground: JobContext,
        follower: Follower,
        housekeeping: Housekeeping,
        opener: PartitionOpener,
        leaving: PartitionDeletion,
        returning: PartitionUndelete,
        came_back: Callable[[Partition], None],
        look: Callable[[int, bytes, int], None],
    ) -> None:
        """came_back: told of each partition that was in the trash, when it is served again.
        look: at each that cannot be opened, and that the metadata say something new of: row, topic
        id, partition."""
        self._me = seat.index
        self._ioprocs = seat.ioprocs
        self._config: BrokerConfig = seat.config
        self._node_id = self._config.int("node.id")
        self._run_id = seat.run_id
        self._disk, self._dirs, self._core, self._events = ground
        self._follower = follower
        self._housekeeping = housekeeping
        self._opener = opener
        self._trash = leaving.trash
        self._returning = returning
        self._came_back = came_back
        self._look = look
        self.roles = PartitionRoles(self._node_id, self._run_id, self._core, follower, look)
        self._now_ms = 0  # at the last look
        self._waiting = OrderedDict[int, Key]()  # row → topic id and partition to open
        self._without_room: dict[int, tuple[bytes, int]] = {}  # could not be opened on a full disk
        self._next_try_ns = 0
        self._replicas: dict[tuple[bytes, int], Partition] = {}  # that are open, and some that were
        self.opened = 0
        self.total = 0
        self.leaving = leaving
        remove = housekeeping.remove_later
        self._afresh = ReplicaRebuild(self._node_id, ground, follower, leaving, remove)

    def open_all(self, now_ns: int, now_ms: int) -> None:
        """At the start: open everything that is ours, then move strays away. On any thread that has
        core and logs for itself; takes as long as their logs are large."""
        self._now_ms = now_ms
        image = self._follower.image
        self._trash.find_folders(image)
        for path, failure in self._opener.journals.read_journals().items():
            self._events.event(ERROR, "log-dir-failed", folder=path, cause=failure)
        ours = [
            (topic, partition.index)
            for topic in image.topics_by_name.values()
            for partition in topic.partitions
            if home_of(topic.topic_id, partition.index, self._ioprocs) == self._me
            and self._node_id in partition.replicas
        ]
        self.total = len(ours)
        wanted = partial(find_wanted, self._follower, self._config, self._trash, now_ms)
        for topic, index in self._opener.open_ahead(ours, wanted):
            self._open(topic, index, now_ns, now_ms)
            self.opened += 1
        done = self._opener.journals.remove_served(lambda one: not self.keeps(one))
        for path, failure in done.items():
            self._events.event(ERROR, "journal-not-removed", file=path, cause=failure)
        for number, path in self._dirs.online():
            try:
                self._clean_up(number, path, now_ms)
            except StorageFailed as failure:
                if not number:
                    raise
                self._events.event(ERROR, "log-dir-failed", folder=path, cause=failure)
        self._say_strays()
        self._leave_folders()

    def _clean_up(self, number: int, parent: str, now_ms: int) -> None:
        """Move away what belongs to nobody, remove what was deleted for good."""
        self._move_strays(number, parent)
        for folder in folder_names.deleted(self._disk, parent, self._me, self._ioprocs):
            if key_of(folder) is None:  # the others are the trash's
                self._housekeeping.remove_later(Removal(now_ms, (), folder))

    def apply(self, changes: list[Change], before: int = 0) -> None:
        """Follow what the metadata log says has changed behind the offset `before`. Where many
        roles are others, `roles` has the rest of them."""
        self._core.served.stirred = True
        image = self._follower.image
        reread: dict[str, None] = {}
        if any(isinstance(change, TopicAdded | TopicRemoved) for change in changes):
            self._trash.reread()
        removed = self._open_of(changes)
        for change in changes:
            try:
                self._apply_one(image, change, before, removed, reread)
            except Exception as bug:
                self._confine(change, bug)
        if removed:
            known = image.topics_by_id
            still = ((h, key) for h, key in self._waiting.items() if key[0] in known)
            self._waiting = OrderedDict(still)
            self._returning.forget_others(known)
        self._run("new rules", lambda: self._new_rules(image, reread))
        self.roles.tell_roles()

    def _apply_one(
        self,
        image: MetadataImage,
        change: Change,
        before: int,
        removed: Mapping[bytes, list[Partition]],
        reread: dict[str, None],
    ) -> None:
        """reread: gets the names of topics whose settings may be others."""
        if isinstance(change, PartitionAdded):
            self._added(change)
        elif isinstance(change, PartitionChanged):
            self._changed(image, change, before)
        elif isinstance(change, BrokerChanged):
            self._registered(change.broker_id)
        elif isinstance(change, TopicRemoved):
            kept = self.keeps(change.topic_id)
            self._trash.deleted(change.name, change.topic_id)
            self.leaving.begin_deletion(removed[change.topic_id], before, kept=kept)
            for partition in removed[change.topic_id]:
                self._replicas.pop((partition.topic_id, partition.index), None)
        elif isinstance(change, ConfigChanged):
            every = change.resource_type != TOPIC
            names = image.topics_by_name if every else (change.resource_name,)
            reread.update(dict.fromkeys(names))
            if every:
                self._housekeeping.configure(broker_config(image, self._config))

    def _confine(self, change: Change, bug: Exception) -> None:
        """The partition of a change that is half followed is served no more."""
        partition: Partition | None = None
        if isinstance(change, PartitionAdded | PartitionChanged):
            handle = self._follower.handles.get((change.topic_id, change.index), -1)
            partition = self._core.partitions.get(handle)
        if partition is None:
            self._core.barrier.report_bug("a change of the metadata", bug)
        else:
            self._core.barrier.confine_bug("a change of the metadata", partition, bug)
            self._core.tell_observers()
        self._mend()

    def _added(self, change: PartitionAdded | PartitionChanged) -> None:
        key = (change.topic_id, change.index)
        handle = self._follower.handles.get(key)
        if home_of(*key, self._ioprocs) != self._me or handle is None:
            return  # not ours, or gone again by now
        if not self._returning.add(handle, (change.name, change.index), key):
            self._waiting[handle] = key

    @property
    def busy(self) -> bool:
        """True while partitions move into the trash or out of it."""
        return self.leaving.busy or self._returning.busy

    def open_slice(self, now_ns: int, now_ms: int) -> bool:
        """Let deleted partitions go and open new ones for a while; False when there are more."""
        self._now_ms = now_ms
        run, image, waiting = self._run, self._follower.image, self._waiting
        all_gone, leaving = [False], self.leaving
        run("partitions that go", lambda: all_gone.append(leaving.delete_slice(now_ns, now_ms)))
        returning, afresh = self._returning, self._afresh
        run("partitions that come back",
            lambda: waiting.update(returning.undelete_next(image.topics_by_id)))  # fmt: skip
        run("damaged replicas", lambda: waiting.update(afresh.rebuild_slice(now_ns, now_ms)))
        run("the trash", lambda: self._empty_trash(now_ns, now_ms))
        if self._without_room and now_ns >= self._next_try_ns:
            self._next_try_ns = now_ns + _TRY_AGAIN_NS
            self._waiting.update(self._without_room)
        until = monotonic_ns() + OPENING_NS - self.roles.spent_ns
        self.roles.spent_ns = 0
        while self._waiting:
            _, key = self._waiting.popitem(last=False)  # a dict would look for the first anew
            self._open_new(*key, now_ns, now_ms)
            if monotonic_ns() >= until:
                break
        return all_gone[-1] and not self._waiting

    def _empty_trash(self, now_ns: int, now_ms: int) -> None:
        for folder in self._trash.expire_folders(self._follower.image, now_ns):
            self._housekeeping.remove_later(Removal(now_ms, (), folder))

    def _run(self, where: str, chore: Callable[[], object]) -> None:
        """Run one of several chores: an exception costs this run of it, and the others go on."""
        try:
            chore()
        except Exception as bug:
            self._core.barrier.report_bug(where, bug)
            self._mend()

    def _mend(self) -> None:
        """Let partitions go on that an exception has left on their way."""
        self.leaving.mend()
        self._waiting.update(self._returning.mend())

    def keeps(self, topic_id: bytes) -> bool:
        """True if folders of this deleted topic may return, or have returned."""
        return self._trash.keeps(topic_id) or topic_id in self._follower.image.topics_by_id

    def may_return(self, topic_id: bytes) -> bool:
        """True if this deleted topic may return, if need be with the copies of other nodes."""
        return self._trash.knows(topic_id) or topic_id in self._follower.image.topics_by_id

    def gone(self) -> list[tuple[str, bytes]]:
        """Names and ids of deleted topics that can never come back, each once."""
        found, self._trash.gone = self._trash.gone, []
        return found

    def fetch(self, handle: int) -> Partition | None:
        """Somebody asks for a partition that is not open: now is its time, if it is ours."""
        if self._returning.busy:
            self._waiting.update(self._returning.hurry(handle, self._follower.image.topics_by_id))
        found = self._waiting.pop(handle, None)
        if found is not None:
            self._open_new(*found, monotonic_ns(), self._now_ms)
        return self._core.partitions.get(handle)

    def _open_new(self, topic_id: bytes, index: int, now_ns: int, now_ms: int) -> None:
        topic = self._follower.image.topics_by_id.get(topic_id)
        if topic is not None:
            self._open(topic, index, now_ns, now_ms)
        elif self._without_room:  # of a topic that was deleted meanwhile, perhaps
            known = self._follower.image.topics_by_id
            kept = {h: key for h, key in self._without_room.items() if key[0] in known}
            self._without_room = kept

    def _open(self, topic: TopicImage, index: int, now_ns: int, now_ms: int) -> None:
        """An exception costs this partition: until the next start it is offline."""
        try:
            self._try_to_open(topic, index, now_ns, now_ms)
        except Exception as bug:
            key, core = (topic.topic_id, index), self._core
            handle = self._follower.handles[key]
            partition = core.partitions.get(handle)
            if partition is not None:
                core.barrier.confine_bug("opening", partition, bug)
                core.tell_observers()
            else:
                core.barrier.report_bug("opening", bug, partition=f"{topic.name}-{index}")
                core.served.refuse_row(handle)
                self._look(handle, *key)
            self._mend()

    def _try_to_open(self, topic: TopicImage, index: int, now_ns: int, now_ms: int) -> None:
        handle = self._follower.handles.get((topic.topic_id, index))
        if handle is None or handle in self._core.partitions:
            return
        name = f"{topic.name}-{index}"
        rules = self._rules_of(self._follower.image, topic.name)
        found = topic.partitions[index]
        if self._node_id not in found.replicas:
            return
        key = (topic.topic_id, index)
        try:
            self.leaving.make_way((topic.name, index), key, (now_ns, now_ms))
            known = self._follower.image.topics_by_id
            self._waiting.update(self._returning.make_way((topic.name, index), key, known))
            self._make_way(name, topic.topic_id)
            was_deleted = self._returning.is_out(key)
            was_deleted = was_deleted or self._trash.bring_back(name, key, self._opener.strays)
            self._afresh.may_be_opened(name, key, found)
            where = self._afresh.lay_in(key) or directory_of(found, self._node_id)
            log, directory, visible, marked = self._opener.open_log(
                topic.name, index, topic.topic_id, handle, rules, now_ms, where
            )
            role = self.roles.of(found)
            name_of = handle, topic.name, index, topic.topic_id
            partition = Partition(*name_of, log, found.leader_epoch, role, visible, now_ms)
            partition.directory = directory
            self._say_strays()
            say_cut(self._events, partition)
            if self.opened < self.total:  # later, a name in the checkpoints is of an older topic
                with suppress(StorageFailed):  # whoever reads there is told
                    say_missing(self._events, self._opener, partition)
            if marked:
                self._housekeeping.trims.add(partition, partial(self._written_down, log.path))
        except StorageFailed as failure:
            if handle not in self._without_room:  # or it was said before
                self._core.served.refuse_row(handle)
                self._look(handle, *key)
                self._events.event(ERROR, "partition-offline", partition=name, cause=failure)
                self._afresh.not_opened(handle, key, failure)
            if isinstance(failure, DiskFull):
                self._without_room[handle] = (topic.topic_id, index)
            else:
                self._without_room.pop(handle, None)
            return
        if self._without_room.pop(handle, None):
            self._events.event(NOTICE, "partition-online", partition=name)
        self._core.add(partition, now_ns)
        self._replicas[key] = partition
        if was_deleted:
            self._run("what was open in it", partial(self._came_back, partition))
        while self._opener.stale:  # a move had come so far that the other copy counts
            # Under another id than the topic's: this copy is never to come back.
            other = bytes(byte ^ 0xFF for byte in topic.topic_id).hex()
            self._drop(self._opener.stale.pop(), other, now_ms)

    def _written_down(self, path: str, failure: StorageFailed | None) -> None:
        """The checkpoints know of the log again, or its mark stays for the next start."""
        if failure is None:
            with suppress(StorageFailed):
                self._trash.unmark(path)

    def _drop(self, folder: str, unique: str, now_ms: int) -> None:
        try:
            gone = deleted_folder(folder, unique)
            self._disk.rename(folder, gone)
        except StorageFailed as failure:
            self._events.event(ERROR, "not-deleted", folder=folder, cause=failure)
        else:
            self._housekeeping.remove_later(Removal(now_ms, (), gone))

    def _make_way(self, name: str, topic_id: bytes) -> None:
        """A deletion that was cut short may have left the folder of an earlier topic."""
        for number, parent in self._dirs.online() if self._trash.keeps_some else ():
            path = f"{parent}/{name}"
            if self._disk.exists(path):
                found = read_topic_id(self._disk, path)
                if found and found != topic_id and self._trash.keeps(found):
                    self._put_away(number, name, found)

    def _put_away(self, number: int, name: str, topic_id: bytes) -> None:
        parsed = folder_names.parse(name)
        assert parsed is not None
        path = f"{self._dirs.paths[number]}/{name}"
        mark = read_mark(self._disk, path) or self._opener.known(number, parsed)
        self._trash.put_away(path, (topic_id, parsed[1]), mark)

    def _move_strays(self, number: int, parent: str) -> None:
        """Folders whose partition does not exist any more (a deletion was cut short) or never
        did. Only the home of a partition touches its folder: another ioproc may have made it just
        now."""
        image = self._follower.image
        for name in self._disk.listdir(parent):
            parsed = folder_names.parse(name)
            found = None if parsed is None else image.partition(*parsed)
            if parsed is None or (found is not None and self._node_id in found.replicas):
                continue
            try:
                self._move_stray(number, name, parsed[1])
            except StorageFailed as failure:  # others are served all the same
                self._events.event(ERROR, "not-deleted", folder=f"{parent}/{name}", cause=failure)

    def _move_stray(self, number: int, name: str, index: int) -> None:
        path = f"{self._dirs.paths[number]}/{name}"
        topic_id = read_topic_id(self._disk, path)
        owner = (topic_id, index) if topic_id else (name.encode(), 0)
        if home_of(*owner, self._ioprocs) != self._me:
            return
        if topic_id and self._trash.keeps(topic_id):
            self._put_away(number, name, topic_id)
        else:
            unique = (topic_id or bytes(16)).hex()
            self._opener.strays.append(folder_names.move_away(self._disk, path, unique))

    def _say_strays(self) -> None:
        for stray in self._opener.strays:
            self._events.event(NOTICE, "folder-moved-away", folder=stray)
        self._opener.strays.clear()

    def _changed(self, image: MetadataImage, change: PartitionChanged, before: int) -> None:
        key = change.topic_id, change.index
        found = image.partition(change.name, change.index)
        if found is None:
            return
        here = self._node_id in found.replicas
        if here and self._follower.handles.get(key, -1) in self._core.partitions:
            self.roles.queue_role(key)
            return
        self._let_replica_go(change, before)
        if here:
            self._added(change)

    def _let_replica_go(self, change: PartitionChanged, before: int) -> None:
        """This node has no replica of the partition any more, or another one, in another row."""
        partition = self._replicas.pop((change.topic_id, change.index), None)
        if partition is not None and self._core.partitions.get(partition.handle) is partition:
            self.leaving.begin_deletion([partition], before, kept=False, removed=True)

    def _registered(self, broker_id: int) -> None:
        """Perhaps this life of the appliance: now it leads what the metadata says, and what lies in
        a folder that is said to be offline is."""
        self._core.brokers_changed()
        if broker_id == self._node_id:
            self._leave_folders()
            image = self._follower.image
            for partition in self._core.partitions.values():
                if not partition.leads and partition.broken is None:
                    found = image.partition(partition.topic, partition.index)
                    if found is not None and found.leader == self._node_id:
                        self.roles.queue_role((partition.topic_id, partition.index))

    def _leave_folders(self) -> None:
        """Some of them may be told to be offline, until the next start of the appliance."""
        broker = self._follower.image.brokers.get(self._node_id)
        if broker is None or broker.incarnation_id != self._run_id or not broker.log_dirs:
            return
        gone = {
            number: path
            for number, path in self._dirs.online()
            if self._dirs.is_told_offline(number, broker.log_dirs)
        }
        for partition in list(self._core.partitions.values()) if gone else ():
            if partition.directory in gone and partition.broken is None:
                path = gone[partition.directory]
                failure = StorageFailed(path, errno.EIO, "the log folder is offline")
                self._core.fail(partition, failure)

    def _open_of(self, changes: list[Change]) -> dict[bytes, list[Partition]]:
        """The open partitions of the removed topics."""
        found: dict[bytes, list[Partition]] = {
            change.topic_id: [] for change in changes if isinstance(change, TopicRemoved)
        }
        for partition in self._core.partitions.values() if found else ():
            if partition.topic_id in found:
                found[partition.topic_id].append(partition)
        return found

    def _new_rules(self, image: MetadataImage, topics: dict[str, None]) -> None:
        rules = {
            name: self._rules_of(image, name) for name in topics if name in image.topics_by_name
        }
        if rules:
            for partition in self._core.partitions.values():
                found = rules.get(partition.topic)
                if found is not None:
                    partition.set_rules(found)

    def _rules_of(self, image: MetadataImage, topic: str) -> LogConfig:
        """The topic's settings over the broker's."""
        return log_config(image, self._config, topic)
