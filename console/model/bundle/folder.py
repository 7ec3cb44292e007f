"""Facts of a data folder, whether its appliance runs or not: its identity, the metadata quorum,
dynamic settings, files and their sizes. Reads no records but the metadata's.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from appliance.base.errors import ConfigError
from appliance.base.os_disk import OsDisk
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum import state_file as quorum_state
from appliance.metadata import files
from appliance.metadata.follower import LOG_FOLDER
from appliance.metadata.identity import read_identity
from appliance.metadata.image import BROKER, CLIENT_METRICS, GROUP, TOPIC, MetadataImage
from appliance.wire.uuids import format_uuid
from console.model.bundle.secrets import Secrets

Row = dict[str, Any]
MOST_FILES: Final = 20_000
_KINDS: Final = {TOPIC: "topic", BROKER: "broker", GROUP: "group", CLIENT_METRICS: "client metrics"}
_FILE: Final = re.compile(
    r"\d{20}(-\d{10})?\.(log|index|timeindex|txnindex|snapshot|checkpoint)(\.\w{1,16})?"
    r"|[a-z-]{1,64}-checkpoint(-\d+)?|bootstrap\.checkpoint|meta\.properties|partition\.metadata|quorum-state"
    r"|\.kafka_cleanshutdown|\.lock|penstock\.[a-z]{1,32}(\.[a-z0-9]{1,8}){0,2}"
)
_FOLDER: Final = re.compile(r"[A-Za-z0-9._-]{1,249}-\d{1,10}(\.[0-9a-f]{32}-(delete|future))?")
_CHECKPOINTS: Final = re.compile(r"[a-z-]{1,64}-checkpoint")
_ENTRY: Final = re.compile(r"\d+|[A-Za-z0-9._-]{1,249} \d+ -?\d+")


def image_of(data_dir: str, others: list[str]) -> MetadataImage:
    """The metadata of an appliance that does not run, as far as it can be read. Raises
    StorageFailed, ConfigError."""
    disk = OsDisk()
    return repair.plan(disk, data_dir, others, read_identity(disk, data_dir).node_id).image


def quorum(data_dir: str, image: MetadataImage | None) -> Row:
    """The identity in the folder and its view of the metadata quorum."""
    disk, folder = OsDisk(), f"{data_dir}/{LOG_FOLDER}"
    told: Row = {}
    try:
        identity = read_identity(disk, data_dir)
        told |= {
            "cluster_id": identity.cluster_id,
            "node_id": identity.node_id,
            "directory_id": format_uuid(identity.directory_id),
        }
        known = quorum_state.read(disk, folder)
        told |= {
            "epoch": known.epoch,
            "leader": known.leader,
            "voted": known.voted,
            "static_voters": sorted(quorum_state.voters(disk, folder)),
        }
    except ConfigError as wrong:
        told["problem"] = str(wrong)
    if os.path.isdir(folder):
        told["segments"] = files.segments(disk, folder)
        told["snapshots"] = [one.file_name for one in files.snapshots(disk, folder)]
    if image is not None:
        told |= _of_image(image)
    return told


def _of_image(image: MetadataImage) -> Row:
    return {
        "applied_offset": image.applied_offset,
        "applied_epoch": image.epoch,
        "features": image.features,
        "topics": len(image.topics_by_name),
        "skipped_records": image.skipped,
        "brokers": {
            number: {"fenced": one.fenced, "epoch": one.epoch}
            for number, one in sorted(image.brokers.items())
        },
        "controllers": sorted(image.controllers),
    }


def dynamic_settings(image: MetadataImage, secrets: Secrets) -> list[Row]:
    """Settings that were changed while it ran."""
    return [
        {
            "of": _KINDS.get(kind, str(kind)),
            "name": name,
            "key": key,
            "value": secrets.setting(key, value, kind) if kind in _KINDS else None,
        }
        for (kind, name), settings in sorted(image.configs.items())
        for key, value in sorted(settings.items())
    ]


def quotas(image: MetadataImage) -> list[Row]:
    """Limits of clients."""
    return [{"entity": dict(entity)} | limits for entity, limits in image.quotas.items()]


def sizes(folders: list[str]) -> Iterator[Row]:
    """Every file of an appliance with bytes and time; of all others, whose names may say anything,
    how many there are and how big."""
    left = MOST_FILES
    for folder in folders:
        strange: Row = {"folder": folder, "other_files": 0, "bytes": 0}
        for place, name, found in _walk(folder):
            if not left:
                yield {"folder": folder, "left_out": f"more than {MOST_FILES} files"}
                return
            if not _FILE.fullmatch(name) or not (place == "" or _FOLDER.fullmatch(place)):
                strange["other_files"] += 1
                strange["bytes"] += found.st_size
                continue
            left -= 1
            yield {
                "folder": folder,
                "file": f"{place}/{name}".lstrip("/"),
                "bytes": found.st_size,
                "allocated": found.st_blocks * 512,
                "modified_s": int(found.st_mtime),
            }
        if strange["other_files"]:
            yield strange


def _walk(folder: str) -> Iterator[tuple[str, str, os.stat_result]]:
    for place, inner, names in os.walk(folder):
        inner.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            with suppress(OSError):
                yield os.path.relpath(place, folder).removeprefix("."), name, os.lstat(path)


def checkpoints(folders: list[str]) -> Mapping[str, list[str]]:
    """The lines of recovery points and their like: topic, partition, offset. Others are not
    shown."""
    told = {}
    for folder in folders:
        for path in sorted(Path(folder).iterdir()):
            if _CHECKPOINTS.fullmatch(path.name) and path.is_file():
                lines = path.read_text(errors="replace").splitlines()[:MOST_FILES]
                told[f"{folder}/{path.name}"] = [
                    one if _ENTRY.fullmatch(one) else "(not a line of a checkpoint)"
                    for one in lines
                ]
    return told
