"""A supervisor with toy children: `python toy_appliance.py DATA_DIR [key=value …]`, one JSON line
when ready.

The toy netproc answers lines over TCP: `who`, `ask KIND INDEX`, `garbage`, `jump`, `crash`,
`thread` (which crashes). A file
`crash-NAME` in the data folder makes that child fail at its start, `hopeless-NAME` makes it say
that it can never serve.
"""

import json
import os
import select
import socket
import struct
import sys

# As console.main does: kio would import hypothesis, 0.3 s of processor time at each start.
sys.modules.setdefault("hypothesis", None)

from appliance.base.errors import CannotServe
from appliance.ring.messages import ANSWERED, APPEND, APPENDED, FORWARD
from appliance.ring.process_table import DRAINING, READY, STATE_NAMES, Peer
from appliance.shell.flusher import Flusher
from appliance.shell.links import Links
from appliance.shell.loop import STOP, Loop
from appliance.shell.seat import UNBEGUN
from appliance.supervisor import CannotStart, Layout, run
from appliance.supervisor.folder import CLEAN_NAME


class Toy:
    drain_stage = 0

    def __init__(self, seat):
        if os.path.exists(os.path.join(seat.data_dir, f"crash-{seat.me}")):
            raise RuntimeError(f"poisoned {seat.me}")
        if os.path.exists(os.path.join(seat.data_dir, f"hopeless-{seat.me}")):
            raise CannotServe(f"hopeless {seat.me}")
        self.seat = seat
        self.links = Links(seat)
        self.loop = Loop(seat, self.links)
        self.begun = False

    def run(self):
        self.loop.run(self)
        path = os.path.join(self.seat.data_dir, f"unbegun-{self.seat.me}")
        return UNBEGUN if os.path.exists(path) else 0

    def peers_changed(self, peers):
        pass

    def handle(self, peer, messages):
        pass

    def start(self):
        self.begun = True
        self.links.set_state(READY)

    def run_once(self, now_ns):
        if self.seat.processes.drain >= self.drain_stage:
            assert not os.path.exists(os.path.join(self.seat.data_dir, CLEAN_NAME))
            with open(os.path.join(self.seat.data_dir, "ended"), "a") as file:
                file.write(f"{self.seat.me}\n")
            return STOP
        if not self.begun:
            self.start()
        self.links.flush()
        return 1000


class ToyControl(Toy):
    """With a file `member` in the data folder it belongs to a cluster, and leaves it, or not."""

    drain_stage = 3

    def run_once(self, now_ns):
        table = self.seat.processes
        if table.leaving and table.member and self.leaves:
            with open(os.path.join(self.seat.data_dir, "ended"), "a") as file:
                file.write("left\n")
            table.set_member(False)
            os.eventfd_write(self.seat.supervisor_doorbell, 1)
        return super().run_once(now_ns)

    def start(self):
        path = os.path.join(self.seat.data_dir, "member")
        self.leaves = False
        if os.path.exists(path):
            with open(path) as file:
                self.leaves = file.read() == "leaves"
            self.seat.processes.set_member(True)
        self.seat.processes.publish_metadata(5)
        self.links.wake_sleepers()
        super().start()

    def handle(self, peer, messages):
        writer = self.links.writer(*peer)
        for m in messages:
            assert m.op == FORWARD
            writer.push_with_payload(ANSWERED, 1, 0, m.token, payload=m.payload[::-1])


class ToyIoproc(Toy):
    drain_stage = 2

    def handle(self, peer, messages):
        writer = self.links.writer(*peer)
        for m in messages:
            assert m.op == APPEND
            assert bytes(self.seat.arenas[peer.index][m.a : m.a + m.e]) == b"hello"
            writer.push(APPENDED, 1, m.handle, m.token, self.seat.generation)


