"""The manifest of a partition in the remote store: which segments it has, as its leader says.

    <topic id>/<partition>/manifests/<leader epoch>-<number>

A name is written once, by the leader of that epoch alone, and the highest name is the manifest
(docs/decisions/0149). A new leader first writes an empty object, its claim, and then reads the
manifest below. Every other step is written first and looked at then: whoever sees a claim above
its own step is fenced, and does nothing on the word of that step. So either a leader's step is
read by the next one, or it has no consequence.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from appliance.base.crc import crc32c
from appliance.remotelog.objects import ObjectStore, folder_of

_FOLDER: Final = "manifests"
_DIGITS: Final = 10
_HEAD: Final = Struct(">BI")
_VERSION: Final = 1
_ID: Final = Struct(">II")
CHANCE_BYTES: Final = 8
"""Bytes of a segment id that chance makes."""


class LeaderFenced(Exception):
    """A newer leader has claimed the partition in the store."""


class ManifestDamaged(Exception):
    """A manifest is not as it was written."""


class Term(NamedTuple):
    """The name of a manifest. number: counts the steps of an epoch, claims too."""

    epoch: int
    number: int


NO_TERM: Final = Term(-1, 0)


class Manifest(NamedTuple):
    """entries: as in the journal (`journal.py`); None for a partition without a manifest."""

    term: Term
    entries: bytes | None


class RemoteManifests:
    """The manifests of all partitions in a store. Every method raises what the store raises."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def claim(self, topic_id: bytes, partition: int, epoch: int) -> Manifest:
        """Fence all earlier leaders; returns the claim, and the entries of the manifest below it.
        Raises LeaderFenced where a later leader has done so, ManifestDamaged."""
        folder = _manifests_of(topic_id, partition)
        before = self._list(folder)
        highest = max(before, default=NO_TERM)
        if highest.epoch > epoch:
            raise LeaderFenced(f"epoch {highest.epoch} has claimed it, this is epoch {epoch}")
        claim = Term(epoch, highest.number + 1 if highest.epoch == epoch else 1)
        self._store.write_object(_name(folder, claim), (b"",))
        every = self._list(folder)
        _check_highest(every, claim)
        for term in sorted(every, reverse=True):
            if every[term]:
                return Manifest(claim, self._read(folder, term))
        return Manifest(claim, None)

    def publish(self, topic_id: bytes, partition: int, term: Term, entries: bytes) -> Term:
        """Write the next manifest behind `term`, which was claimed or published; returns its term.
        Raises LeaderFenced: it has no consequence then. Where the store refuses it may have been
        written: the next one goes behind it. Older ones are removed."""
        folder = _manifests_of(topic_id, partition)
        mine = Term(term.epoch, term.number + 1)
        head = _HEAD.pack(_VERSION, crc32c(entries))
        self._store.write_object(_name(folder, mine), (head, entries))
        every = self._list(folder)
        _check_highest(every, mine)
        for old in sorted(every):
            if old < mine:
                self._store.delete(_name(folder, old))
        return mine

    def read_newer(self, topic_id: bytes, partition: int, known: Term) -> Manifest | None:
        """The manifest, None when it is that of `known` or when a leader is about to write it.
        Whatever it says will be known to every later leader. Raises ManifestDamaged."""
        folder = _manifests_of(topic_id, partition)
        every = self._list(folder)
        highest = max(every, default=NO_TERM)
        if highest <= known or not every[highest]:
            return None
        return Manifest(highest, self._read(folder, highest))

    def _list(self, folder: str) -> dict[Term, int]:
        """Terms of the manifests, and their bytes."""
        found = {}
        for name, size in self._store.names(folder).items():
            epoch, _, number = name.rpartition("/")[2].partition("-")
            if all(
                len(one) == _DIGITS and one.isascii() and one.isdigit() for one in (epoch, number)
            ):
                found[Term(int(epoch), int(number))] = size
        return found

    def _read(self, folder: str, term: Term) -> bytes:
        name = _name(folder, term)
        data = b"".join(self._store.read_object(name))
        if len(data) < _HEAD.size:
            raise ManifestDamaged(f"{name} has {len(data)} bytes")
        version, crc = _HEAD.unpack_from(data)
        entries = data[_HEAD.size :]
        if version != _VERSION or crc32c(entries) != crc:
            raise ManifestDamaged(f"{name} is damaged, or of a later version")
        return entries


def _check_highest(every: Iterable[Term], mine: Term) -> None:
    highest = max(every, default=NO_TERM)
    if highest > mine:
        raise LeaderFenced(f"epoch {highest.epoch} has claimed it, this is epoch {mine.epoch}")


def _manifests_of(topic_id: bytes, partition: int) -> str:
    return f"{folder_of(topic_id, partition)}/{_FOLDER}"


def _name(folder: str, term: Term) -> str:
    return f"{folder}/{term.epoch:0{_DIGITS}d}-{term.number:0{_DIGITS}d}"


def make_segment_id(term: Term, chance: bytes) -> bytes:
    """A segment's id that says under which claim its copy began, so that a leader never takes the
    objects of a later one for what was left behind."""
    assert len(chance) == CHANCE_BYTES
    return _ID.pack(*term) + chance


def term_of_segment(segment_id: bytes) -> Term:
    """The claim under which a copy began."""
    return Term(*_ID.unpack_from(segment_id))
