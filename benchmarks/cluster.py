"""Three appliances as a cluster beside three nodes of Apache Kafka, in alternation.

    python -m benchmarks.cluster                      short: one round
    python -m benchmarks.cluster --mode full          every row, five rounds
    python -m benchmarks.cluster --levels D2 --rows 'kill*' 'latency*'

Rows, all with replication factor 3, min.insync.replicas 2, acks=all, 1 KB and an idempotent
producer: MB/s on 1 and 6 partitions; latency at 500 records a second; after `kill -9` or SIGTERM of
a leader the time until another leads, for how long no record is acknowledged (librdkafka looks for
a leader when it is told of a loss, and again when its own timer of a second goes off), and the time
from the node's start to a whole ISR; the same while all nodes are restarted in turn; the start of a
node whose folder was emptied, until it is in sync again, and what that does to who writes
meanwhile; with very many partitions the start of all nodes and the election of a third of the
leaders; memory and idle CPU. All clients are librdkafka with its defaults. Both clusters run all
the time, a round measures a row on both, the next one the other way round. A ratio is the median of
the rounds' ratios. With --markdown, what misses a goal (`GOALS`) is bold.
"""

import argparse
import contextlib
import fnmatch
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import confluent_kafka as ck

from benchmarks import kafka, machine, tables
from benchmarks.compare.systems import LEVELS
from benchmarks.many import LED, SERVED, WHOLE, Figures, Many, elections, start
from benchmarks.nodes import LIMIT_S, Cluster
from benchmarks.startup import byte_compile

VALUE = bytes(32 + (i * 7919) % 91 for i in range(1024))
SYSTEMS = ("penstock", "kafka")
WARM_S = 8.0
"""Before anything is measured: with less, Kafka's first rows have half of its later speed."""
PULSE_S = 0.005
PER_SECOND = 500

WRITE = "s that a write waited at most"
TIMES = "times the p99 of before"
GOALS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("*", "MB/s", lambda _, ratio: ratio >= 1.5),
    ("*", "p99 ms", lambda _, ratio: ratio <= 0.5),
    ("kill*", WRITE, lambda ours, ratio: ours <= 1 and ratio <= 0.1),
    ("SIGTERM*", WRITE, lambda ours, _: ours <= 0.1),
    ("rolling*", WRITE, lambda ours, _: ours <= 0.1),
    ("*", "MB/s, its start included", lambda _, ratio: ratio >= 1),
    ("*", TIMES, lambda ours, _: ours <= 2),
    ("*", LED, lambda ours, _: ours <= 1),
    ("*", SERVED, lambda _, ratio: ratio <= 0.5),
    ("*", "PSS MB", lambda _, ratio: ratio <= 0.2),
    ("*", "CPU % of a core", lambda ours, _: ours < 1),
)
"""By row (a shell pattern) and figure: whether ours, and its ratio to Kafka's, are as wished."""


@dataclass(frozen=True)
class Mode:
    """rounds of every row; seconds of each measurement; MB that an emptied node has to fetch;
    partitions for a start and for elections; seconds of idleness."""

    rounds: int
    seconds: float
    megabytes: int
    partitions: int
    idle_s: float


MODES = {"short": Mode(1, 3.0, 100, 900, 10.0), "full": Mode(5, 8.0, 1000, 10_000, 60.0)}


def producer(cluster: Cluster, **more: object) -> ck.Producer:
    return ck.Producer({
        "bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0,
        **{key.replace("_", "."): value for key, value in more.items()},
    })  # fmt: skip


# Writing ------------------------------------------------------------------------------------------


def throughput(partitions: int, seconds: float) -> Callable[[Cluster], Figures]:
    """MB/s of values that were acknowledged; the first quarter of the time does not count."""

    def once(cluster: Cluster) -> Figures:
        topic = cluster.create(partitions)
        client = producer(cluster, linger_ms=5, queue_buffering_max_messages=50_000)
        counted = Counted(client, topic, partitions)
        counted.fill_for(seconds / 4)
        done, cpu, begun = counted.done, cluster.cpu_seconds(), time.perf_counter()
        counted.fill_for(seconds)
        passed = time.perf_counter() - begun
        megabytes = (counted.done - done) * len(VALUE) / 1e6
        cpu = cluster.cpu_seconds() - cpu
        counted.finish()
        cluster.delete(topic)
        return {"MB/s": megabytes / passed, "CPU ms each MB": cpu / megabytes * 1e3}

    return once


