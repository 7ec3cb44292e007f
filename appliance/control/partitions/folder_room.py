"""Control's look at the log folders: which ones take new partitions, because their disks have room
and nobody has cordoned them, what to tell who wants some, and the reserves (`base/reserve.py`),
which control fills while there is room.

Called by `shell.py` once per turn.
"""

from collections.abc import Sequence
from typing import Final

from appliance.base import reserve
from appliance.base.disk import Disk
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.space import KEEP_FREE_PERCENT, SpaceGuard
from appliance.config.broker import BrokerConfig
from appliance.metadata.changes import Change, ConfigChanged
from appliance.metadata.effective import broker_config
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import LogDirs
from appliance.shell.log import WARNING, Log

_MIB: Final = 1 << 20
_ALL: Final = "*"
_CORDONED: Final = (
    "Every log directory is cordoned (cordoned.log.dirs), and there is no other node. Unset it, or"
    " leave one out; then try again."
)


def nearly_full(folder: str, free: int, missing: int) -> str:
    """The error text: how much is free and missing, and the remedy."""
    return (
        f"The disk of {folder} is nearly full: {free // _MIB} MiB are free,"
        f" {-(-missing // _MIB)} MiB more must be. Delete topics or records (DeleteTopics,"
        " DeleteRecords), shorten retention.ms or retention.bytes, or make room on the disk;"
        " then try again."
    )


class Room:
    """The space of every log folder that is online."""

    def __init__(
        self, disk: Disk, dirs: LogDirs, config: BrokerConfig, image: MetadataImage, log: Log
    ) -> None:
        """image: what holds at first."""
        self._disk = disk
        self._config = config
        self._log = log
        self._paths = dict(dirs.online())
        self._ids = {n: one for n, one in enumerate(dirs.ids) if one is not None}
        self._guards = {n: SpaceGuard(self._keep(image), KEEP_FREE_PERCENT) for n in self._paths}
        self._cordoned = self._named(image)
        self._whole: dict[int, bool] = {}
        self._refused: set[int] = set()
        self._without = 0

    def follow(self, changes: Sequence[Change], image: MetadataImage) -> None:
        """The image has changed; perhaps how much must stay free, or what is cordoned."""
        if any(isinstance(change, ConfigChanged) for change in changes):
            self._cordoned = self._named(image)
            for guard in self._guards.values():
                guard.keep_free(self._keep(image))

    def _keep(self, image: MetadataImage) -> int:
        return broker_config(image, self._config).int("penstock.disk.free.min.bytes")

    def _named(self, image: MetadataImage) -> frozenset[int]:
        """The folders of `cordoned.log.dirs` (KIP-1066), by number."""
        named = broker_config(image, self._config).list("cordoned.log.dirs")
        return frozenset(n for n, path in self._paths.items() if path in named or _ALL in named)

    def low(self, path: str) -> bool:
        """True if this log folder takes no new partitions."""
        return any(self._closed(n) for n, one in self._paths.items() if one == path)

    @property
    def metadata_low(self) -> bool:
        """True if the disk of the first folder, which holds the metadata, is nearly full."""
        return 0 in self._guards and self._guards[0].low

    def _closed(self, number: int) -> bool:
        return number in self._cordoned or self._guards[number].low

    def tick(self, now_ns: int, without: int = 0) -> None:
        """Look again when it is time; set room aside where there is enough of it. without: of how
        many folders I/O processes say that they have no room: when that is another number than
        before the disks are looked at now."""
        heard, self._without = without != self._without, without
        for number, guard in self._guards.items():
            if heard or guard.due(now_ns):
                path = self._paths[number]
                try:
                    total, free = self._disk.space(path)
                except StorageFailed:
                    total, free = 0, guard.free  # who writes there says it
                guard.read_space(now_ns, total, free)
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
        return [self._ids[number] for number in self._guards if self._closed(number)]

    def lacking(self) -> str:
        """Why no partition can be made, or ""; the first folder holds the metadata, too."""
        low = [number for number, guard in self._guards.items() if guard.low]
        if 0 in low or len(low) == len(self._guards):
            return self.describe_folder(low[0])
        # Of several nodes others may take them: whoever places them knows by the registrations.
        if len(self._cordoned) == len(self._paths) and not self._config.several:
            return _CORDONED
        return ""

    def describe_folder(self, number: int) -> str:
        """The error text for this folder."""
        guard = self._guards[number]
        return nearly_full(self._paths[number], guard.free, max(guard.missing, _MIB))
