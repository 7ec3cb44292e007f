"""Open the log of one partition of this ioproc, or create it, with what is known about its end.

What needs no check: everything after an orderly end, and everything below the recovery point, which
a predecessor that died alone has left in the partition table. The rest is checked and read back
from the medium (`logstore.renewal`), whatever became of the partition before.

With several log folders a partition lies where its folder is found; the metadata says where that
should be, and where a new one is made. Invariant: a partition that may have records in a folder
that is offline is never made anew. Called by `partition_manager.py`.
"""

import errno
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.config.log_config import LogConfig
from appliance.ioproc.deletion.deleted_folders import Mark, read_mark
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.durability.checkpoints import Offsets
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.lifecycle.opened_partition import OpenedPartition, Place, WantedLog
from appliance.ioproc.lifecycle.opening_ahead import OpeningAhead
from appliance.ioproc.log_folders import folder_names
from appliance.ioproc.remote.remote_chain import read_chain
from appliance.logstore.log import PartitionLog
from appliance.logstore.offset_gaps import Hole
from appliance.logstore.partition_metadata import read_topic_id
from appliance.metadata.log_dirs import UNASSIGNED, LogDirs, is_assigned
from appliance.ring import partition_table as columns
from appliance.ring.partition_table import NOT_OPEN, PartitionTable


