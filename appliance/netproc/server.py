"""The network process: requests out of connections, operations into rings, answers back in order.

It is the Host of the handlers. Nothing here waits: what cannot be pushed into a full ring is kept
in order, and while anything is kept no connection is read, so the sender's TCP window is the only
queue that grows.
"""

import select
import socket
from collections.abc import Iterator, Sequence
from secrets import randbits
from typing import Final

from appliance.base.clock import Clock
from appliance.base.errors import MalformedRequest
from appliance.handlers import k18_api_versions, registry
from appliance.handlers.exchange import Exchange, Piece, Place, Route
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.metadata.changes import ConfigChanged, QuotaChanged, TopicRemoved
from appliance.metadata.effective import broker_config
from appliance.metadata.follower import Follower
from appliance.netproc.arrivals import Arrivals
from appliance.netproc.connection import Connection
from appliance.netproc.cursors import Cursors
from appliance.netproc.exchanges import NO_NUMBER, Exchanges
from appliance.netproc.habits import ROLES, Habits, topics_removed
from appliance.netproc.limits import ConnectionLimits
from appliance.netproc.listener import Listener, advertised
from appliance.netproc.outbox import CONTROL_HOME, Outbox
from appliance.netproc.page_cache import PageCache
from appliance.netproc.routes import Routes
from appliance.netproc.segments import OpenSegment, Segments
from appliance.netproc.slabs import check, give_back
from appliance.netproc.throttling import Throttling
from appliance.ring import messages
from appliance.ring.arena import Arena
from appliance.ring.messages import Message
from appliance.ring.partition_table import (
    COLUMNS,
    DIRECTORY,
    HIGH_WATERMARK,
    LAST_STABLE,
    LAYOUT,
    LOG_START,
    OFFLINE,
    ROW_MASK,
    STATUS,
)
from appliance.ring.process_table import CONTROL, READY, Peer
from appliance.shell.links import Links
from appliance.shell.log import NOTICE, WARNING, Log
from appliance.shell.loop import LONGEST_WAIT_MS, STOP, Loop
from appliance.shell.patience import NETPROC_ANSWERS_NS
from appliance.shell.seat import Seat
from appliance.wire import request_head
from appliance.wire.fetch import FetchPartition
from appliance.wire.request_head import response_head

_SWEEP_NS: Final = 1_000_000_000


