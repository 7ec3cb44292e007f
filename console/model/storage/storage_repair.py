"""Repairing the data folders of a stopped appliance: what is found becomes a plan, and the plan is
carried out partition by partition. What is done in a log's folder is `appliance/logstore/mending`.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from appliance.base.disk import Disk, write_file
from appliance.base.errors import StorageFailed
from appliance.base.ids import METADATA_TOPIC
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.log_folders.folder_names import STRAY_FOLDER, move_away, parse
from appliance.logstore import repair, scrub
from appliance.logstore.repair import Mend
from appliance.logstore.scrub import RECORDS, Damage
from appliance.logstore.unfinished_swaps import finish_swaps
from appliance.supervisor.folder import CLEAN_NAME
from console.model.asking.failure import Failure
from console.model.storage.storage import LOST_NAME, UNREADABLE, Place, Scrub, lost_of

REBUILD: Final = "rebuild"
SET_ASIDE: Final = "set aside"
FETCH: Final = "fetch again"
_SPARE: Final = 64 << 20


@dataclass(slots=True, frozen=True)
class Planned:
    """The repair of a partition. action: REBUILD files that are made of the records, SET_ASIDE
    damaged ones, FETCH the whole log from another node. lost: offsets that can no longer be read,
    as "first-last". files: names to set aside; bytes: that are written anew.
    """

    place: Place
    action: str
    lost: tuple[str, ...]
    files: tuple[str, ...]
    bytes: int


def plan(
    disk: Disk, what: Scrub, told: Callable[[int], None]
) -> tuple[list[Planned], list[Damage]]:
    """The repairs to do, and the damage that cannot be repaired here. told: receives the bytes
    read. Raises StorageFailed.
    """
    made: list[Planned] = []
    left: list[Damage] = []
    for place in what.places:
        found = list(_damages(disk, place, told))
        left += [one for one in found if one.kind == UNREADABLE]
        if place.topic == METADATA_TOPIC:
            left += found
        elif parse(os.path.basename(place.folder)) is not None and (
            one := _planned(disk, place, found)
        ):
            made.append(one)
    return made, left


def _damages(disk: Disk, place: Place, told: Callable[[int], None]) -> Iterator[Damage]:
    for one in scrub.scrub(disk, place.folder, place.known):
        if isinstance(one, Damage):
            yield one
        else:
            told(one.bytes)


def _planned(disk: Disk, place: Place, found: list[Damage]) -> Planned | None:
    if place.elsewhere and any(one.kind in (RECORDS, scrub.HOLE) for one in found):
        names = disk.listdir(place.folder)
        return Planned(place, FETCH, (), tuple(names), 0)
    mend = repair.plan(disk, place.folder, found, _written(disk, place))
    if mend is None:
        return None
    lost = tuple(f"{first}-{last}" for first, last in mend.lost)
    names = [f"{base:020d}.log" for base in mend.runs] + mend.derived
    action = SET_ASIDE if mend.runs or mend.end >= 0 else REBUILD
    return Planned(place, action, lost, tuple(names), mend.size)


def _written(disk: Disk, place: Place) -> int:
    """Below this offset there were records."""
    marks = checkpoints.read(disk, place.root, checkpoints.HIGH_WATERMARK)
    return max(place.known.recovery_point, marks.get((place.topic, place.partition), 0))


def carry_out(disk: Disk, one: Planned, now_ms: int) -> str:
    """Do it; the folder beside that has what was set aside. Raises Failure, StorageFailed,
    OSError."""
    place, unique = one.place, f"{now_ms:032x}"
    key = place.topic, place.partition
    if one.action == FETCH:
        _forget_the_end(disk, place.root)
        beside = move_away(disk, place.folder, unique)
        for name in (checkpoints.RECOVERY_POINT, checkpoints.HIGH_WATERMARK, checkpoints.LOG_START):
            checkpoints.merge(disk, place.root, name, {key: None})
        return beside
    free = disk.space(place.folder).free
    if free < one.bytes + _SPARE:
        needs = one.bytes + _SPARE - free
        raise Failure(f"{place.folder}: {needs >> 20} MiB more must be free", name="DISK_FULL")
    finish_swaps(disk, place.folder)  # of a repair or a compaction that was killed
    found = list(_damages(disk, place, lambda _: None))
    mend = repair.plan(disk, place.folder, found, _written(disk, place))
    if mend is None:
        return ""
    topic = place.topic[: 250 - len(f"-{place.partition}.{unique}{STRAY_FOLDER}")]
    beside = f"{place.root}/{topic}-{place.partition}.{unique}{STRAY_FOLDER}"
    _note_lost(disk, place.folder, mend)
    end = repair.carry_out(disk, place.folder, mend, beside, os.link)
    checkpoints.merge(disk, place.root, checkpoints.RECOVERY_POINT, {key: end})
    return beside


def _forget_the_end(disk: Disk, root: str) -> None:
    """Removes the clean marker: with it the node would stay in sync and could lead without the
    records it lost.
    """
    with suppress(StorageFailed):
        if disk.exists(f"{root}/{CLEAN_NAME}"):
            disk.unlink(f"{root}/{CLEAN_NAME}")
            disk.sync_dir(root)


def _note_lost(disk: Disk, folder: str, mend: Mend) -> None:
    lost = sorted({*lost_of(disk, folder), *mend.lost})
    if lost:
        write_file(disk, f"{folder}/{LOST_NAME}", json.dumps(lost).encode())
