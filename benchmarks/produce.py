"""The produce load: prebuilt requests, K in flight on N connections, every answer checked.

To stay cheaper than any broker the loop sends slices of one buffer that holds the same request over
and over (only the correlation ids differ), reads as many answers as have arrived with one
recv_into, and looks at each with one unpack_from. One process, no threads.
"""

import select
import time
from dataclasses import dataclass

from benchmarks import batches, requests
from benchmarks.peer import Peer, Wire, WrongAnswer


@dataclass(frozen=True)
class ProduceRow:
    """What to send. records × size bytes per request, in_flight requests on each connection."""

    records: int
    size: int
    in_flight: int
    acks: int = 1
    connections: int = 1
    version: int = 7

    @property
    def title(self) -> str:
        size = f"{self.size} B" if self.size < 1000 else f"{self.size // 1000} KB"
        text = f"produce {self.records} × {size}, {self.in_flight} in flight, acks={self.acks}"
        if self.connections > 1:
            text += f", {self.connections} connections"
        return text + (f", v{self.version}" if self.version != 7 else "")


@dataclass(frozen=True)
class Result:
    """What was measured. cpu_us: of the broker per request, None when its pid is not known."""

    requests_s: float
    mb_s: float
    cpu_us: float | None


class Flow:
    """One connection with its requests in flight.

    Invariant: answers arrive in the order of the requests, correlation ids run 0 … 2K-1 and again,
    base offsets only grow (by exactly the batch's records when nobody else writes to the
    partition).
    """

    __slots__ = (
        "at",
        "due",
        "exact",
        "have",
        "last",
        "length",
        "packed",
        "records",
        "shape",
        "turn",
        "wire",
    )

    def __init__(
        self, wire: Wire, row: ProduceRow, topic: str, partition: int, batch: bytes
    ) -> None:
        self.wire = wire
        self.shape = requests.produce_shape(topic, row.version)
        self.turn = 2 * row.in_flight
        once = [
            requests.produce(topic, partition, batch, row.acks, i, row.version)
            for i in range(self.turn)
        ]
        self.length = len(once[0])
        self.packed = memoryview(b"".join(once))
        self.records = row.records
        self.exact = row.connections == 1
        self.at = self.due = self.have = 0
        self.last = -row.records

    def send(self, count: int) -> None:
        """Send the next `count` (at most K) requests, in one or two writes."""
        length, at, end = self.length, self.at, self.at + count
        if end > self.turn:
            self.wire.socket.sendall(self.packed[at * length :])
            at, end = 0, end - self.turn
        self.wire.socket.sendall(self.packed[at * length : end * length])
        self.at = end % self.turn

    def receive(self) -> int:
        """One read; check and count the whole answers that are there, keep the rest for the next
        call.
        """
        wire, (size, _, fields, place) = self.wire, self.shape
        got = wire.socket.recv_into(wire.view[self.have :])
        if not got:
            raise WrongAnswer("the broker closed the connection")
        have, base, due, last = self.have + got, 0, self.due, self.last
        buffer, unpack, records = wire.buffer, fields.unpack_from, self.records
        while have - base >= size:
            code, offset = unpack(buffer, base + place)
            if code or offset < last + records or (self.exact and offset != last + records):
                raise WrongAnswer(f"Produce answered error {code}, offset {offset} after {last}")
            if buffer[base + 7] != due & 0xFF:
                raise WrongAnswer("answers are not in the order of the requests")
            last, due, base = offset, (due + 1) % self.turn, base + size
        if base != have and base:
            wire.view[: have - base] = bytes(wire.view[base:have])
        self.have, self.due, self.last = have - base, due, last
        return base // size


def run(peer: Peer, row: ProduceRow, seconds: float) -> Result:
    """Load `peer` for `seconds` on a fresh topic and delete it. Raises WrongAnswer, OSError."""
    topic = peer.create(row.connections)
    batch = batches.uniform(row.records, row.size, time.time_ns() // 1_000_000)
    flows = [Flow(peer.connect(), row, topic, i, batch) for i in range(row.connections)]
    try:
        load(flows, row, min(0.3, seconds / 4))
        cpu, begun = peer.cpu_seconds(), time.perf_counter()
        done = load(flows, row, seconds)
        passed, after = time.perf_counter() - begun, peer.cpu_seconds()
    finally:
        for flow in flows:
            flow.wire.close()
        peer.delete(topic)
    used = None if cpu is None or after is None else (after - cpu) / done * 1e6
    return Result(done / passed, done * flows[0].length / passed / 1e6, used)


def load(flows: list[Flow], row: ProduceRow, seconds: float) -> int:
    """Keep K in flight for `seconds`, then wait for what is out. Returns the requests answered."""
    done, end, clock = 0, time.perf_counter() + seconds, time.perf_counter
    for flow in flows:
        flow.send(row.in_flight)
    if len(flows) == 1:
        flow = flows[0]
        while clock() < end:
            if count := flow.receive():
                done += count
                flow.send(count)
    else:
        poll, by_fd = select.poll(), {flow.wire.socket.fileno(): flow for flow in flows}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        while clock() < end:
            for fd, _ in poll.poll(1000):
                flow = by_fd[fd]
                if count := flow.receive():
                    done += count
                    flow.send(count)
    return done + sum(_drain(flow, row.in_flight) for flow in flows)


def _drain(flow: Flow, out: int) -> int:
    done = 0
    while done < out:
        done += flow.receive()
    return done
