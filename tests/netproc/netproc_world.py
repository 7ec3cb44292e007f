"""A whole network process without its process: a real Server over real rings, a real control, and
the test in the place of the I/O process (or a real one, when it is asked for one).

`World.turn` lets everybody have one turn; `asked` is what the I/O process has been asked since.
"""

import os
import socket
import struct
import time
from contextlib import suppress

from kio.index import load_request_schema
from sim.threads import Threads

from appliance.authorization.rights import OURSELVES
from appliance.base.clock import OsClock
from appliance.base.os_disk import OsDisk
from appliance.config.broker import BrokerConfig
from appliance.control.folder.startup import start_control
from appliance.control.shell import Control
from appliance.controller.decision import NO_LIMIT
from appliance.ioproc.main import IoProcess
from appliance.metadata.follower import Follower
from appliance.netproc.server import Server
from appliance.ring.messages import ENSURE_TOPIC, Message
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, READY, Peer
from appliance.shell.links import Links
from appliance.shell.loop import STOP, Loop
from appliance.shell.metadata_faults import tell_faults
from appliance.shell.process_authorizer import authorizer_of
from appliance.supervisor.layout import MIB, Layout
from appliance.wire import messages, request_head
from appliance.wire.build import build
from tests.seats import Seats, log_file

LAYOUT = Layout(arena_bytes=8 * MIB, partition_rows=256)
CTL, IO, NET = Peer(CONTROL, 0), Peer(IOPROC, 0), Peer(NETPROC, 0)
READABLE, WRITABLE = 1, 4


class World:
    def __init__(self, path, settings=None, topics=("flights",), authorizer=None, layout=LAYOUT):
        self.path = str(path)
        self.config = BrokerConfig.of(settings or {})
        self.fd, self.log = log_file(path, "netproc")
        self.seats = Seats(layout, self.log, self.config, self.path)
        self.memory, self.table = self.seats.memory, self.seats.table
        self.doors = [socket.create_server(("127.0.0.1", 0)) for _ in self.config.opened() or [0]]
        for door in self.doors:
            door.setblocking(False)
        self.clients = []
        self.shell, self.ended = None, False
        self.now_ns = OsClock().monotonic_ns()
        seat, io_seat, control_seat = (
            self.seats.seat(peer, authorizer=authorizer or authorizer_of(self.config), **more)
            for peer, more in ((NET, {"listeners": self.doors}), (IO, {}), (CTL, {}))
        )
        self.seat, self.io_seat = seat, io_seat
        self.io = Links(self.io_seat, self.log)
        self.control_links = Links(control_seat, self.log)
        self.links = Links(seat, self.log)
        started = start_control(control_seat, OsDisk(), OsClock(), os.urandom, self.log)
        self.control = Control(control_seat, self.control_links, self.log, started, Threads())
        self.settle()
        self.control.open_for_business()
        for name in topics:
            self.make(name)
        self.follower = Follower(OsDisk(), self.path, self.memory.partitions, tell_faults(self.log))
        self.follower.catch_up(self.table.metadata_offset)
        self.loop = Loop(seat, self.links)
        self.server = Server(seat, self.links, self.loop, self.follower, OsClock(), self.log)
        self.server.open_for_business()

    @property
    def door(self):
        """Of the first listener."""
        return self.doors[0]

    @door.setter
    def door(self, sock):
        self.doors[0] = sock

    def make(self, name):
        """A topic, before there is a server, whatever is allowed to whom."""
        context = self.control._contexts.context()
        context.rights, context.situation.permit = OURSELVES, NO_LIMIT
        asked = Message(ENSURE_TOPIC, *[0] * 13)
        requests = self.control._requests
        made = requests.ensure_topic(asked, name.encode(), context, leads=True, alone=True)
        assert made.code == 0
        self.control_turn()

    def settle(self):
        for links in (self.links, self.io, self.control_links):
            links.changed_peers()
            links.confirm()

    def turn(self, ms=1):
        """The sockets, the netproc's rings and turn, then control's."""
        server = self.server
        self.now_ns += ms * 1_000_000
        self.sockets()
        for peer, arrived in self.links.poll():
            server.handle(peer, arrived)
        self.ended = server.run_once(self.now_ns) == STOP
        self.control_turn()

    def sockets(self):
        """All are taken for readable."""
        for connection in list(self.server.shared.open.values()):
            try:  # as the loop does
                connection.ready(READABLE | connection.mask & WRITABLE)
            except Exception as bug:
                self.server.failed(connection, bug)

    def io_process(self):
        """A real one, in which everything is open; turn it with `io_turn`."""
        self.shell = IoProcess(self.io_seat, self.io, OsDisk(), self.log, self.loop)
        while self.table.state(IO) != READY:
            self.shell.run_once(self.now_ns)
        return self.shell

    def io_turn(self):
        for peer, arrived in self.io.poll():
            self.shell.handle(peer, arrived)
        self.shell.run_once(self.now_ns)

    def control_turn(self):
        for peer, arrived in self.control_links.poll():
            self.control.handle(peer, arrived)
        self.control.run_once(self.now_ns)

    def asked(self):
        """What the I/O process finds in its ring."""
        return [one for _, arrived in self.io.poll() for one in arrived]

    def tell(self, op, token, error=0, **fields):
        """A completion of the I/O process."""
        assert self.io.writer(NETPROC, 0).push(op, error + 1, 0, token, **fields)
        self.io.flush()

    def client(self, name="client", listener=0):
        """listener: the place of the listener in the settings, those of controllers last."""
        one = Client(self, name, self.doors[listener])
        self.clients.append(one)
        self.server.listeners[listener].ready(READABLE)
        return one

    def end(self):
        """Nobody is connected any more and everything asked was answered: nothing may be left."""
        for one in self.clients:
            one.close()
        self.turn()
        self.turn(ms=2000)
        assert not self.server.exchanges.living
        assert self.server.shared.arena.used == 0, "memory that nobody holds"

    def close(self):
        for one in self.clients:
            one.close()
        shared = self.server.shared
        lent = [one for one in shared.open.values() if one.sending.lent]
        for connection in list(shared.open.values()):
            connection.close()
        while any(one.sending.lent for one in lent):
            shared.long_answers.ready(READABLE)
            time.sleep(0.0005)
        self.server.close()
        if self.shell is not None:
            self.shell.close()
            self.shell.workers.probes.close()  # a process does not wait for it: a disk may hang
        self.loop.close()
        for door in self.doors:
            door.close()
        self.seats.close()
        os.close(self.fd)


