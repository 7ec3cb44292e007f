"""Quotas: does a client under one settle at it, and does a client beside it keep its rate?

    python -m benchmarks.quotas --peer NAME=HOST:PORT --peer NAME=HOST:PORT …

The quota is set with Kafka's kafka-configs. Clients: librdkafka, and Kafka's own
kafka-producer-perf-test. A cold client may use what the windows hold (about ten seconds' worth) at
once, so each warms up for `--warm` seconds before it counts. What was produced is counted at the
log's end. The peers are measured in alternation.
"""

import argparse
import contextlib
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Final

from benchmarks import kafka, requests, tables
from benchmarks.groups import _peer as peer_argument
from benchmarks.peer import Peer, WrongAnswer
from benchmarks.quota_load import RECORD

QUOTA: Final = 5_000_000
BESIDE: Final = 1000
"""Records per second of the client without a quota: 10 MB/s."""
WITHIN: Final = 0.10
_FILL: Final = 60_000
_SMALL: Final = 4
"""Records in a batch for the consumer: of a batch that is cut off at an answer's end nothing counts
here, but its bytes do on the way."""
_numbers = itertools.count(1)


@dataclass
class Figures:
    """Of one run, MB/s. seconds: what each second of a consumer gave."""

    limited: float
    beside: float
    alone: float
    seconds: list[float] = field(default_factory=list)


@contextlib.contextmanager
def _running(command: list[str], out: IO[bytes] | None = None) -> Iterator[None]:
    sink = out if out is not None else subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=sink, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _load(kind: str, peer: Peer, topic: str, client: str, *rest: str) -> list[str]:
    server = "{}:{}".format(*peer.address)
    return [sys.executable, "-m", "benchmarks.quota_load", kind, server, topic, client, *rest]


def _java(peer: Peer, topic: str, client: str) -> list[str]:
    server = "{}:{}".format(*peer.address)
    return kafka.java(
        "org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", server,
        "--topic", topic, "--num-records", str(10**9), "--record-size", str(RECORD),
        "--throughput", "-1", "--command-property", f"client.id={client}", "acks=1",
    )  # fmt: skip


def _end(peer: Peer, topic: str) -> int:
    """Records at the log's end."""
    with peer.connect() as wire:
        answer = wire.call(requests.end_offset(topic, 0))
    code, _, offset = requests.END_FIELDS.unpack_from(
        answer, len(answer) - requests.END_FIELDS.size
    )
    if code:
        raise WrongAnswer(f"ListOffsets answered error {code}")
    return int(offset)


def _rate(peer: Peer, topics: list[str], seconds: float) -> list[float]:
    """MB/s of each topic over so long."""
    before, begun = [_end(peer, topic) for topic in topics], time.monotonic()
    time.sleep(seconds)
    after, passed = [_end(peer, topic) for topic in topics], time.monotonic() - begun
    pairs = zip(before, after, strict=True)
    return [(new - old) * RECORD / passed / 1e6 for old, new in pairs]


def _set_quota(peer: Peer, client: str, key: str) -> None:
    server = "{}:{}".format(*peer.address)
    done = kafka.tool(
        "kafka.admin.ConfigCommand", "--bootstrap-server", server, "--alter", "--entity-type",
        "clients", "--entity-name", client, "--add-config", f"{key}={QUOTA}",
    )  # fmt: skip
    if done.returncode:
        raise WrongAnswer(f"kafka-configs failed: {done.stdout}{done.stderr}")


def producer(command: Callable[[Peer, str, str], list[str]]) -> Callable[..., Figures]:
    """The row of a producer under a quota."""

    def once(peer: Peer, warm: float, seconds: float) -> Figures:
        client = f"limited-{time.time_ns()}-{next(_numbers)}"
        topic, free = peer.create(), peer.create()
        _set_quota(peer, client, "producer_byte_rate")
        with _running(_load("produce", peer, free, "free", str(BESIDE))):
            time.sleep(2)
            (alone,) = _rate(peer, [free], seconds / 3)
            with _running(command(peer, topic, client)):
                time.sleep(warm)
                limited, beside = _rate(peer, [topic, free], seconds)
        for name in (topic, free):
            peer.delete(name)
        return Figures(limited, beside, alone)

    return once


def consumer(peer: Peer, warm: float, seconds: float) -> Figures:
    """The row of a consumer under a quota."""
    client = f"limited-{time.time_ns()}-{next(_numbers)}"
    topic, free = peer.create(), peer.create()
    with _running(_load("produce", peer, topic, "filler", "0", str(_SMALL))):
        while _end(peer, topic) < _FILL:
            time.sleep(0.1)
    _set_quota(peer, client, "consumer_byte_rate")
    with (
        tempfile.TemporaryFile() as out,
        _running(_load("produce", peer, free, "free", str(BESIDE))),
    ):
        time.sleep(2)
        (alone,) = _rate(peer, [free], seconds / 3)
        with _running(_load("consume", peer, topic, client), out):
            time.sleep(warm)
            (beside,) = _rate(peer, [free], seconds)
        out.seek(0)
        sums = [int(line) / 1e6 for line in out.read().split()]
    for name in (topic, free):
        peer.delete(name)
    steps = [new - old for old, new in itertools.pairwise(sums)][int(warm) - 1 :]
    if not steps:
        raise WrongAnswer("the consumer said nothing")
    return Figures(sum(steps) / len(steps), beside, alone, steps)


ROWS: Final = {
    "librdkafka producer": producer(lambda p, t, c: _load("produce", p, t, c, "0")),
    "kafka-producer-perf-test": producer(_java),
    "librdkafka consumer": consumer,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quotas")
    parser.add_argument("--peer", type=peer_argument, action="append", required=True)
    parser.add_argument("--warm", type=float, default=22, help="seconds before it counts")
    parser.add_argument("--seconds", type=float, default=33, help="three times all windows")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if reason := kafka.unavailable():
        raise SystemExit(reason)
    body = []
    for row in options.rows:
        for peer in options.peer:
            print(f"  {row} on {peer.name} …", file=sys.stderr, flush=True)
            found = ROWS[row](peer, options.warm, options.seconds)
            off = found.limited / (QUOTA / 1e6) - 1
            seconds = f"{min(found.seconds):.1f}–{max(found.seconds):.1f}" if found.seconds else ""
            body.append([
                row, peer.name, f"{found.limited:.2f}", f"{off * 100:+.1f} %",
                "yes" if abs(off) <= WITHIN else "no", seconds,
                f"{found.alone:.2f}", f"{found.beside:.2f}",
            ])  # fmt: skip
    head = ["client under 5 MB/s", "broker", "MB/s", "off by", "within 10 %", "in one second",
            "client beside it: alone", "beside"]  # fmt: skip
    print(tables.render(head, body, markdown=options.markdown, left=2))


if __name__ == "__main__":
    main()
