"""What does it cost that a record is visible only when it is durable?

    python -m benchmarks.visible [--repeat 5] [--seconds 3]

One appliance, topics with flush.policy=group and with os side by side, in alternation. First the
way of one record of 100 bytes every 2 ms: from its producer's send to the answer of a consumer that
waits at the end, and to the producer's own acknowledgement. Then how many requests of 16 × 1 KB an
acks=1 producer gets through with five in flight, alone and beside a consumer that reads along. The
load is a process of its own and shares the processors with the appliance.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from struct import unpack_from

from benchmarks import batches, machine, produce, raw, requests, tables
from benchmarks.compare.systems import System
from benchmarks.peer import Peer, Wire, WrongAnswer
from benchmarks.produce import Flow, ProduceRow
from benchmarks.startup import byte_compile

EVERY_S = 0.002
SETTLE = 100
POLICIES = ("group", "os")
ONE = 100
LOAD = ProduceRow(16, 1000, 5)
SHARES = {"p50": 0.5, "p99": 0.99}
READ_BYTES = 1 << 20

Found = dict[tuple[str, str], list[float]]
"""(what, policy) to a value for each round."""


class Tail:
    """A consumer at the end of a partition: ask, and later take the answer."""

    def __init__(self, wire: Wire, topic: str) -> None:
        self.wire = wire
        self.topic = topic
        self.offset = 0

    def ask(self) -> None:
        wire, request = self.wire, requests.fetch(self.topic, 0, self.offset, READ_BYTES, 7)
        wire.socket.sendall(request)

    def take(self) -> None:
        """Raises WrongAnswer. What was new is behind `offset` then."""
        wire, shape = self.wire, requests.fetch_shape(self.topic, 4)
        wire.exact(0, 4)
        (size,) = unpack_from(">i", wire.buffer)
        wire.exact(4, size + 4)
        code, high = shape.fields.unpack_from(wire.buffer, shape.at)
        if code or high < self.offset:
            raise WrongAnswer(f"Fetch at {self.offset} answered error {code}, end {high}")
        self.offset = high


def ways(peer: Peer, policy: str, acks: int, seconds: float) -> tuple[list[float], list[float]]:
    """ms from a record's send to the waiting consumer's answer, and to the acknowledgement."""
    topic = peer.create(1, {"flush.policy": policy})
    seen, told = [], []
    with peer.connect() as wire, peer.connect(READ_BYTES + (1 << 16)) as other:
        batch = batches.uniform(1, ONE, time.time_ns() // 1_000_000)
        flow = Flow(wire, ProduceRow(1, ONE, 1, acks), topic, 0, batch)
        tail = Tail(other, topic)
        for number in range(int(seconds / EVERY_S) + SETTLE):
            tail.ask()
            time.sleep(EVERY_S)
            begun = time.perf_counter()
            flow.send(1)
            while not flow.receive():
                pass
            acknowledged = time.perf_counter()
            while tail.offset <= number:
                tail.take()
                if tail.offset <= number:
                    tail.ask()
            if number >= SETTLE:
                seen.append((time.perf_counter() - begun) * 1e3)
                told.append((acknowledged - begun) * 1e3)
    peer.delete(topic)
    return sorted(seen), sorted(told)


def read_along(peer: Peer, topic: str, over: Event) -> None:
    """Consume until told to end."""
    with peer.connect(READ_BYTES + (1 << 16)) as wire:
        tail = Tail(wire, topic)
        while not over.is_set():
            tail.ask()
            tail.take()


def throughput(peer: Peer, policy: str, seconds: float, *, reader: bool) -> float:
    """Requests per second of an acks=1 producer."""
    topic = peer.create(1, {"flush.policy": policy, "retention.bytes": str(256 << 20)})
    fork = multiprocessing.get_context("fork")
    over = fork.Event()
    along = fork.Process(target=read_along, args=(peer, topic, over))
    if reader:
        along.start()
    batch = batches.uniform(LOAD.records, LOAD.size, time.time_ns() // 1_000_000)
    flow = Flow(peer.connect(), LOAD, topic, 0, batch)
    try:
        produce.load([flow], LOAD, 0.3)
        begun = time.perf_counter()
        done = produce.load([flow], LOAD, seconds)
        passed = time.perf_counter() - begun
    finally:
        over.set()
        flow.wire.close()
        if reader:
            along.join()
    peer.delete(topic)
    return done / passed


def round_of(peer: Peer, policy: str, seconds: float, found: Found) -> None:
    for acks in (1, -1):
        name = "all" if acks == -1 else acks
        seen, told = ways(peer, policy, acks, seconds)
        for share, part in SHARES.items():
            for what, values in (("to the consumer", seen), ("to its acknowledgement", told)):
                value = values[int(len(values) * part)]
                found.setdefault((f"acks={name}, {what}, {share} ms", policy), []).append(value)
    for reader in (False, True):
        beside = "beside a consumer" if reader else "alone"
        value = throughput(peer, policy, seconds, reader=reader)
        found.setdefault((f"acks=1, 16 × 1 KB, {beside}, requests/s", policy), []).append(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.visible", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--tree", type=Path, help="the appliance's sources, when not these")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    byte_compile(*([options.tree] if options.tree else []))
    found: Found = {}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        system = System("penstock", "D2", Path(folder) / "penstock", options.tree)
        try:
            raw.warm([system.start().peer], 3)
            for number in range(options.repeat):
                for policy in POLICIES[:: -1 if number % 2 else 1]:
                    round_of(system.peer, policy, options.seconds, found)
                    print(f"round {number + 1}, {policy}: done", file=sys.stderr, flush=True)
        finally:
            system.stop()
    rows = tables.rows_beside(found, *POLICIES)
    print(f"{machine.state()}; medians (range)\n")
    head = ["", *(f"flush.policy={policy}" for policy in POLICIES), "ratio"]
    print(tables.render(head, rows, markdown=options.markdown, left=1))


if __name__ == "__main__":
    main()
