"""Open the log of one partition of this ioproc, or create it, with what is known about its end.

What needs no check: everything after an orderly end; everything below the recovery point; and, when
only this process died, everything up to the end that its predecessor published in the partition
table, because the bytes are in the page cache and only a power cut takes them from there. Called by
`home.py`.
"""

from appliance.base.disk import Disk
from appliance.config.log_config import LogConfig
from appliance.ioproc import checkpoints, folders
from appliance.ioproc.checkpoints import Offsets
from appliance.logstore.log import Log
from appliance.ring import partition_table as columns
from appliance.ring.partition_table import NOT_OPEN, PartitionTable


class Opener:
    """Opens and creates logs in one data folder. clean: the appliance before ended in order."""

    __slots__ = (
        "_clean",
        "_data_dir",
        "_disk",
        "_log_starts",
        "_recovery_points",
        "_table",
        "strays",
    )

    def __init__(self, disk: Disk, data_dir: str, table: PartitionTable, *, clean: bool) -> None:
        self._disk = disk
        self._data_dir = data_dir
        self._table = table
        self._clean = clean
        self._recovery_points = self._read(checkpoints.RECOVERY_POINT)
        self._log_starts = self._read(checkpoints.LOG_START)
        self.strays: list[str] = []

    def _read(self, name: str) -> Offsets:
        return checkpoints.read(self._disk, self._data_dir, name)

    def open(
        self, topic: str, index: int, topic_id: bytes, handle: int, config: LogConfig, now_ms: int
    ) -> Log:
        """The log of this partition, recovered if need be. Raises StorageFailed."""
        path = f"{self._data_dir}/{topic}-{index}"
        stray = folders.make_way(self._disk, path, topic_id, topic_id.hex())
        if stray:
            self.strays.append(stray)
        if not self._disk.exists(path):
            self._forget((topic, index))
            return Log.create(self._disk, path, topic_id, config, now_ms=now_ms)
        recovery_point = self._recovery_points.get((topic, index), 0)
        log_start = self._log_starts.get((topic, index), 0)
        row = self._table.read_row(handle)
        known_end = None
        if row[columns.STATUS] != NOT_OPEN and not row[columns.VERSION] & 1:
            known_end = row[columns.END_SEGMENT], row[columns.END_POSITION]
            recovery_point = max(recovery_point, row[columns.RECOVERY_POINT])
            log_start = max(log_start, row[columns.LOG_START])
        return Log.open(
            self._disk,
            path,
            config,
            recovery_point=recovery_point,
            log_start_offset=log_start,
            clean=self._clean,
            known_end=known_end,
            now_ms=now_ms,
        )

    def _forget(self, key: tuple[str, int]) -> None:
        """What the checkpoints say is of an older partition of this name."""
        for offsets, name in (
            (self._recovery_points, checkpoints.RECOVERY_POINT),
            (self._log_starts, checkpoints.LOG_START),
        ):
            if offsets.pop(key, None) is not None:
                checkpoints.merge(self._disk, self._data_dir, name, {key: None})
