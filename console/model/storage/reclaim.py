"""Space in data folders that could be reclaimed, read from the folders alone, whether an appliance
runs there or not.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from appliance.base.disk import Disk
from appliance.config.broker import BrokerConfig
from appliance.ioproc.deletion.deleted_folders import key_of
from appliance.ioproc.log_folders.folder_names import STRAY_FOLDER, parse
from appliance.metadata.effective import log_config
from appliance.metadata.identity import META_PROPERTIES
from appliance.metadata.image import MetadataImage
from console.model.asking.failure import Failure, usage
from console.model.backup.instant import LINKS, taken_just_now
from console.model.storage.storage import metadata_of
from console.model.topics.segments import newest_ms, segments

ASIDE: Final = "set aside"
BACKUP: Final = "left by a backup"
DELETED: Final = "deleted topic"
TOPIC: Final = "topic"
_DAY_MS: Final = 86_400_000


@dataclass(slots=True, frozen=True)
class Space:
    """kind: ASIDE, BACKUP, DELETED or TOPIC. name: of a folder, or of a topic. bytes: on the disk.
    due: of a topic, bytes that retention deletes within a day. removable: by `remove`. means: what
    is lost with it, or who gives it back."""

    kind: str
    name: str
    bytes: int
    due: int
    removable: bool
    means: str


def find_space(disk: Disk, folders: list[str], now_ms: int) -> list[Space]:
    """The largest first. Raises Failure."""
    found: list[Space] = []
    topics: dict[str, tuple[int, int]] = {}
    for folder in folders:
        if not os.path.exists(os.path.join(folder, META_PROPERTIES)):
            raise usage(f"{folder} is no data folder: it has no {META_PROPERTIES}")
        image, _ = metadata_of(disk, folder)
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            place = parse(name)
            if place is not None and os.path.isdir(path):
                size, due = topics.get(place[0], (0, 0))
                more = _due(image, place[0], path, now_ms)
                topics[place[0]] = size + _bytes(path), due + more
            else:
                found += _beside(path, name)
    for topic, (size, due) in topics.items():
        means = "penstock topic trim and retention give space back"
        found.append(Space(TOPIC, topic, size, due, False, means))
    return sorted(found, key=lambda one: -one.bytes)


def _beside(path: str, name: str) -> Iterator[Space]:
    if name.endswith(STRAY_FOLDER):
        means = "set aside by a repair or a start; not used"
        yield Space(ASIDE, name, _bytes(path), 0, True, means)
    elif name == LINKS:
        runs = taken_just_now(os.path.dirname(path))
        means = "a backup is running" if runs else "left by a killed backup; not used"
        yield Space(BACKUP, name, 0 if runs else _bytes(path), 0, not runs, means)
    elif key_of(name) is not None:
        means = "penstock topic list --deleted says how long it can be brought back"
        yield Space(DELETED, name, _bytes(path), 0, False, means)


def _bytes(folder: str) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_blocks * 512
    return total


def _due(image: MetadataImage | None, topic: str, folder: str, now_ms: int) -> int:
    if image is None or topic not in image.topics_by_name:
        return 0
    keep = log_config(image, BrokerConfig(), topic)
    if not keep.delete or keep.retention_ms < 0:
        return 0
    then = now_ms + _DAY_MS - keep.retention_ms
    return sum(one.size for one in segments(folder)[:-1] if newest_ms(folder, one, now_ms) < then)


def remove(folders: list[str], names: list[str], found: list[Space]) -> None:
    """Remove these folders. Raises Failure, when one is not removable before anything is."""
    removable = {one.name for one in found if one.removable}
    for name in names:
        if name not in removable:
            raise usage(f"{name} cannot be deleted here", "penstock storage reclaim shows what can")
    for name in names:
        for folder in folders:
            try:
                if os.path.isdir(path := os.path.join(folder, name)):
                    shutil.rmtree(path)
            except OSError as why:
                raise Failure(f"{why.filename}: {why.strerror}", name="NOT_REMOVED") from None


def now() -> int:
    """ms since 1970."""
    return time.time_ns() // 1_000_000
