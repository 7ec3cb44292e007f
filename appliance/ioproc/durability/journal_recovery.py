"""The journals that an end without order has left: what logs go on with when they are opened, and
when a journal has served.

Invariant: a journal is removed only when every partition that it holds was opened, with all of it
on the disk in its own files, or is gone for good; and while the journals of a log folder cannot be
read, nothing in that folder is opened, since it would begin without its end. Every process reads
all journals, since there may be more or fewer processes than before; one alone removes each.
"""

from collections.abc import Callable, Sequence

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.ioproc.durability.journals import parse
from appliance.logstore.journal import NOTHING, Continuation, Tail, read

Key = tuple[bytes, int]
"""Topic id, partition."""
Failed = dict[str, StorageFailed]
"""By path: why it could not be read, or removed."""


class JournalRecovery:
    """paths: of the log folders. ioprocs: how many processes there are now, of which this is number
    `me`. clean: the appliance before ended in order, so that nothing in them is needed. Empty until
    `find`."""

    __slots__ = (
        "_clean",
        "_continuations",
        "_disk",
        "_ioprocs",
        "_keys",
        "_me",
        "_opened",
        "_paths",
        "_unread",
    )

    def __init__(
        self, disk: Disk, paths: Sequence[str], me: int = 0, ioprocs: int = 1, *, clean: bool
    ) -> None:
        self._disk = disk
        self._paths = paths
        self._me = me
        self._clean = clean
        self._ioprocs = ioprocs
        self._continuations: dict[Key, Continuation] = {}
        self._keys: dict[str, set[Key]] = {}  # by path of each journal that is ours to remove
        self._opened: set[Key] = set()
        self._unread: Failed = {}

    def read_journals(self) -> Failed:
        """Read them. The log folders whose journals could not be read."""
        tails: dict[Key, list[Tail]] = {}
        for folder in self._paths:
            try:
                self._find(folder, tails)
            except StorageFailed as failure:
                self._unread[folder] = failure
        self._continuations = {key: Continuation(some) for key, some in tails.items()}
        return self._unread

    def _find(self, folder: str, tails: dict[Key, list[Tail]]) -> None:
        found = [(place, name) for name in self._disk.listdir(folder) if (place := parse(name))]
        for (process, _), name in sorted(found, key=_age):
            path = f"{folder}/{name}"
            held = [] if self._clean else self._read(folder, name)
            for tail in held:
                tails.setdefault((tail.topic_id, tail.partition), []).append(tail)
            if process % self._ioprocs == self._me:
                self._keys[path] = {(tail.topic_id, tail.partition) for tail in held}

    def _read(self, folder: str, name: str) -> list[Tail]:
        try:
            return read(self._disk, f"{folder}/{name}")
        except StorageFailed:
            # Another process, whose it is, has removed it since: it held nothing of ours.
            if name in self._disk.listdir(folder):
                raise
            return []

    def of(self, topic_id: bytes, partition: int, folder: str) -> Continuation:
        """The journals' records of this partition in that log folder. Raises StorageFailed where
        that is unknown.
        """
        if folder in self._unread:
            raise self._unread[folder]
        return self._continuations.get((topic_id, partition), NOTHING)

    def opened(self, topic_id: bytes, partition: int) -> None:
        """The partition is on the disk in its own files."""
        self._opened.add((topic_id, partition))

    def remove_served(self, gone: Callable[[bytes], bool]) -> Failed:
        """Remove the journals that nobody needs any more; those that could not be. gone: whether
        the topic with this id can never be opened again."""
        failed: Failed = {}
        for path, keys in self._keys.items():
            if all(key in self._opened or gone(key[0]) for key in keys):
                try:
                    self._disk.unlink(path)
                except StorageFailed as failure:
                    failed[path] = failure
        self._keys.clear()
        self._continuations.clear()
        return failed


def _age(found: tuple[tuple[int, int], str]) -> int:
    return found[0][1]
