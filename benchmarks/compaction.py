"""How fast a log is compacted, and what a loop beside it feels of that.

    python -m benchmarks.compaction [--records 300000] [--keys 20000] [--repeat 3]

First: a log of `--records` records of 100 bytes in batches of 100, `--keys` keys, by codec; printed
are records and MB per CPU second of noting keys and of writing anew.
Second: a loop that works for 50 µs and waits for 450, as an I/O process under load does, alone,
beside compaction on a thread of its own process, and beside compaction in a process: by how much
its turns come too late, in ms. Take them as ratios of one run.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.logstore import cleanable
from appliance.logstore.compaction import Compactor
from appliance.logstore.log import PartitionLog
from appliance.wire import compression
from appliance.wire.batch import NewRecord, build_batch, read_header

MEMORY = 120 << 20
CHUNK = 512 << 10
PER_BATCH = 100


def make(folder: str, records: int, keys: int, codec: int) -> PartitionLog:
    """A log of full segments and an empty active one."""
    rng = random.Random(7)
    config = LogConfig(segment_bytes=64 << 20, compact=True, delete=False)
    log = PartitionLog.create(OsDisk(), folder, bytes(16), config, now_ms=0)
    for _ in range(records // PER_BATCH):
        made = [
            NewRecord(1_700_000_000_000, b"key-%08d" % rng.randrange(keys), rng.randbytes(44) * 2)
            for _ in range(PER_BATCH)
        ]
        batch = bytearray(build_batch(made, codec=codec))
        log.stage(memoryview(batch), read_header(batch), 0, 0)
        log.commit()
    log.roll(0)
    log.sync_now()
    return log


def compact(log: PartitionLog) -> tuple[float, float, int]:
    """CPU seconds for the keys, for writing anew, records that stay. The log stays as it is."""
    found = cleanable.measure_dirty(log, 0, log.end_offset, 0)
    work = cleanable.work(log, found, 0, MEMORY, 0.9, CHUNK)
    job = Compactor(log.disk, work, lambda _: None)
    began = time.process_time()
    job.read_keys()
    noted = time.process_time()
    for group in job.groups():
        job.clean(group)
    return noted - began, time.process_time() - noted, job.records_kept


def speed(records: int, keys: int, repeat: int) -> None:
    """The first table."""
    print("| codec | MB | keys, records/s | writing, records/s | both, MB/s | records left |")
    print("|---|---|---|---|---|---|")
    for codec in (compression.NONE, compression.LZ4, compression.ZSTD):
        with tempfile.TemporaryDirectory() as folder:
            log = make(f"{folder}/t-0", records, keys, codec)
            runs = [compact(log) for _ in range(repeat)]
            read, write = (statistics.median(run[n] for run in runs) for n in (0, 1))
            size = log.size / 1e6
            print(
                f"| {compression.NAMES[codec]} | {size:.0f} | {records / read:,.0f} "
                f"| {records / write:,.0f} | {size / (read + write):.0f} | {runs[0][2]:,} |"
            )
            log.close()


def lateness(seconds: float) -> list[float]:
    """Turns of a loop; by how many ms each ended too late, sorted."""
    late = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        while time.perf_counter() < began + 0.00005:
            pass
        time.sleep(0.00045)
        late.append((time.perf_counter() - began - 0.0005) * 1000)
    return sorted(late)


@contextmanager
def on_a_thread(log: PartitionLog) -> Iterator[None]:
    """Compaction over and over beside the loop, under the same GIL."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            compact(log)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    over.set()
    thread.join()


@contextmanager
def in_a_process(folder: str) -> Iterator[None]:
    """The same in a process that is nice to others, as the cleaner's is."""
    code = (
        "import os, sys; os.nice(10)\n"
        "from benchmarks.compaction import compact, opened\n"
        f"log = opened({folder!r})\n"
        "print(flush=True)\n"
        "while True: compact(log)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield
        finally:
            child.kill()


def opened(folder: str) -> PartitionLog:
    """The log that another process made."""
    config = LogConfig(segment_bytes=64 << 20, compact=True, delete=False)
    return PartitionLog.open_folder(
        OsDisk(),
        folder,
        config,
        recovery_point=0,
        log_start_offset=0,
        clean=True,
        machine_lived=False,
        now_ms=0,
    )


def beside(records: int, keys: int, repeat: int) -> None:
    """The second table."""
    rows: dict[str, list[list[float]]] = {"alone": [], "on a thread": [], "in a process": []}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t-0"
        log = make(path, records, keys, compression.NONE)
        log.close()
        log = opened(path)
        for _ in range(repeat):
            rows["alone"].append(lateness(2))
            with on_a_thread(log):
                rows["on a thread"].append(lateness(2))
            with in_a_process(path):
                rows["in a process"].append(lateness(2))
        log.close()
    print("\n| compaction | median, ms late | 99 % | 99.9 % | slowest |")
    print("|---|---|---|---|---|")
    for name, runs in rows.items():
        cells = [
            statistics.median(run[min(int(len(run) * part), len(run) - 1)] for run in runs)
            for part in (0.5, 0.99, 0.999, 1)
        ]
        print(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    speed(options.records, options.keys, options.repeat)
    beside(options.records // 3, options.keys, options.repeat)


if __name__ == "__main__":
    main()
