"""One topic as a backup of its own, and back into the data folder of a stopped appliance.

An archive has the layout of a backup (`manifest.py`) with the topic's logs alone; in the place of
the cluster's metadata stands the entry that an undelete of the topic needs (`metadata/trash.py`).
So a restore puts the topic where deleted topics lie, and `penstock topic undelete` brings it back:
the same id, offsets, times, headers and leader epochs. Invariant: the entry is written last, so
what was cut off is no topic; the next restore takes the segments that are whole already.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import ConfigError, StorageFailed
from appliance.base.ids import INTERNAL_TOPICS
from appliance.ioproc.deletion.deleted_folders import write_mark
from appliance.logstore import files
from appliance.logstore.partition_metadata import write_metadata
from appliance.metadata import checkpoint, trash
from appliance.metadata.identity import Identity, read_identity
from appliance.metadata.image import MetadataImage
from appliance.metadata.trash import TRASH_FILE, Buried, DeletedTopics
from appliance.remotelog.journal import NAME as REMOTE_JOURNAL
from appliance.wire import kraft_records
from console.model.asking.failure import Failure, usage
from console.model.backup import manifest
from console.model.backup.instant import Instant, Running
from console.model.backup.manifest import Manifest, Part, Partition
from console.model.backup.restoring import RestoredLog, read_whole, write_part
from console.model.backup.store import Store, opened
from console.model.backup.taking import Taken, take_part
from console.model.storage.durable import sync_all
from console.model.storage.folder_copy import check_room

_FILE: Final = "file://"
_PIECE: Final = 1 << 20


def opened_archive(where: str, topic: str, *, existing: bool = False) -> Store:
    """The store of a topic's archives. where: a folder, file:///FOLDER or s3://BUCKET/PREFIX.
    Raises Failure."""
    place = where.removeprefix(_FILE).rstrip("/") or "/"
    return opened(f"{place}/{topic}", existing=existing)


def archive_topic(
    disk: Disk, running: Running, folders: list[str], store: Store, topic: str,
    told: Callable[[int, int], None],
) -> Taken:  # fmt: skip
    """An archive of the topic as it is now. told: bytes done, of how many. Raises Failure for what
    cannot be archived whole; then there is no archive, and those before are as they were."""
    return take_part(
        disk, running, store, told, lambda found: _narrowed(disk, folders, found, topic)
    )


def _narrowed(disk: Disk, folders: list[str], found: Instant, topic: str) -> Instant:
    """The topic alone. Raises Failure."""
    if topic in INTERNAL_TOPICS:
        raise usage(f"{topic} is a topic of the appliance itself", "penstock backup create has it")
    image = MetadataImage()
    for value in checkpoint.read(found.metadata).values:
        image.apply(0, kraft_records.decode(value))
    if topic not in image.topics_by_name:
        raise Failure(f"there is no topic {topic}", name="UNKNOWN_TOPIC_OR_PARTITION")
    mine = image.topics_by_name[topic]
    name = re.compile(rf"{re.escape(topic)}-\d+")
    lacking = [one for one in found.elsewhere if name.fullmatch(one)]
    lacking += [one for one in found.left_out if name.fullmatch(one.partition(":")[0])]
    if lacking:
        raise Failure(
            f"this node has not all of {topic}: {lacking[0]}",
            "archive it on a node that has every partition in sync", name="NOT_WHOLE",
        )  # fmt: skip
    logs = [one for one in found.logs if one.topic == topic]
    for one in logs:
        if disk.exists(f"{folders[one.folder]}/{topic}-{one.partition}/{REMOTE_JOURNAL}"):
            raise Failure(
                f"{topic}-{one.partition} has segments in a remote store, which an archive lacks",
                "copy its records to another topic, and archive that", name="TIERED_TOPIC",
            )  # fmt: skip
    if len(logs) < len(mine.partitions):
        raise Failure(f"{topic} has partitions that are not open", "try again", name="NOT_WHOLE")
    size = sum(size for one in logs for _, size in one.segments)
    records = sum(one.end - one.log_start for one in logs)
    entry = trash.entry(trash.bury(image, mine, found.ms, size=size, records=records))
    return replace(found, metadata=entry.encode(), logs=logs, left_out=[], elsewhere=[], torn=False)


@dataclass(slots=True)
class RestoredTopic:
    """The result of a restore. read: bytes that had to be read from the store."""

    topic: str
    id: str
    partitions: int = 0
    records: int = 0
    bytes: int = 0
    read: int = 0


def chosen_archive(store: Store, topic: str, name: str) -> Manifest:
    """The archive of this name, or the newest one. Raises Failure."""
    there = manifest.names(store)
    if not there or (name and name not in there):
        what = f"archive {name} of {topic}" if name else f"archive of {topic}"
        raise Failure(f"there is no {what}", "penstock topic archive makes one", name="NO_ARCHIVE")
    found = manifest.read(store, name or there[-1])
    if {one.topic for one in found.partitions} != {topic}:
        raise Failure(f"{found.name} is no archive of {topic}", name="NO_ARCHIVE")
    return found


class TopicRestore:
    """The restore of an archive into the first log folder of a stopped appliance, whose lock the
    caller holds. now_ms: from when on an undelete can bring it back, wall clock."""

    def __init__(
        self,
        disk: Disk,
        store: Store,
        archive: Manifest,
        folder: str,
        now_ms: int,
        told: Callable[[int, int], None],
    ) -> None:
        """Raises Failure for what is not to be restored there."""
        self._disk, self._store, self._archive = disk, store, archive
        self._folder, self._told = folder, told
        self._entry = self._buried(now_ms)
        self._there = self._listed()
        self._made = RestoredTopic(self._entry.name, self._entry.topic_id.hex())
        self._check()

    def restore_topic(self) -> RestoredTopic:
        """Write its logs, then its entry among the deleted topics. Raises Failure."""
        try:
            for one in self._archive.partitions:
                self._partition(one)
            sync_all(self._folder)
            self._there.topics[self._entry.topic_id] = self._entry
            entries = map(trash.entry, self._there.topics.values())
            data = trash.encode(entries, self._there.names)
            write_file(self._disk, f"{self._folder}/{TRASH_FILE}", data)
        except StorageFailed as why:
            raise Failure(str(why), name="NOT_RESTORED") from None
        return self._made

    def _buried(self, now_ms: int) -> Buried:
        """The topic's entry, with the only replica here."""
        text = read_whole(self._store, self._archive.metadata)
        try:
            identity = read_identity(self._disk, self._folder)
            told: dict[str, Any] = json.loads(text)
            told["deleted_ms"] = now_ms
            (found,) = trash.decode(trash.encode([json.dumps(told)], {})).topics.values()
        except (ConfigError, StorageFailed) as why:
            raise Failure(str(why), "penstock up makes a data folder", name="NO_FOLDER") from None
        except (ValueError, TypeError) as why:
            raise Failure(f"the archive is invalid: {why}", name="BACKUP_DAMAGED") from None
        values = (_alone(kraft_records.decode(value), identity) for value in found.values)
        told["metadata"] = [b64encode(kraft_records.encode(one)).decode() for one in values]
        (found,) = trash.decode(trash.encode([json.dumps(told)], {})).topics.values()
        return found

    def _listed(self) -> DeletedTopics:
        path = f"{self._folder}/{TRASH_FILE}"
        if not self._disk.exists(path):
            return DeletedTopics()
        try:
            return trash.decode(read_file(self._disk, path))
        except (ValueError, StorageFailed) as why:
            raise Failure(f"{path}: {why}", name="NOT_READABLE") from None

    def _check(self) -> None:
        entry, remedy = self._entry, f"penstock topic undelete {self._entry.name} brings it back"
        if entry.topic_id in self._there.topics:
            text = f"{entry.name} with this id is among the deleted topics already"
            raise Failure(text, remedy, name="TOPIC_ALREADY_EXISTS")
        if {(one.topic, bytes.fromhex(one.topic_id)) for one in self._archive.partitions} != {
            (entry.name, entry.topic_id)
        }:
            raise Failure("the archive is of two topics", name="BACKUP_DAMAGED")
        for one in self._archive.partitions:
            if self._disk.exists(f"{self._folder}/{one.topic}-{one.partition}"):
                text = f"{self._folder} has a topic {one.topic}"
                remedy = f"penstock topic delete {one.topic} first, then restore"
                raise Failure(text, remedy, name="TOPIC_ALREADY_EXISTS")
        check_room(self._folder, self._archive.bytes)

    def _partition(self, one: Partition) -> None:
        disk, unique = self._disk, self._entry.topic_id.hex()
        folder = f"{self._folder}/{one.topic}-{one.partition}"
        log = RestoredLog(disk, files.deleted_folder(folder, unique), one)
        if not disk.exists(log.folder):
            disk.mkdir(log.folder)
        write_metadata(disk, log.folder, self._entry.topic_id, sync=False)
        for part in one.parts:
            if not self._is_there(log.folder, part):
                write_part(disk, self._store, log.folder, part)
                self._made.read += part.bytes
            log.read(part.base, (1 << 63) - 1)
            self._made.bytes += part.bytes
            self._told(self._made.bytes, self._archive.bytes)
        log.finish()
        write_mark(disk, log.folder, (min(one.log_start, log.end), log.end))
        self._made.partitions += 1
        self._made.records += log.end - min(one.log_start, log.end)

    def _is_there(self, folder: str, part: Part) -> bool:
        """True if an earlier restore, which was cut off, has written this segment whole."""
        path = files.stem(folder, part.base) + files.LOG
        if not self._disk.exists(path):
            return False
        if self._disk.size(path) == part.bytes:
            digest, file = sha256(), self._disk.open_file(path)
            try:
                for at in range(0, part.bytes, _PIECE):
                    digest.update(file.pread(min(_PIECE, part.bytes - at), at))
            finally:
                file.close()
            if digest.hexdigest() == part.digest:
                return True
        self._disk.unlink(path)
        return False


def _alone(record: object, identity: Identity) -> object:
    """A partition with its only replica on this node."""
    if not isinstance(record, kraft_records.PartitionRecord):
        return record
    me = identity.node_id
    return replace(
        record, replicas=(me,), isr=(me,), leader=me, removing_replicas=(), adding_replicas=(),
        directories=(identity.directory_id,), eligible_leader_replicas=None, last_known_elr=None,
    )  # fmt: skip
