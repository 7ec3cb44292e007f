"""Restarting a whole appliance of this host under its clients: the signal for it, and what is seen
of its end and of the successor."""

import os
import time
from typing import Final, NamedTuple

from appliance.base import proc
from appliance.observer.door import NotThere, Observer, of_another_version
from appliance.supervisor.succession import BEGUN, CHECK_LIMIT_S, REFUSED, SUCCEED
from console.model.asking.failure import UNREACHABLE, Failure
from console.model.local.events import Feed
from console.model.local.unseen import Unread, Way, follow
from console.model.local.waiting import Waiting

_EVERY_S: Final = 0.02
LIMIT_S: Final = 180.0
"""From the end on: a successor may have much to open."""


class Restarted(NamedTuple):
    """took_s: until clients were served again. away_ms: of that, from the beginning of the end."""

    pid: int
    took_s: float
    away_ms: int


def restart(data_dir: str, limit_s: float = LIMIT_S) -> Restarted:
    """Returns when the successor serves. Raises Failure: nothing runs there, it cannot, it would
    not start, or it did not."""
    began = time.monotonic()
    agreed_by = began + CHECK_LIMIT_S + limit_s
    if pid := of_another_version(data_dir):
        unread = Unread(data_dir, pid)
        way = Way(data_dir, pid)
        _ask(pid, data_dir)
        end_begun_ms = follow(data_dir, way, pid, agreed_by)
    else:
        feed = Feed(data_dir)
        feed.read_new()  # what was before
        pid = feed.pid
        unread = Unread(data_dir, pid)
        _ask(pid, data_dir)
        end_begun_ms = _agreed(feed, agreed_by)
    waiting = Waiting(data_dir)
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if not proc.runs(pid):
            raise Failure(
                f"the appliance has ended in order, and its successor (process {pid}) has"
                " ended, too", "it has said why where the appliance writes its log; penstock up"
                " starts it", where=data_dir, name="NOT_SUCCEEDED",
            )  # fmt: skip
        readable = _started_ms(data_dir) > end_begun_ms and not waiting.read_verdict().missing
        if readable or unread.serves():
            away_ms = time.time_ns() // 1_000_000 - end_begun_ms
            return Restarted(pid, time.monotonic() - began, away_ms)
        time.sleep(_EVERY_S)
    raise Failure(
        f"the appliance has ended in order, and its successor does not serve after {limit_s:g} s",
        "penstock wait says what is missing", where=data_dir, code=UNREACHABLE, name="TIMED_OUT",
    )  # fmt: skip


def _started_ms(data_dir: str) -> int:
    """Start time of the appliance that can be read there, 0 if none can."""
    try:
        return Observer(data_dir).head.started_ms
    except (NotThere, FileNotFoundError):
        return 0


def _ask(pid: int, data_dir: str) -> None:
    """Only who waits for the signal is sent it: all others would die of it."""
    try:
        if not _is_heard(pid):
            raise Failure(
                "the appliance cannot be restarted so: its version does not know how, or it has not"
                " begun to serve", "end it in order, and start it", where=data_dir,
                name="NOT_SUPPORTED",
            )  # fmt: skip
        os.kill(pid, SUCCEED)
    except OSError as why:
        raise Failure(
            f"process {pid} cannot be told: {why.strerror}",
            "ask as the user that runs the appliance, or as root", where=data_dir,
        ) from None  # fmt: skip


def _is_heard(pid: int) -> bool:
    """True if the process catches the signal (proc(5): SigCgt)."""
    with open(f"/proc/{pid}/status") as lines:
        caught = next(line for line in lines if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (SUCCEED - 1) & 1)


def _agreed(feed: Feed, until: float) -> int:
    """When the end began, in ms of the wall clock. Raises Failure: it did not."""
    while time.monotonic() < until:
        for one in feed.read_new():
            if one.event == REFUSED:
                raise Failure(
                    one.fields["cause"], "nothing has changed: it serves as before",
                    where=feed.data_dir, name="RESTART_REFUSED",
                )  # fmt: skip
            if one.event == BEGUN:
                return one.at_ms
        if feed.events_seen.is_over:
            break
        time.sleep(_EVERY_S)
    raise Failure(
        "the appliance did not say that it restarts", "penstock status shows its state",
        where=feed.data_dir, code=UNREACHABLE, name="TIMED_OUT",
    )  # fmt: skip
