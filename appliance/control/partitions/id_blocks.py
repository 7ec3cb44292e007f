"""Blocks of producer ids for I/O processes: each is said when its record is committed.

Invariant: an I/O process that asked is answered once, or has died, or was told so by our own death.
Called by `shell.py`.
"""

from collections import deque
from collections.abc import Mapping

from appliance.base import errors
from appliance.controller.producer_ids import BLOCK
from appliance.ring.ring import RingWriter
from appliance.ring.slots import pack_id_block


class IdBlocks:
    """writers: the ring to each I/O process, by its index."""

    __slots__ = ("_due", "_waiting", "_writers")

    def __init__(self, writers: Mapping[int, RingWriter]) -> None:
        self._writers = writers
        self._waiting: deque[tuple[int, int, int]] = deque()
        self._due: deque[tuple[int, int, int, int]] = deque()  # ioproc, code, first, how many

    def add_block(self, ioproc: int, first: int, seen: int) -> None:
        """The block that begins with `first` is for this process when everything below `seen` is
        committed."""
        assert not self._waiting or self._waiting[-1][2] <= seen
        self._waiting.append((ioproc, first, seen))

    def refuse(self, ioproc: int) -> None:
        """There is none to have now."""
        self._due.append((ioproc, errors.COORDINATOR_LOAD_IN_PROGRESS, 0, 0))

    def assign_block(self, ioproc: int, first: int, count: int) -> None:
        """This block is for this process: another node has committed that it is taken."""
        assert count > 0
        self._due.append((ioproc, errors.NONE, first, count))

    def undo(self, since: int) -> None:
        """Refuses the blocks decided from `since` on, which are lost."""
        while self._waiting and self._waiting[-1][2] > since:
            self.refuse(self._waiting.pop()[0])

    def release(self, committed: int) -> bool:
        """Say what may be said; False when some waits for room in a ring."""
        while self._waiting and self._waiting[0][2] <= committed:
            ioproc, first, _ = self._waiting.popleft()
            self.assign_block(ioproc, first, BLOCK)
        while self._due:
            ioproc, code, first, count = self._due[0]
            if not self._writers[ioproc].push(*pack_id_block(code, first, count)):
                return False
            self._due.popleft()
        return True

    def forget_ioproc(self, ioproc: int) -> None:
        """This process is dead; its successor has asked nothing."""
        self._waiting = deque(one for one in self._waiting if one[0] != ioproc)
        self._due = deque(one for one in self._due if one[0] != ioproc)