class Server:
    """Everything one netproc has. Implements `handlers.exchange.Host`."""

    def __init__(
        self, seat: Seat, links: Links, loop: Loop, follower: Follower, clock: Clock, log: Log
    ) -> None:
        config = seat.config
        self.seat = seat
        self.links = links
        self.loop = loop
        self.follower = follower
        self.clock = clock
        self.log = log
        self.config = config
        self.now_ns = clock.monotonic_ns()
        self.memory = seat.arenas[seat.index]
        self.arena = Arena(len(self.memory))
        self.image = follower.image
        self.cluster_id = follower.cluster_id
        self.routes = Routes(self.image, follower.handles, seat.ioprocs)
        self.segments = Segments(seat.partitions)
        self.log_dirs = seat.log_dirs
        slots = config.int("max.incremental.fetch.session.cache.slots") // seat.netprocs
        self.handlers = registry.handlers(FetchSessions(slots, lambda: randbits(31)))
        self.frame_limit = min(config.int("socket.request.max.bytes"), len(self.memory) // 2)
        self.queued_limit = config.int("penstock.connection.queued.max.bytes")
        self._idle_ns = config.int("connections.max.idle.ms") * 1_000_000
        self._no_progress_ns = config.int("penstock.connection.no.progress.ms") * 1_000_000
        self.limits = ConnectionLimits()
        self._throttling = Throttling(seat, log, clock)
        self.watch = self._throttling.watch
        self._set_limits()
        self.listeners = [Listener(self, n, sock) for n, sock in enumerate(seat.listeners)]
        self.connections: dict[int, Connection] = {}
        self.starving: dict[Connection, None] = {}
        self.cold: dict[Connection, None] = {}  # what they are to get next is still on the disk
        self.page_cache = PageCache()
        self.choked = False  # a ring is full: read nothing
        self._dirty: list[Connection] = []
        self.exchanges = Exchanges()
        self._arrivals = Arrivals(self._throttling.meters, self.limits, loop, clock, log)
        self._outbox = Outbox(links, seat.ioprocs)
        self._kept = self._outbox.kept
        self._next_sweep_ns = self.now_ns + _SWEEP_NS
        self._drain_until_ns = 0
        self._rows = seat.partitions.state
        self._writers = self._outbox.writers

    # The shell's turn -----------------------------------------------------------------------------

    def peers_changed(self, peers: list[Peer]) -> None:
        """What was asked of these processes is lost: their requests fail with retriable errors."""
        homes = {CONTROL_HOME if peer.kind == CONTROL else peer.index for peer in peers}
        self.choked = self._outbox.drop(homes)  # the full ring may have been the dead one's
        self._forget_files()
        self.exchanges.lose_all(homes)

    def handle(self, peer: Peer, arrived: list[Message]) -> None:
        """Completions from an ioproc, answers from control."""
        exchanges = self.exchanges.living
        if peer.kind == CONTROL:
            self.follow()  # what it has done is seen before its answer is
        for message in arrived:
            x = exchanges.get(message.token >> 32)
            if x is None:
                continue
            index = message.token & 0xFFFFFFFF
            if message.op == messages.ANSWERED and message.a == 1:
                if index in x.pending:
                    x.handler.complete(self, x, index, message, message.payload)
                continue
            if x.pending.pop(index, None) is not None:
                if self.watch.running:
                    self.watch.begin(x.connection)
                self._complete(x, index, message)
        self.watch.end()

    def turn(self, now_ns: int) -> int:
        """Metadata, timers and sending; answers how many ms the loop may wait, or STOP."""
        self.now_ns = now_ns
        self.follow()
        while (lost := self.exchanges.next_lost()) is not None:
            self._complete(lost[0], lost[1], None)
        if self._kept:
            self.choked = not self._outbox.push_kept()
        self._expire()
        if now_ns >= self._next_sweep_ns:
            self._sweep()
        self._throttling.unmute(now_ns)
        self._arrivals.turn(now_ns)
        if self.starving:
            self._resume_starving()
        self.links.flush()  # before sending: the others work meanwhile, and `Loop.run` has the rest
        self._send()
        if self.seat.processes.drain and self._drained():
            return STOP
        if self._dirty:
            return 0  # who sent its share of this turn goes on in the next
        if self._kept or self.starving or self.cold:
            return 1
        wait = self._throttling.wait_ms(now_ns, LONGEST_WAIT_MS)
        wait = self._arrivals.wait_ms(now_ns, wait)
        return self.exchanges.wait_ms(now_ns, wait)

    def follow(self) -> None:
        """Replay metadata that control has committed since; a request never sees an older image
        than an answer did."""
        committed = self.seat.processes.metadata_offset
        if committed != self.follower.applied:
            changes = self.follower.catch_up(committed)
            self.image = self.follower.image
            self.routes.clear(self.image, self.follower.handles)
            removed = [change for change in changes if isinstance(change, TopicRemoved)]
            if removed:
                self._forget_files()
                topics_removed(list(self._habits()), removed)
            if any(isinstance(change, ConfigChanged | QuotaChanged) for change in changes):
                self._set_limits()
            self.seat.processes.set_applied(self.seat.me, committed)

    def _forget_files(self) -> None:
        """Files may have been cut or removed: keep neither descriptors nor places in them."""
        self.segments.forget()
        for connection in self.connections.values():
            connection.cursors = None

    def _set_limits(self) -> None:
        """What may be changed while we run: quotas, and how many connections there may be."""
        config = broker_config(self.image, self.config)
        self.limits.set(
            config.int("max.connections"),
            config.int("max.connections.per.ip"),
            config.per_address("max.connections.per.ip.overrides"),
        )
        arrivals = config.limit("max.connection.creation.rate")
        self._throttling.configure(self.image.quotas, arrivals)

    def open_for_business(self) -> None:
        """Accept connections: control and every ioproc are ready."""
        for listener in self.listeners:
            self.loop.register(listener.sock.fileno(), select.EPOLLIN, listener)
        self.links.set_state(READY)

    # Requests -------------------------------------------------------------------------------------

    def request(self, connection: Connection, position: int, end: int) -> None:
        """One whole frame lies at memory[position:end], without its length."""
        try:
            key, version, correlation_id, client_id, body = request_head.parse(
                self.memory, position, end
            )
        except MalformedRequest as problem:
            self._malformed(connection, str(problem))
            return
        handler = self.handlers.get(key)
        if handler is None or not handler.lowest <= version <= handler.highest:
            self._unsupported(connection, key, version, correlation_id)
            return
        self._begin(
            Exchange(NO_NUMBER, handler, version, correlation_id, client_id, body, end, connection)
        )

    def _begin(self, x: Exchange) -> None:
        self.exchanges.begin(x)
        x.started_ns = self.now_ns
        connection: Connection = x.connection
        connection.queue.append(x)
        role = ROLES[x.handler.key]
        if role & ~connection.habits.roles:
            connection.habits.learn(role, x.client_id)
        self.follow()
        try:
            x.handler.begin(self, x)
        except MalformedRequest as problem:
            self.exchanges.end(x)
            self._malformed(connection, f"{x.handler.name} v{x.version}: {problem}")
            return
        if x.pending and x.handler.keeps_body:
            x.slab = connection.slab.hold() if connection.slab is not None else None
        self._release_if_done(x)

    def _complete(self, x: Exchange, index: int, message: Message | None) -> None:
        if x.answer is None or x.handler.keeps_body:
            payload = b"" if message is None else message.payload
            x.handler.complete(self, x, index, message, payload)
        self._release_if_done(x)

    def _release_if_done(self, x: Exchange) -> None:
        if not x.pending and (x.answer is not None or x.connection.closed):
            if x.slab is not None:
                x.slab.let_go()
                x.slab = None
            if self.exchanges.lives(x):
                self.exchanges.end(x)

    def _unsupported(
        self, connection: Connection, key: int, version: int, correlation_id: int
    ) -> None:
        if key == k18_api_versions.KEY:
            body = k18_api_versions.unsupported()
            x = Exchange(NO_NUMBER, self.handlers[key], 0, correlation_id, None, 0, 0, connection)
            connection.queue.append(x)
            self.finish(x, [body])
            return
        self._malformed(connection, f"API key {key} version {version} is not served")

    def _malformed(self, connection: Connection, why: str) -> None:
        self.complain(connection, "refused-request", why)
        connection.close()

    # What handlers ask for (Host) -----------------------------------------------------------------

    def route(self, topic: bytes, partition: int, by_id: bool) -> Route | None:
        return self.routes.get(topic, partition, by_id)

    def row(self, handle: int) -> tuple[int, int, int, bool]:
        at = (handle & ROW_MASK) * COLUMNS
        rows = self._rows
        offline = rows[at + STATUS] == OFFLINE
        return rows[at + HIGH_WATERMARK], rows[at + LAST_STABLE], rows[at + LOG_START], offline

    def glance(self, x: Exchange, route: Route, offset: int, max_bytes: int) -> Place | None:
        cursors: Cursors | None = x.connection.cursors
        if cursors is None or (segment := cursors.segment(route.handle)) < 0:
            return None
        row = self.seat.partitions.read_row(route.handle)
        file = self._segment(route, segment, row[DIRECTORY], row[LAYOUT])  # what the row is about
        if file is None:
            return None
        return cursors.locate(route.handle, row, file.fd, offset, max_bytes)

    def remember(self, x: Exchange, route: Route, segment: int, position: int, layout: int) -> None:
        if x.connection.cursors is None:
            x.connection.cursors = Cursors()
        x.connection.cursors.remember(route.handle, segment, position, layout)

    def ask(
        self,
        x: Exchange,
        index: int,
        route: Route,
        op: int,
        flags: int,
        a: int,
        b: int,
        e: int,
        f: int,
    ) -> None:
        home = route.home
        x.pending[index] = home
        token = x.number << 32 | index
        if self._kept or not self._writers[home].push(
            op, flags, route.handle, token, a, b, e=e, f=f
        ):
            self._put(x, index, home, (op, flags, route.handle, token, a, b, e, f), None)

    def forward(self, x: Exchange) -> None:
        position = x.position
        key = x.handler.key << 16 | x.version
        caller = f"User:ANONYMOUS\0PLAINTEXT\0{x.connection.address}\0".encode()
        caller += x.client_id or b""
        size = x.end - position
        fields = (messages.FORWARD, 0, 0, x.number << 32, position, key, size, 0)
        self._put(x, 0, CONTROL_HOME, fields, caller)

    def coordinate(self, x: Exchange, index: int, route: Route, body: bytes) -> None:
        caller = f"/{x.connection.address}\0".encode() + (x.client_id or b"")
        key = x.handler.key << 16 | x.version
        token = x.number << 32 | index
        for more, named, piece in self._outbox.pieces(route.home, caller, body):
            fields = (messages.COORDINATE, 0, route.handle, token, more, key, named, 0)
            self._put(x, index, route.home, fields, piece)

    def ensure_topic(self, x: Exchange, index: int, name: str) -> None:
        asker = f"\0{x.connection.address}\0".encode() + (x.client_id or b"")
        left_over = int(x.connection.habits.left_over(name, self._habits()))
        fields = (messages.ENSURE_TOPIC, 0, 0, x.number << 32 | index, left_over, 0, 0, 0)
        self._put(x, index, CONTROL_HOME, fields, name.encode() + asker)

    def asks_for(self, x: Exchange, name: str) -> None:
        x.connection.habits.asks(name)

    def reads(self, x: Exchange, partitions: Sequence[FetchPartition]) -> None:
        x.connection.habits.reading = partitions

    def _habits(self) -> Iterator[Habits]:
        return (connection.habits for connection in self.connections.values())

    def _put(
        self, x: Exchange, index: int, home: int, fields: tuple[int, ...], payload: bytes | None
    ) -> None:
        x.pending[index] = home
        if not self._outbox.is_up(home):
            self.exchanges.lose(x, index)
        elif not self._outbox.put(home, fields, payload):
            self.choked = True

    def cancel(self, x: Exchange) -> None:
        for home in set(x.pending.values()) - {CONTROL_HOME}:
            if not self._outbox.put(
                home, (messages.CANCEL, 0, 0, x.number << 32, 0, 0, 0, 0), None
            ):
                self.choked = True
        x.pending.clear()

    def fetch_room(self, x: Exchange) -> int | None:
        return self._throttling.fetch_room(x)

    def segment(self, route: Route, base_offset: int, layout: int) -> OpenSegment | None:
        number = self.seat.partitions.get(route.handle, DIRECTORY)
        return self._segment(route, base_offset, number, layout)

    def _segment(self, route: Route, base: int, number: int, layout: int) -> OpenSegment | None:
        folder = f"{self.log_dirs[number]}/{route.topic}-{route.partition}"
        return self.segments.get(route.handle, base, folder, layout)

    def schedule(self, x: Exchange) -> None:
        self.exchanges.schedule(x)

    def reached(self, x: Exchange) -> tuple[str, int]:
        return advertised(self.config, x.connection.sock, x.connection.listener)

    def hang_up(self, x: Exchange, why: str) -> None:
        self.complain(x.connection, "hung-up", f"{x.handler.name}: {why}")
        x.answer = []
        x.connection.close()

    def finish(self, x: Exchange, pieces: list[Piece]) -> None:
        if self._throttling.active:
            pieces = self._throttling.apply(x, pieces, self.now_ns)
        sizes = [len(piece) if isinstance(piece, bytes) else piece.length for piece in pieces]
        assert all(sizes), "an empty piece can never be sent"
        body = sum(sizes)
        head = response_head(x.handler.key, x.version, x.correlation_id, body)
        first = pieces[0]
        if type(first) is bytes:
            pieces[0] = head + first
        else:
            pieces.insert(0, head)
        x.answer = pieces
        self.mark_dirty(x.connection)

    def finish_silently(self, x: Exchange, close: bool) -> None:
        if self._throttling.active:
            self._throttling.apply(x, [], self.now_ns)
        x.answer = []
        if close:
            self.complain(x.connection, "hung-up", "a batch with acks=0 was refused")
            x.connection.close()
        else:
            self.mark_dirty(x.connection)

    # Timers ---------------------------------------------------------------------------------------

    def out_of_files(self, listener: Listener, problem: OSError) -> None:
        """No descriptor for a new connection: it waits in the backlog for a second."""
        self.log.event_seldom(WARNING, "accept-failed", why=str(problem))
        self._arrivals.shut(listener, _SWEEP_NS)

    def _expire(self) -> None:
        while (x := self.exchanges.next_due(self.now_ns)) is not None:
            x.handler.expire(self, x)
            self._release_if_done(x)

    def _sweep(self) -> None:
        """Once a second: requests out of time, idle or stuck connections, memory nobody needs."""
        now = self.now_ns
        self._next_sweep_ns = now + _SWEEP_NS
        for x in self.exchanges.overdue(now):
            x.handler.expire(self, x)
            self._release_if_done(x)
        for connection in list(self.connections.values()):
            connection.sweep(now, self._idle_ns, self._no_progress_ns)
        held = [connection.slab for connection in self.connections.values()]
        check(self.arena, held + self.exchanges.check())
        give_back(self.arena, self.memory)

    def _resume_starving(self) -> None:
        waiting = self.starving
        self.starving = {}
        for connection in waiting:
            connection.resume()

    def _drained(self) -> bool:
        """Whether everything asked is answered and sent, or the time for it is over."""
        if not self._drain_until_ns:
            self._drain_until_ns = self.now_ns + NETPROC_ANSWERS_NS
            self._arrivals.close()
            for listener in self.listeners:
                self.loop.unregister(listener.sock.fileno())
        for connection in list(self.connections.values()):
            if not connection.queue and not connection.out:
                connection.close()
        return not self.connections or self.now_ns >= self._drain_until_ns

    # Connections ----------------------------------------------------------------------------------

    def admit(self, sock: socket.socket, address: str, listener: int) -> bool:
        """A client has connected; whether the listener may accept the next one."""
        if self._arrivals.let_in(sock, address):
            connection = Connection(self, sock, address, listener)
            self.connections[connection.fd] = connection
            self.loop.register(connection.fd, select.EPOLLIN, connection)
        return self._arrivals.go_on(self.listeners[listener])

    def forget(self, connection: Connection) -> None:
        """The connection is closing: its parked reads are cancelled, its answers go nowhere."""
        self.loop.unregister(connection.fd)
        del self.connections[connection.fd]
        self.starving.pop(connection, None)
        self.limits.release(connection.address)
        for x in connection.queue:
            if self.exchanges.lives(x) and not x.handler.keeps_body:
                self.cancel(x)
                self.exchanges.end(x)

    def mark_dirty(self, connection: Connection) -> None:
        """Something can be sent at the end of this turn."""
        if not connection.dirty:
            connection.dirty = True
            self._dirty.append(connection)

    def _send(self) -> None:
        while self.cold:
            self.mark_dirty(self.cold.popitem()[0])
        dirty = self._dirty
        self._dirty = []
        for connection in dirty:
            connection.dirty = False
            if self.watch.running:
                self.watch.begin(connection)
            connection.flush()
        self.watch.end()

    def complain(self, connection: Connection, event: str, why: str) -> None:
        """One line about a peer, at most one a second for each event and address."""
        self.log.event_from(NOTICE, event, connection.address, why=why)
