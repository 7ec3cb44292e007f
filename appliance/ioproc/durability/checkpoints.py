"""The four files at the root of the data folder that hold one offset per partition, in Kafka's
format.

Every I/O process writes its own partitions into the same files: it reads, merges and replaces a
file while it holds a lock on the folder's checkpoints. Invariant: a file is whole or absent; what
cannot be read counts as absent, because all of it can be found again from the logs (slowly).
"""

from collections.abc import Mapping
from typing import Final

from appliance.base.disk import Disk, read_file, write_file

RECOVERY_POINT: Final = "recovery-point-offset-checkpoint"
"""Everything below is on the disk: recovery begins here."""
HIGH_WATERMARK: Final = "replication-offset-checkpoint"
LOG_START: Final = "log-start-offset-checkpoint"
"""Only partitions whose log start offset lies within a segment, because records were deleted."""

CLEANER: Final = "cleaner-offset-checkpoint"
"""Of compacted logs: end offset of what was compacted."""

Offsets = dict[tuple[str, int], int]
"""(topic, partition) → offset."""

_LOCK: Final = ".checkpoints.lock"


def read(disk: Disk, data_dir: str, name: str) -> Offsets:
    """The offsets in the file; empty when there is none or it is not whole."""
    path = f"{data_dir}/{name}"
    if not disk.exists(path):
        return {}
    return _decode(read_file(disk, path))


def problem(data: bytes) -> str:
    """The fault in the bytes of such a file, "" for none."""
    if _decode(data) or data.split() == [b"0", b"0"]:
        return ""
    return "it is not whole"


def merge(
    disk: Disk, data_dir: str, name: str, changed: Mapping[tuple[str, int], int | None]
) -> None:
    """Write these offsets into the file durably, keep the others; None removes a partition."""
    with disk.lock(f"{data_dir}/{_LOCK}"):
        offsets = read(disk, data_dir, name)
        before = dict(offsets)
        for partition, offset in changed.items():
            if offset is None:
                offsets.pop(partition, None)
            else:
                offsets[partition] = offset
        if offsets == before:
            return  # written durably when it was new
        write_file(disk, f"{data_dir}/{name}", _encode(offsets))


def _encode(offsets: Offsets) -> bytes:
    lines = [f"{topic} {index} {offset}\n" for (topic, index), offset in offsets.items()]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def _decode(data: bytes) -> Offsets:
    lines = data.decode("ascii", "replace").splitlines()
    offsets: Offsets = {}
    try:
        version, count = int(lines[0]), int(lines[1])
        for line in lines[2:]:
            topic, index, offset = line.split(" ")
            offsets[topic, int(index)] = int(offset)
    except (ValueError, IndexError):
        return {}
    return offsets if version == 0 and count == len(offsets) else {}
