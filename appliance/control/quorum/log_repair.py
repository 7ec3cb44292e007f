"""Saving a damaged metadata log: from the newest whole snapshot, every whole batch behind it, and
the partitions' own folders.

A plan is made by reading alone. Carried out it leaves one snapshot of what was found in a new
folder, and the old folder beside it under another name; nothing is written into old files.
Invariant: a plan that says `lossless` has every record that was ever acknowledged. Called by
`open_log` for such plans, and by `penstock metadata repair`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import ConfigError, PeerError, StorageFailed
from appliance.control.quorum import state_file as quorum_state
from appliance.controller.registration import bootstrap_records
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.files import LEADER_EPOCHS
from appliance.logstore.partition_metadata import read_topic_id, write_metadata
from appliance.metadata import checkpoint, files
from appliance.metadata.checkpoint import SnapshotId, VoterSet
from appliance.metadata.follower import LOG_FOLDER
from appliance.metadata.image import MetadataImage
from appliance.metadata.replay import ReplayFailed
from appliance.quorum.epochs import LAST
from appliance.wire import control_records as control
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import (
    HEADER_SIZE,
    BatchHeader,
    checksum_holds,
    iter_records,
    read_header,
)
from appliance.wire.batch_header import MAGIC

REPAIRED: Final = f"{LOG_FOLDER}.repaired"
_MAGIC_AT: Final = 16
_PARTITION: Final = re.compile(r"(.+)-(\d+)\Z")
_WRONG: Final = (PeerError, ReplayFailed, KeyError, IndexError, ValueError)


@dataclass(slots=True)
class Plan:
    """The result of a repair. end: where the log goes on. snapshot: offset of the snapshot that it
    was made from, -1: none. lost: (first offset, last offset) of lost records, the last one -1 when
    their number is unknown.
    """

    image: MetadataImage = field(default_factory=MetadataImage)
    quorum: VoterSet = field(default_factory=VoterSet)
    epoch: int = 0
    end: int = 0
    snapshot: int = -1
    lost: list[tuple[int, int]] = field(default_factory=list)
    contradictions: int = 0
    found: dict[str, int] = field(default_factory=dict)
    empty: bool = False

    @property
    def lossless(self) -> bool:
        return not (self.lost or self.contradictions or self.empty)


def plan(disk: Disk, data_dir: str, others: Sequence[str] = (), node_id: int = -1) -> Plan:
    """Read what there is. others: the log folders besides. node_id: who leads the partitions whose
    topics are only known by their folders; -1: those are not looked for. Raises StorageFailed."""
    folder = f"{data_dir}/{LOG_FOLDER}"
    made = Plan()
    newest = files.newest_snapshot(disk, folder)
    if newest is not None:
        snapshot, read = newest
        made.snapshot = made.end = snapshot.offset
        made.epoch, made.quorum = snapshot.epoch, read.quorum
        for value in read.values:
            _apply(made, snapshot.offset - 1, value)
    for header, batch in _whole_batches(disk, folder):
        if header.last_offset < made.end:
            continue
        if header.base_offset > made.end:
            made.lost.append((made.end, header.base_offset - 1))
        _replay(made, header, batch)
        made.end = header.last_offset + 1
        made.epoch = max(made.epoch, header.leader_epoch)
    if _tail(disk, folder):
        made.lost.append((made.end, -1))
    made.empty = not made.image.metadata_version
    if node_id >= 0 and not made.lossless:
        _from_folders(made, disk, (data_dir, *others), node_id)
    return made


def _replay(made: Plan, header: BatchHeader, batch: memoryview) -> None:
    try:
        for record in iter_records(batch):
            if header.is_control:
                made.quorum.apply(control.decode(record.key, record.value))
            else:
                _apply(made, record.offset, record.value or b"")
    except PeerError:
        made.contradictions += 1


def _apply(made: Plan, offset: int, value: bytes) -> None:
    try:
        record: object = kraft.decode(value)
    except PeerError:
        record = value  # of a kind that nobody here knows: kept as it is
    try:
        made.image.apply(offset, record)
    except _WRONG:
        made.contradictions += 1


def _whole_batches(disk: Disk, folder: str) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch with a right checksum, whatever lies between them, in the order of offsets."""
    behind = 0
    for base in files.segments(disk, folder):
        data = memoryview(read_file(disk, f"{folder}/{base:020d}.log"))
        for header, at in _places(data, max(behind, base)):
            behind = header.last_offset + 1
            yield header, data[at : at + header.size]


def _places(data: memoryview, behind: int) -> Iterator[tuple[BatchHeader, int]]:
    """The whole batches of one segment from the offset `behind` on, and where they begin."""
    raw = bytes(data)
    at = 0
    while 0 <= at <= len(raw) - HEADER_SIZE:
        header = read_header(data, at)
        whole = (
            header.magic == MAGIC
            and HEADER_SIZE <= header.size <= len(raw) - at
            and checksum_holds(data[at : at + header.size])
        )
        if whole and header.base_offset >= behind:
            behind = header.last_offset + 1
            yield header, at
            at += header.size
        else:  # the next place where the magic byte of a batch may be
            at = raw.find(bytes((MAGIC,)), at + _MAGIC_AT + 1) - _MAGIC_AT


def _tail(disk: Disk, folder: str) -> bool:
    """True if bytes lie behind the last whole batch."""
    bases = files.segments(disk, folder)
    if not bases:
        return False
    data = memoryview(read_file(disk, f"{folder}/{bases[-1]:020d}.log"))
    end = 0
    for header, position in _places(data, bases[-1]):
        end = position + header.size
    return end < len(data)


