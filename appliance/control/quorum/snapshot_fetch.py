"""Taking over a snapshot of the leader's, when its log begins behind where ours ends.

The snapshot goes into a new folder, which then takes the place of the log's: a power cut leaves the
old folder, or none and the new one beside it, which the next start puts right (`repair.finish`).
The process begins again with it: images, rows and replica are what a start makes of the files.
"""

from dataclasses import field
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import INVALID_REQUEST, PeerError
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum import state_file as quorum_state
from appliance.control.quorum.metadata_log import METADATA_TOPIC_ID
from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.logstore.partition_metadata import write_metadata
from appliance.metadata import checkpoint
from appliance.metadata.checkpoint import SnapshotId
from appliance.metadata.follower import LOG_FOLDER

MOST_BYTES: Final = 1 << 30
"""Of a snapshot: one of a million partitions has a tenth of it. It is kept in memory until it is
whole."""


class BeginAgain(Exception):
    """This process ends, and its successor goes on with other files."""


@dataclass(slots=True)
class Download:
    """A snapshot in progress. snapshot: (end, epoch). epoch: of the leader that sends it. position:
    of the next byte. size: of all of it, -1 before the leader said so.
    """

    snapshot: tuple[int, int]
    epoch: int
    position: int = 0
    size: int = -1
    parts: list[bytes] = field(default_factory=list)

    def take_part(self, size: int, part: bytes) -> bool:
        """Keep what came next; True if that was all of it. size: of the whole, as the leader says
        with each part. Raises PeerError(INVALID_REQUEST) for what no snapshot is: nothing is kept
        then."""
        if not 0 < size <= MOST_BYTES or self.size not in (-1, size):
            raise PeerError(INVALID_REQUEST, f"its snapshot has {size} bytes, and had {self.size}")
        if not part or len(part) > size - self.position:
            left = size - self.position
            raise PeerError(INVALID_REQUEST, f"it sends {len(part)} bytes where {left} are left")
        self.size = size
        self.position += len(part)
        self.parts.append(part)
        return self.position == size


def install(disk: Disk, quorum: MetadataQuorum, download: Download, now_ms: int) -> None:
    """Put the snapshot in the place of the log; nothing may be done with `quorum` after that.
    Raises CheckpointBroken and DiskFull: all is as it was then; StorageFailed."""
    data = b"".join(download.parts)
    checkpoint.read(data)
    snapshot = SnapshotId(*download.snapshot)
    folder = quorum.log.folder
    data_dir = folder.removesuffix(f"/{LOG_FOLDER}")
    new, old = f"{data_dir}/{repair.REPAIRED}", f"{folder}.{now_ms:032x}-stray"
    if disk.exists(new):
        _remove(disk, new)
    disk.mkdir(new)
    write_metadata(disk, new, METADATA_TOPIC_ID)
    write_file(disk, f"{new}/{snapshot.file_name}", data)
    write_file(disk, f"{new}/{quorum_state.NAME}", read_file(disk, f"{folder}/{quorum_state.NAME}"))
    disk.sync_dir(data_dir)
    disk.rename(folder, old)
    repair.finish(disk, data_dir)
    _remove(disk, old)


def _remove(disk: Disk, folder: str) -> None:
    for name in disk.listdir(folder):
        disk.unlink(f"{folder}/{name}")
    disk.rmdir(folder)
