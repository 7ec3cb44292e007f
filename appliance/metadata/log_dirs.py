"""The log folders of this node (`log.dirs`): their paths, and the ids by which records name them.

Invariant: the first folder is the one of the metadata log, and is always there; a folder that could
not be read at the start has no id, and stays offline until the next start. Every process reads the
ids once, after control or `penstock up` has formatted what was new.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk, write_file
from appliance.base.errors import ConfigError, StorageFailed
from appliance.metadata.identity import (
    META_PROPERTIES,
    Identity,
    encode,
    new_uuid,
    read_identity,
)
from appliance.metadata.parts import PartitionImage

UNASSIGNED: Final = bytes(16)
LOST: Final = bytes(15) + b"\2"
"""Stands for a folder (KIP-858): the replica is in one that is not there any more."""
_RESERVED: Final = bytes(15)  # ids that begin so are words: unassigned, lost, on the way


@dataclass(slots=True, frozen=True)
class LogDirs:
    """paths: the folders in the order of the settings. ids: 16 bytes each, None: offline."""

    paths: tuple[str, ...]
    ids: tuple[bytes | None, ...]

    @classmethod
    def of(cls, path: str) -> "LogDirs":
        """One folder, whatever its id."""
        return cls((path,), (UNASSIGNED,))

    def online(self) -> Iterator[tuple[int, str]]:
        """Number and path of every folder that can be used."""
        return ((n, self.paths[n]) for n, found in enumerate(self.ids) if found is not None)

    @property
    def all_online(self) -> bool:
        return None not in self.ids

    def is_told_offline(self, number: int, registered: Sequence[bytes]) -> bool:
        """True if a log directory is missing in this node's registration; a single one is never
        reported."""
        known = self.ids[number]
        return known is not None and known != UNASSIGNED and known not in registered

    def number(self, directory_id: bytes) -> int:
        """Which folder has this id, -1: none that is online."""
        return self.ids.index(directory_id) if directory_id in self.ids else -1

    def number_of(self, path: str) -> int:
        """Which folder has exactly this path, -1: none."""
        return self.paths.index(path) if path in self.paths else -1


def is_assigned(directory_id: bytes) -> bool:
    """True if the id names a log directory, and is not a reserved id (KIP-858)."""
    return not directory_id.startswith(_RESERVED)


def directory_of(partition: PartitionImage, node_id: int) -> bytes:
    """The folder that the metadata names for this node's replica; UNASSIGNED when it names
    none."""
    for replica, directory_id in zip(partition.replicas, partition.directories, strict=False):
        if replica == node_id:
            return directory_id
    return UNASSIGNED


def read_log_dirs(disk: Disk, paths: Sequence[str]) -> LogDirs:
    """The ids as they are in the folders; one that cannot be listed is offline. Raises what reading
    the first one raises."""
    ids: list[bytes | None] = [read_identity(disk, paths[0]).directory_id]
    for path in paths[1:]:
        try:
            disk.listdir(path)
            ids.append(read_identity(disk, path).directory_id)
        except (ConfigError, StorageFailed):
            ids.append(None)
    return LogDirs(tuple(paths), tuple(ids))


def format_others(
    disk: Disk,
    paths: Sequence[str],
    identity: Identity,
    random: Callable[[int], bytes],
    looks_used: Callable[[str], str],
) -> list[tuple[str, str]]:
    """Give every folder but the first an identity if it has none; those that are offline, with
    the reason.

    looks_used(path): the name of something that shows that an unformatted folder was in use.
    Raises ConfigError for a folder of somebody else."""
    offline: list[tuple[str, str]] = []
    seen = {identity.directory_id: paths[0]}
    for path in paths[1:]:
        try:
            mine = _format(disk, path, identity, random, looks_used)
        except StorageFailed as failure:
            offline.append((path, str(failure)))
            continue
        other = seen.setdefault(mine.directory_id, path)
        if other != path:
            raise ConfigError(f"log.dirs: {other} and {path} have the same directory.id: one is a"
                              " copy of the other; take it out")  # fmt: skip
    return offline


def _format(
    disk: Disk,
    path: str,
    identity: Identity,
    random: Callable[[int], bytes],
    looks_used: Callable[[str], str],
) -> Identity:
    if disk.exists(f"{path}/{META_PROPERTIES}"):
        found = read_identity(disk, path)
        if (found.cluster_id, found.node_id) != (identity.cluster_id, identity.node_id):
            raise ConfigError(
                f"log.dirs: {path} belongs to node {found.node_id} of cluster {found.cluster_id},"
                f" and this is node {identity.node_id} of {identity.cluster_id}; take it out"
            )
        return found
    used = looks_used(path)
    if used:
        raise ConfigError(
            f"log.dirs: {path} holds {used} but no {META_PROPERTIES}; restore that file, or name"
            " an empty folder"
        )
    new = replace(identity, directory_id=new_uuid(random))
    write_file(disk, f"{path}/{META_PROPERTIES}", encode(new))
    return new
