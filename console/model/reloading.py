"""Letting a running appliance of this host read its settings file again: the signal for it, and
what the appliance says of it in its events."""

import os
import signal
import time
from typing import Final, NamedTuple

from appliance.supervisor.reloading import CHANGED, DONE, REFUSED
from console.model.events import Event, Feed
from console.model.failure import UNREACHABLE, USAGE, Failure

_EVERY_S: Final = 0.02
_LIMIT_S: Final = 20.0


class Reread(NamedTuple):
    """A setting that is another one in the file. at_once: it holds, without a restart."""

    key: str
    before: str
    after: str
    at_once: bool


def reload(data_dir: str, limit_s: float = _LIMIT_S) -> list[Reread]:
    """What has changed. Raises Failure: nothing runs there, or the file is wrong."""
    feed = Feed(data_dir)
    feed.look()  # what was before
    try:
        os.kill(feed.pid, signal.SIGHUP)
    except OSError as why:
        raise Failure(
            f"process {feed.pid} cannot be told: {why.strerror}",
            "ask as the user that runs the appliance, or as root", where=data_dir,
        ) from None  # fmt: skip
    found: list[Event] = []
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        for one in feed.look():
            if one.event == REFUSED:
                raise Failure(
                    one.fields["cause"], "nothing has changed", where=data_dir,
                    code=USAGE, name="INVALID_CONFIG",
                )  # fmt: skip
            if one.event == DONE:
                return [_reread(each) for each in found]
            if one.event == CHANGED:
                found.append(one)
        time.sleep(_EVERY_S)
    raise Failure(
        f"the appliance did not say within {limit_s:g} s that it has read its settings",
        "penstock status says how it is", where=data_dir, code=UNREACHABLE, name="TIMED_OUT",
    )  # fmt: skip


def _reread(one: Event) -> Reread:
    fields = one.fields
    return Reread(fields["key"], fields["before"], fields["after"], fields["at_once"] == "yes")
