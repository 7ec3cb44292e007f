"""`penstock txn hanging`."""

import time

import click

from console.flags.complete import topic_names
from console.flags.connection import connected
from console.flags.output import formatted
from console.flags.watch import watched
from console.model.asking.failure import NEGATIVE, OK
from console.model.asking.link import Link
from console.model.groups.groups import existing
from console.model.topics.topics import missing
from console.model.transactions.open_transactions import Watch
from console.show.output import Row, emit


@click.command("hanging")
@click.option(
    "-t", "--topic", "--topics", "topics", multiple=True, metavar="TOPIC",
    shell_complete=topic_names,
    help="Only this topic.",
)  # fmt: skip
@formatted
@connected
@watched
def command(link: Link, topics: tuple[str, ...], output: str) -> int:
    """Find hanging transactions: open in a partition, unknown to the coordinator.

    A hanging transaction never ends, so read_committed consumers never pass it. Partition and
    coordinator are asked twice to rule out a race. Exit code 4 when one is found.

    \b
    penstock txn hanging
    penstock txn hanging -t orders && echo all is well
    """
    if topics:
        there = existing(link, list(topics))
        for name in topics:
            if name not in there:
                raise missing(name)
    looked = Watch(link, keeps=False).read_transactions(time.time(), topics or None, only=())
    rows: list[Row] = [
        {
            "topic": held.topic,
            "partition": held.partition,
            "producer_id": one.producer_id,
            "epoch": one.epoch,
            "start": held.start,
            "held_back": held.records,
            "oldest_s": held.seconds,
        }
        for one in looked
        for held in one.held
    ]
    emit(rows, output, name="topic", empty="no transaction hangs")
    return NEGATIVE if rows else OK
