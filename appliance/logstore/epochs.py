"""Which leader epoch began at which offset (KIP-101), and its file, `leader-epoch-checkpoint`.

Invariant: epochs and start offsets both ascend. Called by the log; the file is derived and can be
read from the batches again.
"""

from bisect import bisect_left, bisect_right

from appliance.base.disk import Disk, write_file
from appliance.base.errors import DiskFull
from appliance.logstore.files import LEADER_EPOCHS
from appliance.logstore.flush import Unsynced

_VERSION = 0


class LeaderEpochs:
    """changed: whether the file is behind."""

    __slots__ = ("_staged", "changed", "epochs", "starts")

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.starts: list[int] = []
        self.changed = False
        self._staged = -1

    @property
    def latest(self) -> int:
        """The newest epoch, -1 when there is none."""
        return self.epochs[-1] if self.epochs else -1

    def assign(self, epoch: int, start: int, *, staged: bool = False) -> None:
        """The batch at offset `start` is of `epoch`. Does nothing for the newest epoch. staged: the
        epoch begins with a batch that is not written yet."""
        if epoch < 0 or epoch == self.latest:
            return
        keep = min(bisect_left(self.epochs, epoch), bisect_left(self.starts, start))
        del self.epochs[keep:], self.starts[keep:]
        self.epochs.append(epoch)
        self.starts.append(start)
        self.changed = True
        self._staged = start if staged else -1

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` and where it ended (KIP-279); (-1, -1) when that is not
        known."""
        if epoch < 0 or epoch > self.latest:
            return -1, -1
        if epoch == self.latest:
            return epoch, log_end
        at = bisect_right(self.epochs, epoch)
        if at == 0:
            return epoch, self.starts[0]
        return self.epochs[at - 1], self.starts[at]

    def epoch_of(self, offset: int) -> int:
        """The epoch of the record at `offset`, -1 when that is not known."""
        at = bisect_right(self.starts, offset)
        return self.epochs[at - 1] if at else -1

    def cut_end(self, log_end: int) -> None:
        """Forget what began at or behind `log_end`: the log was truncated there."""
        keep = bisect_left(self.starts, log_end)
        if keep < len(self.starts):
            del self.epochs[keep:], self.starts[keep:]
            self.changed = True

    def take_back(self, log_end: int) -> None:
        """Discards what was staged from `log_end` on, and an epoch that began with it. An epoch
        that a leader began there, and that has no batch yet, stays.
        """
        self.cut_end(log_end if self._staged == log_end else log_end + 1)
        self._staged = -1

    def cut_start(self, log_start: int) -> None:
        """Forget what ended before `log_start`; the epoch in force there begins with it."""
        at = bisect_right(self.starts, log_start) - 1
        if at >= 0 and self.starts[at] < log_start:
            del self.epochs[:at], self.starts[:at]
            self.starts[0] = log_start
            self.changed = True

    def encode(self) -> bytes:
        """The file's bytes."""
        lines = [str(_VERSION), str(len(self.epochs))]
        lines += [f"{epoch} {start}" for epoch, start in zip(self.epochs, self.starts, strict=True)]
        return ("\n".join(lines) + "\n").encode()

    def write_file(self, disk: Disk, folder: str) -> str:
        """Write the file, without syncing it; its path. Raises StorageFailed."""
        path = f"{folder}/{LEADER_EPOCHS}"
        write_file(disk, path, self.encode(), sync=False)
        self.changed = False
        return path

    def keep_file(self, disk: Disk, folder: str, unsynced: Unsynced) -> None:
        """Write the file, durable by the next flush. Where it finds no room the old one goes, which
        would be trusted with batches that it does not know: who opens the log reads these instead.
        Raises StorageFailed."""
        try:
            unsynced.derived_changed(self.write_file(disk, folder))
        except DiskFull:
            self.changed = True  # the next flush tries again
            path = f"{folder}/{LEADER_EPOCHS}"
            if not disk.exists(path):
                return
            disk.unlink(path)
            unsynced.derived_gone(path)
        unsynced.folders_changed((folder,))

    @classmethod
    def decode(cls, data: bytes) -> "LeaderEpochs | None":
        """Parses the bytes of a leader epoch file; None when it is damaged."""
        made = cls()
        try:
            version, count, *lines, rest = data.decode().split("\n")
            if int(version) != _VERSION or len(lines) != int(count) or rest:
                return None
            for line in lines:
                epoch, start = line.split(" ")
                made.assign(int(epoch), int(start))
        except ValueError:
            return None
        made.changed = False
        return made if len(made.epochs) == int(count) else None
