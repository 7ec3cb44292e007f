"""The load of committers: each connection commits one partition's offset for a group of its own.

Requests are built before the clock runs; each answer is checked. One process, no threads.
"""

import select
import time
from dataclasses import dataclass
from struct import unpack_from

from benchmarks import group_requests as groups
from benchmarks.peer import Peer, Wire, WrongAnswer
from benchmarks.produce import Result

LIMIT_S = 30.0


@dataclass(frozen=True)
class CommitRow:
    """in_flight requests on each of so many connections."""

    connections: int
    in_flight: int

    @property
    def title(self) -> str:
        several = f"{self.connections} connections, {self.connections} groups"
        one = "1 connection, 1 group"
        return f"commits, {one if self.connections == 1 else several}, {self.in_flight} in flight"


class Committing:
    """One connection. turn: the requests, sent again and again; their correlation ids count up."""

    def __init__(self, wire: Wire, group: str, topic: str, in_flight: int) -> None:
        self.wire = wire
        self.turn = [groups.commit(group, [(topic, 0, at)], at) for at in range(2 * in_flight)]
        self.size = 4 + 4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2
        self.sent = self.due = self.have = 0

    def send(self, count: int) -> None:
        turn, at = self.turn, self.sent
        wanted = [turn[(at + more) % len(turn)] for more in range(count)]
        self.wire.socket.sendall(wanted[0] if count == 1 else b"".join(wanted))
        self.sent += count

    def receive(self) -> int:
        """One read; how many whole answers it brought."""
        wire, size = self.wire, self.size
        got = wire.socket.recv_into(wire.view[self.have :])
        if not got:
            raise WrongAnswer("the broker closed the connection")
        have, at = self.have + got, 0
        while have - at >= size:
            length, correlation = unpack_from(">ii", wire.buffer, at)
            (code,) = unpack_from(">h", wire.buffer, at + size - 2)
            if code or length != size - 4 or correlation != self.due % len(self.turn):
                raise WrongAnswer(f"OffsetCommit answered error {code} ({length} bytes)")
            self.due += 1
            at += size
        if at:
            wire.view[: have - at] = bytes(wire.view[at:have])
        self.have = have - at
        return at // size


def ready(peer: Peer, group: str) -> None:
    """Wait until the group's coordinator serves. Raises WrongAnswer."""
    end = time.monotonic() + LIMIT_S
    with peer.connect() as wire:
        while True:
            (found,) = unpack_from(">h", wire.call(groups.find_coordinator(group)), 4)
            if not found:
                code, _ = groups.fetched_offsets(wire.call(groups.fetch_all_offsets(group, 0)))
                if not code:
                    return
            if time.monotonic() > end:
                raise WrongAnswer(f"no coordinator for {group} after {LIMIT_S:g} s")
            time.sleep(0.05)


def run(peer: Peer, row: CommitRow, seconds: float) -> Result:
    """Load `peer` for `seconds`. Raises WrongAnswer, OSError."""
    topic = peer.create()
    names = [f"{topic}-{number}" for number in range(row.connections)]
    for name in names:
        ready(peer, name)
    flows = [Committing(peer.connect(), name, topic, row.in_flight) for name in names]
    try:
        _load(flows, row, min(0.3, seconds / 4))
        cpu, begun = peer.cpu_seconds(), time.perf_counter()
        done = _load(flows, row, seconds)
        passed, after = time.perf_counter() - begun, peer.cpu_seconds()
    finally:
        for flow in flows:
            flow.wire.close()
        peer.delete(topic)
    used = None if cpu is None or after is None else (after - cpu) / done * 1e6
    return Result(done / passed, 0.0, used)


def _load(flows: list[Committing], row: CommitRow, seconds: float) -> int:
    """Keep the requests in flight for `seconds`, then wait for what is out."""
    poll, by_fd = select.poll(), {flow.wire.socket.fileno(): flow for flow in flows}
    for fd, flow in by_fd.items():
        poll.register(fd, select.POLLIN)
        flow.send(row.in_flight)
    done, end, clock = 0, time.perf_counter() + seconds, time.perf_counter
    while clock() < end:
        for fd, _ in poll.poll(1000):
            flow = by_fd[fd]
            if count := flow.receive():
                done += count
                flow.send(count)
    for flow in flows:
        while flow.due < flow.sent:
            done += flow.receive()
    return done
