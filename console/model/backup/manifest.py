"""The manifest of a backup: a list of files at one instant, which names bytes by their SHA-256.

Invariant: it is written last, so a backup that was cut off is none; and bytes never change under
their name, so what two backups have in common is kept once.
"""

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from appliance.base.errors import PeerError
from appliance.controller.names import check_topic_name
from console.model.asking.failure import Failure
from console.model.backup.store import Store

FORMAT: Final = 1
BACKUPS: Final = "backups"
SEGMENTS: Final = "segments"
DAMAGED: Final = "damaged"
"""Digests of segments that a verify found damaged, one an empty file."""
_SUFFIX: Final = ".json"
_SHOWN: Final = 5
_ID_BYTES: Final = 16
_MOST: Final = (1 << 63) - 1
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_LISTS: Final = ("identities", "left_out", "elsewhere")


@dataclass(slots=True, frozen=True)
class Part:
    """A segment, or the beginning of one. digest: SHA-256 in hex. inode, mtime_ns: of the file that
    it was read from: who finds the same ones need not read it again."""

    base: int
    bytes: int
    digest: str
    inode: int
    mtime_ns: int


@dataclass(slots=True, frozen=True)
class Partition:
    """topic_id: hex. folder: number of its log folder. end: behind its last record."""

    topic: str
    topic_id: str
    partition: int
    folder: int
    log_start: int
    end: int
    parts: tuple[Part, ...]


@dataclass(slots=True, frozen=True)
class Manifest:
    """name: of the backup, its instant. identities: `meta.properties` of each log folder. metadata:
    digest of a snapshot of the cluster's metadata. left_out: partitions that could not be read, and
    why. elsewhere: of which partitions its node of a cluster had no replica. torn: it is whole only
    up to a time before its instant (`Instant.torn`)."""

    name: str
    instant_ms: int
    cluster_id: str
    node_id: int
    identities: tuple[str, ...]
    metadata: str
    metadata_end: int
    partitions: tuple[Partition, ...]
    left_out: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    torn: bool = False

    @property
    def digests(self) -> set[str]:
        """All that it needs."""
        parts = (part.digest for one in self.partitions for part in one.parts)
        return {self.metadata, *parts}

    @property
    def missing(self) -> str:
        """The partitions that it lacks because only other nodes of the cluster had them, as text;
        "" for none.
        """
        more = len(self.elsewhere) - _SHOWN
        shown = ", ".join(self.elsewhere[:_SHOWN])
        return shown + (f" and {more} more" if more > 0 else "")

    @property
    def bytes(self) -> int:
        """Bytes of all records."""
        return sum(part.bytes for one in self.partitions for part in one.parts)


def name_of(instant_ms: int) -> str:
    """Sorts as time does."""
    when = datetime.fromtimestamp(instant_ms / 1000, UTC)
    return f"{when:%Y%m%dT%H%M%S}.{instant_ms % 1000:03d}Z"


def place(digest: str) -> str:
    """Where the bytes lie."""
    return f"{SEGMENTS}/{digest[:2]}/{digest}"


def write_manifest(store: Store, one: Manifest) -> None:
    """Raises Failure."""
    body = json.dumps({"format": FORMAT, **asdict(one)})
    line = f"{sha256(body.encode()).hexdigest()} {body}\n"
    store.write_object(f"{BACKUPS}/{one.name}{_SUFFIX}", [line.encode()])


def names(store: Store) -> list[str]:
    """The names of all backups, oldest first. Raises Failure."""
    found = (name.rpartition("/")[2] for name in store.names(BACKUPS))
    return sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX))


def read(store: Store, name: str) -> Manifest:
    """Raises Failure when it is damaged, or of a later version."""
    data = b"".join(store.read_object(f"{BACKUPS}/{name}{_SUFFIX}"))
    digest, _, body = data.rstrip(b"\n").partition(b" ")
    if digest.decode("ascii", "replace") != sha256(body).hexdigest():
        raise Failure(f"the manifest of backup {name} is damaged", name="BACKUP_DAMAGED")
    try:
        found: dict[str, Any] = json.loads(body)
        version = found.pop("format")
        one = _made(found) if version == FORMAT else None
    except (ValueError, KeyError, TypeError, AttributeError, PeerError) as why:
        text = f"the manifest of backup {name} is invalid: {why}"
        raise Failure(text, name="BACKUP_DAMAGED") from None
    if one is None:
        text = f"backup {name} was made by a later version of penstock"
        raise Failure(text, "restore it with that version", name="BACKUP_UNKNOWN")
    return one


def _made(found: dict[str, Any]) -> Manifest:
    """Raises one of many errors for a list that has another shape."""
    partitions = tuple(
        Partition(**one | {"parts": tuple(Part(**part) for part in one["parts"])})
        for one in found.pop("partitions")
    )
    lists: dict[str, Any] = {key: tuple(found.pop(key, ())) for key in _LISTS}
    made = Manifest(partitions=partitions, **found, **lists)
    for number in (made.instant_ms, made.node_id, made.metadata_end):
        _check_number(number)
    if not all(isinstance(one, str) for key in _LISTS for one in lists[key]):
        raise ValueError(f"{', '.join(_LISTS)} are lists of texts")
    for one in partitions:
        check_topic_name(one.topic)
        if len(bytes.fromhex(one.topic_id)) != _ID_BYTES:
            raise ValueError(f"topic {one.topic} has the id {one.topic_id!r}")
        _check_number(one.partition, one.log_start, one.end)
        _check_number(one.folder, most=len(made.identities) - 1)
        for part in one.parts:
            _check_number(part.base, part.bytes)
    for digest in made.digests:
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{digest!r} is no SHA-256")
    return made


def _check_number(*numbers: object, most: int = _MOST) -> None:
    """Raises ValueError unless they are numbers from 0 to `most`."""
    for one in numbers:
        if type(one) is not int or not 0 <= one <= most:
            raise ValueError(f"{one!r} is no number from 0 to {most}")
