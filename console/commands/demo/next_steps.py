"""The end of the demo: where the time went, and what to try next."""

import os
from collections.abc import Mapping
from pathlib import Path

from console.commands.demo.jobs import Jobs
from penstock.local import Appliance


def where_time_went(marks: Mapping[str, float], whole_s: float) -> str:
    """Lines: when what was first so, in seconds since the command."""
    told = [*sorted(marks.items(), key=lambda mark: mark[1]), ("end", whole_s)]
    return "\n".join(["Seconds since the command:", *(f"{at:7.1f}  {what}" for what, at in told)])


def next_steps(
    appliance: Appliance, jobs: Jobs | None, place: Path | None, *, running: bool
) -> str:
    """Lines to type. place: the data, when it stays; running: everything goes on."""
    if running:
        return "\n".join(_running(appliance, jobs))
    if place is not None:
        return "\n".join(_kept(place, jobs))
    return "\n".join(
        (
            "Try next:",
            "  penstock demo --data ./flights --keep     the same, and it keeps running",
            "  penstock demo --speed 3600                an hour of flights every second",
            "  penstock up                               an appliance of your own",
            "  penstock --help",
        )
    )


def _running(appliance: Appliance, jobs: Jobs | None) -> list[str]:
    b = f"-b {appliance.bootstrap}"
    lines = [
        f"It keeps running as process {appliance.pid} (its log: {appliance.log_file}). Try:",
        f"  penstock topic list -o wide {b}",
        f"  penstock consume flights -o -5 -e {b}",
    ]
    if jobs is None:
        return [*lines, f"  kill {appliance.pid}     ends it in order"]
    return [
        *lines,
        f"  penstock consume delays -o -3 -e {b}",
        f"  penstock job status --jobs {jobs.folder.path}",
        f"  ls {jobs.files}     the job files: copy one and change it",
        f"  kill {jobs.pid} {appliance.pid}     ends jobs and appliance in order",
    ]


def _kept(place: Path, jobs: Jobs | None) -> list[str]:
    topic = "carrier-totals" if jobs else "flights"
    lines = [
        "Try next:",
        f"  penstock up --data {place}",
        f"  penstock consume {topic} -o -5 -e      in another terminal",
        f"  penstock log dump {os.path.join(place, 'airlines-0', '0' * 20 + '.log')} -r",
    ]
    if jobs is None:
        return lines
    return [
        *lines,
        f"  penstock job serve --jobs {jobs.folder.path}      keeps the jobs running again",
        f"  ls {jobs.files}      the job files: copy one and change it",
    ]
