"""Replicas on their way, told again and again until they are there."""

import sys
import time
from collections.abc import Iterable
from typing import Final

from console.model.asking.link import Link
from console.model.cluster import nodes
from console.model.topics.moves import Progress, Watch, watch_moves
from console.show.figures import age, in_bytes
from console.streams import escaped, paint

_EVERY_S: Final = 1.0
_LINES_EVERY_S: Final = 10.0  # into a file nobody wants to read one each second
_FIRST_S: Final = 0.1


def follow(link: Link, names: Iterable[str] | None) -> None:
    """Until nothing of these topics (None: of all) is on its way; Ctrl-C ends the looking alone.
    Raises Failure."""
    follow_watch(link, watch_moves(link, nodes.read_nodes(link).all, names))


def follow_watch(link: Link, looking: Watch) -> None:
    """The same of what is watched already."""
    began, wait_s, said = time.monotonic(), _FIRST_S, -_LINES_EVERY_S
    first: Progress | None = None
    painted = False
    while True:
        found = looking.read_progress(nodes.read_nodes(link).all)
        if found.finished:
            break
        first = first or found
        spent = time.monotonic() - began
        text = describe_progress(found, found.copied - first.copied, spent)
        if sys.stderr.isatty():
            paint(f"\r\x1b[K{escaped(text)}", err=True)
            painted = True
        elif spent - said >= _LINES_EVERY_S:
            print(text, file=sys.stderr, flush=True)
            said = spent
        time.sleep(wait_s)
        wait_s = min(_EVERY_S, wait_s * 2)
    if painted:
        paint("\r\x1b[K", err=True)


def describe_progress(found: Progress, copied: int, spent_s: float) -> str:
    """`3 of 8 partitions, 120 MB of 480 MB (25%), 40.0 MB/s, 9 s left`. copied: bytes in the last
    spent_s seconds."""
    text = f"{found.done} of {found.partitions} partitions"
    if found.bytes:
        share = found.copied / found.bytes
        text += f", {in_bytes(found.copied)} of {in_bytes(found.bytes)} ({share:.0%})"
    if copied > 0 and spent_s > 0:
        rate = copied / spent_s
        left_s = (found.bytes - found.copied) / rate
        text += f", {in_bytes(rate)}/s, {age(left_s)} left"
    if found.waits_for:
        text += f"; waits for node {', '.join(map(str, found.waits_for))}, which does not run"
    return text
