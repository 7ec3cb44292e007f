"""Connections without a process, over socket pairs, and the test in the place of whoever
serves their requests."""

import contextlib
import socket
from types import SimpleNamespace

from appliance.config.broker import BrokerConfig
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.connection_states import STARVING
from appliance.netproc.connections.connection_sweep import ConnectionSweep
from appliance.netproc.connections.connections import Connections
from appliance.netproc.connections.connections_state import ConnectionsState
from appliance.netproc.connections.receivers import RequestReceiver
from appliance.netproc.connections.request_time import Stopwatch
from appliance.netproc.transport.transport import Plain
from appliance.ring.arena import UNIT
from appliance.ring.client_table import ClientTable
from appliance.ring.counters import Counters

WHY = "its loop is a fake, and a ConnectionsState takes a Loop only"


class FakeLoop:
    """Notes what each connection waits for."""

    def __init__(self):
        self.masks = {}

    def register(self, fd, mask, handler):
        self.masks[fd] = mask

    def modify(self, fd, mask):
        assert self.masks[fd] != mask, "a system call for nothing"
        self.masks[fd] = mask

    def unregister(self, fd):
        del self.masks[fd]


class Served(RequestReceiver):
    """Takes frames as a server does; keeps the slab of every `hold`-th one until `release`."""

    def __init__(self, shared, hold=0):
        self.shared = shared
        self.frames = []
        self.held = []
        self.hold = hold
        self.abandons = []
        self.on_request = lambda connection: None

    def request(self, connection, position, end):
        self.frames.append(bytes(self.shared.memory[position:end]))
        if self.hold and len(self.frames) % self.hold == 0:
            slab = connection.framing.slab.hold_slab()
            self.held.append((slab, position, end, self.frames[-1]))
        self.on_request(connection)

    def level(self, connection):
        return True

    def abandoned(self, x):
        self.abandons.append(x)

    def release(self):
        for slab, position, end, frame in self.held:
            assert bytes(self.shared.memory[position:end]) == frame, "held bytes were written over"
            slab.let_go()
        self.held.clear()


class FloorPlan:
    """shared, receiver and what was complained about; `pair` makes a connection and its peer."""

    def __init__(self, arena_bytes=64 * UNIT, hold=0):
        self.complaints = []
        self.loop = FakeLoop()
        log = SimpleNamespace(
            event_from=lambda *args, why, **_: self.complaints.append((args[1], why)),
            event_seldom=lambda *args, why, **_: self.complaints.append((args[1], why)),
        )
        memory = memoryview(bytearray(arena_bytes))
        table = memoryview(bytearray(Counters.bytes_needed(1, 1)))
        self.counts = Counters(table, ioprocs=1, netprocs=1).answers[0]
        watch, config = Stopwatch(None), BrokerConfig()
        committed = memoryview(bytearray(8)).cast("q")
        seen = memoryview(bytearray(ClientTable.bytes_needed(1)))
        self.clients = ClientTable(seen, 1)
        self.shared = ConnectionsState(
            self.loop, log, watch, memory, config, self.counts, self.clients.rows[0], committed
        )
        self.shared.limits.set(100, 100, {})
        self.receiver = Served(self.shared, hold)
        self.connections = Connections(self.shared, self.receiver, None, config)
        self.ends = []

    def pair(self, transport=Plain):
        ours, theirs = socket.socketpair()
        for sock in (ours, theirs):
            sock.setblocking(False)
            self.ends.append(sock)
        assert self.shared.limits.admit("peer") is None
        return Connection(self.shared, self.receiver, transport(ours), "peer", 0), theirs

    def mask(self, connection):
        """What the loop watches for on its behalf."""
        return self.loop.masks[connection.transport.fd]

    def turn(self):
        """What the server does about those who wait."""
        self.shared.now_ns += 1_000_000
        self.connections.resume_waiting(True)

    def sweep(self, now_ns, idle_ns, patience_ns, least_rate=0):
        """What the server does once a second."""
        self.shared.now_ns = max(self.shared.now_ns, now_ns)
        sweeping = ConnectionSweep(self.shared, idle_ns, patience_ns, least_rate)
        for connection in list(self.shared.open.values()):
            sweeping.sweep(connection, now_ns)

    def close(self):
        for connection in list(self.shared.open.values()):
            connection.close()
        for end in self.ends:
            end.close()


def deliver(plan, connection, peer, data):
    """Push all of `data` through the socket, letting the connection read and resume as the loop
    would."""
    sent = 0
    idle = turns = 0
    frames = plan.receiver.frames
    while idle < 3:
        turns += 1
        assert turns < 20_000, "the connection is stuck"
        if sent < len(data):
            with contextlib.suppress(BlockingIOError):
                sent += peer.send(data[sent : sent + 300_000])
        before = len(frames), connection.framing.end, len(connection.framing.aside)
        if connection.state == STARVING:
            plan.receiver.release()
            plan.turn()
        else:
            connection.ready(1)
        moved = (
            len(frames),
            connection.framing.end,
            len(connection.framing.aside),
        ) != before or sent < len(data)
        idle = 0 if moved else idle + 1
        if connection.closed:
            return


def frame(body):
    """With its length."""
    return len(body).to_bytes(4, "big") + body
