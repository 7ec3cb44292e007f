"""Questions about manifests to the process that talks to the store, and their answers.

The questions are asked by `tiering.py`; `ManifestAnswers` runs in the process (`process.py`).
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final

from appliance.ioproc.remote.link import Question
from appliance.remotelog.journal import EntriesDamaged, decode_entries, encode_entries
from appliance.remotelog.manifests import (
    NO_TERM,
    Manifest,
    ManifestDamaged,
    RemoteManifests,
    Term,
    term_of_segment,
)
from appliance.remotelog.objects import PRODUCER_SNAPSHOT, RemoteFilesMissing, RemoteObjects
from appliance.remotelog.segments import RemoteSegments

Key = tuple[bytes, int]
"""Topic id, partition."""

TO_CLAIM: Final = "claim"
TO_PUBLISH: Final = "publish"
TO_READ: Final = "read-manifest"
TO_SWEEP: Final = "sweep"
TO_START: Final = "read-start"
MANIFEST_STEPS: Final = (TO_CLAIM, TO_PUBLISH, TO_READ, TO_SWEEP, TO_START)


def ask_claim(
    key: Key, holders: Sequence[int], epoch: int, own: bytes, *, alone: bool = False
) -> Question:
    """Fence earlier leaders and take over what they said. holders: the nodes that have a replica,
    this one first. own: entries of this node's journal, which count where the store has no
    manifest. alone: there is no other replica, so a manifest is not taken over by a node that knows
    of no segment. The answer has `term` and `entries`."""
    asked = {"op": TO_CLAIM, **_named(key), "epoch": epoch, "entries": _text(own)}
    return {**asked, "holders": holders, "alone": alone}


def ask_publish(key: Key, term: Term, entries: bytes) -> Question:
    """Write the manifest behind `term`. The answer has `term`."""
    return {"op": TO_PUBLISH, **_named(key), "term": term, "entries": _text(entries)}


def ask_newer(key: Key, node: int | None, known: Term) -> Question:
    """The manifest, if it is newer than that of `known`. node: this one, to note that it needs the
    objects. The answer has `term` and `entries`; no `entries` where it is not newer."""
    return {"op": TO_READ, **_named(key), "term": known, "node": node}


def ask_sweep(key: Key, holders: Sequence[int], term: Term, entries: bytes) -> Question:
    """Remove objects of copies that began up to `term` and that these entries do not know. holders:
    as in `ask_claim`. The answer's `objects` says how many there were."""
    asked = {"op": TO_SWEEP, **_named(key), "term": term, "entries": _text(entries)}
    return {**asked, "holders": holders}


def ask_start(key: Key, node: int, offset: int) -> Question:
    """The manifest, and a snapshot of the producers before an offset. node: as in `ask_newer`. The
    answer has `term`, `entries` and `snapshot`."""
    return {"op": TO_START, **_named(key), "offset": offset, "node": node}


def snapshot_in(fields: dict[str, Any]) -> bytes:
    """The bytes of a snapshot in an answer."""
    return base64.b64decode(fields["snapshot"])


def entries_in(fields: dict[str, Any]) -> bytes:
    """The entries in an answer."""
    return base64.b64decode(fields["entries"])


