"""Finding the tables of a running appliance, and reading them without asking anybody.

The segment has no name any more, but the supervisor keeps a descriptor of it, and whoever may look
into that process may open it again through /proc: the same user, or root. The way there begins at
the data folder: its lock names the process, and the process has that very lock open, so that
another one with the same id is never taken for it. Nothing is written, nothing is left behind.
"""

import mmap
import os
from contextlib import suppress
from typing import Final

from appliance.base import proc
from appliance.base.clock import OsClock
from appliance.observer.snapshot import Snapshot, take_snapshot
from appliance.observer.traffic import Traffic
from appliance.ring.process_table import Peer
from appliance.ring.tables import PAGE, SEGMENT, Head, Tables, UnknownTables, read_head

_LOCK: Final = ".lock"
_LOCK_BYTES: Final = 32


class NotThere(Exception):
    """There is no appliance to be read; the text says why, and what to do."""


class Observer:
    """The tables of one running appliance, read-only. They stay readable when it ends, with the
    last values. traffic: of topics, as of its own last look. tables: for whoever wants more."""

    def __init__(self, data_dir: str) -> None:
        """Raises NotThere."""
        self.head, self._map, self._at = _open(data_dir)
        self.tables = Tables(memoryview(self._map), self.head.shape)
        self.traffic = Traffic(self.tables.partitions)
        self._clock = OsClock()

    def snapshot(self) -> Snapshot:
        """Everything that is counted, at this moment. Words are read one after the other: of what
        is counted just now, some may be in it and some not yet."""
        return take_snapshot(self.tables, self._clock.monotonic_ns(), self._cpu_s)

    @property
    def alive(self) -> bool:
        """True if the supervisor that published the tables still runs, and was not replaced by exec
        (`supervisor/succession.py`)."""
        path, found = self._at
        try:
            return os.path.samestat(os.stat(path), found)
        except OSError:
            return False

    def _cpu_s(self, peer: Peer) -> float:
        """CPU seconds that the process in this place has used, 0.0 when there is none."""
        return proc.cpu_s(self.tables.processes.pid(peer))


def of_another_version(data_dir: str) -> int:
    """The process of an appliance whose tables this program cannot read; 0 where there is none."""
    try:
        Observer(data_dir)
    except NotThere as why:
        return _holder(data_dir) if isinstance(why.__cause__, UnknownTables) else 0
    return 0


def _open(data_dir: str) -> tuple[Head, mmap.mmap, tuple[str, os.stat_result]]:
    """Its head, the tables, and where they were found."""
    path = segment(data_dir)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with mmap.mmap(fd, PAGE, prot=mmap.PROT_READ) as first:
            view = memoryview(first)
            try:
                head = read_head(view)
            finally:
                view.release()
        if head.pid != _holder(data_dir):  # a tool that repairs this folder and looks at another's
            raise NotThere(f"no appliance is running in {data_dir}")
        at = path, os.fstat(fd)
        return head, mmap.mmap(fd, head.size, prot=mmap.PROT_READ), at
    except UnknownTables as why:
        raise NotThere(f"the appliance in {data_dir} cannot be read: {why}") from why
    finally:
        os.close(fd)


def _holder(data_dir: str) -> int:
    """The process that its lock names."""
    try:
        with open(os.path.join(data_dir, _LOCK), "rb") as file:
            return int(file.read(_LOCK_BYTES))
    except FileNotFoundError:
        raise NotThere(f"{data_dir} is no folder of an appliance: it has no {_LOCK}") from None
    except ValueError:
        raise NotThere(
            f"{data_dir} is no folder of an appliance: its {_LOCK} names no process"
        ) from None
    except OSError as why:
        raise NotThere(f"{data_dir} does not say who works in it: {why}") from why


def segment(data_dir: str) -> str:
    """The path in /proc of the tables' memory: a descriptor of the process that has the lock as its
    own. Raises NotThere."""
    pid = _holder(data_dir)
    lock = os.stat(os.path.join(data_dir, _LOCK))
    folder = f"/proc/{pid}/fd"
    found = ""
    locked = False
    try:
        for number in os.listdir(folder):
            path = f"{folder}/{number}"
            with suppress(FileNotFoundError):
                if os.path.basename(os.readlink(path)).startswith(SEGMENT):
                    found = path
                elif not locked:
                    locked = os.path.samestat(os.stat(path), lock)
    except FileNotFoundError:
        pass
    except PermissionError:
        raise NotThere(
            f"process {pid} works in {data_dir} and belongs to another user:"
            " ask as the user that runs the appliance, or as root"
        ) from None
    if not found or not locked:
        raise NotThere(f"no appliance is running in {data_dir}")
    return found
