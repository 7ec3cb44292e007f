"""Lists and verifies backups, and forgets old ones."""

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from console.model.asking.failure import Failure, usage
from console.model.backup import manifest
from console.model.backup.manifest import BACKUPS, DAMAGED, SEGMENTS, Manifest, place
from console.model.backup.store import Store


class Damaged(NamedTuple):
    """Bytes that backups need and the store does not have as they were."""

    digest: str
    problem: str
    backups: tuple[str, ...]
    partitions: tuple[str, ...]


def every(store: Store) -> list[Manifest]:
    """All backups, oldest first. Raises Failure."""
    return [manifest.read(store, name) for name in manifest.names(store)]


def chosen(store: Store, name: str, to_ms: int = -1) -> Manifest:
    """The named backup; without a name the newest one, or the first one behind a time. Raises
    Failure."""
    names = _some(store)
    if name and name not in names:
        raise usage(f"there is no backup {name}", f"the newest one is {names[-1]}")
    if name or to_ms < 0:
        return manifest.read(store, name or names[-1])
    behind = [one for one in names if one >= manifest.name_of(to_ms)]
    if not behind:
        raise usage(f"no backup is newer than that time; the newest one is {names[-1]}")
    return manifest.read(store, behind[0])


def _some(store: Store) -> list[str]:
    """Names of the backups, of which there must be one. Raises Failure."""
    names = manifest.names(store)
    if not names:
        raise usage("there is no backup there", "penstock backup create WHERE makes one")
    return names


def at_least_one(store: Store) -> list[Manifest]:
    """All backups, oldest first. Raises Failure where there is none."""
    return [manifest.read(store, name) for name in _some(store)]


def verify(
    store: Store, backups: list[Manifest], told: Callable[[int, int], None]
) -> list[Damaged]:
    """Read all that these backups need: what is damaged. told: bytes read, of how many. Raises
    Failure."""
    needed = {digest for one in backups for digest in one.digests}
    sizes = store.names(SEGMENTS)
    total = sum(sizes.get(place(digest), 0) for digest in needed)
    done, found = 0, []
    for digest in sorted(needed):
        problem = _problem(store, digest, there=place(digest) in sizes)
        _mark(store, digest, damaged=bool(problem) and place(digest) in sizes)
        if problem:
            whose = [one for one in backups if digest in one.digests]
            found.append(
                Damaged(digest, problem, tuple(one.name for one in whose), _whose(whose, digest))
            )
        done += sizes.get(place(digest), 0)
        told(done, total)
    return found


def _mark(store: Store, digest: str, *, damaged: bool) -> None:
    """Leave word for the next backup, which sends these bytes again; a store that cannot be
    written keeps none."""
    mark = f"{DAMAGED}/{digest}"
    with suppress(Failure):
        if damaged:
            store.write_object(mark, [b""])
        elif mark in store.names(DAMAGED):
            store.delete(mark)


def _problem(store: Store, digest: str, *, there: bool) -> str:
    if not there:
        return "missing"
    read = sha256()
    try:
        for piece in store.read_object(place(digest)):
            read.update(piece)
    except Failure as why:
        return why.message
    return "" if read.hexdigest() == digest else "its bytes have changed"


def _whose(backups: list[Manifest], digest: str) -> tuple[str, ...]:
    return tuple(
        sorted(
            {
                f"{one.topic}-{one.partition}, segment {part.base}"
                for backup in backups
                for one in backup.partitions
                for part in one.parts
                if part.digest == digest
            }
        )
    )


def delete_backups(store: Store, keep: int) -> list[str]:
    """Forget all backups but the newest `keep` ones, and what no other one needs: their names. Cut
    off it leaves bytes that nobody needs, which the next one removes. Raises Failure."""
    assert keep >= 1
    names = manifest.names(store)
    gone = names[:-keep]
    for name in gone:
        store.delete(f"{BACKUPS}/{name}.json")
    needed = {digest for one in every(store) for digest in one.digests}
    for name in store.names(SEGMENTS):
        if name.rpartition("/")[2] not in needed:
            store.delete(name)
    return gone