class ToyNetproc(Toy):
    drain_stage = 1

    def __init__(self, seat):
        super().__init__(seat)
        self.clients = {}
        self.waiting = {}
        self.tokens = 0

    def start(self):
        if not self.seat.processes.cluster_ready:
            return
        for listener in self.seat.listeners:
            self.loop.register(listener.fileno(), select.EPOLLIN, Accept(self, listener))
        super().start()

    def peers_changed(self, peers):
        for token, (peer, client) in list(self.waiting.items()):
            if peer in peers:
                del self.waiting[token]
                client.answer({"lost": str(peer)})

    def handle(self, peer, messages):
        for m in messages:
            asked, client = self.waiting.pop(m.token)
            assert asked == peer
            client.answer({"generation": m.a, "payload": m.payload.decode()})

    def run_once(self, now_ns):
        if self.seat.processes.drain:
            self.links.set_state(DRAINING)
        return super().run_once(now_ns)

    def who(self):
        table = self.seat.processes
        return {
            str(p): {
                "pid": table.pid(p),
                "generation": table.generation(p),
                "state": STATE_NAMES[table.state(p)],
            }
            for p in table.peers
        } | {"clean": self.seat.clean, "metadata": table.metadata_offset}

    def ask(self, client, kind, index):
        peer = Peer(kind, index)
        self.tokens += 1
        token = self.tokens
        writer = self.links.writer(*peer)
        self.seat.arenas[self.seat.index][:5] = b"hello"
        if kind == 0:
            pushed = writer.push_with_payload(FORWARD, 0, 0, token, a=0, e=5, payload=b"abc")
        else:
            pushed = writer.push(APPEND, 0, 0, token, a=0, e=5)
        if pushed:
            self.waiting[token] = (peer, client)
        else:
            client.answer({"lost": str(peer)})


class Accept:
    def __init__(self, netproc, listener):
        self.netproc = netproc
        self.listener = listener

    def ready(self, mask):
        try:
            connection, _ = self.listener.accept()
        except BlockingIOError:
            return  # another netproc shares a passed socket
        client = Client(self.netproc, connection)
        self.netproc.clients[connection.fileno()] = client
        self.netproc.loop.register(connection.fileno(), select.EPOLLIN, client)


class Client:
    def __init__(self, netproc, connection):
        self.netproc = netproc
        self.connection = connection

    def answer(self, value):
        self.connection.sendall(json.dumps(value).encode() + b"\n")

    def ready(self, mask):
        lines = self.connection.recv(4096).decode().splitlines()
        for line in lines or [""]:
            self.obey(line.split())

    def obey(self, line):
        netproc = self.netproc
        if not line:
            netproc.loop.unregister(self.connection.fileno())
            del netproc.clients[self.connection.fileno()]
            self.connection.close()
        elif line[0] == "who":
            self.answer(netproc.who())
        elif line[0] == "ask":
            netproc.ask(self, int(line[1]), int(line[2]))
        elif line[0] == "crash":
            raise RuntimeError("asked to crash")
        elif line[0] == "thread":  # its bell is gone, so that nobody would take what it did
            threads = Flusher(1)
            os.close(threads.fd)
            threads.submit((), lambda: None)
        elif line[0] in ("garbage", "jump"):
            out = netproc.seat.rings[Peer(1, 0)].out
            if line[0] == "garbage":
                out[128:2048] = os.urandom(1920)
            jump = 1 if line[0] == "garbage" else 1 << 40
            head = struct.unpack_from("<Q", out)[0]
            struct.pack_into("<Q", out, 0, head + jump)
            os.eventfd_write(netproc.seat.doorbells[Peer(1, 0)], 1)


ENTRIES = {
    kind: (lambda seat, toy=toy: toy(seat).run())
    for kind, toy in enumerate((ToyControl, ToyIoproc, ToyNetproc))
}


def on_ready(addresses, seconds):
    print(json.dumps({"address": addresses[0], "seconds": seconds, "pid": os.getpid()}), flush=True)


def main():
    data_dir, *pairs = sys.argv[1:]
    options = {key: json.loads(value) for key, value in (pair.split("=", 1) for pair in pairs)}
    port = options.pop("port", 0)
    layout = Layout(
        listeners=(("127.0.0.1", port),), arena_bytes=1 << 22, partition_rows=64, **options
    )
    try:
        return run(None, data_dir=data_dir, on_ready=on_ready, layout=layout, entries=ENTRIES)
    except CannotStart as cause:
        print(cause, file=sys.stderr)
        return 2


def connect(address):
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20)


if __name__ == "__main__":
    sys.exit(main())
