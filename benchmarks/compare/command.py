"""python -m benchmarks compare: run or go on with a comparison, and write its report."""

import argparse
import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from benchmarks import kafka, machine, tables
from benchmarks.compare import charts, compiled, goals, report
from benchmarks.compare.journal import Journal
from benchmarks.compare.measure import Effort
from benchmarks.compare.rows import ROWS, choose
from benchmarks.compare.run import SYSTEMS, Plan, Run
from benchmarks.compare.systems import HEAP, SETTINGS, version
from benchmarks.startup import byte_compile

OUT = Path(__file__).parents[1] / "out"
MODES = {"short": (2, Effort(1.0, 0.25), 3.0), "full": (5, Effort(2.0, 0.3), 10.0)}
"""Rounds, effort, seconds of warm-up for each broker that is started."""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks compare", description=__doc__)
    parser.add_argument("--mode", choices=MODES, default="short")
    parser.add_argument("--rows", nargs="+", default=[], help="names or shell patterns")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    parser.add_argument("--repeat", type=int, help="rounds (short: 2, full: 5)")
    parser.add_argument("--seconds", type=float, help="of one timed measurement (1, 2)")
    parser.add_argument("--share", type=float, help="of a counted load's records (0.25, 0.3)")
    parser.add_argument("--folder", type=Path, help="for journal, report and charts")
    parser.add_argument("--data", type=Path, help="for the brokers' files; its disk is measured")
    parser.add_argument(
        "--interpreted", action="store_true", help="do not compile the appliance's hot modules"
    )
    parser.add_argument("--fresh", action="store_true", help="do not go on with what is there")
    parser.add_argument("--report-only", action="store_true", help="only write the report again")
    parser.add_argument(
        "--publish", type=Path, metavar="DOCS/NAME", help="copy the report to DOCS/NAME.md"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    rows = choose(options.mode, options.rows)
    if options.list or not rows:
        for row in rows or ROWS.values():
            print(f"{row.name:24} {row.level:3} {row.workload:7} {row.title}")
        raise SystemExit(0 if rows else f"no row matches {options.rows}")
    rounds, effort, warm = MODES[options.mode]
    effort = Effort(options.seconds or effort.seconds, options.share or effort.share)
    folder = options.folder or OUT / f"compare-{options.mode}{'-interpreted' * options.interpreted}"
    if options.fresh and folder.exists():
        shutil.rmtree(folder)
    data = (options.data or folder / "data").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    data.mkdir(parents=True, exist_ok=True)
    kafka.fetch()
    lock = only_one(folder)
    journal = Journal(folder / "journal.jsonl")
    how = f"{options.mode}: {effort.seconds:g} s, share {effort.share:g}, warm-up {warm:g} s"
    how += "; interpreted" * options.interpreted
    facts = begin(folder, how, reading=options.report_only)
    if not options.report_only:
        tree = None if options.interpreted else compiled.build(folder.absolute())
        byte_compile(tree or compiled.ROOT)
        plan = Plan(rows, SYSTEMS, options.repeat or rounds, effort, warm, folder, data, tree)
        carry_out(plan, journal, folder, facts)
    charts.draw(folder, journal)
    path = report.write(folder, journal, facts)
    print(
        tables.render(["goal", "ratios", "bound", ""], goals.lines(journal), markdown=False, left=4)
    )
    print(f"\nreport: {path}")
    lock.close()
    if options.publish:
        publish(folder, options.publish)


def publish(folder: Path, target: Path) -> None:
    """The report as part of the documentation: `target`.md, and the charts in that folder."""
    text = (folder / "report.md").read_text()
    target.mkdir(exist_ok=True)
    target.with_suffix(".md").write_text(text.replace("](", f"]({target.name}/"))
    for chart in folder.glob("*.svg"):
        shutil.copy(chart, target)


def only_one(folder: Path) -> IO[str]:
    """Hold the folder until the file is closed. Raises SystemExit when another run has it."""
    lock = (folder / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise SystemExit(f"another comparison runs in {folder}; name another --folder") from None
    return lock


def carry_out(plan: Plan, journal: Journal, folder: Path, facts: dict[str, object]) -> None:
    """Run to the end, or say how to go on when it is interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        Run(plan, journal).all()
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", file=sys.stderr)
    facts["load average at the end"] = load()
    (folder / "facts.json").write_text(json.dumps(facts, indent=1))


def begin(folder: Path, how: str, *, reading: bool) -> dict[str, object]:
    """The facts of a run: kept from its start when it goes on. Refuses to mix two kinds of runs.

    how: the effort in words. reading: nothing will be measured, so anything may be there.
    """
    path = folder / "facts.json"
    if not path.exists():
        facts = facts_of_now(how)
        path.write_text(json.dumps(facts, indent=1))
        return facts
    facts = json.loads(path.read_text())
    now = {"mode": how, "penstock": version("penstock")}
    for key, value in now.items():
        if facts[key] != value and not reading:
            raise SystemExit(f"{folder} holds a run with {key} {facts[key]}, this is {value}; "
                             "say --fresh, or another --folder")  # fmt: skip
    return facts


def facts_of_now(how: str) -> dict[str, object]:
    """What the report says about this machine and what is compared on it."""
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "mode": how,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "penstock": version("penstock"),
        "kafka": f"{version('kafka')}, -Xmx{HEAP}, G1, {said.stderr.splitlines()[0]}",
        "machine": f"{os.cpu_count()} CPUs, {memory:.0f} GiB, Linux {platform.release()}; "
                   "brokers and clients share it, loopback",
        "load average at the start": load(),
        "a wake-up of an idle processor": f"{machine.measure_wake_up_us():.0f} µs",
        "settings": {f"{name} {level}": pairs for (name, level), pairs in SETTINGS.items()},
    }  # fmt: skip


def load() -> str:
    return " ".join(f"{value:.2f}" for value in os.getloadavg())
