"""A segment and what is derived from it as named bytes of a remote store.

    <topic id>/<partition>/<start offset>-<segment id>.log, .index, .timeindex, …
    <topic id>/<partition>/manifests/…   (`manifests.py`)
    <topic id>/<partition>/holders/<node id>   of a replica that needs the objects

The log is written last and deleted first. So a log that is listed has all of its files, and files
without one are what a copy or a deletion left that was cut off.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from appliance.remotelog.records import RemoteLogSegmentMetadataRecord

LOG: Final = "log"
OFFSET_INDEX: Final = "index"
TIME_INDEX: Final = "timeindex"
TRANSACTION_INDEX: Final = "txnindex"
PRODUCER_SNAPSHOT: Final = "snapshot"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
_NEEDED: Final = frozenset((LOG, OFFSET_INDEX, TIME_INDEX, PRODUCER_SNAPSHOT, LEADER_EPOCHS))
KINDS: Final = _NEEDED | {TRANSACTION_INDEX}
"""The files of a segment; the transaction index is left out where nothing was aborted."""
_ID_HEX: Final = 32
_OFFSET_DIGITS: Final = 20


class ObjectStore(Protocol):
    """Named bytes. Invariant: a name has all of its bytes, or is not there. Every method raises
    what its implementation declares when the store refuses."""

    def names(self, prefix: str) -> dict[str, int]:
        """Every name in this folder, and its bytes."""
        ...

    def read_object(self, name: str) -> Iterator[bytes]:
        """The bytes, in pieces."""
        ...

    def read_range(self, name: str, at: int, length: int) -> bytes:
        """Bytes from a position on; fewer than `length` where the object ends."""
        ...

    def write_object(self, name: str, pieces: Iterable[bytes]) -> None:
        """Keep these bytes; what had the name is replaced."""
        ...

    def delete(self, name: str) -> None:
        """Forget a name; nothing happens when there is none."""
        ...


class RemoteFilesMissing(Exception):
    """A segment has not the bytes that its metadata says."""


@dataclass(slots=True)
class StoredSegments:
    """A store's part of a partition. whole: (start offset, segment id) → bytes of the log.
    orphans: names of files whose log is not there, or that nothing here has written."""

    whole: dict[tuple[int, bytes], int] = field(default_factory=dict)
    orphans: list[str] = field(default_factory=list)


class RemoteObjects:
    """Segments in a store (KIP-405: RemoteStorageManager)."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def copy_segment(
        self, one: RemoteLogSegmentMetadataRecord, parts: Mapping[str, Iterable[bytes]]
    ) -> None:
        """Write a segment's files; writing them again replaces them. parts: bytes by KINDS."""
        assert parts.keys() <= KINDS and parts.keys() >= _NEEDED, f"parts {sorted(parts)}"
        for kind in sorted(parts, key=lambda kind: (kind == LOG, kind)):
            self._store.write_object(_name(one, kind), parts[kind])

    def fetch_range(self, one: RemoteLogSegmentMetadataRecord, at: int, length: int) -> bytes:
        """Bytes of the log from a position on, up to its end. Raises RemoteFilesMissing where the
        object is shorter than its metadata says."""
        assert at >= 0 and length >= 0
        wanted = min(length, one.segment_size_in_bytes - at)
        if wanted <= 0:
            return b""
        data = self._store.read_range(_name(one, LOG), at, wanted)
        if len(data) != wanted:
            text = f"{_name(one, LOG)} has {len(data)} bytes from {at} on, {wanted} were expected"
            raise RemoteFilesMissing(text)
        return data

    def fetch_index(self, one: RemoteLogSegmentMetadataRecord, kind: str) -> bytes:
        """A file beside the log, whole; the transaction index is empty where there is none."""
        assert kind in KINDS and kind != LOG
        if kind == TRANSACTION_INDEX and one.txn_index_empty:
            return b""
        return b"".join(self._store.read_object(_name(one, kind)))

    def delete_segment(self, one: RemoteLogSegmentMetadataRecord) -> None:
        """Remove all files of a segment; those that are gone already are no error."""
        for kind in sorted(KINDS, key=lambda kind: (kind != LOG, kind)):
            self._store.delete(_name(one, kind))

    def delete_partition(self, topic_id: bytes, partition: int) -> int:
        """Remove every object in a partition's folder, logs first; how many there were."""
        names = self._store.names(folder_of(topic_id, partition))
        for name in sorted(names, key=lambda name: (not name.endswith(f".{LOG}"), name)):
            self._store.delete(name)
        return len(names)

    def hold_partition(
        self, topic_id: bytes, partition: int, node: int, others: Sequence[int] | None = None
    ) -> None:
        """Note that a replica on this node needs the objects, whatever becomes of other replicas.
        others: with it, nodes that have none any more are forgotten."""
        folder = _holders_of(topic_id, partition)
        mine = f"{folder}/{node}"
        held = set(self._store.names(folder))
        if mine not in held:
            self._store.write_object(mine, (b"",))
        if others is not None:
            for name in sorted(held - {mine, *(f"{folder}/{one}" for one in others)}):
                self._store.delete(name)

    def release_partition(self, topic_id: bytes, partition: int, node: int) -> int:
        """This node's replica can never come back: remove every object unless other replicas need
        them; how many there were. Of two that ask at once both may remove them."""
        folder = _holders_of(topic_id, partition)
        self._store.delete(f"{folder}/{node}")
        return 0 if self._store.names(folder) else self.delete_partition(topic_id, partition)

    def list_segments(self, topic_id: bytes, partition: int) -> StoredSegments:
        """Finds a partition's segments, whole and cut off."""
        found, rest = StoredSegments(), []
        folder = folder_of(topic_id, partition)
        for name, size in sorted(self._store.names(folder).items()):
            if name.rpartition("/")[0] != folder:
                continue  # of no segment
            stem, kind = _parsed(name)
            if stem is None or kind not in KINDS:
                found.orphans.append(name)
            elif kind == LOG:
                found.whole[stem] = size
            else:
                rest.append((stem, name))
        found.orphans += [name for stem, name in rest if stem not in found.whole]
        return found

    def delete_unknown(
        self, topic_id: bytes, partition: int, known: Iterable[bytes], ours: Callable[[bytes], bool]
    ) -> int:
        """Remove what copies and deletions left that were cut off: the files of segments whose id
        is not known; how many. ours: whether a segment with this id may be removed."""
        keep, folder, gone = frozenset(known), folder_of(topic_id, partition), 0
        names = [name for name in self._store.names(folder) if name.rpartition("/")[0] == folder]
        for name in sorted(names, key=lambda name: (not name.endswith(f".{LOG}"), name)):
            stem, kind = _parsed(name)
            if stem is not None and kind in KINDS and stem[1] not in keep and ours(stem[1]):
                self._store.delete(name)
                gone += 1
        return gone


def folder_of(topic_id: bytes, partition: int) -> str:
    """The folder of a partition in the store."""
    return f"{topic_id.hex()}/{partition}"


def _holders_of(topic_id: bytes, partition: int) -> str:
    return f"{folder_of(topic_id, partition)}/holders"


def _name(one: RemoteLogSegmentMetadataRecord, kind: str) -> str:
    segment = one.remote_log_segment_id
    folder = folder_of(segment.topic_id_partition.id, segment.topic_id_partition.partition)
    return f"{folder}/{one.start_offset:0{_OFFSET_DIGITS}d}-{segment.id.hex()}.{kind}"


def _parsed(name: str) -> tuple[tuple[int, bytes] | None, str]:
    """Start offset and segment id of an object's name, None when it is no segment's; its kind."""
    stem, _, kind = name.rpartition("/")[2].partition(".")
    offset, _, segment_id = stem.partition("-")
    if len(offset) != _OFFSET_DIGITS or not (offset.isascii() and offset.isdigit()):
        return None, kind
    if len(segment_id) != _ID_HEX or not set(segment_id) <= set("0123456789abcdef"):
        return None, kind
    return (int(offset), bytes.fromhex(segment_id)), kind
