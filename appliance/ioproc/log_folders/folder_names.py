"""The folders of partitions inside a log folder: whose they are, and what must not stay.

Invariant: a folder is opened only when its `partition.metadata` names the topic id that the cluster
gave to the partition; any other folder of that name is renamed away first, never written. Nothing
is destroyed here but what a deletion or an unfinished creation left behind.
"""

import re
from typing import Final

from appliance.base.disk import Disk
from appliance.base.home import home_of
from appliance.base.ids import METADATA_TOPIC
from appliance.logstore.files import DELETED_FOLDER, LOG
from appliance.logstore.partition_metadata import read_topic_id
from appliance.metadata.log_dirs import LogDirs

STRAY_FOLDER: Final = "-stray"
FUTURE_FOLDER: Final = "-future"

_NAME: Final = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})\Z")


def parse(name: str) -> tuple[str, int] | None:
    """(topic, partition) of a folder's name, None for every other folder."""
    found = _NAME.match(name)
    if found is None or found[1] == METADATA_TOPIC:
        return None
    return found[1], int(found[2])


def make_way(disk: Disk, folder: str, topic_id: bytes, unique: str) -> str:
    """See that `folder` belongs to this topic or does not exist. Returns where another one went, or
    ""."""
    found = read_topic_id(disk, folder)
    if found == topic_id or not disk.exists(folder):
        return ""
    if found is None and not any(
        name.endswith(LOG) and disk.size(f"{folder}/{name}") for name in disk.listdir(folder)
    ):
        empty(disk, folder)  # a creation that a power cut ended
        return ""
    return move_away(disk, folder, unique)


def move_away(disk: Disk, folder: str, unique: str) -> str:
    """Rename a folder that belongs to nobody; its records stay there for a person to look at.
    Earlier ones of the same name and `unique` stay, too."""
    parent, _, name = folder.rpartition("/")
    topic, _, partition = name.rpartition("-")
    number, more = 0, ""
    while disk.exists(stray := _stray(parent, topic, f"-{partition}.{unique}{more}")):
        number += 1
        more = f"{number:x}"
    disk.rename(folder, stray)
    disk.sync_dir(parent)
    return stray


def _stray(parent: str, topic: str, tail: str) -> str:
    tail += STRAY_FOLDER
    return f"{parent}/{topic[: 255 - len(tail)]}{tail}"


def renamed(disk: Disk, parent: str, name: str) -> bool:
    """True if a partition's folder was renamed for deletion or as a stray and still exists."""
    topic, _, partition = name.rpartition("-")
    ends = re.compile(rf"-{partition}\.[0-9a-f]+({DELETED_FOLDER}|{STRAY_FOLDER})\Z")
    return any(
        (found := ends.search(other)) and topic.startswith(other[: found.start()])
        for other in disk.listdir(parent)
    )


def all_futures(disk: Disk, dirs: LogDirs) -> list[str]:
    """Copies of partitions on their way to another log folder."""
    if len(dirs.paths) == 1:
        return []
    return [
        f"{path}/{name}"
        for _, path in dirs.online()
        for name in disk.listdir(path)
        if name.endswith(FUTURE_FOLDER)
    ]


def of_future(disk: Disk, path: str) -> tuple[bytes, int]:
    """Topic id and index of the partition that a copy is to become; (b"", -1): none."""
    index = path.rpartition(".")[0].rpartition("-")[2]
    topic_id = read_topic_id(disk, path)
    return (topic_id, int(index)) if topic_id is not None and index.isdecimal() else (b"", -1)


def empty(disk: Disk, folder: str) -> None:
    """Remove a folder and the files in it."""
    for name in disk.listdir(folder):
        disk.unlink(f"{folder}/{name}")
    disk.rmdir(folder)


def deleted(disk: Disk, parent: str, me: int, ioprocs: int) -> list[str]:
    """Folders of deleted partitions whose removal was not finished and falls to this ioproc."""
    return [
        f"{parent}/{name}"
        for name in disk.listdir(parent)
        if name.endswith(DELETED_FOLDER) and home_of(name.encode(), 0, ioprocs) == me
    ]
