"""The network process of the machine: today's handlers, what they have in flight, and the rings;
only sockets are missing."""

from collections import deque
from types import SimpleNamespace

from sim.transactional.machine import ARENA, DATA, IOPROCS, NET, Process
from sim.transactional.talk import Answer

from appliance.config.broker import BrokerConfig
from appliance.handlers.exchange import Exchange, FileRange, Host, Line
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.handlers.registry import handlers
from appliance.handlers.sequence_gap_guard import SequenceGapGuard
from appliance.logstore.files import LOG, stem
from appliance.netproc.in_flight.exchanges import NO_NUMBER, Exchanges
from appliance.netproc.in_flight.outbox import NOBODY_HOME
from appliance.netproc.requests.completions import Completions
from appliance.ring import messages
from appliance.ring.partition_table import SERVED_COLUMNS
from appliance.ring.process_table import IOPROC, Peer
from tests.callers import caller, rights

TICK_MS = 10
CALLER = caller().encode()


class Connection:
    """queue: requests in the order in which they are to be answered, with their tokens."""

    def __init__(self, end):
        self.end = end
        self.closed = False
        self.queue = deque()
        self.line = Line()

    def send(self):
        while self.queue and self.queue[0][1].answer is not None:
            token, x = self.queue.popleft()
            if not (self.closed or x.silent):
                self.end.send(Answer(token, b"".join(x.answer)))


class Front(Process):
    """host: what the handlers see of it."""

    def begin(self):
        self.connections = {}
        self.exchanges = Exchanges()
        self.host = self.make_host()
        self.completions = Completions(
            self.host,
            self.exchanges,
            SimpleNamespace(follow=lambda: True),
            SimpleNamespace(running=False),
            SimpleNamespace(answered=lambda token: None),
        )
        self.handlers = handlers(FetchSessions(0, lambda: 1))
        self.arena_at = 0
        self.after(0, self.tick)

    def make_host(self):
        return SimHost(self)

    def tick(self):
        self.completions.expire_overdue(self.world.clock.now_ns)
        self.turn_soon()
        self.after(TICK_MS, self.tick)

    # Clients --------------------------------------------------------------------------------------

    def received(self, end, message):
        connection = self.connections.get(end)
        if connection is None:
            connection = self.connections[end] = Connection(end)
        position = self.put(message.body)
        handler = self.handlers[message.key]
        assert handler.lowest <= message.version <= handler.highest
        end_at = position + len(message.body)
        x = Exchange(NO_NUMBER, handler, message.version, 0, rights(), position, end_at, connection)
        connection.queue.append((message.token, x))
        self.host.now_ns = self.world.clock.now_ns
        handler.begin(self.host, x)
        if x.number != NO_NUMBER and not x.pending:
            self.exchanges.end_if_done(x)
        connection.send()
        self.turn_soon()

    def put(self, body):
        """Where these bytes lie in the arena now; those of long ago are overwritten."""
        if self.arena_at + len(body) > ARENA:
            self.arena_at = 0
        at = self.arena_at
        self.arena_at += len(body)
        self.machine.arena[at : self.arena_at] = body
        return at

    def lost(self, end):
        connection = self.connections.pop(end, None)
        if connection is None:
            return
        connection.closed = True
        for _, x in connection.queue:
            if x.number != NO_NUMBER and not x.handler.keeps_body:
                self.host.cancel(x)
                self.exchanges.forget_exchange(x)
        self.turn_soon()

    # Turns ----------------------------------------------------------------------------------------

    def drained(self, source, found):
        self.host.now_ns = self.world.clock.now_ns
        self.completions.handle(Peer(IOPROC, source), found)

    def changed(self, number, *, up):
        self.host.up[number] = up
        if not up:
            self.exchanges.lose_all({number})
        self.turn_soon()

    def turn(self):
        now_ns = self.host.now_ns = self.world.clock.now_ns
        self.completions.tell_lost()
        self.completions.expire(now_ns)
        self.exchanges.check()
        for connection in self.connections.values():
            connection.send()
        rest_ms = self.exchanges.wait_ms(now_ns, TICK_MS)
        if self.exchanges.lost:
            self.turn_soon()
        elif rest_ms < TICK_MS:
            self.after(rest_ms, self.turn_soon)


class Segment:
    """A file of which ranges are sent. path: on the disk of the machine."""

    fd = -1

    def __init__(self, path):
        self.path = path


