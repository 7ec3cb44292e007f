"""Restarting a network process of a running appliance of this host while its clients stay
connected: the signal for it, and what the appliance's memory shows of it."""

import os
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from appliance.observer.door import Observer
from appliance.observer.snapshot import ProcessCounters
from appliance.shell.handed_connection import PART
from console.model.asking.failure import UNREACHABLE, Failure, usage
from console.model.local.observed import observed

_EVERY_S: Final = 0.01
_LIMIT_S: Final = 30.0
_KIND: Final = "netproc-"


class Renewed(NamedTuple):
    """A process, by the name of its place, and who took it. connections: its clients when it was
    asked to end. took_s: until the successor served."""

    name: str
    before: int
    pid: int
    connections: int
    took_s: float


def renew(data_dir: str, names: tuple[str, ...], limit_s: float = _LIMIT_S) -> Iterator[Renewed]:
    """One after the other; no names: all network processes. Raises Failure: none runs, there is no
    such process, or no successor comes."""
    seen = observed(data_dir)
    there = [one.name for one in _all(seen)]
    for name in names:
        if name not in there:
            raise usage(
                f"{name} is no network process of this appliance",
                f"it has {', '.join(there)}; for other processes restart penstock up",
            )
    for name in names or there:
        yield _renew(seen, data_dir, name, limit_s)


def _all(seen: Observer) -> list[ProcessCounters]:
    return [one for one in seen.snapshot().processes if one.name.startswith(_KIND)]


def _renew(seen: Observer, data_dir: str, name: str, limit_s: float) -> Renewed:
    before = _named(seen, name)
    place = int(name.removeprefix(_KIND))
    connections = sum(one.netproc == place for one in seen.tables.clients.connected())
    began = time.monotonic()
    try:
        os.kill(before.pid, PART)
    except OSError as why:
        raise Failure(
            f"{name} (process {before.pid}) cannot be signalled: {why.strerror}",
            "ask as the user that runs the appliance, or as root", where=data_dir,
        ) from None  # fmt: skip
    while time.monotonic() - began < limit_s:
        now = _named(seen, name)
        if now.pid not in (0, before.pid) and now.state == "ready":
            took_s = time.monotonic() - began
            return Renewed(name, before.pid, now.pid, connections, took_s)
        time.sleep(_EVERY_S)
    raise Failure(
        f"{name} has no successor after {limit_s:g} s", "penstock status shows its state",
        where=data_dir, code=UNREACHABLE, name="TIMED_OUT",
    )  # fmt: skip


def _named(seen: Observer, name: str) -> ProcessCounters:
    return next(one for one in _all(seen) if one.name == name)
