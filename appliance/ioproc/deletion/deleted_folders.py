"""Folders of deleted partitions: kept while their topic can be brought back, then removed, or
renamed back.

A deleted partition's folder is renamed as Kafka does it (`NAME-P.ID-delete`), with the topic's id
for ID; the list of what is to be kept is control's (`metadata/trash.py`). Beside the records lies a
mark with what the checkpoints said of the log, because those are forgotten. Invariant: a folder is
removed only when its topic is not in the metadata, and not in the list either or let go there, and
then it can never come back; a folder that came back is served with its mark's numbers, whatever a
later topic of the same name has left in the checkpoints. A folder of a topic in the metadata that
was never kept is that of a replica which was removed: parts of it may be gone, it never comes back.
Called by `partition_manager.py`.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import StorageFailed
from appliance.base.home import home_of
from appliance.ioproc.log_folders import folder_names
from appliance.logstore import files
from appliance.logstore.partition_metadata import read_topic_id
from appliance.metadata import trash as trash_file
from appliance.metadata.image import MetadataImage

MARK: Final = "penstock-deleted"
LOOK_EVERY_NS: Final = 1_000_000_000
REREAD_EVERY_NS: Final = 60_000_000_000
_NAME: Final = re.compile(rf"-(\d{{1,10}})\.([0-9a-f]{{32}}){files.DELETED_FOLDER}\Z")

Mark = tuple[int, int]
"""Log start offset and recovery point of a log when its topic was deleted."""
Key = tuple[bytes, int]
"""Topic id and partition."""


def key_of(name: str) -> Key | None:
    """The partition of a deleted partition's folder; None for every other name."""
    found = _NAME.search(name)
    return found and (bytes.fromhex(found[2]), int(found[1]))


def read_mark(disk: Disk, folder: str) -> Mark | None:
    """The offsets recorded for an undeleted log; None for every other one. Raises StorageFailed."""
    path = f"{folder}/{MARK}"
    if not disk.exists(path):
        return None
    try:
        version, numbers = read_file(disk, path).split(b"\n", 1)
        start, recovered = numbers.split()
        return (int(start), int(recovered)) if version == b"0" else (0, 0)
    except ValueError:
        return 0, 0


def write_mark(disk: Disk, folder: str, mark: Mark) -> None:
    """Write into a folder that is about to be renamed what is known of its log; on any thread. A
    full disk must not keep it from going: it is searched from its begin then."""
    with suppress(StorageFailed):
        write_file(disk, f"{folder}/{MARK}", b"0\n%d %d\n" % mark)


