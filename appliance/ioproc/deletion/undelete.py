"""Partitions whose topic was brought back, on their way out of the trash: a thread gives their
folders the names back, a few in each job.

Invariant: a partition that is on its way is opened only when no job works on its folder, and its
name is nobody else's before that: who opens one of them waits for a job of 16 folders at most. What
is deleted again meanwhile goes back to where it was. Called by `partition_manager.py`.
"""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.ioproc.deletion.deleted_folders import DeletedFolders, Key
from appliance.ioproc.turn.job_context import JobContext
from appliance.shell.flusher import Threads
from appliance.shell.log import ERROR

A_JOB: Final = 16


class UndeletedPartition:
    """One partition: its row, name (topic, partition), the folder in the trash. back: the path that
    the folder has again; "" while it has not. failure: why that is not durable."""

    __slots__ = ("back", "failure", "folder", "handle", "key", "name")

    def __init__(self, handle: int, name: tuple[str, int], key: Key) -> None:
        self.handle = handle
        self.name = name
        self.key = key
        self.folder = self.back = ""
        self.failure: StorageFailed | None = None


class PartitionUndelete:
    """threads: a single one, for nothing else."""

    def __init__(self, ground: JobContext, trash: DeletedFolders, threads: Threads) -> None:
        self._disk, self._dirs, self._core, self._events = ground
        self._trash = trash
        self._threads = threads
        self._queued: dict[int, UndeletedPartition] = {}
        self._under_way: dict[int, UndeletedPartition] = {}
        self._out: dict[Key, UndeletedPartition] = {}  # have their names, and are not opened yet

    @property
    def busy(self) -> bool:
        """True while a partition is being undeleted."""
        return bool(self._queued or self._under_way)

    def add(self, handle: int, name: tuple[str, int], key: Key) -> bool:
        """Bring this partition back by and by; False when its folder is not in the trash."""
        if not self._trash.holds(key):
            return False
        self._queued[handle] = UndeletedPartition(handle, name, key)
        return True

    def forget_others(self, topics: Mapping[bytes, object]) -> None:
        """Only these topics, by their ids, are there now: the others go back."""
        self._queued = {h: one for h, one in self._queued.items() if one.key[0] in topics}
        for one in [one for key, one in self._out.items() if key[0] not in topics]:
            del self._out[one.key]
            self._put_back(one)

    def undelete_next(self, topics: Mapping[bytes, object]) -> dict[int, Key]:
        """Begin the next job when there is none; those that can be opened now, by row."""
        done = self._take(topics)
        if not self._under_way and self._queued:
            chosen = list(islice(self._queued.values(), A_JOB))
            for one in chosen:
                del self._queued[one.handle]
                done[one.handle] = one.key  # should this raise: who opens it finds out
                if self._trash.holds(one.key):
                    one.folder = self._trash.let_out(one.key)
                    self._under_way[one.handle] = one
                    del done[one.handle]
            self._begin()
        return done

    def _begin(self) -> None:
        if self._under_way:
            parents = [path for _, path in self._dirs.online()]
            job = partial(_give_back, self._disk, parents, list(self._under_way.values()))
            self._threads.submit((), job)

    def mend(self) -> dict[int, Key]:
        """After an exception: those that no job will bring back, to be opened now."""
        if self._threads.outstanding() or not self._under_way:
            return {}
        left, self._under_way = self._under_way, {}
        for one in left.values():
            self._take_one(one)
        return {one.handle: one.key for one in left.values()}

    def hurry(self, handle: int, topics: Mapping[bytes, object]) -> dict[int, Key]:
        """Somebody asks for this one: those that can be opened now."""
        one = self._queued.pop(handle, None)
        if one is not None:
            return {handle: one.key}
        return self._wait(topics) if handle in self._under_way else {}

    def make_way(
        self, name: tuple[str, int], key: Key, topics: Mapping[bytes, object]
    ) -> dict[int, Key]:
        """Return when no job works on a folder of this name, or of this key; those that can be
        opened now."""
        if any(name == one.name or key == one.key for one in self._under_way.values()):
            return self._wait(topics)
        return {}

    def is_out(self, key: Key) -> bool:
        """True if the partition, which is opened now, got its folder back. Raises StorageFailed
        when that is not durable.
        """
        one = self._out.pop(key, None)
        if one is not None and one.failure is not None:
            raise one.failure
        return one is not None

    def _wait(self, topics: Mapping[bytes, object]) -> dict[int, Key]:
        self._threads.wait()
        return self._take(topics)

    def _take(self, topics: Mapping[bytes, object]) -> dict[int, Key]:
        can_be_opened = {}
        for done in self._threads.take_ended():
            if done.failure is not None:  # what has its name is opened, the rest is found there
                self._core.barrier.report_bug("partitions that come back", done.failure)
            returned, self._under_way = self._under_way, {}
            for one in returned.values():
                try:
                    if one.key[0] not in topics:
                        self._put_back(one)
                        continue
                    can_be_opened[one.handle] = one.key
                    self._take_one(one)
                except Exception as bug:
                    self._core.barrier.report_bug("a partition that comes back", bug)
        return can_be_opened

    def _take_one(self, one: UndeletedPartition) -> None:
        if one.back:
            self._out[one.key] = one
        else:  # whatever is in the way: who opens it finds out
            self._trash.hold_folder(one.key, one.folder)

    def _put_back(self, one: UndeletedPartition) -> None:
        """Its topic was deleted again: to the trash, with the mark that it still has."""
        try:
            if one.back:
                self._disk.rename(one.back, one.folder)
                self._disk.sync_dir(one.folder.rpartition("/")[0])
            self._trash.hold_folder(one.key, one.folder)
        except StorageFailed as failure:
            self._events.event(ERROR, "not-deleted", folder=one.back, cause=failure)


def _give_back(disk: Disk, parents: list[str], returners: list[UndeletedPartition]) -> None:
    """Rename the folders to whose names nobody has anything; on any thread. Many share one sync of
    what they lie in."""
    for one in returners:
        name = f"{one.name[0]}-{one.name[1]}"
        path = f"{one.folder.rpartition('/')[0]}/{name}"
        try:
            if disk.exists(one.folder) and not any(disk.exists(f"{p}/{name}") for p in parents):
                disk.rename(one.folder, path)
                one.back = path
        except StorageFailed:
            pass  # who opens it tries again, and is told
    for parent in {one.back.rpartition("/")[0]: None for one in returners if one.back}:
        try:
            disk.sync_dir(parent)
        except StorageFailed as failure:
            for one in returners:
                if one.back.startswith(f"{parent}/"):
                    one.failure = failure
