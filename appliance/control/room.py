"""Control's look at the disks: which log folders have room for new partitions, what to tell who
wants some, and the reserves (`base/reserve.py`), which control fills while there is room.

Called by `main.py` once per turn.
"""

from typing import Final

from appliance.base import reserve
from appliance.base.disk import Disk
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.space import KEEP_FREE_PERCENT, SpaceGuard
from appliance.metadata.log_dirs import LogDirs
from appliance.shell.log import WARNING, Log

_MIB: Final = 1 << 20


def nearly_full(folder: str, free: int, missing: int) -> str:
    """What people are told: how much is free and missing, and what helps."""
    return (
        f"The disk of {folder} is nearly full: {free // _MIB} MiB are free,"
        f" {-(-missing // _MIB)} MiB more must be. Delete topics or records (DeleteTopics,"
        " DeleteRecords), shorten retention.ms or retention.bytes, or make room on the disk;"
        " then try again."
    )


class Room:
    """The space of every log folder that is online."""

    def __init__(self, disk: Disk, dirs: LogDirs, keep_bytes: int, log: Log) -> None:
        self._disk = disk
        self._log = log
        self._paths = dict(dirs.online())
        self._ids = {n: one for n, one in enumerate(dirs.ids) if one is not None}
        self._guards = {n: SpaceGuard(keep_bytes, KEEP_FREE_PERCENT) for n in self._paths}
        self._whole: dict[int, bool] = {}
        self._refused: set[int] = set()

    def low(self, path: str) -> bool:
        """Whether this log folder takes no new partitions."""
        return any(self._guards[n].low for n, one in self._paths.items() if one == path)

    def tick(self, now_ns: int) -> None:
        """Look again when it is time; set room aside where there is enough of it."""
        for number, guard in self._guards.items():
            if guard.due(now_ns):
                path = self._paths[number]
                try:
                    total, free = self._disk.space(path)
                except StorageFailed:
                    total, free = 0, guard.free  # who writes there says it
                guard.look(now_ns, total, free)
                if number not in self._refused and not guard.lacks(reserve.size_for(total)):
                    self._fill(number, path, total)

    def _fill(self, number: int, path: str, total: int) -> None:
        try:
            reserve.fill(self._disk, path, total)
        except DiskFull:
            pass  # another program was faster: at the next look
        except StorageFailed as failure:
            self._refused.add(number)
            self._log.event(WARNING, "no-reserve", folder=path, cause=failure)

    def full(self) -> list[bytes]:
        """The ids of those that take no new partitions."""
        return [self._ids[number] for number, guard in self._guards.items() if guard.low]

    def lacking(self) -> str:
        """Why no partition can be made, or ""; the first folder holds the metadata, too."""
        low = [number for number, guard in self._guards.items() if guard.low]
        if 0 in low or len(low) == len(self._guards):
            return self.told(low[0])
        return ""

    def told(self, number: int) -> str:
        """What to say of this folder."""
        guard = self._guards[number]
        return nearly_full(self._paths[number], guard.free, max(guard.missing, _MIB))
