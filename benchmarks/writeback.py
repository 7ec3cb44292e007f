"""When should the kernel be told to write what a log appended? Four policies over the same appends.

    python -m benchmarks.writeback [--folder DIR] [--gib 2] [--repeat 3]

Each appends `--gib` GiB in 256 KiB writes to a fresh file and ends with an fdatasync, in turn with
the others: none: the kernel decides; thread: fdatasync on a thread every 64 MiB or 2 s, what the
I/O process does; range: sync_file_range(WRITE) every 8 MiB, which starts writing and waits for
nothing; both. Printed are MB/s to the end of the last fdatasync, and the slowest and the 99.9 %
write, which is what a producer would have waited.
"""

import argparse
import ctypes
import os
import statistics
import tempfile
import threading
import time

CHUNK = 256 * 1024
THREAD_BYTES = 64 << 20
THREAD_NS = 2_000_000_000
RANGE_BYTES = 8 << 20
_WRITE = 2  # SYNC_FILE_RANGE_WRITE
_libc = ctypes.CDLL(None, use_errno=True)


def start_writing(fd: int, position: int, length: int) -> None:
    """Start the writeback of a range; returns at once."""
    at, size = ctypes.c_int64(position), ctypes.c_int64(length)
    if _libc.sync_file_range(fd, at, size, _WRITE):
        raise OSError(ctypes.get_errno(), "sync_file_range")


class Syncer:
    """fdatasync on a thread, one at a time."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start one unless one is under way."""
        if self.thread is None or not self.thread.is_alive():
            self.thread = threading.Thread(target=os.fdatasync, args=(self.fd,))
            self.thread.start()

    def end(self) -> None:
        """Wait for it."""
        if self.thread is not None:
            self.thread.join()


def append(folder: str, total: int, *, thread: bool, ranged: bool) -> tuple[float, float, float]:
    """(MB/s, 99.9 % write in ms, slowest write in ms)."""
    data = os.urandom(CHUNK)
    waits = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        fd = file.fileno()
        syncer = Syncer(fd)
        began = last = time.monotonic_ns()
        synced = told = 0
        for position in range(0, total, CHUNK):
            before = time.monotonic_ns()
            os.pwrite(fd, data, position)
            after = time.monotonic_ns()
            waits.append(after - before)
            end = position + CHUNK
            if ranged and end - told >= RANGE_BYTES:
                start_writing(fd, told, end - told)
                told = end
            if thread and (end - synced >= THREAD_BYTES or after - last >= THREAD_NS):
                syncer.begin()
                synced, last = end, after
        syncer.end()
        os.fdatasync(fd)
        seconds = (time.monotonic_ns() - began) / 1e9
    waits.sort()
    return total / seconds / 1e6, waits[int(len(waits) * 0.999)] / 1e6, waits[-1] / 1e6


POLICIES = {
    "none": {"thread": False, "ranged": False},
    "thread": {"thread": True, "ranged": False},
    "range": {"thread": False, "ranged": True},
    "both": {"thread": True, "ranged": True},
}


def main() -> None:
    """Measure in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--gib", type=float, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    total = int(asked.gib * (1 << 30)) // CHUNK * CHUNK
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in POLICIES}
    for turn in range(asked.repeat):
        for name, policy in POLICIES.items():
            print(f"  {name}, turn {turn + 1} of {asked.repeat} …", flush=True)
            os.sync()
            rows[name].append(append(asked.folder, total, **policy))
    print("| policy | MB/s | 99.9 % write, ms | slowest write, ms |\n|---|---|---|---|")
    for name, found in rows.items():
        medians = [statistics.median(column) for column in zip(*found, strict=True)]
        print(f"| {name} | {medians[0]:.0f} | {medians[1]:.2f} | {medians[2]:.1f} |")


if __name__ == "__main__":
    main()
