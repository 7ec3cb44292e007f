"""Injects failures, one call each: a process that dies, a full disk, throttled clients.

Each returns when it has happened, so that a test needs no sleep. What is done is done by the
`penstock` command, as a person would do it; a killed process by its id, which that command tells.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from penstock.local import OURSELVES, Appliance, ApplianceError, environment

PROCESSES: Final = {"network": "netproc", "io": "ioproc", "control": "control"}
"""What a process does → what the appliance calls it."""
_FULL: Final = 1 << 62
"""More than any disk has free."""
_KEEP: Final = "penstock.disk.free.min.bytes"
_LOOK_S: Final = "0.1"
_LIMIT_S: Final = 60


def kill_process(appliance: Appliance, kind: str, number: int = 0) -> None:
    """SIGKILL to one process, and wait until another one is at work in its place.

    kind: `network` (connections end, clients connect again), `io` (appends and reads of its
    partitions wait) or `control` (what changes topics waits). Raises ApplianceError when there is
    no such process, or no successor within a minute.
    """
    name = PROCESSES[kind] if kind == "control" else f"{PROCESSES[kind]}-{number}"
    words = ("stats", "--processes", "-w", "--interval", _LOOK_S, "-o", "jsonl")
    command = [*OURSELVES, *words, "--data", str(appliance.data_dir)]
    with subprocess.Popen(
        ["timeout", str(_LIMIT_S), *command],
        stdout=subprocess.PIPE,
        env=environment(),
    ) as watching:
        assert watching.stdout is not None, "it is a pipe"
        killed, told = 0, ""
        for line in watching.stdout:
            row = json.loads(line)
            if "error" in row:
                told = row["error"]["message"]
            elif row["process"] != name:
                continue
            elif not killed:
                killed = row["pid"]
                os.kill(killed, signal.SIGKILL)
            elif row["pid"] != killed and row["state"] == "ready":
                watching.terminate()
                return
    raise ApplianceError(f"{name}: {told or 'no successor within a minute'}")


@contextmanager
def full_disk(appliance: Appliance) -> Iterator[None]:
    """Within the block the appliance takes its disk for full: records and new topics are refused
    with Kafka's KAFKA_STORAGE_ERROR and its like, which clients send again; who reads goes on. No
    byte is written and nobody needs to be root: the room that must stay free is set to more than
    there is, and back."""
    _penstock(appliance, "config", "set", f"{_KEEP}={_FULL}")
    try:
        yield
    finally:
        _penstock(appliance, "config", "unset", _KEEP)


@contextmanager
def throttled(appliance: Appliance, **quotas: str) -> Iterator[None]:
    """Within the block every client id has these quotas, as `penstock quota set` takes them:
    produce="10kB/s", fetch="1MB/s", request="5%"."""
    given = [f"{name}={value}" for name, value in quotas.items()]
    _penstock(appliance, "quota", "set", "--default", "client-id", *given)
    try:
        yield
    finally:
        _penstock(appliance, "quota", "unset", "--default", "client-id", *quotas)


def _penstock(appliance: Appliance, *words: str) -> None:
    """Raises ApplianceError with what the command said."""
    done = subprocess.run(
        [*OURSELVES, *words, "-b", appliance.bootstrap],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    if done.returncode:
        raise ApplianceError(f"penstock {' '.join(words)}: {done.stderr.strip()}")
