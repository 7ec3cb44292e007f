"""The state of the machine that every figure depends on, and that no program of ours decides.

    python -m benchmarks.machine [--memory GB]

Wake-up: the time from a write to a pipe until the process that waited for it runs, on processors
that have been idle for a millisecond. A request of one small record waits for two to four of them.
Memory: what the first touch of a page costs, gigabyte by gigabyte. A virtual machine gives pages
that it does not use back to its host, and a log is written to fresh pages: where these are not
backed yet, a write of 64 KB costs 16 of them. `--memory` touches so much, which also backs it for
the next seconds.
"""

import argparse
import mmap
import os
import statistics
import struct
import time

from benchmarks import tables

PAGE = mmap.PAGESIZE
_GB = 1 << 30
_WAKE_UPS = 200
_REST_S = 0.001


def measure_wake_up_us(count: int = _WAKE_UPS) -> float:
    """Median µs from a write to a pipe until the waiting child has read its clock."""
    asks, hears = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        while os.read(asks[0], 8) != b"\0" * 8:
            os.write(hears[1], struct.pack("=q", time.monotonic_ns()))
        os._exit(0)
    taken = []
    try:
        for _ in range(count):
            time.sleep(_REST_S)
            asked_ns = time.monotonic_ns()
            os.write(asks[1], struct.pack("=q", asked_ns))
            (woken_ns,) = struct.unpack("=q", os.read(hears[0], 8))
            taken.append((woken_ns - asked_ns) / 1000)
    finally:
        os.write(asks[1], b"\0" * 8)
        os.waitpid(child, 0)
        for fd in asks + hears:
            os.close(fd)
    return statistics.median(taken)


def measure_touches_ns(gigabytes: int) -> list[float]:
    """For each gigabyte, all of them held at once: ns for the first touch of a page."""
    held, taken = [], []
    try:
        for _ in range(gigabytes):
            held.append(mmap.mmap(-1, _GB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            held[-1].madvise(mmap.MADV_NOHUGEPAGE)
            pages = bytes(_GB // PAGE)
            with memoryview(held[-1]) as view:
                began = time.perf_counter_ns()
                view[::PAGE] = pages
                taken.append((time.perf_counter_ns() - began) / len(pages))
    finally:
        for memory in held:
            memory.close()
    return taken


def state() -> str:
    """One line for the head of a table."""
    return f"load average {os.getloadavg()[0]:.1f}, a wake-up {measure_wake_up_us():.0f} µs"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.machine", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--memory", type=int, default=0, metavar="GB", help="memory to touch")
    options = parser.parse_args()
    print(state())
    if options.memory:
        rows = [[str(at), tables.number(ns)]
                for at, ns in enumerate(measure_touches_ns(options.memory), 1)]  # fmt: skip
        print(tables.render(["GB", "first touch of a page, ns"], rows, markdown=False))


if __name__ == "__main__":
    main()
