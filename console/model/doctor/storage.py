"""Log folders: room, kind of file system, who may write there."""

from collections.abc import Iterator
from typing import Final

from appliance.base.space import KEEP_FREE_PERCENT
from appliance.config.broker_settings import BROKER
from console.model.doctor.facts import Facts, Folder, Mount, Owner, Space
from console.model.doctor.finding import CRITICAL, NOTE, WARNING, Finding, in_unit

_KEEP_BYTES: Final = int(str(BROKER["penstock.disk.free.min.bytes"].default))
_NETWORK: Final = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "lustre", "afs", "virtiofs")
)
_MEMORY: Final = frozenset(("tmpfs", "ramfs"))
_NO_BARRIERS: Final = frozenset(("nobarrier", "barrier=0"))
_SOON: Final = 8  # times the room that must stay free
_MAKE_ROOM: Final = (
    "make the disk larger, or keep less: penstock topic delete, penstock topic trim,"
    " penstock config set log.retention.ms=..."
)


def judge(facts: Facts) -> Iterator[Finding]:
    """Findings about every log folder."""
    for one in facts.folders:
        if one.problem:
            yield _offline(one)
        if one.space is not None:
            yield from _room(one.path, one.space)
            yield from _inodes(one.path, one.space)
        if one.mount is not None:
            yield from _mount(one.path, one.mount)
        if one.owner is not None and one.formatted:
            yield from _owner(one.path, one.owner, facts)


def _offline(folder: Folder) -> Finding:
    return Finding(
        level=CRITICAL, check="folder-offline", subject=folder.path, found=folder.problem,
        wanted="online", why="its partitions can be neither read nor written",
        remedy="repair the disk and start the appliance again; penstock event list says why",
    )  # fmt: skip


def _room(path: str, space: Space) -> Iterator[Finding]:
    keep = max(_KEEP_BYTES, space.total * KEEP_FREE_PERCENT // 100)
    if space.free >= keep * _SOON:
        return
    full = space.free < keep
    yield Finding(
        level=CRITICAL if full else WARNING, check="disk-space", subject=path,
        found=f"{in_unit(space.free)} of {in_unit(space.total)} are free",
        wanted=f"{in_unit(keep * _SOON)} or more",
        why=f"records are refused while less than {in_unit(keep)} is free", remedy=_MAKE_ROOM,
    )  # fmt: skip


def _inodes(path: str, space: Space) -> Iterator[Finding]:
    if not space.inodes or space.inodes_free * 20 >= space.inodes:
        return
    yield Finding(
        level=CRITICAL if space.inodes_free < 1000 else WARNING, check="inodes", subject=path,
        found=f"{space.inodes_free:,} of {space.inodes:,} inodes are free",
        wanted=f"{space.inodes // 20:,} or more",
        why="no segment or index can be made without one, however much room there is",
        remedy="fewer, larger segments (segment.bytes), or a file system with more inodes",
    )  # fmt: skip


def _mount(path: str, mount: Mount) -> Iterator[Finding]:
    kind, options = mount.kind, mount.options
    if kind in _MEMORY:
        yield Finding(
            level=CRITICAL, check="filesystem", subject=path, found=f"{kind}, which is memory",
            wanted="ext4 or xfs on a disk", why="every record is lost when the host restarts",
            remedy="penstock up --data with a folder on a disk",
        )  # fmt: skip
    elif kind in _NETWORK or kind.startswith("fuse."):
        yield Finding(
            level=WARNING, check="filesystem", subject=path, found=f"{kind}, over a network",
            wanted="ext4 or xfs on a disk of this host",
            why="that only one appliance writes, and that a sync reached a disk, is its word alone",
            remedy="penstock up --data with a folder on a disk of this host",
        )  # fmt: skip
    elif kind == "overlay":
        yield Finding(
            level=WARNING, check="filesystem", subject=path, found="overlay, a container's layer",
            wanted="a volume", why="its records go with the container",
            remedy="mount a volume there and put the folder on it",
        )  # fmt: skip
    if "ro" in options:
        yield _option(path, CRITICAL, "ro", "rw", "nothing can be written")
    for option in sorted(options & _NO_BARRIERS):
        why = "a power cut loses records that were acknowledged as durable, and may ruin files"
        yield _option(path, CRITICAL, option, "barrier", why)
    if "data=writeback" in options:
        why = "after a power cut a file may end in old bytes of other files"
        yield _option(path, WARNING, "data=writeback", "data=ordered", why)


def _option(path: str, level: str, found: str, wanted: str, why: str) -> Finding:
    return Finding(
        level=level, check="mount-options", subject=path, found=f"mounted with {found}",
        wanted=wanted, why=why, remedy=f"mount it with {wanted}, in /etc/fstab too",
    )  # fmt: skip


def _owner(path: str, owner: Owner, facts: Facts) -> Iterator[Finding]:
    user = facts.processes[0].uid if facts.processes else facts.uid
    if owner.uid != user and user != 0:
        yield Finding(
            level=WARNING, check="folder-owner", subject=path, found=f"it belongs to {owner.uid}",
            wanted=f"user {user}, who runs the appliance" if facts.runs else f"user {user}",
            why="what cannot be written cannot be started, or stops at the next new file",
            remedy="run it as its owner, or give the folder to who runs it",
            command=("chown", "-R", str(user), path),
        )  # fmt: skip
    others = owner.mode & 0o022, owner.mode & 0o005
    if any(others):
        writes = bool(others[0])
        command = ("chmod", "go-w,o-rwx", path)
        yield Finding(
            level=WARNING if writes else NOTE, check="folder-permissions", subject=path,
            found=f"mode {owner.mode:04o}", wanted="0750 or less",
            why="any user of this host can remove its files" if writes
            else "any user of this host can read its records",
            remedy="take that right away", command=command,
            safe=facts.uid in (0, owner.uid),
        )  # fmt: skip
