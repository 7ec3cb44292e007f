"""Deleted topics that can be brought back, and names that were deleted lately: one small file on
each node.

Control alone writes it (`control/deletion/topic_trash.py`), before anybody else on the node sees
the deletion; the I/O processes read it to know which folders of deleted partitions they must keep.
Invariant: the file is whole or absent, and of a topic that is in it no folder was removed, unless
it says that they were let go.
"""

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final, NamedTuple

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import PeerError
from appliance.metadata.image import TOPIC, MetadataImage
from appliance.metadata.parts import TopicImage
from appliance.metadata.snapshot import partition_record
from appliance.wire import kraft_records as kraft

TRASH_FILE: Final = "penstock-topic-trash.json"
"""At the root of the first log folder."""
_VERSION: Final = 1

RETENTION_MS: Final = "penstock.topic.trash.retention.ms"
NO_AUTO_CREATE_MS: Final = "penstock.topic.deleted.auto.create.delay.ms"


@dataclass(slots=True, frozen=True)
class Buried:
    """One deleted topic. deleted_ms: wall clock. size, records: of all partitions on this node when
    it went. values: the metadata records that would make it again, encoded, the topic's own first.
    let_go: this node keeps its folders no more, for want of room; others may."""

    name: str
    topic_id: bytes
    deleted_ms: int
    partitions: int
    size: int
    records: int
    values: tuple[bytes, ...]
    let_go: bool = False


class Kept(NamedTuple):
    """Partitions of a deleted topic that one node keeps. held: the partitions whose folders it
    has."""

    buried: Buried
    held: frozenset[int]


class Listed(NamedTuple):
    """The part of the file that I/O processes read: topic id → name, and the ids of those whose
    folders are not kept."""

    names: dict[bytes, str]
    let_go: frozenset[bytes]


@dataclass(slots=True)
class DeletedTopics:
    """topics: by topic id, the oldest deletion first. names: deleted name → when, wall clock ms."""

    topics: dict[bytes, Buried] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)


def bury(
    image: MetadataImage, topic: TopicImage, now_ms: int, *, size: int, records: int
) -> Buried:
    """Returns the entry that an undelete of this topic needs."""
    made: list[object] = [kraft.TopicRecord(name=topic.name, topic_id=topic.topic_id)]
    made += [
        kraft.ConfigRecord(resource_type=TOPIC, resource_name=topic.name, name=key, value=value)
        for key, value in image.config(TOPIC, topic.name).items()
    ]
    made += [partition_record(topic.topic_id, one) for one in topic.partitions]
    values = tuple(kraft.encode(one) for one in made)
    count = len(topic.partitions)
    return Buried(topic.name, topic.topic_id, now_ms, count, size, records, values)


def entry(one: Buried) -> str:
    """Returns a topic's line in the file."""
    return json.dumps(_told(one))


def _told(one: Buried) -> dict[str, Any]:
    told = {
        "name": one.name,
        "id": one.topic_id.hex(),
        "deleted_ms": one.deleted_ms,
        "partitions": one.partitions,
        "bytes": one.size,
        "records": one.records,
        "metadata": [b64encode(value).decode() for value in one.values],
    }
    return {**told, "let_go": True} if one.let_go else told


def encode_kept(kept: Kept) -> str:
    """Encodes the kept partitions of a topic for another node."""
    return json.dumps({**_told(kept.buried), "held": sorted(kept.held)})


def decode_kept(text: str) -> Kept:
    """Decodes the text of `say`. Raises ValueError."""
    try:
        found = json.loads(text)
        return Kept(_buried(found), frozenset(int(one) for one in found["held"]))
    except (KeyError, TypeError, AttributeError, NotBase64, PeerError) as wrong:
        raise ValueError(f"not a deleted topic: {wrong!r}") from None


def encode(entries: Iterable[str], names: Mapping[str, int]) -> bytes:
    """The file's bytes, of what `entry` gave for each topic."""
    topics = ", ".join(entries)
    text = f'{{"version": {_VERSION}, "topics": [{topics}], "names": {json.dumps(dict(names))}}}'
    return text.encode()


def decode(data: bytes) -> DeletedTopics:
    """The file's content. Raises ValueError when it is not one."""
    try:
        found = _fields(data)
        trash = DeletedTopics(names={str(name): int(at) for name, at in found["names"].items()})
        for one in found["topics"]:
            buried = _buried(one)
            trash.topics[buried.topic_id] = buried
    except (KeyError, TypeError, AttributeError, NotBase64, PeerError) as wrong:
        raise ValueError(f"not a list of deleted topics: {wrong!r}") from None
    return trash


def _fields(data: bytes) -> Any:
    found = json.loads(data)
    if found["version"] != _VERSION:
        raise ValueError(f"version {found['version']!r} is not {_VERSION}")
    return found


def _buried(one: Any) -> Buried:
    values = tuple(b64decode(value, validate=True) for value in one["metadata"])
    topic_id = bytes.fromhex(one["id"])
    made = [kraft.decode(value) for value in values]
    first = made[0] if made else None
    if not isinstance(first, kraft.TopicRecord) or first.topic_id != topic_id:
        raise ValueError("its first record is not that of the topic")
    return Buried(
        first.name,
        topic_id,
        int(one["deleted_ms"]),
        int(one["partitions"]),
        int(one["bytes"]),
        int(one["records"]),
        values,
        bool(one.get("let_go")),
    )


def read(disk: Disk, data_dir: str) -> DeletedTopics:
    """Reads the file; empty without one. Raises ValueError, StorageFailed."""
    path = f"{data_dir}/{TRASH_FILE}"
    return decode(read_file(disk, path)) if disk.exists(path) else DeletedTopics()


def listed(disk: Disk, data_dir: str) -> Listed:
    """Id and name of each topic in the file, and little else: with a thousand topics in it that
    takes a tenth of what `read` does. Raises ValueError, StorageFailed."""
    path = f"{data_dir}/{TRASH_FILE}"
    if not disk.exists(path):
        return Listed({}, frozenset())
    try:
        topics = _fields(read_file(disk, path))["topics"]
        names = {bytes.fromhex(one["id"]): str(one["name"]) for one in topics}
        return Listed(names, frozenset(bytes.fromhex(t["id"]) for t in topics if t.get("let_go")))
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ValueError(f"not a list of deleted topics: {wrong!r}") from None


def version_of(disk: Disk, data_dir: str) -> tuple[int, int]:
    """Changes when the file does: its size in bytes and its modification time in ms, zeros when
    there is none. Two changes in one ms may look alike. Raises StorageFailed."""
    path = f"{data_dir}/{TRASH_FILE}"
    if not disk.exists(path):
        return 0, 0
    return disk.size(path), disk.modified_ms(path)


def write_trash(
    disk: Disk, data_dir: str, entries: Iterable[str], names: Mapping[str, int]
) -> None:
    """Replace the file durably; on any thread. Raises StorageFailed."""
    write_file(disk, f"{data_dir}/{TRASH_FILE}", encode(entries, names))