class DeletedFolders:
    """The deleted topics' folders of this ioproc. dirs: the log folders that are online, the first
    one with the list. gone: name and id of topics that can never come back, for the caller to take.
    """

    __slots__ = (
        "_dead",
        "_dirs",
        "_disk",
        "_folders",
        "_ids",
        "_ioprocs",
        "_left_behind",
        "_let_go",
        "_me",
        "_next_look_ns",
        "_next_reread_ns",
        "_version",
        "gone",
    )

    def __init__(self, disk: Disk, dirs: Callable[[], list[str]], me: int, ioprocs: int) -> None:
        self._disk = disk
        self._dirs = dirs
        self._me = me
        self._ioprocs = ioprocs
        self._ids: frozenset[bytes] = frozenset()
        self._let_go: frozenset[bytes] = frozenset()  # of those
        self._folders: dict[Key, str] = {}
        self._dead: dict[bytes, str] = {}
        self._left_behind: list[str] = []
        self.gone: list[tuple[str, bytes]] = []
        self._next_look_ns = 0
        self._next_reread_ns = 0
        self._version: tuple[int, int] | None = None  # of the list that was read last

    def find_folders(self, image: MetadataImage) -> None:
        """At the start: which folders there are, and which topics are to be kept."""
        for topic_id, name in (self.reread() or {}).items():
            if topic_id not in image.topics_by_id:
                self._dead[topic_id] = name
        for parent in self._dirs():
            for name in self._disk.listdir(parent):
                key = key_of(name)
                if key is None or home_of(*key, self._ioprocs) != self._me:
                    continue
                folder = f"{parent}/{name}"
                if key[0] in image.topics_by_id and not self._may_return(key[0], folder):
                    self._left_behind.append(folder)
                else:
                    self._folders[key] = folder

    def _may_return(self, topic_id: bytes, folder: str) -> bool:
        """True if this folder of an existing topic was kept. Without a readable list every one
        may have been. Raises StorageFailed."""
        if topic_id in self._let_go:
            return False  # its removal may have begun
        known = self._version is None or topic_id in self._ids
        return known or self._disk.exists(f"{folder}/{MARK}")

    def reread(self) -> dict[bytes, str] | None:
        """Look again which topics are to be kept: id → name. None for a list that cannot be read:
        nothing is removed then."""
        parent = self._dirs()[0]
        try:
            self._version = trash_file.version_of(self._disk, parent)
            found = trash_file.listed(self._disk, parent)
        except (ValueError, StorageFailed):
            self._version = None
            return None
        self._ids, self._let_go = frozenset(found.names), found.let_go
        return found.names

    def _is_known(self, now_ns: int) -> bool:
        """True if the list has not changed since it was read; it is reread at intervals, because a
        change may hide in the millisecond of another one.
        """
        if now_ns >= self._next_reread_ns:
            self._next_reread_ns = now_ns + REREAD_EVERY_NS
            return False
        with suppress(StorageFailed):
            return self._version == trash_file.version_of(self._disk, self._dirs()[0])
        return False

    def keeps(self, topic_id: bytes) -> bool:
        """True if the topic's folders are kept, or on their way back."""
        return topic_id in self._ids and topic_id not in self._let_go

    def knows(self, topic_id: bytes) -> bool:
        """True if the topic may come back, with folders of this node or without."""
        return topic_id in self._ids

    @property
    def keeps_some(self) -> bool:
        """True if any topic is kept."""
        return bool(self._ids)

    def deleted(self, name: str, topic_id: bytes) -> None:
        """A topic went, wherever its partitions are."""
        if topic_id in self._ids:
            self._dead[topic_id] = name

    def put_away(self, folder: str, key: Key, mark: Mark) -> None:
        """Keep a folder that still has its name; nothing of it is open. The remains of an earlier
        removal of the replica are older, and go. Raises StorageFailed."""
        write_mark(self._disk, folder, mark)
        away = files.deleted_folder(folder, key[0].hex())
        if self._disk.exists(away):
            other = bytes(byte ^ 0xFF for byte in key[0]).hex()
            older = files.deleted_folder(folder, other)
            self._disk.rename(away, older)
            self._left_behind.append(older)
        self._disk.rename(folder, away)
        self._disk.sync_dir(folder.rpartition("/")[0])
        self.hold_folder(key, away)

    def hold_folder(self, key: Key, folder: str) -> None:
        """The folder was renamed: remove it when its time is over."""
        self._folders[key] = folder

    def bring_back(self, name: str, key: Key, strays: list[str]) -> bool:
        """Give a partition that is to be opened its folder again, if that is in the trash and not a
        copy that was left behind; whether it was. strays: takes what a folder of that name which is
        not the partition's is called now. Raises StorageFailed."""
        folder = self._folders.get(key, "")
        if not folder and self.keeps(key[0]):
            folder = self._look_for(key)
        if not folder or not self._disk.exists(folder):
            self._folders.pop(key, None)
            return False
        for parent in self._dirs():
            path = f"{parent}/{name}"
            if self._disk.exists(path) and read_topic_id(self._disk, path) == key[0]:
                self._folders.pop(key, None)
                self._left_behind.append(folder)
                return False
        parent = folder.rpartition("/")[0]
        path = f"{parent}/{name}"
        # A later topic of the name that was deleted for good, or a creation that was cut short.
        stray = folder_names.make_way(self._disk, path, key[0], key[0].hex())
        if stray:
            strays.append(stray)
        self._disk.rename(folder, path)
        self._disk.sync_dir(parent)
        self._folders.pop(key, None)
        return True

    def holds(self, key: Key) -> bool:
        """True if this partition's folder in the trash is known."""
        return key in self._folders

    def let_out(self, key: Key) -> str:
        """That folder, which the caller renames, or gives back to `hold`."""
        return self._folders.pop(key)

    def _look_for(self, key: Key) -> str:
        """The ioproc that put it away may have been another one."""
        for parent in self._dirs():
            for name in self._disk.listdir(parent):
                if key_of(name) == key:
                    return f"{parent}/{name}"
        return ""

    def unmark(self, folder: str) -> None:
        """The checkpoints know of the log again. Raises StorageFailed."""
        self._disk.unlink(f"{folder}/{MARK}")

    def expire_folders(self, image: MetadataImage, now_ns: int) -> list[str]:
        """Now and then: the folders that are to be removed. Topics that are over go to `gone`."""
        left, self._left_behind = self._left_behind, []
        if now_ns < self._next_look_ns or not (self._folders or self._dead):
            return left
        self._next_look_ns = now_ns + LOOK_EVERY_NS
        if not self._is_known(now_ns) and self.reread() is None:
            return left
        for topic_id, name in list(self._dead.items()):
            back = topic_id in image.topics_by_id
            if back or topic_id not in self._ids:
                del self._dead[topic_id]
                if not back:
                    self.gone.append((name, topic_id))
        over = [
            key
            for key in self._folders
            if not self.keeps(key[0]) and key[0] not in image.topics_by_id
        ]
        return left + [self._folders.pop(key) for key in over]