class SimHost(Host):
    """up: which I/O processes are there."""

    def __init__(self, front):
        machine = front.machine
        self._front = front
        self._machine = machine
        self._exchanges = front.exchanges
        self._writers = [machine.rings[NET, home].writer for home in range(IOPROCS)]
        self.up = [machine.processes[home].up for home in range(IOPROCS)]
        self.memory = machine.arena
        self.image = machine.image
        self.config = BrokerConfig.of({})
        self.cluster_id = "c"
        self.node_id = 1
        self.fetch_max_bytes = 1 << 20
        self.remote_wait_ms = 500
        self.log_dirs = (DATA,)
        self.now_ns = front.world.clock.now_ns
        self.partitions = machine.table
        self.served = memoryview(bytearray(8 * len(machine.rows) * SERVED_COLUMNS)).cast("q")
        self.verifies = True
        self.overtaking = SequenceGapGuard()
        self.routing = 0

    def route(self, topic, partition, by_id):
        return self._machine.routes.get((topic, partition))

    def replica(self, topic, partition):
        raise AssertionError("nobody moves a replica")

    def client(self, x):
        raise AssertionError("nobody is subscribed to here")

    def watch_rows(self, x, index, home, flags, rows):
        raise AssertionError("nobody fetches so many partitions")

    # Asking ---------------------------------------------------------------------------------------

    def ask_home(self, x, index, route, op, flags, a, b, e, f):
        token = self._token(x, index)
        fields = {"e": e, "f": f}
        self._put(
            x, index, route.home, lambda w: w.push(op, flags, route.handle, token, a, b, **fields)
        )

    def coordinate(self, x, index, route, body):
        self._coordinate(x, index, route, x.handler.key << 16 | x.version, body, 0)

    def coordinate_within(self, x, index, route, body, code, guard):
        body = messages.GUARD.pack(guard) + body
        self._coordinate(x, index, route, x.handler.key << 16 | x.version, body, code + 1)

    def question(self, x, index, route, key, version, body):
        self._coordinate(x, index, route, key << 16 | version, body, 0)

    def question_node(self, x, index, node, key, version, body):
        raise AssertionError("every coordinator is here")

    def _coordinate(self, x, index, route, api, body, flags):
        token = self._token(x, index)
        op, handle, named = messages.COORDINATE, route.handle, len(CALLER)
        fields = op, flags, handle, token, 0, api, named, 0
        self._put(
            x, index, route.home, lambda w: w.push_with_payload(*fields, payload=CALLER + body)
        )

    def _put(self, x, index, home, push):
        x.pending[index] = home
        if self.up[home]:
            assert push(self._writers[home]), "a ring is full"
        else:
            self._exchanges.lose(x, index)

    def cancel(self, x):
        for home in sorted(set(x.pending.values()) - {NOBODY_HOME}):
            if self.up[home]:
                self._writers[home].push(messages.CANCEL, 0, 0, x.number << 32, 0, 0)
        x.pending.clear()

    def later(self, x, index, delay_ns):
        self.hold_pending(x, index)
        self._exchanges.wake_at(x, index, self.now_ns + delay_ns)

    def hold_pending(self, x, index):
        self._token(x, index)
        x.pending[index] = NOBODY_HOME

    def schedule(self, x):
        if x.number == NO_NUMBER:
            self._exchanges.number_exchange(x)
        self._exchanges.schedule(x)

    def _token(self, x, index):
        if x.number == NO_NUMBER:
            self._exchanges.number_exchange(x)
        return x.number << 32 | index

    def line(self, x):
        return x.connection.line

    # Files ----------------------------------------------------------------------------------------

    def glance(self, x, route, row, offset, limit, max_bytes):
        return None

    def remember(self, x, route, place):
        """Every fetch asks."""

    def segment(self, route, base_offset, layout):
        path = stem(f"{DATA}/{route.topic}-{route.partition}", base_offset) + LOG
        return Segment(path) if self._machine.disk.exists(path) else None

    # Clients --------------------------------------------------------------------------------------

    def finish(self, x, pieces):
        x.answer = [self._bytes(p) if isinstance(p, FileRange) else p for p in pieces]

    def _bytes(self, part):
        file = self._machine.disk.open_file(part.file.path)
        data = file.pread(part.length, part.position)
        file.close()
        return data

    def finish_silently(self, x, close):
        raise AssertionError("nobody writes with acks=0")

    def failed(self, x, code, times=1):
        """Nobody counts."""

    def hang_up(self, x, why):
        raise AssertionError(f"{x.handler.name}: {why}")

    def reads(self, x, partitions):
        """Nobody's habits are learnt."""

    asks_for = software = reads

    def fetch_room(self, x):
        return None

    def forward(self, x):
        raise AssertionError("nobody asks control")

    def ask_as_replica(self, *rest):
        raise AssertionError("there are no other nodes")

    ask_nearest = ask_as_replica

    def ensure_topic(self, x, index, name):
        raise AssertionError("every topic is there")

    def reached(self, x):
        raise AssertionError("nobody asks where this is")
