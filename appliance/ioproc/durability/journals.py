"""Which ends of logs become durable by a group in the journal of their log folder
(`logstore.journal`), and which by a sync of their own file.

Whatever waits while a group is written goes into the next one. A journal is made when somebody
first waits in its folder; until it is there, when it has no room, and for ever after it failed,
logs are synced in their own files. Called by `syncing` alone.
"""

from collections.abc import Callable, Sequence
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.ioproc.partitions.partition import Partition
from appliance.logstore.journal import (
    MOST_OF_ONE,
    OF_EACH,
    SUFFIX,
    End,
    Journal,
    JournalWrite,
    size_for,
)
from appliance.shell.bugs import Bugs
from appliance.shell.flusher import Done, Threads

_ABSENT: Final = 0
_MADE: Final = 1  # on a thread, at this moment
_READY: Final = 2
_OFF: Final = 3


class _Folder:
    """One log folder. waiting: whose ends the next group takes. group: what is written now."""

    __slots__ = ("group", "journal", "path", "state", "waiting")

    def __init__(self, path: str) -> None:
        self.path = path
        self.state = _ABSENT
        self.journal: Journal | None = None
        self.waiting: list[Partition] = []
        self.group: JournalWrite | None = None


def name_of(process: int, serial: int) -> str:
    """The file name of a journal: of an I/O process, the serial-th in its folder."""
    return f"ioproc-{process}.{serial}{SUFFIX}"


def parse(name: str) -> tuple[int, int] | None:
    """Process and serial number of a journal's file name; None when it is another file."""
    parts = name.removesuffix(SUFFIX).removeprefix("ioproc-").split(".")
    if len(parts) == 2 and all(part.isdecimal() for part in parts):
        process, serial = map(int, parts)
        if name == name_of(process, serial):
            return process, serial
    return None


Outcome = tuple[list[tuple[Partition, int]], list[Partition]]
"""Who is durable, and up to which offset; who has to be synced in its own file."""


