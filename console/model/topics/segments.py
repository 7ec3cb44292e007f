"""The segments of a partition as its folder on this host has them: where they begin, how big they
are, how new. Nobody is asked, and nothing is opened but the end of a time index.

Whose folder it is, is known by the cluster's id: an appliance's and Apache Kafka's look alike.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import Final

from appliance.base.errors import ConfigError, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.logstore.files import LOG, TIME_INDEX, offset_of, stem
from appliance.logstore.indexes import TIME_ENTRY
from appliance.metadata.identity import read_identity
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.cluster import cluster
from console.model.groups.groups import Place
from console.model.storage.disk import log_folders

_TIME: Final = Struct(">qi")
assert _TIME.size == TIME_ENTRY


@dataclass(slots=True, frozen=True)
class Segment:
    """base: its first offset. written_ms: when its file was last written to."""

    base: int
    size: int
    written_ms: int


def folders_here(link: Link) -> list[str]:
    """The log folders of the broker behind a link that can be looked into here; none when it is of
    another host, belongs to somebody else, or cannot be asked for them."""
    found = []
    with suppress(Failure):
        asked = log_folders(link, used=False)
        mine = cluster.read_cluster(link).id
        for one in asked:
            with suppress(ConfigError, StorageFailed, OSError, ValueError):
                if os.access(one.path, os.R_OK | os.X_OK) and mine == _cluster(one.path):
                    found.append(one.path)
    return found


def _cluster(folder: str) -> str:
    return read_identity(OsDisk(), folder).cluster_id


def folder_of(folders: list[str], place: Place) -> str | None:
    """The folder of a partition; None when it lies in none of them."""
    topic, number = place
    if "/" in topic or "\0" in topic:
        return None
    paths = (f"{folder}/{topic}-{number}" for folder in folders)
    return next((path for path in paths if os.path.isdir(path)), None)


def segments(folder: str) -> list[Segment]:
    """In the order of their offsets. Files may go while it is looked: what is gone is left out."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            base = offset_of(entry.name, LOG)
            if base >= 0:
                with suppress(OSError):
                    told = entry.stat()
                    found.append(Segment(base, told.st_size, told.st_mtime_ns // 1_000_000))
    return sorted(found, key=lambda one: one.base)


def newest_ms(folder: str, one: Segment, now_ms: int) -> int:
    """The newest timestamp of a segment that is not written to any more. Without one, or with one
    from the future, when it was written last, as retention has it."""
    with suppress(OSError), open(stem(folder, one.base) + TIME_INDEX, "rb") as file:
        size = os.fstat(file.fileno()).st_size // TIME_ENTRY * TIME_ENTRY
        if size:
            stamp, _ = _TIME.unpack(os.pread(file.fileno(), TIME_ENTRY, size - TIME_ENTRY))
            if 0 < stamp <= now_ms:
                return int(stamp)
    return one.written_ms
