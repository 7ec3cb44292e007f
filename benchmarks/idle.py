"""What a broker costs while nobody uses it: CPU, memory and wake-ups of its whole process tree.

python -m benchmarks.idle --pid PID [--seconds 20]
"""

import argparse
import time

from benchmarks import procstat, tables


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description=__doc__)
    parser.add_argument("--pid", type=int, action="append", required=True, help="may be repeated")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    before = {pid: (procstat.cpu_seconds(pid), procstat.wakeups(pid)) for pid in options.pid}
    begun = time.monotonic()
    time.sleep(options.seconds)  # the measurement is the waiting
    passed = time.monotonic() - begun
    lines = []
    for pid, (cpu, wakeups) in before.items():
        pids, used = procstat.tree(pid), procstat.memory(pid)
        if not pids:
            raise SystemExit(f"process {pid} is gone")
        lines.append([
            str(pid), str(len(pids)),
            tables.number((procstat.cpu_seconds(pid) - cpu) / passed * 100),
            tables.number((procstat.wakeups(pid) - wakeups) / passed),
            tables.number(used.pss / 1e6), tables.number(used.rss / 1e6),
        ])  # fmt: skip
    head = ["pid", "processes", "CPU % of a core", "wake-ups/s", "PSS MB", "RSS MB"]
    print(tables.render(head, lines, markdown=options.markdown))


if __name__ == "__main__":
    main()