def _from_folders(made: Plan, disk: Disk, folders: Sequence[str], node_id: int) -> None:
    """Topics that only their partitions' folders know of."""
    image = made.image
    if not image.metadata_version:
        for record in bootstrap_records():
            image.apply(made.end, record)
    known: dict[bytes, tuple[str, dict[int, int]]] = {}  # id → name, partition → leader epoch
    for folder in folders:
        for name in disk.listdir(folder) if disk.exists(folder) else ():
            parsed = _PARTITION.match(name)
            if parsed is None or name == LOG_FOLDER:
                continue
            topic_id = read_topic_id(disk, f"{folder}/{name}")
            if topic_id and topic_id not in image.topics_by_id:
                epoch = _latest_epoch(disk, f"{folder}/{name}")
                known.setdefault(topic_id, (parsed[1], {}))[1][int(parsed[2])] = epoch
    for topic_id, (name, partitions) in known.items():
        if name in image.topics_by_name:
            continue  # an older topic of that name, which was deleted
        image.apply(made.end, kraft.TopicRecord(name=name, topic_id=topic_id))
        for index in range(max(partitions) + 1):
            record = kraft.PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=(node_id,),
                isr=(node_id,),
                leader=node_id,
                leader_epoch=partitions.get(index, 0),
                partition_epoch=0,
                directories=(bytes(16),),
            )
            image.apply(made.end, record)
        made.found[name] = max(partitions) + 1


def _latest_epoch(disk: Disk, folder: str) -> int:
    path = f"{folder}/{LEADER_EPOCHS}"
    read = LeaderEpochs.decode(read_file(disk, path)) if disk.exists(path) else None
    return max(read.latest, 0) if read else 0


def carry_out(disk: Disk, data_dir: str, made: Plan, now_ms: int) -> str:
    """Put a new folder in the place of the damaged one: the name that the old one has now.

    Cut off at any instant it leaves the old folder, or both under other names, which the next call
    puts right (`finish`). Raises StorageFailed."""
    folder, new = f"{data_dir}/{LOG_FOLDER}", f"{data_dir}/{REPAIRED}"
    epoch = _next_epoch(made.epoch, _epoch_on_disk(disk, folder))
    end = made.end + 1  # nobody takes what follows for what was there
    made.image.epoch, made.image.applied_offset = epoch, end - 1
    _empty(disk, new)
    snapshot = SnapshotId(end, epoch)
    pieces = checkpoint.write_checkpoint(
        made.image, snapshot, made.quorum, now_ms=now_ms, last_log_timestamp=now_ms
    )
    topic_id = read_topic_id(disk, folder) if disk.exists(folder) else None
    write_metadata(disk, new, topic_id or bytes(15) + b"\x01")
    write_file(disk, f"{new}/{snapshot.file_name}", b"".join(pieces))
    return _take_its_place(disk, data_dir, now_ms)


def _next_epoch(in_log: int, on_disk: int) -> int:
    """Returns an epoch in which a lone voter goes on. The epochs begin anew where none is left, or
    where only quorum-state has come so far."""
    newest = max(in_log, on_disk) if on_disk <= LAST else in_log
    return newest + 1 if newest < LAST else 1


def others_vote(disk: Disk, data_dir: str, node_id: int, made: Plan) -> bool:
    """True if this is the log of one of several voters, which agreed on its offsets: a plan does
    not apply to it. Raises ConfigError, StorageFailed.
    """
    record = made.quorum.record
    named = {node_id} if record is None else {one.voter_id for one in record.voters}
    return len(quorum_state.voters(disk, f"{data_dir}/{LOG_FOLDER}") or named) > 1


def set_aside(disk: Disk, data_dir: str, now_ms: int) -> str:
    """Put a log without a record in the place of that of one of several voters, which fetches all
    of it from who leads: the name that the old one has now. What this node voted it goes on
    knowing, or it could vote twice in an epoch. Cut off it is as `carry_out`. Raises
    StorageFailed."""
    folder, new = f"{data_dir}/{LOG_FOLDER}", f"{data_dir}/{REPAIRED}"
    _empty(disk, new)
    voted = read_file(disk, f"{folder}/{quorum_state.NAME}")
    write_file(disk, f"{new}/{quorum_state.NAME}", bytes(voted))
    return _take_its_place(disk, data_dir, now_ms)


def _empty(disk: Disk, folder: str) -> None:
    """A folder with nothing in it, which may be left of an earlier try."""
    if disk.exists(folder):
        for name in disk.listdir(folder):
            disk.unlink(f"{folder}/{name}")
    else:
        disk.mkdir(folder)


def _take_its_place(disk: Disk, data_dir: str, now_ms: int) -> str:
    folder = f"{data_dir}/{LOG_FOLDER}"
    disk.sync_dir(data_dir)
    old = f"{folder}.{now_ms:032x}-stray"  # which Apache Kafka leaves alone, too
    if disk.exists(folder):
        disk.rename(folder, old)
    finish(disk, data_dir)
    return old


def finish(disk: Disk, data_dir: str) -> bool:
    """The last step of a repair, when it was cut off before it; whether that was so. Raises
    StorageFailed."""
    folder, new = f"{data_dir}/{LOG_FOLDER}", f"{data_dir}/{REPAIRED}"
    if disk.exists(folder) or not disk.exists(new):
        return False
    disk.rename(new, folder)
    disk.sync_dir(data_dir)
    return True


def _epoch_on_disk(disk: Disk, folder: str) -> int:
    try:
        return quorum_state.read(disk, folder).epoch
    except (ConfigError, StorageFailed):
        return 0
