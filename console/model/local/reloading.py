"""Letting a running appliance of this host read its settings file again: the signal for it, and
what the appliance says of it in its events."""

import os
import signal
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from appliance.certificates.holder import MISSING, NOT_RENEWED
from appliance.supervisor.reload_request import CHANGED, DONE, REFUSED
from console.model.asking.failure import UNREACHABLE, USAGE, Failure
from console.model.local.events import Event, Feed

_EVERY_S: Final = 0.02
_LIMIT_S: Final = 20.0


class Reread(NamedTuple):
    """A setting that is another one in the file. at_once: it holds, without a restart."""

    key: str
    before: str
    after: str
    at_once: bool


def reload(data_dir: str, limit_s: float = _LIMIT_S) -> list[Reread]:
    """Reloads the settings of a running appliance; returns what changed. Raises Failure: no
    appliance runs there, the file is wrong, or a certificate set dynamically is.
    """
    feed = Feed(data_dir)
    feed.read_new()  # what was before
    try:
        os.kill(feed.pid, signal.SIGHUP)
    except OSError as why:
        raise Failure(
            f"process {feed.pid} cannot be signalled: {why.strerror}",
            "ask as the user that runs the appliance, or as root", where=data_dir,
        ) from None  # fmt: skip
    heard: list[Event] = []
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        heard += feed.read_new()
        if refused := _first(heard, REFUSED):
            raise Failure(
                refused.fields["cause"], "nothing has changed", where=data_dir,
                code=USAGE, name="INVALID_CONFIG",
            )  # fmt: skip
        if _first(heard, DONE):
            heard += (
                feed.read_new()
            )  # what processes said before that, in rings that were read earlier
            _check_certificates(heard, data_dir)
            return [_reread(one) for one in heard if one.event == CHANGED]
        time.sleep(_EVERY_S)
    raise Failure(
        f"the appliance did not say within {limit_s:g} s that it has read its settings",
        "penstock status shows its state", where=data_dir, code=UNREACHABLE, name="TIMED_OUT",
    )  # fmt: skip


def _first(heard: Iterable[Event], *names: str) -> Event | None:
    return next((one for one in heard if one.event in names), None)


def _check_certificates(heard: Iterable[Event], data_dir: str) -> None:
    """Each process says so of its own; those of the file were loaded before anything was told."""
    wrong = _first(heard, NOT_RENEWED, MISSING)
    if wrong is not None:
        raise Failure(
            wrong.fields.get("cause", "a listener has no certificate"),
            "the previous certificate stays in use; everything else of the file applies",
            where=data_dir, code=USAGE, name="INVALID_CONFIG",
        )  # fmt: skip


def _reread(one: Event) -> Reread:
    fields = one.fields
    return Reread(fields["key"], fields["before"], fields["after"], fields["at_once"] == "yes")
