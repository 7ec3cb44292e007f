"""Transactions beside Apache Kafka, in alternation.

    python -m benchmarks.transactions                 short: two minutes for each level
    python -m benchmarks.transactions --mode full     every row, three rounds
    python -m benchmarks.transactions --levels D2 --rows 'tx/s*' 'copier*'

Rows: transactions a second with 1, 10 and 1,000 records each, by 1, 10 and 50 producers, each in a
thread of its own with a partition of its own; a copier (a record comes, is copied with its offset
in a transaction, and is read by a reader with READ_COMMITTED), p50 and p99 of the way; MB/s of a
consumer with READ_COMMITTED of transactions of ten records, beside READ_UNCOMMITTED of the same.
All clients are librdkafka. Both brokers run all the time in folders of their own; a round measures
a row on both, the next one the other way round. A ratio is the median of the rounds' ratios, each
of two measurements that follow each other. *The client alone* is the same load on librdkafka's own
mock broker, inside the client's process: it keeps nothing, and no broker can be faster. With
--markdown, what misses a goal (`GOALS`) is bold.
"""

import argparse
import contextlib
import fnmatch
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka as ck

from benchmarks import kafka, machine, tables
from benchmarks.compare.systems import LEVELS, System
from benchmarks.startup import byte_compile

LIMIT_S = 60.0
WARM_S = 8.0
"""Before anything is measured: with less, Kafka's first rows have half of its later speed."""
VALUE = b"v" * 100
SYSTEMS = ("penstock", "kafka")
ALONE = "client alone"
Figures = dict[str, float]

COST = "committed / uncommitted"
GOALS: dict[str, Callable[[float, float], bool]] = {
    "per s": lambda _, ratio: ratio >= 1.5,
    "p99 ms": lambda _, ratio: ratio <= 0.5,
    COST: lambda ours, _: ours >= 0.95,
}
"""By figure: whether ours, and its ratio to Kafka's, are as good as wished."""


@dataclass(frozen=True)
class Mode:
    """rounds of every row; seconds of each measurement; records that a consumer reads."""

    rounds: int
    seconds: float
    records: int
    sizes: tuple[int, ...]
    producers: tuple[int, ...]


MODES = {
    "short": Mode(2, 2.0, 20_000, (1, 10, 1000), (1, 10)),
    "full": Mode(3, 4.0, 200_000, (1, 10, 1000), (1, 10, 50)),
}


def producer(system: System | None, name: str) -> ck.Producer:
    """One that may begin its first transaction. system: None for the client's own mock broker."""
    where: dict[str, object] = {"test.mock.num.brokers": 1, "log_level": 0}
    if system is not None:
        where = {"bootstrap.servers": system.bootstrap}
    client = ck.Producer({
        "transactional.id": name, "linger.ms": 0, "queue.buffering.max.messages": 100_000, **where,
    })  # fmt: skip
    client.init_transactions(LIMIT_S)
    return client


def reader(system: System, topic: str, level: str, **more: object) -> ck.Consumer:
    """A consumer of partition 0 from its beginning."""
    client = ck.Consumer({
        "bootstrap.servers": system.bootstrap, "group.id": f"{topic}-reader",
        "enable.auto.commit": False, "auto.offset.reset": "error", "isolation.level": level,
        "fetch.wait.max.ms": 100, "enable.partition.eof": True, **more,
    })  # fmt: skip
    client.assign([ck.TopicPartition(topic, 0, 0)])
    return client


def rate(size: int, producers: int, seconds: float) -> Callable[[System], Figures]:
    """Transactions a second; the first quarter of the time does not count."""

    def once(system: System) -> Figures:
        topic = system.peer.create(producers)
        clients = [producer(system, f"{topic}-{at}") for at in range(producers)]
        found = _drive(clients, topic, size, seconds, lambda: system.peer.cpu_seconds() or 0.0)
        system.peer.delete(topic)
        return found

    return once


def alone(size: int, producers: int, seconds: float) -> Callable[[], Figures]:
    """What `rate` measures, without a broker; CPU of the client, its mock broker included."""

    def once() -> Figures:
        clients = [producer(None, f"t-{at}") for at in range(producers)]
        return _drive(clients, "t", size, seconds, time.process_time, partition=0)

    return once