def _named(key: Key) -> dict[str, Any]:
    return {"topic-id": key[0].hex(), "partition": key[1]}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class ManifestAnswers:
    """objects, manifests: of the store."""

    def __init__(self, objects: RemoteObjects, manifests: RemoteManifests) -> None:
        self._objects = objects
        self._manifests = manifests
        self.by_name: Final[dict[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
            TO_CLAIM: self._claim,
            TO_PUBLISH: self._publish,
            TO_READ: self._read_newer,
            TO_SWEEP: self._sweep,
            TO_START: self._read_start,
        }

    def _claim(self, question: dict[str, Any]) -> dict[str, Any]:
        key, own = _key_of(question), entries_in(question)
        if question["alone"] and not own:
            self._refuse_foreign(key)
        self._hold(key, question["holders"])
        found = self._manifests.claim(*key, question["epoch"])
        entries = own if found.entries is None else _merged(key, found.entries, own)
        term = self._manifests.publish(*key, found.term, entries)
        self._remove_unknown(key, term, entries)
        return _told(Manifest(term, entries))

    def _refuse_foreign(self, key: Key) -> None:
        """A restored partition, or one whose disk was lost, has another log than the store: what
        lies there would be taken for what is over. Raises ManifestDamaged."""
        found = self._manifests.read_newer(*key, NO_TERM)
        if found is not None and found.entries and _decoded(key, found.entries).finished():
            raise ManifestDamaged(
                "the store has segments of this partition that this node does not know: of another"
                " appliance, or of before a restore; set penstock.remote.storage.url to another"
                " prefix"
            )

    def _publish(self, question: dict[str, Any]) -> dict[str, Any]:
        term = Term(*question["term"])
        made = self._manifests.publish(*_key_of(question), term, entries_in(question))
        return {"term": made}

    def _read_newer(self, question: dict[str, Any]) -> dict[str, Any]:
        key, known = _key_of(question), Term(*question["term"])
        if question["node"] is not None:
            self._objects.hold_partition(*key, question["node"])
        found = self._manifests.read_newer(*key, known)
        if found is None:
            return {"term": known}
        assert found.entries is not None
        _decoded(key, found.entries)
        return _told(found)

    def _sweep(self, question: dict[str, Any]) -> dict[str, Any]:
        key, term = _key_of(question), Term(*question["term"])
        self._hold(key, question["holders"])
        return {"objects": self._remove_unknown(key, term, entries_in(question))}

    def _hold(self, key: Key, holders: Sequence[int]) -> None:
        self._objects.hold_partition(*key, holders[0], holders)

    def _read_start(self, question: dict[str, Any]) -> dict[str, Any]:
        key, offset = _key_of(question), int(question["offset"])
        self._objects.hold_partition(*key, question["node"])
        found = self._manifests.read_newer(*key, NO_TERM)
        if found is None or found.entries is None:
            raise RemoteFilesMissing("the leader has not written which remote segments there are")
        every = _decoded(key, found.entries).finished()
        before = [
            (one.end_offset + 1 == offset, one.segment_leader_epochs[-1].leader_epoch, number)
            for number, one in enumerate(every)
            if one.start_offset < offset <= one.end_offset + 1
        ]
        if not before:
            raise RemoteFilesMissing(f"offset {offset - 1} is in no remote segment")
        snapshot = self._objects.fetch_index(every[max(before)[2]], PRODUCER_SNAPSHOT)
        return {**_told(found), "snapshot": _text(snapshot)}

    def _remove_unknown(self, key: Key, term: Term, entries: bytes) -> int:
        known = (one.remote_log_segment_id.id for one in _every(_decoded(key, entries)))
        return self._objects.delete_unknown(*key, known, lambda one: term_of_segment(one) <= term)


def _merged(key: Key, entries: bytes, own: bytes) -> bytes:
    """Adds to a manifest the copies and deletions that this node began and did not end."""
    said, mine = _decoded(key, entries), _decoded(key, own)
    known = {one.remote_log_segment_id.id for one in _every(said)}
    rest = RemoteSegments(*key)
    for one in mine.unfinished():
        if one.remote_log_segment_id.id not in known:
            rest.add(one)
    return entries + encode_entries(rest)


def _every(known: RemoteSegments) -> list[Any]:
    return [*known.finished(), *known.unfinished()]


def _decoded(key: Key, entries: bytes) -> RemoteSegments:
    try:
        known, end = decode_entries(entries, *key)
    except EntriesDamaged as why:
        raise ManifestDamaged(f"the manifest of {key[0].hex()}-{key[1]} is {why}") from None
    if end != len(entries):
        raise ManifestDamaged(f"the manifest of {key[0].hex()}-{key[1]} ends within an entry")
    return known


def _told(found: Manifest) -> dict[str, Any]:
    assert found.entries is not None
    return {"term": found.term, "entries": _text(found.entries)}


def _key_of(question: dict[str, Any]) -> Key:
    return bytes.fromhex(question["topic-id"]), int(question["partition"])