class Journals:
    """The journals of one ioproc. threads: one that is theirs alone. nonce: 16 random bytes.
    count_flush: receives the ns of each group that reached the disk."""

    __slots__ = (
        "_count_flush",
        "_disk",
        "_folders",
        "_me",
        "_nonce",
        "_retired",
        "_size",
        "_threads",
        "bugs",
        "made",
        "overdue",
        "pending",
        "under_way",
    )

    def __init__(
        self,
        disk: Disk,
        paths: Sequence[str],
        me: int,
        threads: Threads,
        nonce: Callable[[], bytes],
        size: Callable[[int], int] = size_for,
        count_flush: Callable[[int], None] | None = None,
    ) -> None:
        self._count_flush = count_flush
        self.bugs: Bugs | None = None
        self._disk = disk
        self._me = me
        self._threads = threads
        self._nonce = nonce
        self._size = size
        self._folders = [_Folder(path) for path in paths]
        self._retired: list[str] = []  # files that are written no more, and may be needed
        self.overdue: dict[Partition, None] = {}  # whose files hold up the use of a half
        self.under_way = 0  # groups that are written, and journals that are made
        self.made = False  # whether there is a journal, or was one
        self.pending = False  # whether `start` may have something to begin

    def offer(self, partition: Partition) -> bool:
        """True if the next group may make the partition durable up to its end."""
        folder = self._folders[partition.directory]
        if folder.state == _READY:
            folder.waiting.append(partition)
            self.pending = True
            return True
        if folder.state == _ABSENT and not partition.space.low:
            folder.state = _MADE
            self._submit(folder, None, self._making(folder))
        return False

    def takes(self, partition: Partition) -> bool:
        """True if a group could take its end."""
        ready = self._folders[partition.directory].state == _READY
        return ready and _end_of(partition) is not None

    def begin_groups(self) -> list[Partition]:
        """Begin the groups that can begin; who is refused."""
        refused: list[Partition] = []
        self.pending = False
        for folder in self._folders:
            if folder.group is None and folder.waiting:
                begun, waits = len(refused), list(folder.waiting)
                try:
                    group = self._begin(folder, refused)
                except Exception as bug:  # the files of all who wait are synced instead
                    self._give_up(folder, bug)
                    refused[begun:] = waits
                    continue
                if group is None:
                    refused += folder.waiting
                    folder.waiting.clear()
                else:
                    self._submit(folder, group, group.run)
        return refused

    def ended(self) -> Outcome:
        """Takes the results of groups whose writes have ended."""
        refused: list[Partition] = []
        durable: list[tuple[Partition, int]] = []
        for done in self._threads.take_ended():
            self.under_way -= 1
            folder, group = done.tag
            begun, ends = (len(durable), len(refused)), group.ends if group is not None else ()
            try:
                self._end(done, durable, refused)
            except Exception as bug:
                del durable[begun[0] :]
                waits = [*(end.key for end in ends), *folder.waiting]
                self._give_up(folder, bug)
                refused[begun[1] :] = waits
        self.pending = any(folder.waiting for folder in self._folders)
        return durable, refused

    def settled(self, partition: Partition) -> None:
        """Its file was synced."""
        self.overdue.pop(partition, None)
        for folder in self._folders:
            if folder.journal is not None:
                folder.journal.settled(partition, partition.log.recovery_point)

    def forget_partition(self, partition: Partition) -> None:
        """It is closed, or broken: then the groups that hold it have to stay."""
        self.overdue.pop(partition, None)
        for folder in self._folders:
            if partition in folder.waiting:
                folder.waiting.remove(partition)
                partition.syncing = False
            if folder.journal is not None and partition.broken is None:
                folder.journal.settled(partition, partition.log.end_offset)

    def wait(self) -> None:
        """Return when there is something for `ended`."""
        self._threads.wait()

    def close(self, *, needed: bool) -> None:
        """The end. Where every log is on the disk in its own file, journals are not needed any
        more, those that failed neither. Raises StorageFailed, when it has tried all of them."""
        assert not any(folder.group for folder in self._folders)
        for folder in self._folders:
            if folder.journal is not None:
                self._retire(folder)
                folder.state = _OFF
        failure: StorageFailed | None = None
        for path in () if needed else self._retired:
            try:
                self._disk.unlink(path)
            except StorageFailed as cause:
                failure = cause
        if failure is not None:
            raise failure

    def _submit(self, folder: _Folder, group: JournalWrite | None, job: Callable[[], None]) -> None:
        self.under_way += 1
        self._threads.submit((folder, group), job)

    def _making(self, folder: _Folder) -> Callable[[], None]:
        nonce = self._nonce()

        def make_journals() -> None:
            names = self._disk.listdir(folder.path)
            taken = [found for name in names if (found := parse(name))]
            mine = [number for process, number in taken if process == self._me]
            path = f"{folder.path}/{name_of(self._me, max(mine, default=0) + 1)}"
            size = self._size(self._disk.space(folder.path).total)
            folder.journal = Journal.create(self._disk, path, nonce, size)

        return make_journals

    def _begin(self, folder: _Folder, refused: list[Partition]) -> JournalWrite | None:
        """A group of those that wait, as far as they fit. None: nobody can have one now."""
        journal = folder.journal
        assert journal is not None
        ends: list[End] = []
        room = journal.most
        looked_at = 0
        for partition in folder.waiting:
            end = _end_of(partition)
            if end is None:
                refused.append(partition)
            else:
                room -= end.length + OF_EACH
                if room < 0:
                    break
                ends.append(end)
            looked_at += 1
        del folder.waiting[:looked_at]
        if not ends:
            return None
        before = journal.half
        group = folder.group = journal.begin_group(ends)
        if group is None:
            refused += [end.key for end in ends]
            unsettled = journal.unsettled()
            if journal.failed or all(partition.broken is not None for partition in unsettled):
                self._retire(folder)
        if group is None or journal.half != before:
            for partition in journal.unsettled():
                if partition.broken is None:
                    self.overdue[partition] = None
        return group

    def _give_up(self, folder: _Folder, bug: Exception) -> None:
        """Use no journal in this folder any more; what it holds stays until the end."""
        if self.bugs is None:
            raise bug
        self.bugs.report("a group of a journal", bug, folder=folder.path)
        folder.group = None
        folder.waiting.clear()
        if folder.journal is not None:
            for partition in folder.journal.unsettled():
                if partition.broken is None:
                    self.overdue[partition] = None
            self._retire(folder)
        folder.state = _OFF

    def _retire(self, folder: _Folder) -> None:
        """It failed, or holds what a start has to read: another one is made. The file stays until
        the end."""
        assert folder.journal is not None
        self._retired.append(folder.journal.file.path)
        folder.state = _OFF if folder.journal.failed else _ABSENT
        folder.journal.close()
        folder.journal = None

    def _end(
        self,
        done: Done,
        durable: list[tuple[Partition, int]],
        refused: list[Partition],
    ) -> None:
        folder, group = done.tag
        if done.failure is not None and not isinstance(done.failure, StorageFailed):
            if self.bugs is None:
                raise done.failure
            self.bugs.report("a write of a journal", done.failure, folder=folder.path)
        if group is None:
            folder.state = _READY if done.failure is None else _OFF
            self.made = self.made or done.failure is None
            return
        folder.group = None
        folder.journal.ended(group, failed=done.failure is not None)
        if done.failure is None:
            durable += [(end.key, end.end) for end in group.ends]
            if self._count_flush is not None:
                self._count_flush(done.took_ns)
        else:
            refused += [end.key for end in group.ends]
            refused += folder.waiting
            folder.waiting.clear()


def _end_of(partition: Partition) -> End | None:
    """The end of its log that is not durable, if that is short and nothing else needs a sync."""
    log = partition.log
    synced = partition.synced
    if synced < log.active_base or not log.only_grew:
        return None
    position = log.active.tail_position(synced)
    length = log.active_size - position
    file = log.active.file
    if position < 0 or not 0 < length <= MOST_OF_ONE or file is None:
        return None
    key, end = (partition.topic_id, partition.index), log.written_end
    return End(partition, *key, synced, end, file, position, length)
