"""What TLS costs: beside Apache Kafka's TLS with the same certificate, and beside plain connections
to the same appliance, in one run.

    python -m benchmarks.tls [--repeat 5] [--seconds 4] [--version 1.3] [--short] [--markdown]

Produce and fetch in MB/s, small requests a second with one and with five in flight, new connections
a second (connect, handshake, one request, close; no handshake is resumed), and p50 and p99 of a
small produce and of a new connection. Both brokers acknowledge in the page cache (acks=1). The same
client, Python's ssl over OpenSSL, is on one side of all of it: where it is the limit, ratios come
out closer to 1 than they are, so the CPU of the broker's processes for each request stands beside.
"""

import argparse
import ssl
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import batches, fetch, kafka, machine, produce, raw, requests, tables
from benchmarks.certificates import Authority, put
from benchmarks.compare.systems import System
from benchmarks.fetch import Data, FetchRow
from benchmarks.peer import Peer, Wire
from benchmarks.produce import Flow, ProduceRow
from benchmarks.startup import byte_compile

HOST = "127.0.0.1"
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
OURS, PLAIN, KAFKA = "penstock", "penstock plain", "kafka"
LARGE, SMALL = ProduceRow(64, 1000, 5), ProduceRow(1, 100, 1)
READ = FetchRow(1 << 20)
SHORT_BYTES = 16 << 20

Figures = dict[str, float]
Found = dict[tuple[str, str], list[float]]
"""(figure, of whom) → a value for each round."""