class Client:
    """One connection; `ask` waits for the answer, `send` does not."""

    def __init__(self, world, name, door=None):
        self.world = world
        self.name = name.encode()
        self.sock = socket.create_connection((door or world.door).getsockname())
        self.sock.setblocking(False)
        self.sent = []
        self.got = b""

    def send(self, key, version, /, **values):
        body = messages.encode_request(build(load_request_schema(key, version), values))
        self.send_body(key, version, body)

    def send_body(self, key, version, body):
        self.sock.sendall(self.frame(key, version, body))

    def frame(self, key, version, body):
        """The bytes of the next request."""
        head = struct.pack(">hhih", key, version, len(self.sent), len(self.name)) + self.name
        head += b"\0" * request_head.is_flexible(key, version)
        self.sent.append((key, version))
        return struct.pack(">i", len(head) + len(body)) + head + body

    def answer(self):
        """(correlation id, decoded body) of the next answer; None: there is none yet."""
        with suppress(BlockingIOError):
            while more := self.sock.recv(1 << 20):
                self.got += more
        if len(self.got) < 8:
            return None
        length, number = struct.unpack_from(">ii", self.got)
        if len(self.got) < 4 + length:
            return None
        frame, self.got = self.got[8 : 4 + length], self.got[4 + length :]
        key, version = self.sent[number]
        tagged = key != request_head.API_VERSIONS and request_head.is_flexible(key, version)
        return number, messages.decode_response(key, version, frame[tagged:])

    def ask(self, key, version, turns=20, **values):
        self.send(key, version, **values)
        for _ in range(turns):
            self.world.turn()
            found = self.answer()
            if found is not None:
                assert found[0] == len(self.sent) - 1
                return found[1]
        raise AssertionError("it is not answered")

    def close(self):
        self.sock.close()
