"""Snapshots of the metadata log: the bytes of a `<offset>-<epoch>.checkpoint` file (KIP-630).

Invariant: what `read` accepts is whole: every batch has its checksum, the first record is a header
and the last one a footer. Callers: control writes, everyone who follows the log reads.
"""

import re
from collections.abc import Iterator
from dataclasses import field
from itertools import islice
from typing import Final, NamedTuple

from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.metadata.image import MetadataImage
from appliance.metadata.record_versions import encode
from appliance.metadata.snapshot import to_records
from appliance.wire import control_records as control
from appliance.wire.batch import (
    HEADER_SIZE,
    BatchHeader,
    NewRecord,
    build_batch,
    checksum_holds,
    iter_records,
    read_header,
)

_BATCH_RECORDS: Final = 512
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint\Z")


class CheckpointBroken(Exception):
    """The file is not a whole snapshot."""


class SnapshotId(NamedTuple):
    """Offset after the last record that the snapshot stands for, and the epoch of that record."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """As KRaft names it."""
        return f"{self.offset:020d}-{self.epoch:010d}.checkpoint"


def parse_name(name: str) -> SnapshotId | None:
    """The id in a file name, None when it is not the name of a snapshot."""
    found = _NAME.match(name)
    return SnapshotId(int(found[1]), int(found[2])) if found else None


@dataclass(slots=True)
class VoterSet:
    """The voter set from control records: kraft.version and the newest voters (KIP-853).

    While kraft.version is 0 the voters are static and no record names them.
    """

    kraft_version: int = 0
    record: control.VotersRecord | None = None

    def apply(self, message: control.ControlRecord) -> None:
        """Take in one control record; those that say nothing of voters are passed over."""
        if isinstance(message, control.KRaftVersionRecord):
            self.kraft_version = message.k_raft_version
        elif isinstance(message, control.VotersRecord):
            self.record = message


def control_record(now_ms: int, message: control.ControlRecord) -> NewRecord:
    """A control message as a record of a batch."""
    key, value = control.encode(message)
    return NewRecord(now_ms, key, value)


@dataclass(slots=True)
class Checkpoint:
    """A snapshot that was read: the values of its records, in order."""

    values: list[bytes] = field(default_factory=list)
    quorum: VoterSet = field(default_factory=VoterSet)


def write_checkpoint(
    image: MetadataImage,
    snapshot: SnapshotId,
    quorum: VoterSet,
    *,
    now_ms: int,
    last_log_timestamp: int,
) -> Iterator[bytes]:
    """The file, one batch after the other."""
    offset = 0

    def batch(records: list[NewRecord], is_control: bool) -> bytes:
        nonlocal offset
        data = build_batch(
            records, base_offset=offset, leader_epoch=snapshot.epoch, control=is_control
        )
        offset += len(records)
        return data

    head: list[control.ControlRecord] = [
        control.SnapshotHeaderRecord(last_contained_log_timestamp=last_log_timestamp)
    ]
    if quorum.kraft_version > 0:
        head.append(control.KRaftVersionRecord(k_raft_version=quorum.kraft_version))
        if quorum.record is not None:
            head.append(quorum.record)
    yield batch([control_record(now_ms, message) for message in head], True)
    level = image.metadata_version
    values = (NewRecord(now_ms, None, encode(record, level)) for record in to_records(image))
    while records := list(islice(values, _BATCH_RECORDS)):
        yield batch(records, False)
    yield batch([control_record(now_ms, control.SnapshotFooterRecord())], True)


def read(data: bytes) -> Checkpoint:
    """Raises CheckpointBroken when the bytes are not one whole snapshot."""
    checkpoint = Checkpoint()
    messages: list[control.ControlRecord] = []
    try:
        for header, batch in batches(memoryview(data)):
            for record in iter_records(batch):
                if header.is_control:
                    messages.append(control.decode(record.key, record.value))
                    checkpoint.quorum.apply(messages[-1])
                elif record.value is not None:
                    checkpoint.values.append(record.value)
    except PeerError as cause:
        raise CheckpointBroken(cause.message) from cause
    if not messages or not isinstance(messages[0], control.SnapshotHeaderRecord):
        raise CheckpointBroken("it does not begin with a snapshot header")
    if not isinstance(messages[-1], control.SnapshotFooterRecord):
        raise CheckpointBroken("it does not end with a snapshot footer")
    return checkpoint


def batches(data: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of a whole file; raises CheckpointBroken at the first that is not intact."""
    at = 0
    while at < len(data):
        if len(data) - at < HEADER_SIZE:
            raise CheckpointBroken(f"{len(data) - at} bytes after its last batch")
        header = read_header(data, at)
        if header.size < HEADER_SIZE or header.size > len(data) - at:
            raise CheckpointBroken(f"the batch at {at} states {header.size} bytes")
        batch = data[at : at + header.size]
        if not checksum_holds(batch):
            raise CheckpointBroken(f"the batch at {at} has a wrong checksum")
        yield header, batch
        at += header.size
