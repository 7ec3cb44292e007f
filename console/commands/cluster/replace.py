"""`penstock cluster replace`."""

import sys
import time
from typing import Final

import click

from console.flags.connection import connected
from console.flags.output import formatted
from console.model.asking.failure import OK
from console.model.asking.link import Link
from console.model.cluster.replacing import Refill, Replacing
from console.show.figures import in_bytes, some
from console.show.output import Row, emit, print_note
from console.streams import escaped, paint

_EVERY_S: Final = 0.5


@click.command("replace")
@click.argument("node", type=click.IntRange(0), metavar="OLD")
@click.option("--check", is_flag=True, help="Only check and print the plan.")
@formatted
@connected
def command(link: Link, node: int, check: bool, output: str) -> int:
    """Replace a node whose data folder is lost by an empty one with the same id.

    The command checks that no data is lost and prints the command to run on the new node's host.
    Then it shows the progress until all replicas are in sync and the new node has taken the old
    one's place in the quorum. A node that is only down keeps its folder: start it instead.

    \b
    penstock cluster replace 2 --check
    penstock cluster replace 2
    """
    replacing = Replacing(link, node)
    if not replacing.old.lives:
        print_note(replacing.make_instructions(only_look=check))
    found = replacing.read_refill()
    if not check:
        found = _follow(replacing, node, found)
    status = "whole" if found.finished else "catching up" if found.runs else "can be replaced"
    row: Row = {
        "node": node, "status": status, "partitions": found.partitions, "in_sync": found.whole,
        "votes": found.votes,
    }  # fmt: skip
    emit([row], output, name="node")
    return OK


def _follow(replacing: Replacing, node: int, found: Refill) -> Refill:
    said = ""
    while not found.finished:
        text = _told(found, node)
        if text != said:
            _say(text)
            said = text
        time.sleep(_EVERY_S)
        found = replacing.move_vote()
    if sys.stderr.isatty() and said:
        paint("\r\x1b[K", err=True)
    return found


def _say(text: str) -> None:
    """On a terminal each takes the place of the one before."""
    if sys.stderr.isatty():
        paint(f"\r\x1b[K{escaped(text)}", err=True)
    else:
        print_note(text)


def _told(found: Refill, node: int) -> str:
    if not found.runs:
        return f"waiting for node {node}"
    text = f"{found.whole} of {some(found.partitions, 'replica')} in sync"
    if found.records:
        text += f", {some(found.records, 'record')}, {in_bytes(found.bytes)} behind"
    return text if found.votes else f"{text}; it does not vote yet"