def _drive(
    clients: list[ck.Producer],
    topic: str,
    size: int,
    seconds: float,
    cpu_seconds: Callable[[], float],
    partition: int | None = None,
) -> Figures:
    """Each client in a thread of its own and, if none is named, with a partition of its own."""
    done, failed, over = [0] * len(clients), [], threading.Event()

    def work(at: int) -> None:
        client, where = clients[at], at if partition is None else partition
        try:
            while not over.is_set():
                client.begin_transaction()
                for _ in range(size):
                    client.produce(topic, VALUE, partition=where)
                client.commit_transaction(LIMIT_S)
                done[at] += 1
        except (ck.KafkaException, BufferError) as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(clients))]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 4)
    before, begun, cpu = sum(done), time.perf_counter(), cpu_seconds()
    time.sleep(seconds)
    count, passed = sum(done) - before, time.perf_counter() - begun
    used = cpu_seconds() - cpu
    over.set()
    for thread in threads:
        thread.join()
    if failed or not count:
        raise RuntimeError(f"{len(failed)} of {len(clients)} producers failed: {failed[:1]}")
    return {"per s": count / passed, "CPU µs each": used / count * 1e6}


def copier(seconds: float) -> Callable[[System], Figures]:
    """ms from `produce` of a record to its copy in the hands of a reader, one record at a time."""

    def once(system: System) -> Figures:
        source, sink = system.peer.create(), system.peer.create()
        feeder = ck.Producer({"bootstrap.servers": system.bootstrap, "linger.ms": 0})
        writer = producer(system, f"{sink}-copier")
        reads = reader(system, source, "read_committed", **{"enable.partition.eof": False})
        takes = reader(system, sink, "read_committed", **{"enable.partition.eof": False})
        found, begun, end = [], time.perf_counter(), 0.0
        while time.perf_counter() < begun + seconds * 1.25:
            sent = time.perf_counter()
            feeder.produce(source, b"%d" % len(found))
            feeder.flush(LIMIT_S)
            message = _next(reads)
            writer.begin_transaction()
            writer.produce(sink, message.value())
            place = [ck.TopicPartition(source, 0, message.offset() + 1)]
            writer.send_offsets_to_transaction(place, reads.consumer_group_metadata(), LIMIT_S)
            writer.commit_transaction(LIMIT_S)
            if _next(takes).value() != message.value():
                raise RuntimeError("the reader got another record")
            end = time.perf_counter()
            if end > begun + seconds / 4:
                found.append((end - sent) * 1e3)
        for client in (reads, takes):
            client.close()
        for topic in (source, sink):
            system.peer.delete(topic)
        found.sort()
        return {"p50 ms": found[len(found) // 2], "p99 ms": found[int(len(found) * 0.99)]}

    return once


def _next(client: ck.Consumer) -> ck.Message:
    message = client.poll(LIMIT_S)
    if message is None or message.error():
        raise RuntimeError(f"no record came: {message and message.error()}")
    return message


def consumers(records: int) -> Callable[[System], Figures]:
    """MB/s of values by both isolation levels, in alternation, of the same topic."""

    def once(system: System) -> Figures:
        topic = system.filled.get(records)
        if topic is None:
            topic = system.filled[records] = _fill(system, records)
        found: dict[str, list[float]] = {"read_committed": [], "read_uncommitted": []}
        for level in (*found, *reversed(found)):
            found[level].append(_consume(system, str(topic), level, records))
        committed, all_of_it = (statistics.median(values) for values in found.values())
        return {
            "read_committed MB/s": committed,
            "read_uncommitted MB/s": all_of_it,
            COST: committed / all_of_it,
        }

    return once


def _fill(system: System, records: int) -> str:
    """A topic of transactions of ten records, by ten producers at once: they cross."""
    topic = system.peer.create()
    clients = [producer(system, f"{topic}-filler-{at}") for at in range(10)]

    def work(client: ck.Producer) -> None:
        for _ in range(records // 100):
            client.begin_transaction()
            for _ in range(10):
                client.produce(topic, VALUE)
            client.commit_transaction(LIMIT_S)

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(work, clients))
    return topic


def _consume(system: System, topic: str, level: str, records: int) -> float:
    """The topic again and again for a second, in MB/s; the first time does not count."""
    client = reader(system, topic, level)
    passes, begun, end = -1, 0.0, time.monotonic() + LIMIT_S
    while passes < 1 or time.perf_counter() < begun + 1:
        got = 0
        while got < records:
            got += sum(not message.error() for message in client.consume(10_000, 0.2))
            if time.monotonic() > end:
                raise RuntimeError(f"{got} of {records} records came")
        passes += 1
        begun = begun or time.perf_counter()
        client.assign([ck.TopicPartition(topic, 0, 0)])
    passed = time.perf_counter() - begun
    client.close()
    return passes * records * len(VALUE) / passed / 1e6


@dataclass(frozen=True)
class Row:
    """What is measured on each system, and, where that is known, without one."""

    once: Callable[[System], Figures]
    alone: Callable[[], Figures] | None = None


def rows_of(mode: Mode) -> dict[str, Row]:
    """What is measured, by its name."""
    rows = {
        f"tx/s, records: {size:,}, producers: {count}": Row(
            rate(size, count, mode.seconds), alone(size, count, mode.seconds)
        )
        for size in mode.sizes
        for count in mode.producers
    }
    copied = {"copier": Row(copier(2 * mode.seconds))}
    return {**rows, **copied, "consumer": Row(consumers(mode.records))}


@contextlib.contextmanager
def running(level: str, folder: Path, tree: Path | None) -> Iterator[list[System]]:
    with contextlib.ExitStack() as stack:
        systems = [System(name, level, folder / level / name, tree) for name in SYSTEMS]
        for system in systems:
            stack.callback(system.stop)
            system.start()
            rate(1, 10, WARM_S)(system)
        yield systems


Found = dict[tuple[str, str], tuple[list[float], list[float], list[float]]]
"""(row, figure) to values of ours, of Kafka's and of the client alone (or none), those at one index
measured side by side."""


def measure(systems: list[System], mode: Mode, chosen: list[str]) -> Found:
    """Each row on both systems in turn, the first one changing with each round."""
    found: Found = {}
    for name, row in rows_of(mode).items():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in chosen):
            continue
        for number in range(mode.rounds):
            told: dict[str, Figures] = {}
            for system in systems[:: -1 if number % 2 else 1]:
                os.sync()
                try:
                    told[system.name] = row.once(system)
                except (RuntimeError, OSError, ck.KafkaException) as error:
                    print(f"{name}, {system.name} failed: {error}", file=sys.stderr, flush=True)
            if len(told) == len(SYSTEMS):
                if row.alone is not None:
                    told[ALONE] = row.alone()
                for figure in told["penstock"]:
                    lists = found.setdefault((name, figure), ([], [], []))
                    for values, whose in zip(lists, (*SYSTEMS, ALONE), strict=True):
                        if whose in told:
                            values.append(told[whose][figure])
            print(f"{name}: {told}", file=sys.stderr, flush=True)
    return found


def report(level: str, found: Found, *, markdown: bool) -> str:
    head = [f"{level}: {LEVELS[level]}", "", *SYSTEMS, "ratio", ALONE]
    body = []
    for (name, figure), (ours, theirs, without) in found.items():
        each = [one / other for one, other in zip(ours, theirs, strict=True) if other]
        told = [*map(tables.spread, (ours, theirs, each, without))]
        middles = statistics.median(ours), statistics.median(each)
        if markdown and figure in GOALS and not GOALS[figure](*middles):
            told[0 if figure == COST else 2] = f"**{told[0 if figure == COST else 2]}**"
        body.append([name, figure, *told])
    return tables.render(head, body, markdown=markdown, left=2)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.transactions", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--mode", choices=MODES, default="short")
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=list(LEVELS))
    parser.add_argument("--rows", nargs="+", default=["*"], help="shell patterns of their names")
    parser.add_argument("--folder", type=Path, help="where the brokers' files lie meanwhile")
    parser.add_argument("--tree", type=Path, help="the appliance's sources, when not these")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    kafka.fetch()
    byte_compile(*([options.tree] if options.tree else []))
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=options.folder) as folder:
        for level in options.levels:
            with running(level, Path(folder), options.tree) as systems:
                found = measure(systems, MODES[options.mode], options.rows)
            print(f"\n{machine.state()}; medians (range)\n")
            print(report(level, found, markdown=options.markdown), flush=True)


if __name__ == "__main__":
    main()