class Counted:
    """A producer that writes as fast as it can, round robin. done: acknowledged records."""

    def __init__(self, client: ck.Producer, topic: str, partitions: int) -> None:
        self.client, self.topic, self.partitions = client, topic, partitions
        self.done = self.sent = 0
        self.failed: list[ck.KafkaError] = []

    def _told(self, error: ck.KafkaError | None, _: ck.Message) -> None:
        self.done += 1
        if error is not None:
            self.failed.append(error)

    def fill_for(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self.some(500)

    def some(self, count: int) -> None:
        for _ in range(count):
            try:
                where = self.sent % self.partitions
                self.client.produce(self.topic, VALUE, partition=where, on_delivery=self._told)
                self.sent += 1
            except BufferError:
                self.client.poll(0.05)
        self.client.poll(0)

    def finish(self) -> None:
        """Until all is acknowledged. Raises RuntimeError."""
        if self.client.flush(LIMIT_S) or self.failed:
            raise RuntimeError(f"{len(self.failed)} records failed: {self.failed[:1]}")


def latency(seconds: float) -> Callable[[Cluster], Figures]:
    """ms from the moment at which a record is due to its acknowledgement, 500 a second."""

    def once(cluster: Cluster) -> Figures:
        topic, count = cluster.create(1), round(seconds * PER_SECOND)
        found = paced(cluster, topic, lambda number: number < count)
        cluster.delete(topic)
        kept = sorted(ms for _, ms in found[count // 4 :])
        return {"p50 ms": at(kept, 0.5), "p99 ms": at(kept, 0.99)}

    return once


def paced(cluster: Cluster, topic: str, more: Callable[[int], bool]) -> list[tuple[float, float]]:
    """Of each record when it was due, and the ms from then to its acknowledgement; 500 a second.
    more: whether there is another one, by its number. Raises RuntimeError."""
    client, found, number = producer(cluster, linger_ms=0), list[tuple[float, float]](), 0
    begun = time.perf_counter() + 0.1
    while more(number):
        due = begun + number / PER_SECOND
        while (left := due - time.perf_counter()) > 0:
            client.poll(left)
        client.produce(topic, VALUE, on_delivery=_taker(due, found))
        number += 1
    if client.flush(LIMIT_S) or len(found) < number:
        raise RuntimeError(f"{len(found)} of {number} records were acknowledged")
    return found


def at(kept: list[float], share: float) -> float:
    """The value below which that share lies, of values in ascending order."""
    return kept[int(len(kept) * share)]


def _taker(
    due: float, found: list[tuple[float, float]]
) -> Callable[[ck.KafkaError | None, ck.Message], None]:
    def told(error: ck.KafkaError | None, _: ck.Message) -> None:
        if error is None:
            found.append((due, (time.perf_counter() - due) * 1e3))

    return told


# Deaths -------------------------------------------------------------------------------------------


class Pulse:
    """Writes a record every few ms in a thread of its own, and keeps when which was acknowledged.
    Use as a context manager."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.client, self.topic = producer(cluster, linger_ms=0), topic
        self.acknowledged: list[tuple[float, float]] = []  # (sent, told)
        self.failed: list[ck.KafkaError] = []
        self.changed, self.over = threading.Condition(), threading.Event()
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self.over.is_set():
            sent = time.perf_counter()
            with contextlib.suppress(BufferError):
                self.client.produce(self.topic, b"pulse", on_delivery=self._taker(sent))
            while (left := sent + PULSE_S - time.perf_counter()) > 0:
                self.client.poll(left)

    def _taker(self, sent: float) -> Callable[[ck.KafkaError | None, ck.Message], None]:
        def told(error: ck.KafkaError | None, _: ck.Message) -> None:
            with self.changed:
                if error is None:
                    self.acknowledged.append((sent, time.perf_counter()))
                else:
                    self.failed.append(error)
                self.changed.notify_all()

        return told

    def first_after(self, moment: float) -> float:
        """Seconds from `moment` to the first acknowledgement of what was sent after it."""
        with self.changed:
            self.changed.wait_for(lambda: self._first(moment) or self.failed, LIMIT_S)
            found = self._first(moment)
        if self.failed or not found:
            raise RuntimeError(f"nothing was acknowledged: {self.failed[:1]}")
        return found - moment

    def longest_since(self, moment: float) -> float:
        """Seconds that a record sent between `moment` and now waited for its acknowledgement, at
        most."""
        self.first_after(time.perf_counter())
        with self.changed:
            return max(told - sent for sent, told in self.acknowledged if sent >= moment)

    def _first(self, moment: float) -> float:
        found = 0.0
        for sent, told in reversed(self.acknowledged):
            if sent < moment:
                break
            found = told
        return found

    def __enter__(self) -> "Pulse":
        self.thread.start()
        self.first_after(time.perf_counter() + 0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        self.client.flush(LIMIT_S)


def death(*, kill: bool, controller: bool) -> Callable[[Cluster], Figures]:
    """What happens when the leader of a partition ends. controller: it leads the quorum, too."""

    def once(cluster: Cluster) -> Figures:
        active = cluster.controller()
        order = sorted(cluster.nodes, key=lambda number: (number == active) != controller)
        topic, victim = cluster.create(replicas=[order]), order[0]
        with Pulse(cluster, topic) as pulse:
            moment = time.perf_counter()
            (cluster.kill if kill else cluster.terminate)(victim)
            cluster.wait(lambda: cluster.led(topic, without=victim), "another leads")
            led = time.perf_counter() - moment
            pulse.first_after(moment)
            cluster.stop(victim)
            write = pulse.longest_since(moment)
            begun = time.perf_counter()
            cluster.start(victim)
            cluster.wait(lambda: cluster.whole(topic), "the ISR is whole")
            whole = time.perf_counter() - begun
        cluster.settle()
        cluster.delete(topic)
        return {LED: led, WRITE: write, WHOLE: whole}

    return once


def emptied(megabytes: int) -> Callable[[Cluster], Figures]:
    """A node comes back without anything and fetches all there is, nobody writing."""

    def once(cluster: Cluster) -> Figures:
        topic = filled(cluster, megabytes)
        victim = next(number for number in cluster.nodes if number != cluster.controller())
        empty(cluster, victim)
        begun = time.perf_counter()
        come_back(cluster, victim, topic)
        whole = time.perf_counter() - begun
        cluster.settle()
        cluster.delete(topic)
        return {"MB/s, its start included": megabytes / whole, WHOLE: whole}

    return once


def beside(megabytes: int, seconds: float) -> Callable[[Cluster], Figures]:
    """The same while 500 records a second are written to a partition that another node leads, by a
    client that has written for `seconds` before."""

    def once(cluster: Cluster) -> Figures:
        topic = filled(cluster, megabytes)
        order = sorted(cluster.nodes, key=lambda number: number != cluster.controller())
        written, victim = cluster.create(replicas=[order]), order[-1]
        with Writer(cluster, written) as writer:
            time.sleep(seconds)  # the measurement is the waiting
            quiet = writer.p99(time.perf_counter() - seconds * 3 / 4)
            empty(cluster, victim)
            begun = time.perf_counter()
            come_back(cluster, victim, topic)
            whole = time.perf_counter() - begun
            busy = writer.p99(begun)
        if not cluster.whole(topic):
            raise RuntimeError("the ISR is not whole")
        cluster.settle()
        cluster.delete(topic)
        cluster.delete(written)
        figures = {"p99 ms before": quiet, "p99 ms meanwhile": busy, TIMES: busy / quiet}
        return figures | {WHOLE: whole, "MB/s, its start included": megabytes / whole}

    return once


class Writer:
    """Writes 500 records a second in a thread of its own. Use as a context manager."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.client, self.topic = producer(cluster, linger_ms=0), topic
        self.found: list[tuple[float, float]] = []
        self.sent = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        begun = time.perf_counter()
        while not self.over.is_set():
            due = begun + self.sent / PER_SECOND
            while (left := due - time.perf_counter()) > 0:
                self.client.poll(left)
            self.client.produce(self.topic, VALUE, on_delivery=_taker(due, self.found))
            self.sent += 1

    def p99(self, since: float) -> float:
        """Of the ms from when a record was due to its acknowledgement, of those due since then and
        before now: the last of them is waited for. Raises RuntimeError."""
        now = time.perf_counter()
        while self.found[-1][0] < now:
            if time.perf_counter() > now + LIMIT_S:
                raise RuntimeError("nothing is acknowledged any more")
            time.sleep(0.005)
        return at(sorted(ms for due, ms in list(self.found) if since <= due < now), 0.99)

    def __enter__(self) -> "Writer":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        if self.client.flush(LIMIT_S) or len(self.found) < self.sent:
            raise RuntimeError(f"{len(self.found)} of {self.sent} records were acknowledged")


def filled(cluster: Cluster, megabytes: int) -> str:
    """A topic of six partitions with so much in it."""
    topic = cluster.create(6)
    counted = Counted(producer(cluster, linger_ms=5), topic, 6)
    while counted.sent * len(VALUE) < megabytes * 1_000_000:
        counted.some(1000)
    counted.finish()
    return topic


def empty(cluster: Cluster, victim: int) -> None:
    cluster.stop(victim)
    shutil.rmtree(cluster.nodes[victim].data)


def come_back(cluster: Cluster, victim: int, topic: str) -> None:
    """Start it; until it has all of the topic."""
    cluster.start(victim)
    cluster.wait(lambda: cluster.whole(topic), "the ISR is whole", 10 * LIMIT_S)


def rolling(cluster: Cluster) -> Figures:
    """Each node ends in order and comes back, one after the other."""
    topic = cluster.create(6)
    with Pulse(cluster, topic) as pulse:
        moment = time.perf_counter()
        for number in cluster.nodes:
            cluster.stop(number)
            cluster.start(number)
            cluster.wait(lambda: cluster.whole(topic), "the ISR is whole")
        took = time.perf_counter() - moment
        write = pulse.longest_since(moment)
    cluster.settle()
    cluster.delete(topic)
    return {WRITE: write, "s for all nodes": took}


# Rest ---------------------------------------------------------------------------------------------


def rest(seconds: float) -> Callable[[Cluster], Figures]:
    """Memory of all nodes together; CPU of one, on average, while nobody asks anything."""

    def once(cluster: Cluster) -> Figures:
        cpu, begun = cluster.cpu_seconds(), time.perf_counter()
        time.sleep(seconds)  # the measurement is the waiting
        used = (cluster.cpu_seconds() - cpu) / (time.perf_counter() - begun)
        return {
            "PSS MB": cluster.memory() / 1e6,
            "CPU % of a core": used / len(cluster.nodes) * 100,
        }

    return once


def rows_of(mode: Mode) -> dict[str, Callable[[Cluster], Figures]]:
    """What is measured, by its name, in this order."""
    many, count = Many(mode.partitions), f"{mode.partitions:,} partitions"
    return {
        "three nodes at rest": rest(mode.idle_s),
        "MB/s, 1 partition": throughput(1, mode.seconds),
        "MB/s, 6 partitions": throughput(6, mode.seconds),
        f"latency at {PER_SECOND}/s": latency(2 * mode.seconds),
        "kill -9 of a leader": death(kill=True, controller=False),
        "kill -9 of a leader, active controller": death(kill=True, controller=True),
        "SIGTERM of a leader": death(kill=False, controller=False),
        "SIGTERM of a leader, active controller": death(kill=False, controller=True),
        "rolling restart": rolling,
        f"emptied node, {mode.megabytes} MB": emptied(mode.megabytes),
        f"emptied node, {mode.megabytes} MB, {PER_SECOND}/s written": beside(
            mode.megabytes, 2 * mode.seconds
        ),
        "three nodes at rest, after all that": rest(mode.idle_s),
        f"start, {count}": start(many),
        f"elections after kill -9, {count}": elections(many, kill=True),
        f"elections after SIGTERM, {count}": elections(many, kill=False),
        f"three nodes at rest, {count}": rest(mode.idle_s),
    }


@contextlib.contextmanager
def running(level: str, folder: Path, names: list[str]) -> Iterator[list[Cluster]]:
    with contextlib.ExitStack() as stack:
        clusters = []
        for name in names:
            cluster = Cluster(name, level, folder / level / name)
            stack.callback(cluster.close)
            cluster.start()
            clusters.append(cluster)
        yield clusters


Found = dict[tuple[str, str], tuple[list[float], list[float]]]
"""(row, figure) to values of ours and of Kafka's, those at one index measured side by side."""


def measure(clusters: list[Cluster], mode: Mode, chosen: list[str]) -> Found:
    """Each row on both clusters in turn, the first one changing with each round."""
    found: Found = {}
    warm = False
    for name, row in rows_of(mode).items():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in chosen):
            continue
        if not warm and "at rest" not in name:
            for cluster in clusters:
                throughput(6, WARM_S)(cluster)
            warm = True
        for number in range(mode.rounds):
            told: dict[str, Figures] = {}
            for cluster in clusters[:: -1 if number % 2 else 1]:
                os.sync()
                try:
                    told[cluster.name] = row(cluster)
                except (RuntimeError, OSError, ck.KafkaException) as error:
                    print(f"{name}, {cluster.name}: {error}", file=sys.stderr, flush=True)
                    cluster.start_those_that_ended()
            for whose, figures in told.items():
                for figure, value in figures.items():
                    values = found.setdefault((name, figure), ([], []))[SYSTEMS.index(whose)]
                    values.append(value)
            print(f"{name}: {told}", file=sys.stderr, flush=True)
    return found


def misses(row: str, figure: str, ours: list[float], ratios: list[float]) -> bool:
    """Whether the medians are not as good as wished."""
    middles = statistics.median(ours), statistics.median(ratios)
    return any(
        fnmatch.fnmatch(row, pattern) and figure == what and not good(*middles)
        for pattern, what, good in GOALS
    )


def report(level: str, found: Found, *, markdown: bool) -> str:
    head = [f"{level}: {LEVELS[level]}", "", *SYSTEMS, "ratio"]
    body = []
    for (name, figure), (ours, theirs) in found.items():
        each = [one / other for one, other in zip(ours, theirs, strict=False) if other]
        told = [*map(tables.spread, (ours, theirs, each))]
        if markdown and each and misses(name, figure, ours, each):
            told[2] = f"**{told[2]}**"
        body.append([name, figure, *told])
    return tables.render(head, body, markdown=markdown, left=2)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--mode", choices=MODES, default="short")
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=["D1"])
    parser.add_argument("--rows", nargs="+", default=["*"], help="shell patterns of their names")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--megabytes", type=int, help="that an emptied node has to fetch")
    parser.add_argument("--rounds", type=int, help="of every row")
    parser.add_argument("--folder", type=Path, help="where the nodes' files lie meanwhile")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    mode = MODES[options.mode]
    mode = replace(
        mode,
        megabytes=options.megabytes or mode.megabytes,
        rounds=options.rounds or mode.rounds,
    )
    kafka.fetch()
    byte_compile()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=options.folder) as folder:
        for level in options.levels:
            with running(level, Path(folder), options.systems) as clusters:
                found = measure(clusters, mode, options.rows)
            print(f"\n{machine.state()}; medians (range)\n")
            print(report(level, found, markdown=options.markdown), flush=True)


if __name__ == "__main__":
    main()