class Sealed(System):
    """A broker with a plain and a TLS listener."""

    def __init__(self, name: str, data: Path, certificates: Path) -> None:
        super().__init__(name, "D1", data)
        self._certificates = certificates
        self.tls_port = kafka.free_port(self.port)

    def peer_over(self, context: ssl.SSLContext | None, name: str) -> Peer:
        """Its listener with TLS; without a context that without."""
        port = self.port if context is None else self.tls_port
        return Peer(name, (HOST, port), self.pid, context)

    @property
    def settings(self) -> dict[str, str]:
        return super().settings | {
            "listeners": f"PLAINTEXT://{HOST}:{self.port},SSL://{HOST}:{self.tls_port}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._certificates / "server.pem"),
        }

    def prepare(self) -> list[str]:
        if self.name != KAFKA:
            command = super().prepare()
            at = command.index("--listen")  # the setting names both
            return command[:at] + command[at + 2 :]
        self.data.mkdir(parents=True, exist_ok=True)
        node = kafka.Kafka(self.data, self.port)
        listeners = self.settings["listeners"]
        node.settings |= self.settings | {
            "listeners": f"{listeners},CONTROLLER://{HOST}:{node.controller_port}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        }
        return kafka.java("kafka.Kafka", node.format(), heap=node.heap)


def share_of(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def percentiles(what: str, values_s: list[float]) -> Figures:
    return {f"{what}, p{round(share * 100)} ms": share_of(values_s, share) * 1e3
            for share in (0.5, 0.99)}  # fmt: skip


def produced(peer: Peer, seconds: float) -> Figures:
    found: Figures = {}
    large = produce.run(peer, LARGE, seconds)
    found["produce, MB/s"] = large.mb_s
    for in_flight in (1, 5):
        done = produce.run(peer, ProduceRow(SMALL.records, SMALL.size, in_flight), seconds)
        found[f"small produces/s, {in_flight} in flight"] = done.requests_s
        if done.cpu_us is not None:
            found[f"broker's CPU of each, {in_flight} in flight, µs"] = done.cpu_us
    if large.cpu_us is not None:
        found["broker's CPU of 1 MB produced, µs"] = large.cpu_us * large.requests_s / large.mb_s
    return found


def waited(peer: Peer, seconds: float) -> Figures:
    """A small produce, one at a time."""
    topic, waits = peer.create(), []
    with peer.connect() as wire:
        flow = Flow(wire, SMALL, topic, 0, batches.uniform(1, SMALL.size, 1_700_000_000_000))
        end = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < end:
            flow.send(1)
            while not flow.receive():
                pass
            waits.append(time.perf_counter() - begun)
    peer.delete(topic)
    return percentiles("a small produce", waits)


def fetched(peer: Peer, data: Data, seconds: float) -> Figures:
    done = fetch.run(peer, READ, data, seconds)
    found = {"fetch, MB/s": done.mb_s}
    if done.cpu_us is not None:
        found["broker's CPU of 1 MB fetched, µs"] = done.cpu_us * done.requests_s / done.mb_s
    return found


def connected(peer: Peer, seconds: float) -> Figures:
    """One after the other, each with one request."""
    waits, cpu = [], peer.cpu_seconds()
    begun = now = time.perf_counter()
    while now < begun + seconds:
        with Wire(peer.address, 1 << 12, peer.context) as wire:
            wire.call(requests.api_versions())
        waits.append(time.perf_counter() - now)
        now = time.perf_counter()
    found = {"new connections/s": len(waits) / (now - begun)}
    after = peer.cpu_seconds()
    if cpu is not None and after is not None:
        found["broker's CPU of each connection, µs"] = (after - cpu) / len(waits) * 1e6
    return found | percentiles("a new connection", waits)


def measure(options: argparse.Namespace, folder: Path) -> Found:
    """Everything, in alternation; what comes first in one round comes last in the next."""
    authority = Authority("a CA of this run")
    put(folder / "ca.pem", authority.pem)
    authority.issue("CN=broker,O=Benchmark", rsa_bits=2048).write(folder, "server")
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.minimum_version = context.maximum_version = VERSIONS[options.version]
    systems = {name: Sealed(name, folder / name, folder) for name in (OURS, KAFKA)}
    found: Found = {}
    try:
        peers, data = [], {}
        for name, system in systems.items():
            system.start()
            peers.append(system.peer_over(context, name))
            plain = system.peer_over(None, PLAIN)
            raw.warm([peers[-1]], 0.5 if options.short else 5)
            filled = fetch.fill(plain, SHORT_BYTES) if options.short else fetch.fill(plain)
            data[name] = filled
            if name == OURS:
                peers.append(plain)
                data[PLAIN] = filled
        for number in range(options.repeat):
            for peer in peers[:: -1 if number % 2 else 1]:
                for title, value in one(peer, data[peer.name], options.seconds).items():
                    found.setdefault((title, peer.name), []).append(value)
                print(f"round {number + 1}, {peer.name}", file=sys.stderr, flush=True)
    finally:
        for system in systems.values():
            system.stop()
    return found


def one(peer: Peer, data: Data, seconds: float) -> Figures:
    loads: list[Callable[[], Figures]] = [
        lambda: produced(peer, seconds),
        lambda: fetched(peer, data, seconds),
        lambda: waited(peer, seconds),
        lambda: connected(peer, seconds),
    ]
    found: Figures = {}
    for load in loads:
        found |= load()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tls", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, help="rounds (default: 5)")
    parser.add_argument("--seconds", type=float, help="of each measurement (default: 4)")
    parser.add_argument("--version", choices=VERSIONS, default="1.3", help="of TLS")
    parser.add_argument("--short", action="store_true", help="whether it runs: figures mean little")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    options.repeat = options.repeat or (1 if options.short else 5)
    options.seconds = options.seconds or (0.3 if options.short else 4.0)
    kafka.fetch()
    byte_compile()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        found = measure(options, Path(folder))
    rows = []
    for figure in dict.fromkeys(key[0] for key in found):
        tls, other, plain = (found.get((figure, name), []) for name in (OURS, KAFKA, PLAIN))
        rows.append([figure, *map(tables.spread, (tls, other)), tables.ratio(tls, other),
                     tables.spread(plain), tables.ratio(tls, plain)])  # fmt: skip
    print(f"TLS {options.version}, {machine.state()}; medians (range)\n")
    head = ["", "penstock TLS", "kafka TLS", "ratio", "penstock plain", "TLS to plain"]
    print(tables.render(head, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
