"""Groups: how long a client waits for its first record, how long fifty members for each other, how
many commits a second, how long a monitor for the lag of a thousand groups.

    python -m benchmarks.groups --peer NAME=HOST:PORT@PID --peer NAME=HOST:PORT@PID …

The peers are measured in alternation, row by row; `@PID` (the root of a process tree) adds the CPU
that a commit costs. Apache Kafka waits three seconds for more members of a new group by default:
start it with group.initial.rebalance.delay.ms=0 to compare what it does and not how long it waits.
"""

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import confluent_kafka as ck

from benchmarks import commits, lag, tables
from benchmarks.__main__ import address
from benchmarks.commits import CommitRow
from benchmarks.members import BEAT_S, Crowd, Member
from benchmarks.peer import Peer, WrongAnswer
from benchmarks.protocols import ClassicMember, ConsumerMember

LIMIT_S = 60.0
MEMBERS = 50
PARTITIONS = 100
OFTEN_S = 0.005
COMMITS = (CommitRow(1, 10), CommitRow(8, 1), CommitRow(8, 5))


@dataclass
class Row:
    """What is measured: `once` gives values by the name of their line."""

    once: Callable[[Peer], dict[str, float]]
    lines: dict[str, list[list[float]]] = field(default_factory=dict)


def first_record(peer: Peer) -> dict[str, float]:
    """ms from `subscribe` to the first record, librdkafka, a new group, for each protocol."""
    topic = peer.create()
    bootstrap = "{}:{}".format(*peer.address)
    producer = ck.Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"a record")
    if producer.flush(LIMIT_S):
        raise WrongAnswer("the record was not taken")
    found = {}
    for protocol in ("classic", "consumer"):
        group = f"{topic}-{protocol}"
        commits.ready(peer, group)
        client = ck.Consumer({
            "bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol,
            "auto.offset.reset": "earliest", "enable.auto.commit": False,
        })  # fmt: skip
        client.list_topics(topic, LIMIT_S)
        begun = time.perf_counter()
        client.subscribe([topic])
        message = client.poll(LIMIT_S)
        passed = time.perf_counter() - begun
        client.close()
        if message is None or message.error():
            raise WrongAnswer(f"no record for a {protocol} group")
        found[f"subscribe → first record, {protocol}, ms"] = passed * 1000
    peer.delete(topic)
    return found


def rebalance(peer: Peer) -> dict[str, float]:
    """ms until fifty members own all partitions, and until they do after one more has come and
    after it has gone again; each looks every 100 ms whether there is something to do, and in other
    lines every 5 ms, so that what is left is the broker's making."""
    return {
        f"{line}{mark}, ms": seconds * 1000
        for beat_s, mark in ((BEAT_S, ""), (OFTEN_S, " (looks every 5 ms)"))
        for line, seconds in _rebalance(peer, beat_s).items()
    }


def _rebalance(peer: Peer, beat_s: float) -> dict[str, float]:
    found = {}
    kinds: tuple[tuple[str, type[Member]], ...] = (
        ("classic", ClassicMember),
        ("consumer", ConsumerMember),
    )
    for name, kind in kinds:
        topic = peer.create(PARTITIONS)
        commits.ready(peer, f"{topic}-g")
        crowd = Crowd(peer.address, f"{topic}-g", topic, PARTITIONS, kind, beat_s=beat_s)
        try:
            crowd.add(MEMBERS)
            found[f"{MEMBERS} members join at once, {name}"] = crowd.until(crowd.settled)
            (new,) = crowd.add()
            found[f"one more joins {MEMBERS}, {name}"] = crowd.until(crowd.settled)
            new.leaving = True
            found[f"it leaves {MEMBERS}, {name}"] = crowd.until(
                lambda crowd=crowd: len(crowd.members) == MEMBERS and crowd.settled()
            )
        except AssertionError as error:
            raise WrongAnswer(f"{name}: {str(error)[:300]}") from error
        finally:
            crowd.close()
        peer.delete(topic)
    return found


def commit_rates(seconds: float) -> Callable[[Peer], dict[str, float]]:
    """Commits per second, and µs of the broker's CPU for each."""

    def once(peer: Peer) -> dict[str, float]:
        found = {}
        for row in COMMITS:
            result = commits.run(peer, row, seconds)
            found[f"{row.title}, per s"] = result.requests_s
            if result.cpu_us is not None:
                found[f"{row.title}, CPU µs each"] = result.cpu_us
        return found

    return once


def lag_of_many(peer: Peer) -> dict[str, float]:
    """ms for the lag of a thousand groups."""
    topic = peer.create()
    names = lag.fill(peer, topic)
    passed = lag.query(peer, topic, names)
    lag.forget(peer, names)
    peer.delete(topic)
    return {f"lag of {lag.COUNT:,} groups, ms": passed * 1000}


def measure(peers: Sequence[Peer], rows: Sequence[Row], repeat: int) -> None:
    """Each row on each peer in turn, again and again. What fails is said and left out."""
    for row in rows:
        for _ in range(repeat):
            for number, peer in enumerate(peers):
                print(f"  {row.once.__name__} on {peer.name} …", file=sys.stderr, flush=True)
                try:
                    found = row.once(peer)
                except (WrongAnswer, OSError, ck.KafkaException) as error:
                    print(f"  {peer.name} failed: {error}", file=sys.stderr, flush=True)
                    continue
                for line, value in found.items():
                    row.lines.setdefault(line, [[] for _ in peers])[number].append(value)


def report(peers: Sequence[Peer], rows: Sequence[Row], *, markdown: bool) -> str:
    """Medians and ranges, a column for each peer."""
    head = ["row", *(peer.name for peer in peers)]
    body = [
        [line, *(tables.spread(values) for values in columns)]
        for row in rows
        for line, columns in row.lines.items()
    ]
    return tables.render(head, body, markdown=markdown)


def _peer(text: str) -> Peer:
    name, equals, rest = text.partition("=")
    where, _, pid = rest.partition("@")
    if not equals or (pid and not pid.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=HOST:PORT@PID")
    return Peer(name, address(where), int(pid) if pid else None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups")
    parser.add_argument("--peer", type=_peer, action="append", required=True)
    parser.add_argument("--seconds", type=float, default=2, help="per measurement of commits")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--warm", type=float, default=4, help="seconds of load before it counts")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    for peer in options.peer:
        commits.run(peer, CommitRow(8, 5), options.warm)
    rows = [
        Row(first_record), Row(rebalance), Row(commit_rates(options.seconds)), Row(lag_of_many),
    ]  # fmt: skip
    measure(options.peer, rows, options.repeat)
    print(f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
          f"{options.repeat} rounds: median (range)\n")  # fmt: skip
    print(report(options.peer, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
