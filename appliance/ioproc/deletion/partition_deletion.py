"""Partitions whose topic was deleted, on their way out: a few in each turn, and what blocks on a
thread.

One after the other: it is served no more and who waits for it is told, once no sync of it is under
way; what may come back is synced, or the loop would have to when it is opened again; a mark is
written into its folder and the folder renamed, both durably (many folders share one sync of what
they lie in); the checkpoints forget it. Invariant: until all of that is done nobody
opens its name or its topic's id anew, and the metadata that removed it counts as not replayed here,
so its row is nobody else's. Called by `partition_manager.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import DiskFull, StorageFailed
from appliance.ioproc.deletion.deleted_folders import DeletedFolders, Mark, write_mark
from appliance.ioproc.log_folders.folder_names import move_away
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.turn.job_context import JobContext
from appliance.logstore.log import PartitionLog
from appliance.logstore.removal import Removal
from appliance.shell.flusher import Threads
from appliance.shell.log import ERROR

A_TURN: Final = 32
"""So many partitions are looked at in one turn."""
A_JOB: Final = 16
"""So many folders are renamed by one job: whoever needs one of their names waits for no more."""
A_SYNC: Final = 64 << 20
"""And so many bytes synced at most, unless one log alone has more."""

QUEUED: Final = 0
CLOSED: Final = 1
AWAY: Final = 2
"""A job renames its folder."""
RENAMED: Final = 3
FORGOTTEN: Final = 4
"""A job takes it out of the checkpoints."""


Leaves = Callable[[Partition, int], None]
"""(partition, now in ms): it is about to go; nothing works on it when this returns."""


class DeletedPartition:
    """One partition. before: the metadata below which it was not removed yet. kept: it may come
    back. aside: it is fetched anew, and until then its folder goes aside. removed: its topic is
    there still, and may have another replica here. removal: what is left of it."""

    __slots__ = ("aside", "before", "failure", "kept", "partition", "removal", "removed", "step")

    def __init__(
        self, partition: Partition, before: int, *, kept: bool, aside: bool, removed: bool = False
    ) -> None:
        self.aside = aside
        self.removed = removed
        self.partition = partition
        self.before = before
        self.kept = kept
        self.step = QUEUED
        self.removal: Removal | None = None
        self.failure: Exception | None = None


class PartitionDeletion:
    """threads: a single one, so that jobs end in the order in which they were submitted.
    leaves: called for each partition before it goes."""

    def __init__(
        self,
        ground: JobContext,
        housekeeping: Housekeeping,
        trash: DeletedFolders,
        threads: Threads,
        leaves: Leaves,
    ) -> None:
        self._disk, _, self._core, self._events = ground
        self._housekeeping = housekeeping
        self.trash = trash
        self._threads = threads
        self._leaves = leaves
        self._all: dict[tuple[bytes, int], DeletedPartition] = {}  # who came first, first
        self._names: dict[tuple[str, int], DeletedPartition] = {}
        self._queued: dict[DeletedPartition, None] = {}
        self._closed: dict[DeletedPartition, None] = {}

    @property
    def busy(self) -> bool:
        """True while a partition is being deleted."""
        return bool(self._all)

    def replayed(self, applied: int) -> int:
        """How much of the metadata counts as replayed, when all below `applied` was looked at."""
        first = next(iter(self._all.values()), None)
        return applied if first is None else first.before

    def begin_deletion(
        self, partitions: Iterable[Partition], before: int, *, kept: bool, removed: bool = False
    ) -> None:
        """Their topic was removed by metadata behind `before`, or with `removed` this node's
        replicas of it. kept: it may come back."""
        for partition in partitions:
            key, name = (partition.topic_id, partition.index), (partition.topic, partition.index)
            if key not in self._all:
                assert name not in self._names, "its name was given on before it had gone"
                leaver = DeletedPartition(
                    partition, before, kept=kept, aside=False, removed=removed
                )
                self._all[key] = self._names[name] = leaver
                self._queued[leaver] = None

    def set_aside(self, partition: Partition, now: tuple[int, int]) -> str:
        """It is served no more, its folder renamed: to what; "" where that failed, which has been
        said. now: monotonic in ns, wall clock in ms."""
        key, name = (partition.topic_id, partition.index), (partition.topic, partition.index)
        self.make_way(name, key, now)
        leaver = self._all[key] = self._names[name] = DeletedPartition(
            partition, 0, kept=False, aside=True
        )
        self._queued[leaver] = None
        self.make_way(name, key, now)
        return leaver.removal.folder if leaver.removal is not None else ""

    def delete_slice(self, now_ns: int, now_ms: int) -> bool:
        """Some steps; False when there is more to do at once."""
        self._take()
        looked_at = list(islice(self._queued, A_TURN))
        for leaver in looked_at:
            del self._queued[leaver]
            if leaver.partition.syncing:
                self._queued[leaver] = None  # behind the others
            else:
                self._let_go(leaver, now_ns, now_ms)
        if not self._threads.outstanding():
            if self._closed:
                self._rename(self._some_closed(), now_ms)
            elif self._all and not self._queued:
                self._forget()
        return not any(not leaver.partition.syncing for leaver in islice(self._queued, A_TURN))

    def make_way(self, name: tuple[str, int], key: tuple[bytes, int], now: tuple[int, int]) -> None:
        """Return when nobody of this name (topic, partition) or key (topic id, partition) is on the
        way out. now: monotonic in ns, wall clock in ms."""
        for leaver in {self._names.get(name): None, self._all.get(key): None}:
            if leaver is None:
                continue
            if leaver.step == QUEUED:
                del self._queued[leaver]
                self._let_go(leaver, *now)
            if leaver.step == CLOSED:
                del self._closed[leaver]
                _put_away(self._disk, [leaver], now[1])
                self._renamed([leaver])
            while leaver.step == AWAY:
                self._wait()
            if leaver.step == RENAMED:
                self._tell(self._try_to_forget([leaver.partition]))
                self._gone([leaver])
            while self._is_known(leaver):
                self._wait()

    def mend(self) -> None:
        """After an exception: who is in none of the places in which it would go on gets there."""
        if self._threads.outstanding():
            return  # its end goes on with them
        for leaver in self._all.values():
            if leaver.step == QUEUED and leaver not in self._queued:
                partition = leaver.partition
                if self._core.partitions.get(partition.handle) is partition:
                    self._queued[leaver] = None
                else:
                    leaver.step = CLOSED
            if leaver.step == AWAY:
                done = leaver.removal is not None or leaver.failure is not None
                leaver.step = RENAMED if done else CLOSED
            if leaver.step == CLOSED:
                self._closed[leaver] = None
            elif leaver.step == FORGOTTEN:
                leaver.step = RENAMED

    # The steps ------------------------------------------------------------------------------------

    def _let_go(self, leaver: DeletedPartition, now_ns: int, now_ms: int) -> None:
        partition, barrier = leaver.partition, self._core.barrier
        try:
            self._leaves(partition, now_ms)
        except Exception as bug:
            barrier.report_bug("what works on a partition that goes", bug, partition=partition)
        self._core.remove(partition.handle, now_ns)
        self._housekeeping.trims.drop(partition)
        leaver.step = CLOSED
        self._closed[leaver] = None

    def _some_closed(self) -> list[DeletedPartition]:
        chosen: list[DeletedPartition] = []
        unsynced = 0
        for leaver in islice(self._closed, A_JOB):
            unsynced += leaver.partition.log.unsynced_bytes if leaver.kept else 0
            if chosen and unsynced > A_SYNC:
                break
            chosen.append(leaver)
        return chosen

    def _rename(self, leavers: list[DeletedPartition], now_ms: int) -> None:
        for leaver in leavers:
            del self._closed[leaver]
            leaver.step = AWAY
        self._threads.submit((leavers,), partial(_put_away, self._disk, leavers, now_ms))

    def _renamed(self, leavers: list[DeletedPartition]) -> None:
        for leaver in leavers:
            leaver.step = RENAMED
            try:
                self._renamed_one(leaver)
            except Exception as bug:  # its folder is removed, or found, after the next start
                self._core.barrier.report_bug("a renaming", bug, partition=leaver.partition)

    def _renamed_one(self, leaver: DeletedPartition) -> None:
        partition, removal = leaver.partition, leaver.removal
        if leaver.failure is not None or removal is None:
            cause = leaver.failure
            if cause is not None and not isinstance(cause, StorageFailed):
                self._core.barrier.report_bug("a renaming", cause, partition=partition)
                return
            self._events.event(ERROR, "not-deleted", partition=partition, cause=cause)
        elif leaver.aside:
            pass  # until it is whole again
        elif leaver.kept:
            self.trash.hold_folder((partition.topic_id, partition.index), removal.folder)
        else:
            self._housekeeping.remove_later(removal)

    def _forget(self) -> None:
        """When the last one is renamed: all together, because the files are written whole."""
        leavers = [leaver for leaver in self._all.values() if leaver.step == RENAMED]
        if leavers and not self._housekeeping.writing:
            for leaver in leavers:
                leaver.step = FORGOTTEN
            gone = [leaver.partition for leaver in leavers]
            self._threads.submit((leavers,), self._housekeeping.forget_job(gone))

    def _try_to_forget(self, gone: Sequence[Partition]) -> Exception | None:
        try:
            self._housekeeping.forget_deleted(gone)
        except Exception as failure:
            return failure
        return None

    def _tell(self, failure: Exception | None) -> None:
        if failure is not None:
            if not isinstance(failure, StorageFailed):
                self._core.barrier.report_bug("checkpoints of what is gone", failure)
                return
            self._events.event(ERROR, "checkpoint-failed", cause=failure)

    def _gone(self, leavers: Iterable[DeletedPartition]) -> None:
        for leaver in leavers:
            partition = leaver.partition
            self._all.pop((partition.topic_id, partition.index), None)
            self._names.pop((partition.topic, partition.index), None)

    def _is_known(self, leaver: DeletedPartition) -> bool:
        return self._all.get((leaver.partition.topic_id, leaver.partition.index)) is leaver

    def _wait(self) -> None:
        self._threads.wait()
        self._take()

    def _take(self) -> None:
        for done in self._threads.take_ended():
            (leavers,) = done.tag
            if leavers[0].step == FORGOTTEN:
                self._tell(done.failure)
                self._gone(leavers)
            else:
                for leaver in leavers if done.failure is not None else ():
                    leaver.failure = leaver.failure or done.failure
                self._renamed(leavers)


def _put_away(disk: Disk, leavers: list[DeletedPartition], now_ms: int) -> None:
    """Mark and rename their folders; on any thread, which has their logs for itself."""
    for leaver in leavers:
        log = leaver.partition.log
        try:
            if leaver.kept:
                try:
                    write_mark(disk, log.path, _mark_of(log))
                except DiskFull:
                    leaver.kept = False  # room is needed more than a way back
            if leaver.aside:
                log.let_go()
                folder = move_away(disk, log.path, f"{now_ms:032x}")
                leaver.removal = Removal(now_ms, (), folder)
            else:
                # What has the topic's id may come back, and a removed replica never may: parts of
                # it may be gone by then.
                unique = f"{now_ms:032x}" if leaver.removed else leaver.partition.topic_id.hex()
                leaver.removal = log.delete(unique, now_ms, sync=False)
        except Exception as failure:  # of one of them: the others go
            leaver.failure = failure
    parents = {one.removal.folder.rpartition("/")[0]: None for one in leavers if one.removal}
    for parent in parents:
        try:
            disk.sync_dir(parent)
        except StorageFailed as failure:
            for leaver in leavers:
                if leaver.removal and leaver.removal.folder.startswith(f"{parent}/"):
                    leaver.failure = failure


def _mark_of(log: PartitionLog) -> Mark:
    """The offsets to record in the folder, after a sync if possible: on failure the next opening
    verifies the log behind the recovery point.
    """
    if log.failure is None and log.recovery_point < log.end_offset:
        with suppress(StorageFailed):
            log.sync_now()
    return log.log_start_offset, log.recovery_point