class PartitionOpener:
    """Opens and creates logs in the log folders. clean: the appliance before ended in order.
    tiered: this node has a remote store. side_by_side: so many at once, 0: one after the other, as
    on a simulated disk.

    strays: folders that were moved away; stale: copies of partitions that have moved elsewhere.
    Both are for the caller to take. lost: what the checkpoints knew of the partition opened last,
    when its folder was gone and it was made anew."""

    __slots__ = (
        "_ahead",
        "_clean",
        "_dirs",
        "_disk",
        "_futures",
        "_log_starts",
        "_recovery_points",
        "_side_by_side",
        "_table",
        "_tiered",
        "_watermarks",
        "journals",
        "lost",
        "stale",
        "strays",
    )

    def __init__(
        self,
        disk: Disk,
        dirs: LogDirs,
        table: PartitionTable,
        journals: JournalRecovery | None = None,
        *,
        clean: bool,
        tiered: bool = False,
        side_by_side: int = 0,
    ) -> None:
        self._disk = disk
        self.journals = journals or JournalRecovery(disk, (), clean=clean)
        self._dirs = dirs
        self._table = table
        self._clean = clean
        self._tiered = tiered
        self._side_by_side = side_by_side
        self._ahead: OpeningAhead | None = None
        self._recovery_points = self._read(checkpoints.RECOVERY_POINT)
        self._log_starts = self._read(checkpoints.LOG_START)
        self._watermarks = self._read(checkpoints.HIGH_WATERMARK)
        self._futures = {
            folder_names.of_future(disk, path) for path in folder_names.all_futures(disk, dirs)
        }
        self.strays: list[str] = []
        self.stale: list[str] = []
        self.lost: Hole | None = None

    def _read(self, name: str) -> dict[int, Offsets]:
        found = {}
        for number, path in self._dirs.online():
            try:
                found[number] = checkpoints.read(self._disk, path, name)
            except StorageFailed:
                if not number:
                    raise
                found[number] = {}
        return found

    def open_log(
        self,
        topic: str,
        index: int,
        topic_id: bytes,
        handle: int,
        config: LogConfig,
        now_ms: int,
        wanted: bytes = UNASSIGNED,
    ) -> OpenedPartition:
        """The log of this partition, recovered if need be. wanted: id of the folder that the
        metadata names for it. Raises StorageFailed."""
        self.lost = None
        what = WantedLog(topic, index, topic_id, handle, config, now_ms, wanted)
        found = None if self._ahead is None else self._ahead.take_opened((topic_id, index))
        return self._open_log(what) if found is None else found

    def open_ahead(
        self, ours: Sequence[Place], wanted: Callable[[Place], WantedLog | None]
    ) -> Iterator[Place]:
        """Yields all of them in order, for each of which the caller may call `open_log` then, while
        threads open what follows. wanted: what that will be asked; None: it is not known yet."""
        if self._clean or not self._side_by_side or len(self._dirs.paths) > 1:
            yield from ours
            return
        ahead = self._ahead = OpeningAhead(self._side_by_side)
        try:
            for at in range(-self._side_by_side, len(ours)):
                follows = at + self._side_by_side
                what = wanted(ours[follows]) if follows < len(ours) else None
                if what is not None:
                    ahead.begin_opening(
                        (what.topic_id, what.partition), partial(self._open_there, what)
                    )
                if at >= 0:
                    yield ours[at]
        finally:
            self._ahead = None
            ahead.end_threads()

    def _open_there(self, what: WantedLog) -> OpenedPartition | None:
        """The log where its folder is what it is to be: else others are about to move. On any
        thread."""
        path = f"{self._dirs.paths[0]}/{what.topic}-{what.partition}"
        if not self._disk.exists(path) or read_topic_id(self._disk, path) != what.topic_id:
            return None
        return self._open_log(what)

    def _open_log(self, what: WantedLog) -> OpenedPartition:
        topic, index, topic_id, handle, config, now_ms, wanted = what
        number = self._place(f"{topic}-{index}", topic_id, wanted)
        path = f"{self._dirs.paths[number]}/{topic}-{index}"
        stray = folder_names.make_way(self._disk, path, topic_id, topic_id.hex())
        if stray:
            self.strays.append(stray)
        if not self._disk.exists(path):
            self.lost = None if stray else self._lost(number, (topic, index))
            self._forget(number, (topic, index))
            return OpenedPartition(
                PartitionLog.create(self._disk, path, topic_id, config, now_ms=now_ms), number, 0
            )
        mark = read_mark(self._disk, path)
        log_start, recovery_point = mark or self.known(number, (topic, index))
        visible = self._watermarks[number].get((topic, index), 0)
        row = self._table.read_row(handle)
        served = row[columns.STATUS] != NOT_OPEN  # by a predecessor, on the machine as it is
        if served:
            recovery_point = max(recovery_point, row[columns.RECOVERY_POINT])
            log_start = max(log_start, row[columns.LOG_START])
            visible = max(visible, row[columns.HIGH_WATERMARK])
        log = PartitionLog.open_folder(
            self._disk,
            path,
            config,
            recovery_point=recovery_point,
            log_start_offset=log_start,
            clean=self._clean and mark is None,
            machine_lived=served,
            now_ms=now_ms,
            continuation=self.journals.of(topic_id, index, self._dirs.paths[number]),
        )
        self.journals.opened(topic_id, index)
        try:
            read_chain(log, topic_id, index, log_start, enabled=self._tiered)
        except StorageFailed:
            log.let_go()
            raise
        return OpenedPartition(log, number, visible, mark is not None)

    def known(self, number: int, key: tuple[str, int]) -> Mark:
        """The checkpoints of a partition in a log folder at the start."""
        return self._log_starts[number].get(key, 0), self._recovery_points[number].get(key, 0)

    def _place(self, name: str, topic_id: bytes, wanted: bytes) -> int:
        """Which log folder the partition lies in, or is to be made in. Raises StorageFailed."""
        if len(self._dirs.paths) == 1:
            return 0
        number = self._dirs.number(wanted)
        found = self._found(name, topic_id)
        if number in found or (number < 0 and len(found) == 1):
            chosen = number if number in found else found[0]
            if number in found:
                self.stale += [f"{self._dirs.paths[n]}/{name}" for n in found if n != number]
            return chosen
        if len(found) == 1:
            return found[0]  # it was to move when all ended: here is what was served
        if found:
            where = " and ".join(self._dirs.paths[n] for n in found)
            raise StorageFailed(name, errno.EEXIST, f"it is in {where}: move one of them away")
        if number < 0 and is_assigned(wanted):
            raise StorageFailed(name, errno.ENOENT, "the log folder that holds it is offline")
        moves = (topic_id, int(name.rpartition("-")[2])) in self._futures
        if (moves or number < 0) and not self._dirs.all_online:
            raise StorageFailed(name, errno.ENOENT, "it may be in a log folder that is offline")
        return max(number, 0)

    def _found(self, name: str, topic_id: bytes) -> list[int]:
        found = []
        for number, parent in self._dirs.online():
            path = f"{parent}/{name}"
            if self._disk.exists(path) and read_topic_id(self._disk, path) == topic_id:
                found.append(number)
        return found

    def compacted_to(self, number: int, key: tuple[str, int]) -> int:
        """Up to which offset a compaction may have left holes, also under a policy of earlier.
        Raises StorageFailed."""
        path = self._dirs.paths[number]
        return checkpoints.read(self._disk, path, checkpoints.CLEANER).get(key, 0)

    def _lost(self, number: int, key: tuple[str, int]) -> Hole | None:
        """The offsets that a partition without a folder had, as far as the checkpoints say; None
        too when the folder was renamed: it is of a topic that was deleted."""
        start, end = self.known(number, key)
        end = max(end, self._watermarks[number].get(key, 0))
        if end <= start:
            return None
        parent, name = self._dirs.paths[number], f"{key[0]}-{key[1]}"
        return None if folder_names.renamed(self._disk, parent, name) else (start, end - 1)

    def _forget(self, number: int, key: tuple[str, int]) -> None:
        """Drops checkpoints of an older partition of this name."""
        for offsets, name in (
            (self._recovery_points, checkpoints.RECOVERY_POINT),
            (self._log_starts, checkpoints.LOG_START),
            (self._watermarks, checkpoints.HIGH_WATERMARK),
        ):
            if offsets[number].pop(key, None) is not None:
                checkpoints.merge(self._disk, self._dirs.paths[number], name, {key: None})
