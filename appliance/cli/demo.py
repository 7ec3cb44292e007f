"""`penstock demo`: real data through one stock client into an appliance, and back through another.

What came back is compared with what was sent: how many records, and a hash over all keys and
values. Narration and progress go to stderr, the table of results to stdout.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from appliance.cli.demo_data import TABLES, Content, folder, records
from appliance.cli.exits import NEGATIVE, OK, Failure
from appliance.cli.link import Link
from appliance.cli.output import Row, emit, formatted, say
from penstock.local import Appliance, ApplianceError

_SILENCE_S: Final = 30.0
_BATCH: Final = 2000
_MIB: Final = 1 << 20

Advance = Callable[[str, int], None]
"""(topic, records more)"""


@click.command("demo")
@click.option("--data", metavar="DIR", help="Keep the data there.  [default: a temporary folder]")
@click.option("--keep", is_flag=True, help="Leave the appliance running afterwards.")
@formatted
def command(data: str | None, keep: bool, output: str) -> int:
    """Start an appliance, load 336,776 flights and their weather, planes, airports and airlines
    through confluent-kafka (idempotent, acks=all), read everything back through kafka-python, and
    compare. Exit code 4 when something differs.

    \b
    penstock demo
    penstock demo --data ./flights --keep
    """
    source = folder()
    place = Path(data) if data else Path(tempfile.mkdtemp(prefix="penstock-demo-")) / "data"
    appliance = Appliance(place.absolute(), own_session=True)
    done = False
    try:
        began = time.monotonic()
        _start(appliance)
        say(f"An appliance listens on {appliance.bootstrap}, ready in "
            f"{round((time.monotonic() - began) * 1000)} ms; its data: {place}")  # fmt: skip
        code = _run(Link(appliance.bootstrap, {}, _SILENCE_S), source, output)
        done = code == OK
        _next_steps(appliance, place if data or keep else None, keep)
        return code
    finally:
        if not (keep and done):
            appliance.close()
            if not data:
                shutil.rmtree(place.parent, ignore_errors=True)


def _start(appliance: Appliance) -> None:
    try:
        appliance.start()
    except (ApplianceError, OSError) as problem:
        raise Failure(str(problem), name="CANNOT_START") from None


def _run(link: Link, source: Path, output: str) -> int:
    _create(link)
    with _Progress() as progress:
        began = time.monotonic()
        sent = _write(link, source, progress.bar("written by confluent-kafka"))
        wrote = time.monotonic() - began
        _rate("written", sent, wrote)
        began = time.monotonic()
        found = _read(link, sent, progress.bar("read by kafka-python"))
        took = time.monotonic() - began
        _rate("read", found, took)
    rows: list[Row] = [
        {
            "topic": topic,
            "written": sent[topic].count,
            "read": found[topic].count,
            "bytes": sent[topic].bytes,
            "hash": found[topic].hash,
            "same": sent[topic] == found[topic],
        }
        for topic in sent
    ]
    emit(rows, output, name="topic")
    if all(row["same"] for row in rows):
        say("Every record came back as it was sent.")
        return OK
    say("What came back is not what was sent.")
    return NEGATIVE


def _create(link: Link) -> None:
    from confluent_kafka.admin import NewTopic

    topics = [NewTopic(t.topic, num_partitions=t.partitions, replication_factor=1) for t in TABLES]
    for answer in link.admin().create_topics(topics, request_timeout=_SILENCE_S).values():
        try:
            link.wait(answer)
        except Failure as failure:
            if failure.name == "TOPIC_ALREADY_EXISTS":
                failure.hint = "the demo needs an empty folder: choose another with --data"
            raise


def _write(link: Link, source: Path, advance: Advance) -> dict[str, Content]:
    producer = link.producer(linger_ms=20, batch_size=_MIB, acks="all")
    failures: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error:
            failures.append(error)

    sent: dict[str, Content] = {}
    for table in TABLES:
        content = sent[table.topic] = Content()
        for key, value in records(table, source):
            content.add(key, value)
            while True:
                try:
                    producer.produce(table.topic, value, key, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
            if content.count % _BATCH == 0:
                producer.poll(0)
                advance(table.topic, _BATCH)
        advance(table.topic, content.count % _BATCH)
    left = producer.flush(_SILENCE_S)
    if failures or left:
        cause = f": {failures[0].str()}" if failures else ""
        raise Failure(f"{len(failures) + left} records were not acknowledged{cause}")
    return sent


def _read(link: Link, sent: dict[str, Content], advance: Advance) -> dict[str, Content]:
    from kafka import KafkaConsumer, TopicPartition

    found = {topic: Content() for topic in sent}
    consumer = KafkaConsumer(
        bootstrap_servers=link.bootstrap, group_id=None, enable_auto_commit=False,
        auto_offset_reset="earliest", max_poll_records=_BATCH,
        max_partition_fetch_bytes=_MIB,
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(t.topic, p) for t in TABLES for p in range(t.partitions)])
        ends = sum(consumer.end_offsets(sorted(consumer.assignment())).values())
        left, silent_since = ends, time.monotonic()
        while left > 0:
            for place, messages in consumer.poll(1000, max_records=_BATCH).items():
                content = found[place.topic]
                for message in messages:
                    content.add(message.key, message.value)
                advance(place.topic, len(messages))
                left -= len(messages)
                silent_since = time.monotonic()
            if time.monotonic() - silent_since > _SILENCE_S:
                raise Failure(f"{left} of {ends} records do not come", code=3, name="_TIMED_OUT")
    finally:
        consumer.close()
    return found


def _rate(word: str, contents: dict[str, Content], seconds: float) -> None:
    count = sum(one.count for one in contents.values())
    size = sum(one.bytes for one in contents.values()) / 1e6
    say(
        f"{count:,} records, {size:,.0f} MB {word} in {seconds:.1f} s: "
        f"{count / seconds:,.0f} records/s, {size / seconds:,.1f} MB/s"
    )


class _Progress:
    """Bars on a terminal, nothing elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("records"), TimeRemainingColumn(),
            console=Console(stderr=True), disable=not sys.stderr.isatty(),
        )  # fmt: skip

    def bar(self, what: str) -> Advance:
        """A bar over all topics together, which names the one at hand."""
        whole = sum(table.count for table in TABLES)
        task = self._progress.add_task(what, total=whole)

        def advance(topic: str, more: int) -> None:
            self._progress.update(task, advance=more, description=f"{topic:<8} {what}")

        return advance

    def __enter__(self) -> "_Progress":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def _next_steps(appliance: Appliance, place: Path | None, keep: bool) -> None:
    if keep:
        b = f"-b {appliance.bootstrap}"
        lines = [
            f"It goes on running as process {appliance.pid} (its log: {appliance.log_file}). Try:",
            f"  penstock topic list -o wide {b}",
            f"  penstock consume flights -o -5 -e {b}",
            f"  penstock consume weather -e -f '%o %k %v\\n' {b} | tail -3",
            f"  kill {appliance.pid}     ends it in order",
        ]
    elif place is not None:
        lines = [
            "Try next:",
            f"  penstock up --data {place}",
            "  penstock consume flights -o -5 -e      in another terminal",
            f"  penstock log dump {os.path.join(place, 'airlines-0', '0' * 20 + '.log')} -r",
        ]
    else:
        lines = [
            "Try next:",
            "  penstock demo --data ./flights --keep     the same, and it goes on running",
            "  penstock up                               an appliance of your own",
            "  penstock --help",
        ]
    say("\n".join(lines))
