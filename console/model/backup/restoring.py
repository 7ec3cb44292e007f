"""A backup as data folders that an appliance opens: the same cluster, node and folders as before;
of a node of a cluster, an appliance alone (`alone`).

Files are written, held against their digests, synced; `meta.properties` comes last, so what was
cut off is no data folder. What is made of the records is left to the start, but for what a start
believes: checkpoints, producers, aborted transactions. To a point in time each log is cut at its
first batch that has a later record, at a time when no transaction was being decided if there was
one near (`quiet`). What is open there is aborted, but for what its coordinator had decided.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from appliance.base.disk import Disk, write_file
from appliance.base.errors import StorageFailed
from appliance.base.ids import TRANSACTIONS_TOPIC
from appliance.control.quorum import state_file as quorum_state
from appliance.coordinators.transactions.states import PREPARE_COMMIT
from appliance.ioproc.durability import checkpoints
from appliance.logstore import aborted, files
from appliance.logstore.aborted import Aborted
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.partition_metadata import write_metadata
from appliance.logstore.producer_snapshot import encode_snapshot
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.scan import HeaderFields, Scan
from appliance.metadata import checkpoint
from appliance.metadata.checkpoint import SnapshotId
from appliance.metadata.follower import LOG_FOLDER
from appliance.metadata.identity import META_PROPERTIES
from appliance.metadata.image import MetadataImage
from appliance.quorum.messages import QuorumState
from appliance.wire import kraft_records, markers
from appliance.wire.batch_header import CONTROL_BIT, HEADER, LENGTH_PREFIX
from appliance.wire.markers import Marker
from console.model.asking.failure import Failure, usage
from console.model.backup import alone, quiet
from console.model.backup.manifest import SEGMENTS, Manifest, Part, Partition, place
from console.model.backup.store import Store
from console.model.storage.data_folder import DEFAULT_NODE, KEPT
from console.model.storage.durable import sync_all

_METADATA_ID: Final = bytes(15) + b"\x01"
_NEVER: Final = 1 << 62


@dataclass(slots=True)
class Restored:
    """The result of a restore. to_ms: the time up to which there are records, -1: of the backup.
    cut: number of younger records. aborted: transactions that were open then, by partition. alone:
    the node of a cluster became a cluster of its own, with another id.
    """

    to_ms: int = -1
    partitions: int = 0
    bytes: int = 0
    cut: int = 0
    aborted: int = 0
    alone: bool = False


@dataclass(slots=True, frozen=True)
class Planned:
    """The size of a restore. to_ms: as of Restored. bytes: those that are read, before a cut."""

    to_ms: int
    partitions: int
    bytes: int


def planned(store: Store, backup: Manifest, folders: list[str], to_ms: int = -1) -> Planned:
    """The plan of a `restore`; nothing is written. Raises Failure as that does, except for bytes
    that have changed: they are not read.
    """
    _check(backup, folders)
    to_ms = _whole_at(backup, to_ms)
    sizes = store.names(SEGMENTS)
    missing = [one for one in sorted(backup.digests) if place(one) not in sizes]
    if missing:
        raise Failure(
            f"{len(missing)} files of the backup are missing, for example {missing[0]}",
            "penstock backup verify shows which backups are complete", name="DAMAGED",
        )  # fmt: skip
    if to_ms >= 0:
        to_ms = quiet.time_before(to_ms, _steps(store, backup))
    return Planned(to_ms, len(backup.partitions), backup.bytes)


def _check(backup: Manifest, folders: list[str]) -> None:
    if len(folders) != len(backup.identities):
        raise usage(
            f"the appliance had {len(backup.identities)} log directories: name as many folders"
        )
    for folder in folders:
        if os.path.isdir(folder) and os.listdir(folder):
            raise usage(f"{folder} is not empty")
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise usage(f"{folder} is no folder")


def _whole_at(backup: Manifest, to_ms: int) -> int:
    """The time up to which it is restored: one that is torn has no other end."""
    return backup.instant_ms if backup.torn and to_ms < 0 else to_ms


def _steps(store: Store, backup: Manifest) -> Iterator[quiet.Step]:
    """Yields the state of each transaction that coordinators decided."""
    for one in backup.partitions:
        if one.topic == TRANSACTIONS_TOPIC:
            for part in one.parts:
                yield from quiet.steps_of(read_whole(store, part.digest))


def read_whole(store: Store, digest: str) -> bytes:
    """The bytes of a digest. Raises Failure when they have changed."""
    data = b"".join(store.read_object(place(digest)))
    if sha256(data).hexdigest() != digest:
        raise _changed(digest)
    return data


def restore(
    disk: Disk,
    store: Store,
    backup: Manifest,
    folders: list[str],
    told: Callable[[int, int], None],
    to_ms: int = -1,
) -> Restored:
    """Write the folders, which are empty or not there. to_ms: the last time of records that are
    restored, -1: all. told: bytes done, of how many. Raises Failure."""
    _check(backup, folders)
    to_ms = _whole_at(backup, to_ms)
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    try:
        return _Restoring(disk, store, backup, folders, told, to_ms).restore()
    except StorageFailed as why:
        raise Failure(str(why), name="NOT_RESTORED") from None


class _Restoring:
    def __init__(
        self,
        disk: Disk,
        store: Store,
        backup: Manifest,
        folders: list[str],
        told: Callable[[int, int], None],
        to_ms: int,
    ) -> None:
        self._disk, self._store, self._backup = disk, store, backup
        self._folders, self._told = folders, told
        self._to_ms = to_ms if to_ms >= 0 else _NEVER
        self._committing: set[int] = set()
        self._marks: list[dict[tuple[str, int], int]] = [{} for _ in folders]
        self._starts: list[dict[tuple[str, int], int]] = [{} for _ in folders]
        self._made = Restored()

    def restore(self) -> Restored:
        backup, disk = self._backup, self._disk
        if self._to_ms != _NEVER:
            self._made.to_ms = self._to_ms = quiet.time_before(
                self._to_ms, _steps(self._store, backup)
            )
        # Coordinators first: they know what has been decided by then.
        order = sorted(backup.partitions, key=lambda one: one.topic != TRANSACTIONS_TOPIC)
        for one in order:
            self._partition(one)
        self._metadata()
        for number, folder in enumerate(self._folders):
            for name, offsets in (
                (checkpoints.RECOVERY_POINT, self._marks[number]),
                (checkpoints.HIGH_WATERMARK, self._marks[number]),
                (checkpoints.LOG_START, self._starts[number]),
            ):
                checkpoints.merge(disk, folder, name, offsets)
            sync_all(folder)
        identities = backup.identities
        if self._made.alone:
            identities = alone.of_another_cluster(identities)
        if self._made.alone and backup.node_id != DEFAULT_NODE:
            settings = f"node.id={backup.node_id}\n"
            write_file(disk, f"{self._folders[0]}/{KEPT}", settings.encode())
        for folder, identity in zip(self._folders, identities, strict=True):
            write_file(disk, f"{folder}/{META_PROPERTIES}", identity.encode())
        return self._made

    def _metadata(self) -> None:
        """As one snapshot, behind whose end the log goes on: nobody takes what follows for what
        was there."""
        data = read_whole(self._store, self._backup.metadata)
        read, image = checkpoint.read(data), MetadataImage()
        for value in read.values:
            image.apply(0, kraft_records.decode(value))
        header = HEADER.unpack_from(data)
        epoch, end = max(header[2], 0) + 1, self._backup.metadata_end + 1
        image.epoch, image.applied_offset = epoch, end - 1
        ms = self._backup.instant_ms
        folder = f"{self._folders[0]}/{LOG_FOLDER}"
        self._disk.mkdir(folder)
        quorum, me = read.quorum, self._backup.node_id
        if alone.others(image, me):
            quorum = alone.left_alone(image, quorum, me)
            self._made.alone = True
            known = QuorumState(epoch)
            voted = quorum.kraft_version > 0
            quorum_state.write_state(self._disk, folder, known, dynamic=voted, voters=[me])
        snapshot = SnapshotId(end, epoch)
        pieces = checkpoint.write_checkpoint(
            image, snapshot, quorum, now_ms=ms, last_log_timestamp=ms
        )
        write_metadata(self._disk, folder, _METADATA_ID, sync=False)
        write_file(self._disk, f"{folder}/{snapshot.file_name}", b"".join(pieces))

    def _partition(self, one: Partition) -> None:
        log = RestoredLog(
            self._disk, f"{self._folders[one.folder]}/{one.topic}-{one.partition}", one
        )
        self._disk.mkdir(log.folder)
        write_metadata(self._disk, log.folder, bytes.fromhex(one.topic_id), sync=False)
        for part in one.parts:
            if not log.is_cut:
                write_part(self._disk, self._store, log.folder, part)
                log.read(part.base, self._to_ms)
            self._made.bytes += part.bytes
            self._told(self._made.bytes, self._backup.bytes)
        if one.topic == TRANSACTIONS_TOPIC:
            self._committing |= log.committing()
        elif self._to_ms != _NEVER:
            self._made.aborted += log.abort_all_but(self._committing, self._to_ms)
        log.finish()
        key = one.topic, one.partition
        self._marks[one.folder][key] = log.end
        if one.log_start:
            self._starts[one.folder][key] = min(one.log_start, log.end)
        self._made.partitions += 1
        self._made.cut += max(one.end - log.end, 0) if log.is_cut else 0


def write_part(disk: Disk, store: Store, folder: str, part: Part) -> None:
    """A segment as it was. Raises Failure, StorageFailed."""
    file = disk.create(files.stem(folder, part.base) + files.LOG)
    try:
        digest, at = sha256(), 0
        for piece in store.read_object(place(part.digest)):
            file.pwritev([piece], at)
            digest.update(piece)
            at += len(piece)
        if digest.hexdigest() != part.digest:
            raise _changed(part.digest)
    finally:
        file.close()


def _changed(digest: str) -> Failure:
    text = f"the bytes of {digest} have changed since the backup was taken"
    return Failure(text, "penstock backup verify shows which backups are complete", name="DAMAGED")


@dataclass(slots=True)
class RestoredLog:
    """A log that is written from its beginning. read_to: behind its last batch. end: where it goes
    on."""

    disk: Disk
    folder: str
    partition: Partition
    end: int = -1
    read_to: int = -1
    is_cut: bool = False
    states: ProducerStates = field(default_factory=ProducerStates)
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    ended: list[Aborted] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.end = max(self.partition.log_start, 0)

    def read(self, base: int, to_ms: int) -> None:
        """A segment that was written: take in its batches, cut it where they are too young."""
        self.bases.append(base)
        file = self.disk.open_file(files.stem(self.folder, base) + files.LOG, write=True)
        try:
            size = file.size()
            scan = Scan(file, 0, size, base, trust_position=size, gaps=True)
            self.end = max(self.end, base)
            for position, header in (one for chunk in scan.chunks() for one in chunk):
                if header[8] > to_ms:
                    file.truncate(position)
                    self.is_cut = True
                    return
                batch = b""
                if header[9] >= 0 and header[5] & CONTROL_BIT:
                    batch = file.pread(header[1] + LENGTH_PREFIX, position)
                self._note(header, batch)
            if scan.problem:
                raise Failure(f"{self.folder}: {scan.problem}", name="DAMAGED")
        finally:
            file.close()

    def _note(self, header: HeaderFields, marker: bytes) -> None:
        self.epochs.assign(header[2], header[0])
        if marker:
            ended = self.states.end_transaction(header, header[0], 0, markers.read(marker))
            self.ended += [ended] if ended else []
        elif header[9] >= 0:
            self.states.replay(header, 0)
        self.read_to = header[0] + header[6] + 1
        self.end = max(self.end, self.read_to)

    def committing(self) -> set[int]:
        """The producers of a coordinator's log whose transaction is decided: their markers will
        come.
        """
        newest: dict[str, tuple[int, int]] = {}
        for base in self.bases:
            file = self.disk.open_file(files.stem(self.folder, base) + files.LOG)
            try:
                scan = Scan(file, 0, file.size(), base, trust_position=file.size(), gaps=True)
                for position, header in (one for chunk in scan.chunks() for one in chunk):
                    for step in quiet.steps(file.pread(header[1] + LENGTH_PREFIX, position)):
                        newest[step.transactional_id] = step.producer_id, step.state
            finally:
                file.close()
        return {producer for producer, state in newest.values() if state == PREPARE_COMMIT}

    def abort_all_but(self, committing: set[int], now_ms: int) -> int:
        """Markers for the transactions that are open at the end; how many."""
        gone = [producer for producer in self.states.open if producer not in committing]
        if not gone:
            return 0
        path = files.stem(self.folder, self.bases[-1]) + files.LOG
        file = self.disk.open_file(path, write=True)
        try:
            for producer in gone:
                known = self.states.producers[producer]
                marker = Marker(committed=False, coordinator_epoch=max(known.coordinator_epoch, 0))
                batch = markers.build(producer, known.epoch, marker, now_ms)
                batch[:8] = self.end.to_bytes(8, "big")
                batch[12:16] = max(self.epochs.latest, 0).to_bytes(4, "big")
                file.pwritev([batch], file.size())
                self._note(HEADER.unpack_from(batch), bytes(batch))
        finally:
            file.close()
        return len(gone)

    def finish(self) -> None:
        """Writes the derived files that the next start expects beside the log."""
        disk = self.disk
        if self.bases and max(self.read_to, self.bases[-1]) < self.end:  # nothing from its start on
            for base in self.bases:
                disk.unlink(files.stem(self.folder, base) + files.LOG)
            self.bases.clear()
        if not self.bases:
            self.bases.append(self.end)
            disk.create(files.stem(self.folder, self.end) + files.LOG).close()
        for number, base in enumerate(self.bases):
            behind = self.bases[number + 1] if number + 1 < len(self.bases) else _NEVER
            entries = [one for one in self.ended if base <= one[2] < behind]
            if entries:
                path = files.stem(self.folder, base) + files.TXN_INDEX
                aborted.rewrite(disk, path, 0, entries)
        states = encode_snapshot(self.states)
        name = files.stem(self.folder, self.end) + files.SNAPSHOT
        write_file(disk, name, states, sync=False)
        self.epochs.write_file(disk, self.folder)
