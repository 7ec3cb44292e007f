"""Taking a backup: the files of an instant into a store, those that it has already left out.

What is copied is read through first: a batch with a wrong CRC32C ends the backup, because nobody
looks at one until it is all there is.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from appliance.base.disk import Disk, File
from appliance.base.errors import StorageFailed
from appliance.logstore import files
from appliance.logstore.scan import Scan
from console.model.asking.failure import Failure
from console.model.backup import manifest
from console.model.backup.instant import Instant, Log, Running
from console.model.backup.manifest import Manifest, Part, Partition, place
from console.model.backup.store import Store

_CHUNK: Final = 1 << 20
_Key = tuple[str, int, int, int, int, int]


@dataclass(slots=True)
class Taken:
    """sent: bytes that the store did not have yet."""

    manifest: Manifest
    sent: int


def take_backup(
    disk: Disk, running: Running, store: Store, told: Callable[[int, int], None]
) -> Taken:
    """A backup of this instant, verified as far as it was read. told: bytes done, of how many.
    Raises Failure; then there is no backup, and those before are as they were."""
    return take_part(disk, running, store, told, lambda found: found)


def take_part(
    disk: Disk,
    running: Running,
    store: Store,
    told: Callable[[int, int], None],
    narrow: Callable[[Instant], Instant],
) -> Taken:
    """The same of what `narrow` leaves of the instant."""
    try:
        return _Taking(disk, store, narrow(running.instant()), told).copy_folder()
    except StorageFailed as why:
        raise Failure(str(why), name="NOT_READABLE") from None
    finally:
        running.close()


class _Taking:
    def __init__(
        self, disk: Disk, store: Store, found: Instant, told: Callable[[int, int], None]
    ) -> None:
        self._disk, self._store, self._found, self._told = disk, store, found, told
        self._there = {name.rpartition("/")[2] for name in store.names(manifest.SEGMENTS)}
        self._damaged = {name.rpartition("/")[2] for name in store.names(manifest.DAMAGED)}
        self._there -= self._damaged
        self._known = _known(store)
        self._total = sum(size for log in found.logs for _, size in log.segments)
        self._done = self._sent = 0

    def copy_folder(self) -> Taken:
        found = self._found
        metadata = sha256(found.metadata).hexdigest()
        if metadata not in self._there:
            self._put(metadata, [found.metadata])
            self._sent += len(found.metadata)
        made = Manifest(
            name=manifest.name_of(found.ms),
            instant_ms=found.ms,
            cluster_id=found.cluster_id,
            node_id=found.node_id,
            identities=found.identities,
            metadata=metadata,
            metadata_end=found.metadata_end,
            partitions=tuple(self._partition(log) for log in found.logs),
            left_out=tuple(found.left_out),
            elsewhere=tuple(found.elsewhere),
            torn=found.torn,
        )
        manifest.write_manifest(self._store, made)
        return Taken(made, self._sent)

    def _partition(self, log: Log) -> Partition:
        parts = []
        bases = [base for base, _ in log.segments]
        for number, (base, size) in enumerate(log.segments):
            behind = bases[number + 1] if number + 1 < len(bases) else log.end
            if base < log.end and behind > log.log_start:
                parts.append(self._part(log, base, size))
            self._done += size
            self._told(self._done, self._total)
        return Partition(
            log.topic, log.topic_id.hex(), log.partition, log.folder, log.log_start, log.end,
            tuple(parts),
        )  # fmt: skip

    def _part(self, log: Log, base: int, size: int) -> Part:
        path = files.stem(log.links, base) + files.LOG
        found = os.stat(path)
        file = self._disk.open_file(path)
        try:
            part = self._as_before(log, base, found, size)
            if part is not None:
                return part
            length = self._checked(log, file, base, size)
            digest = sha256()
            for piece in _pieces(file, length):
                digest.update(piece)
            name = digest.hexdigest()
            if name not in self._there:
                self._put(name, _pieces(file, length))
                self._there.add(name)
                self._sent += length
            return Part(base, length, name, found.st_ino, found.st_mtime_ns)
        finally:
            file.close()

    def _put(self, digest: str, pieces: Iterable[bytes]) -> None:
        """Send bytes; what was damaged of them is whole then."""
        self._store.write_object(place(digest), pieces)
        if digest in self._damaged:
            self._store.delete(f"{manifest.DAMAGED}/{digest}")

    def _as_before(self, log: Log, base: int, found: os.stat_result, size: int) -> Part | None:
        """The part of an earlier backup for a file that has not been written since."""
        key = (log.topic_id.hex(), log.partition, base, size, found.st_ino, found.st_mtime_ns)
        part = self._known.get(key)
        return part if part is not None and part.digest in self._there else None

    def _checked(self, log: Log, file: File, base: int, size: int) -> int:
        """How many bytes of a segment belong to the instant; all batches in them are whole."""
        scan = Scan(file, 0, size, base, gaps=True)
        for chunk in scan.chunks():
            for position, header in chunk:
                if header[0] >= log.end:
                    return position
        if scan.problem and scan.next_offset < log.end:
            text = f"{log.topic}-{log.partition}, offset {scan.next_offset}: {scan.problem}"
            remedy = "penstock storage verify shows the damage; penstock storage repair repairs it"
            raise Failure(text, remedy, name="DAMAGED")
        return scan.position


def _known(store: Store) -> dict[_Key, Part]:
    """The parts of the newest backup, by the files that they were read from."""
    names = manifest.names(store)
    if not names:
        return {}
    return {
        (one.topic_id, one.partition, part.base, part.bytes, part.inode, part.mtime_ns): part
        for one in manifest.read(store, names[-1]).partitions
        for part in one.parts
    }


def _pieces(file: File, length: int) -> Iterator[bytes]:
    for at in range(0, length, _CHUNK):
        yield file.pread(min(_CHUNK, length - at), at)
