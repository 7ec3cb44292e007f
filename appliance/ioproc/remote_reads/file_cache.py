"""Files that were brought from a remote store, bounded in bytes.

A value machine: it names files and says which must go, and touches none. What has been read
least recently goes first. A network process that sends from a file has it open, so removing its
name takes nothing from an answer. Numbers are never used again, so a late reader finds no other
bytes under a name.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from appliance.base.remote_cache import SUFFIX, cached_stem

FileKey = tuple[bytes, str, int]
"""Segment id, kind of the file (`remotelog/objects.py`), where a chunk of a log begins."""


@dataclass(slots=True)
class CachedFile:
    """here: all of it. waiting: rows of partitions that wait for it. end_offset: behind the last
    record of a chunk."""

    number: int
    key: FileKey
    here: bool = False
    size: int = 0
    end_offset: int = -1
    waiting: dict[int, None] = field(default_factory=dict)


class RemoteCache:
    """folder: where the files are. room: bytes that they may have together; one file always finds
    room. used: bytes that they have."""

    __slots__ = ("_by_key", "_by_number", "_next", "folder", "room", "used")

    def __init__(self, folder: str, first: int, room: int) -> None:
        """first: a number above all that were used in this folder before."""
        assert first > 1, "0 and 1 mean something else in an answer"
        self.folder = folder
        self.room = room
        self.used = 0
        self._next = first
        self._by_key: OrderedDict[FileKey, CachedFile] = OrderedDict()
        self._by_number: dict[int, CachedFile] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def path(self, number: int) -> str:
        """The path of a file."""
        return cached_stem(self.folder, number) + SUFFIX

    def find_file(self, key: FileKey) -> CachedFile | None:
        """The file, here or on its way; it counts as read just now."""
        found = self._by_key.get(key)
        if found is not None:
            self._by_key.move_to_end(key)
        return found

    def numbered(self, number: int) -> CachedFile | None:
        """The file with a number."""
        return self._by_number.get(number)

    def begin_file(self, key: FileKey) -> CachedFile:
        """A file that is on its way from now on."""
        assert key not in self._by_key
        made = CachedFile(self._next, key)
        self._next += 1
        self._by_key[key] = self._by_number[made.number] = made
        return made

    def landed(self, file: CachedFile, size: int, end_offset: int) -> list[int]:
        """The file is here; the numbers of those that must go for it."""
        assert not file.here and self._by_number.get(file.number) is file
        file.here, file.size, file.end_offset = True, size, end_offset
        self.used += size
        return self.make_room()

    def make_room(self) -> list[int]:
        """Forgets what is beyond the room; the numbers of what must go."""
        gone: list[int] = []
        for file in list(self._by_key.values()):
            if self.used <= self.room or len(self._by_key) <= 1:
                break
            if file.here and not file.waiting and file.key != next(reversed(self._by_key)):
                self.forget_file(file)
                gone.append(file.number)
        return gone

    def forget_file(self, file: CachedFile) -> None:
        """There is no such file any more, or it never came."""
        if self._by_number.pop(file.number, None) is not None:
            del self._by_key[file.key]
            self.used -= file.size

    def under_way(self) -> list[CachedFile]:
        """Those that were asked for and have not come."""
        return [file for file in self._by_key.values() if not file.here]
