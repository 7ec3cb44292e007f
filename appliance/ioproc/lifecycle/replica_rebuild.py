"""Replicas whose log is not what was written: aside, and fetched anew from who leads.

One that is read and found damaged goes offline where others can do without it
(`partition_failures.py`), one that cannot be opened for damage stays so, and the controller is told
that it is LOST (`directory_reports.py`). Invariant: its folder stays as it is until the metadata
says that another node leads, and that nobody counts on this replica; it is only renamed then, and
removed when this node is in sync again, which has looked at every checksum of what it fetched; or
before, where there is no room for both. Should all end before that, a mark in the folder keeps it
from coming back as if nothing had been. Called by `partition_manager.py`.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from appliance.base.disk import write_file
from appliance.base.errors import StorageFailed
from appliance.ioproc.deletion.partition_deletion import PartitionDeletion
from appliance.ioproc.log_folders.folder_names import move_away
from appliance.ioproc.turn.job_context import JobContext
from appliance.logstore.partition_metadata import read_topic_id
from appliance.logstore.removal import Removal
from appliance.metadata.follower import Follower
from appliance.metadata.log_dirs import LOST, directory_of
from appliance.metadata.parts import PartitionImage
from appliance.shell.log import ERROR, NOTICE, WARNING

Key = tuple[bytes, int]
"""(topic id, partition)"""

MARK: Final = "penstock.damaged"


class ReplicaRebuild:
    """Those of one I/O process that are damaged, and those that are not whole again."""

    def __init__(
        self,
        node_id: int,
        ground: JobContext,
        follower: Follower,
        leaving: PartitionDeletion,
        remove: Callable[[Removal], None],
    ) -> None:
        """remove: something, on a thread."""
        self._node_id = node_id
        self._disk, self._dirs, self._core, self._events = ground
        self._follower = follower
        self._leaving = leaving
        self._remove = remove
        self._lay_in: dict[Key, int] = {}  # number of the log folder
        self._aside: dict[Key, str] = {}
        self._marked: dict[int, None] = {}  # rows

    # At an opening --------------------------------------------------------------------------------

    def may_be_opened(self, name: str, key: Key, found: PartitionImage) -> None:
        """Raises StorageFailed for a replica that was found damaged before all ended, when others
        do without it by now."""
        for _, parent in self._dirs.online():
            folder = f"{parent}/{name}"
            mark = f"{folder}/{MARK}"
            if self._disk.exists(mark) and read_topic_id(self._disk, folder) == key[0]:
                if _is_spare(found, self._node_id):
                    text = "it is damaged and is fetched again"
                    raise StorageFailed(folder, errno.EBADMSG, text)
                self._disk.unlink(mark)

    def not_opened(self, handle: int, key: Key, failure: StorageFailed) -> None:
        """A replica could not be opened: for damage it is fetched anew where others lead."""
        if failure.errno == errno.EBADMSG:
            self._core.served.damaged[handle] = key

    def _folders(self, name: str, topic_id: bytes) -> Iterator[tuple[int, str]]:
        for number, parent in self._dirs.online():
            folder = f"{parent}/{name}"
            if self._disk.exists(folder) and read_topic_id(self._disk, folder) == topic_id:
                yield number, folder

    # The clock ------------------------------------------------------------------------------------

    def rebuild_slice(self, now_ns: int, now_ms: int) -> dict[int, Key]:
        """Set aside what can be, one of them; remove what is needed no more. Returns what is to be
        opened anew: row → topic id and partition."""
        if self._aside:
            self._look_at_aside(now_ms)
        damaged = self._core.served.damaged
        for handle, key in list(damaged.items()):
            partition = self._core.partitions.get(handle)
            found = self._found(key)
            refused = partition is None and handle in self._core.served.refused
            broken = partition is not None and partition.broken is not None
            if found is None or not (refused or broken):
                del damaged[handle]  # it has gone otherwise
                self._marked.pop(handle, None)
            elif _is_spare(found, self._node_id) and directory_of(found, self._node_id) == LOST:
                del damaged[handle]
                self._marked.pop(handle, None)
                return self._set_aside(handle, key, found, (now_ns, now_ms))
            elif partition is not None and handle not in self._marked:
                self._marked[handle] = None
                with suppress(StorageFailed):
                    write_file(self._disk, f"{partition.log.path}/{MARK}", b"")
        return {}

    def _set_aside(
        self, handle: int, key: Key, found: PartitionImage, now: tuple[int, int]
    ) -> dict[int, Key]:
        partition = self._core.partitions.get(handle)
        name = f"{self._follower.image.topics_by_id[key[0]].name}-{key[1]}"
        if partition is not None:
            number, folder = partition.directory, self._leaving.set_aside(partition, now)
        else:
            number, folder = self._move_away(name, key[0], now[1])
        if not folder:
            if handle not in self._core.served.refused:
                self._core.served.refuse_row(handle)  # or its old log would come back
            return {}
        self._events.event(
            WARNING, "replica-set-aside", partition=name, folder=folder, leader=found.leader
        )
        self._lay_in[key] = number
        self._aside[key] = folder
        return {handle: key}

    def _move_away(self, name: str, topic_id: bytes, now_ms: int) -> tuple[int, str]:
        """The folder of one that was not opened: number of the log folder, and its name now; "" if
        there is none or that failed."""
        try:
            for number, folder in self._folders(name, topic_id):
                return number, move_away(self._disk, folder, f"{now_ms:032x}")
        except StorageFailed as failure:
            self._events.event(ERROR, "not-deleted", partition=name, cause=failure)
        return -1, ""

    def lay_in(self, key: Key) -> bytes:
        """The id of the log folder in which a damaged replica lay: it is made anew there; b"" for
        every other one."""
        number = self._lay_in.pop(key, -1)
        return b"" if number < 0 else self._dirs.ids[number] or b""

    def _look_at_aside(self, now_ms: int) -> None:
        for key, folder in list(self._aside.items()):
            found, handle = self._found(key), self._follower.handles.get(key, -1)
            partition = self._core.partitions.get(handle)
            whole = found is not None and self._node_id in found.isr
            low = partition is not None and partition.space.low
            if whole or low or found is None:
                del self._aside[key]
                self._remove(Removal(now_ms, (), folder))
            if whole and partition is not None:
                self._events.event(NOTICE, "replica-whole", partition=partition, removed=folder)

    def _found(self, key: Key) -> PartitionImage | None:
        topic = self._follower.image.topics_by_id.get(key[0])
        if topic is None or key[1] >= len(topic.partitions):
            return None
        found = topic.partitions[key[1]]
        return found if self._node_id in found.replicas else None


def _is_spare(found: PartitionImage, node_id: int) -> bool:
    """True if another node leads, and the replica here is in neither ISR nor ELR."""
    return (
        found.leader not in (-1, node_id)
        and found.leader in found.isr
        and node_id not in (*found.isr, *found.eligible_leader_replicas)
    )
