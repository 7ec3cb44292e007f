"""The network process as handlers see it: partitions, files, other processes to ask, and the way
of their answers.

Nothing here waits. What a full ring does not take is kept in order, and meanwhile the connection
that asked it is not read, so the sender's TCP window is the only queue that grows.
"""

import os
from collections.abc import Callable, Mapping
from struct import pack
from typing import Final

from appliance.authorization.rights import OURSELVES
from appliance.base.remote_cache import cache_folder
from appliance.config.bounds import CONTROL_REQUESTS, SEGMENT_FILES, setting_of
from appliance.config.broker import BrokerConfig
from appliance.handlers.client_metrics import ClientMetricsPushes
from appliance.handlers.exchange import (
    Exchange,
    Host,
    Line,
    Login,
    Partitions,
    Piece,
    Place,
    Route,
    SegmentFile,
    Steps,
)
from appliance.handlers.nearest import rack_of
from appliance.handlers.sequence_gap_guard import SequenceGapGuard
from appliance.metadata.effective import broker_config
from appliance.metadata.follower import Follower
from appliance.metadata.image import MetadataImage
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.connections_state import ConnectionsState
from appliance.netproc.files.fetch_cursors import FetchCursors
from appliance.netproc.files.page_cache import AHEAD_BYTES
from appliance.netproc.files.segment_files import NO_DESCRIPTORS, OpenSegment, SegmentFiles
from appliance.netproc.in_flight.exchanges import NO_NUMBER, Exchanges
from appliance.netproc.in_flight.node_questions import NodeQuestions
from appliance.netproc.in_flight.outbox import CONTROL_HOME, NOBODY_HOME, Outbox
from appliance.netproc.limits.open_files import share_descriptors
from appliance.netproc.requests.client_throttling import ClientThrottling
from appliance.netproc.requests.partition_routes import PartitionRoutes
from appliance.netproc.sasl.logins import LoginDesk
from appliance.ring import messages
from appliance.ring.partition_table import DIRECTORY
from appliance.ring.slots import pack_cancel, pack_ensure_topic, pack_forward
from appliance.shell.log import WARNING
from appliance.shell.seat import Seat
from appliance.wire.fetch import FetchPartition
from appliance.wire.request_head import response_head

_UNKNOWN: Final = "unknown"
"""What Kafka calls the software of a client that did not say."""


def _remote_wait_ms(image: MetadataImage, config: BrokerConfig) -> int:
    return broker_config(image, config).int("remote.fetch.max.wait.ms")


class NetprocHost(Host):
    """The one that serves."""

    def __init__(
        self,
        seat: Seat,
        shared: ConnectionsState[Connection],
        exchanges: Exchanges,
        outbox: Outbox,
        throttling: ClientThrottling,
        follower: Follower,
        questions: NodeQuestions,
    ) -> None:
        self.logins = shared.doorkeeper = LoginDesk(
            lambda: broker_config(follower.image, seat.config),
            lambda: follower.image,
            shared,
            exchanges,
            seat.login_secret,
        )
        self.memory = shared.memory
        self.config = seat.config
        self.fetch_max_bytes = seat.config.int("fetch.max.bytes")
        self.remote_wait_ms = _remote_wait_ms(follower.image, seat.config)
        self.cluster_id = follower.cluster_id
        self.node_id = seat.config.int("node.id")
        self.rack = rack_of(seat.config)
        self.processes = seat.processes
        self.left: dict[int, int] = {}
        self.log_dirs = seat.log_dirs
        self.image = follower.image
        self.kraft_version = follower.quorum.kraft_version
        self.now_ns = shared.now_ns
        self._shared = shared
        self._exchanges = exchanges
        self._outbox = outbox
        self._kept = outbox.kept
        self._writers = outbox.writers
        self._throttling = throttling
        self._follower = follower
        self._questions = questions
        self._routes = PartitionRoutes(follower.image, follower.handles, seat.ioprocs, self.node_id)
        self._by_name = self._routes.by_name
        self._by_id = self._routes.by_id
        self.partitions = seat.partitions
        self.served = seat.partitions.served[seat.index]
        self.routing = 0
        self.on_work: Callable[[Exchange, Steps, Callable[[], None]], None] | None = None
        self.on_work_in_line: Callable[[Exchange, Steps, Callable[[], None]], None] | None = None
        self.on_leave_line: Callable[[Exchange], None] | None = None
        self.verifies = True
        self.overtaking = SequenceGapGuard()
        self._errors = seat.errors
        self.clients = shared.clients
        pushes = seat.pushes.rows[seat.index]
        pushes.clear_rows()
        most = seat.config.int("telemetry.max.bytes")
        self.client_metrics = ClientMetricsPushes(pushes, most, os.urandom, shared.log.reach)
        self.listeners = shared.listeners
        most = share_descriptors(shared.limits)
        caches = [cache_folder(seat.data_dir, index) for index in range(seat.ioprocs)]
        self._segments = SegmentFiles(seat.partitions, self.log_dirs, most=most, caches=caches)

    def renew(self, *, routes: bool) -> None:
        """The metadata has changed. routes: perhaps also where something is, or who is there."""
        image = self._follower.image
        self.kraft_version = self._follower.quorum.kraft_version
        if routes or image is not self.image:
            self.routing += 1
            self._routes.clear(image, self._follower.handles)
        if image is not self.image:
            self.remote_wait_ms = _remote_wait_ms(image, self.config)
        self.image = image

    def forget_files(self) -> None:
        """Files may have been cut or removed: keep neither descriptors nor places in them."""
        self._segments.close_unused()
        for connection in self._shared.open.values():
            connection.cursors = None

    # Partitions and their files -------------------------------------------------------------------

    def route(self, topic: bytes, partition: int, by_id: bool) -> Route | None:
        known = self._by_id if by_id else self._by_name
        return known.get((topic, partition)) or self._routes.find_route(topic, partition, by_id)

    def replica(self, topic: bytes, partition: int, by_id: bool) -> Route | None:
        return self._routes.replica(topic, partition, by_id)

    def glance(
        self, x: Exchange, route: Route, row: list[int], offset: int, limit: int, max_bytes: int
    ) -> Place | None:
        cursors: FetchCursors | None = x.connection.cursors
        if cursors is None:
            return None
        try:
            return cursors.locate(self._segments, route, row, offset, limit, max_bytes)
        except OSError:
            return None  # the home is asked, and then the file is opened again

    def remember(self, x: Exchange, route: Route, place: tuple[int, int, int, int]) -> None:
        if x.connection.cursors is None:
            x.connection.cursors = FetchCursors()
        cursors: FetchCursors = x.connection.cursors
        base, position, length, layout = place
        cursors.remember(route.handle, base, position, length, layout)

    def segment(self, route: Route, base_offset: int, layout: int) -> OpenSegment | None:
        number = self.partitions.read_column(route.handle, DIRECTORY)
        try:
            return self._segments.open_segment(route, base_offset, number, layout)
        except OSError as problem:
            name = f"{route.topic}-{route.partition}"
            bound = {"bound": SEGMENT_FILES} if problem.errno in NO_DESCRIPTORS else {}
            self._shared.log.event_of(
                WARNING, "segment-unreadable", problem.filename or name,
                partition=name, cause=str(problem), **bound,
            )  # fmt: skip
            raise

    def read_file(
        self, file: SegmentFile, position: int, length: int, *, at_once: bool
    ) -> bytes | None:
        cache = self._shared.page_cache
        if at_once and not cache.holds(file.fd, position + length - 1):
            cache.fetch(file.fd, position, length + AHEAD_BYTES)
            return None
        return os.pread(file.fd, length, position)

    # Asking others --------------------------------------------------------------------------------

    def ask_home(
        self,
        x: Exchange,
        index: int,
        route: Route,
        op: int,
        flags: int,
        asked: int,
        epoch: int,
        length: int,
        limit: int,
    ) -> None:
        home = route.home
        if x.number == NO_NUMBER:
            self._exchanges.number_exchange(x)
        x.pending[index] = home
        token = x.number << 32 | index
        if (self._kept and home in self._kept) or not self._writers[home].push(
            op, flags, route.handle, token, asked, epoch, 0, 0, 0, 0, 0, 0, length, limit
        ):
            numbers = (asked, epoch, 0, 0, 0, 0, 0, 0, length, limit)
            self._put(x, index, home, (op, flags, route.handle, token, *numbers), None)
        self._outbox.fresh = True

    def ask_as_replica(
        self,
        x: Exchange,
        index: int,
        route: Route,
        flags: int,
        partition: FetchPartition,
        replica: tuple[int, int, int],
        limits: tuple[int, int],
    ) -> None:
        node, broker_epoch, visible = replica
        _, _, offset, _, epoch, last_epoch, log_start = partition
        head = (messages.READ, flags, route.handle, self._token(x, index), offset, epoch)
        fields = (*head, last_epoch, log_start, broker_epoch, node, visible, 0, *limits)
        self._put(x, index, route.home, fields, None)

    def ask_nearest(
        self,
        x: Exchange,
        index: int,
        route: Route,
        flags: int,
        partition: FetchPartition,
        nodes: tuple[int, int, int, int],
        limits: tuple[int, int],
    ) -> None:
        epoch = partition.current_leader_epoch
        at = (route.handle, self._token(x, index), partition.fetch_offset, epoch)
        fields = (messages.READ, flags | messages.READ_NEAREST, *at, *nodes, 0, 0, *limits)
        self._put(x, index, route.home, fields, None)

    def watch_rows(self, x: Exchange, index: int, home: int, flags: int, rows: list[int]) -> None:
        payload = pack(f"={len(rows)}{messages.WATCHED}", *rows)
        fields = (messages.WATCH, flags, rows[0] >> 32, self._token(x, index))
        self._put(x, index, home, fields, payload)

    def forward(self, x: Exchange) -> None:
        token = self._token(x, 0)
        key = x.handler.key << 16 | x.version
        size = x.end - x.position
        fields = pack_forward(token, x.position, key, size)
        self._put(x, 0, CONTROL_HOME, fields, x.rights.encoded)

    def coordinate(self, x: Exchange, index: int, route: Route, body: bytes) -> None:
        token = self._token(x, index)
        if x.handler.in_order and x.connection.line is None:
            x.connection.line = Line()
        key = x.handler.key << 16 | x.version
        for more, named, piece in self._outbox.pieces(route.home, x.rights.encoded, body):
            fields = (messages.COORDINATE, 0, route.handle, token, more, key, named)
            self._put(x, index, route.home, fields, piece)

    def coordinate_within(
        self, x: Exchange, index: int, route: Route, body: bytes, code: int, guard: int
    ) -> None:
        api = x.handler.key << 16 | x.version
        guarded = messages.GUARD.pack(guard) + body
        self._coordinate(x, index, route, api, x.rights.encoded, guarded, code + 1)

    def question(
        self, x: Exchange, index: int, route: Route, key: int, version: int, body: bytes
    ) -> None:
        self._coordinate(x, index, route, key << 16 | version, OURSELVES.encoded, body)

    def _coordinate(
        self,
        x: Exchange,
        index: int,
        route: Route,
        api: int,
        caller: bytes,
        body: bytes,
        flags: int = 0,
    ) -> None:
        token = self._token(x, index)
        for more, named, piece in self._outbox.pieces(route.home, caller, body):
            fields = (messages.COORDINATE, flags, route.handle, token, more, api, named)
            self._put(x, index, route.home, fields, piece)

    def question_node(
        self, x: Exchange, index: int, node: int, key: int, version: int, body: bytes
    ) -> None:
        self.hold_pending(x, index)
        if not self._questions.ask_node(self._token(x, index), node, key, version, body):
            self._exchanges.lose(x, index)

    # Logins ---------------------------------------------------------------------------------------

    def greet(self, x: Exchange, mechanism: str) -> tuple[int, tuple[str, ...]]:
        return self.logins.greet(x, mechanism)

    def authenticate(self, x: Exchange, message: bytes) -> Login | None:
        login = self.logins.authenticate(x, message)
        if login is None:
            self.hold_pending(x, 0)
        return login

    def hold_back(self, x: Exchange) -> bool:
        self.hold_pending(x, 0)
        if self.logins.hold_back(x):
            return True
        x.pending.clear()
        return False

    def settle_login(self, x: Exchange, login: Login) -> None:
        self.logins.settle_login(x, login)

    def finish_bare(self, x: Exchange, message: bytes) -> None:
        x.answer = [len(message).to_bytes(4, "big") + message]
        x.sent = 4 + len(message)
        connection: Connection = x.connection
        connection.mark_dirty()

    def later(self, x: Exchange, index: int, delay_ns: int) -> None:
        self.hold_pending(x, index)
        self._exchanges.wake_at(x, index, self.now_ns + delay_ns)

    def audit_change(self, x: Exchange, things: list[dict[str, str]]) -> None:
        if (trail := self._shared.log.trail) is not None:
            trail.note_change(x.handler.name, things, 0, x.rights.caller)

    def hold_pending(self, x: Exchange, index: int) -> None:
        self._token(x, index)
        x.pending[index] = NOBODY_HOME

    def work(self, x: Exchange, steps: Steps, then: Callable[[], None]) -> None:
        assert self.on_work is not None, "the server says who does it"
        self.on_work(x, steps, then)

    def work_in_line(self, x: Exchange, steps: Steps, then: Callable[[], None]) -> None:
        assert self.on_work_in_line is not None, "the server says who does it"
        self.on_work_in_line(x, steps, then)

    def leave_line(self, x: Exchange) -> None:
        assert self.on_leave_line is not None, "the server says whose line it is"
        self.on_leave_line(x)

    def pause(self, x: Exchange) -> None:
        x.connection.kept += 1

    def unpause(self, x: Exchange) -> None:
        x.connection.kept -= 1

    def line(self, x: Exchange) -> Line:
        connection: Connection = x.connection
        if connection.line is None:
            connection.line = Line()
        return connection.line

    def ensure_topic(self, x: Exchange, index: int, name: str) -> None:
        token = self._token(x, index)
        caller = x.rights.encoded
        left_over = int(
            x.connection.habits.left_over(name, (one.habits for one in self._shared.open.values()))
        )
        fields = pack_ensure_topic(token, left_over, len(caller))
        self._put(x, index, CONTROL_HOME, fields, caller + name.encode())

    def cancel(self, x: Exchange) -> None:
        if x.slab is not None and not x.handler.keeps_body:  # it waits to be decoded
            x.slab.let_go()
            x.slab = None
        for home in set(x.pending.values()) - {CONTROL_HOME, NOBODY_HOME}:
            fields = pack_cancel(x.number << 32)
            if not self._outbox.push(home, fields, None, None):
                self._outbox.queue_message(home, fields, None, None)
        x.pending.clear()

    def abandoned(self, x: Exchange) -> None:
        """A connection is closed that waits for this answer: control need not decide any more."""
        if self._kept:
            self._outbox.abandoned()
        token = x.number << 32
        if token in self._outbox.unanswered:
            fields = pack_cancel(token)
            if not self._outbox.push(CONTROL_HOME, fields, None, None):
                self._outbox.queue_message(CONTROL_HOME, fields, None, None)

    def schedule(self, x: Exchange) -> None:
        if x.number == NO_NUMBER:
            self._exchanges.number_exchange(x)
        self._exchanges.schedule(x)

    def _token(self, x: Exchange, index: int) -> int:
        if x.number == NO_NUMBER:
            self._exchanges.number_exchange(x)
        return x.number << 32 | index

    def _put(
        self, x: Exchange, index: int, home: int, fields: tuple[int, ...], payload: bytes | None
    ) -> None:
        x.pending[index] = home
        if self._outbox.push(home, fields, payload, x):
            return
        if self._outbox.is_up(home):
            self._outbox.queue_message(home, fields, payload, x)
            if home == CONTROL_HOME and self._outbox.is_control_busy():
                why = f"so many wait for their answers: {setting_of(CONTROL_REQUESTS)}"
                self._shared.log.reach(CONTROL_REQUESTS, why)
        else:
            self._exchanges.lose(x, index)

    # The client -----------------------------------------------------------------------------------

    def asks_for(self, x: Exchange, name: str) -> None:
        x.connection.habits.asks(name)

    def reads(self, x: Exchange, partitions: Partitions) -> None:
        x.connection.habits.reading = partitions

    def fetch_room(self, x: Exchange) -> int | None:
        return self._throttling.fetch_room(x) if self._throttling.active else None

    def software(self, x: Exchange, name: str, version: str) -> None:
        connection: Connection = x.connection
        if connection.software != (name, version):
            connection.software = name, version
            self.clients.software(connection.row, name, version)

    def client(self, x: Exchange) -> Mapping[str, str]:
        connection: Connection = x.connection
        name, version = connection.software or (_UNKNOWN, _UNKNOWN)
        return {
            "client_id": x.rights.caller.client_id,
            "client_software_name": name,
            "client_software_version": version,
            "client_source_address": connection.address,
            "client_source_port": str(connection.transport.peer_port()),
        }

    def reached(self, x: Exchange) -> tuple[str, int]:
        connection: Connection = x.connection
        return (
            self.config.advertised(self.listeners[connection.listener])
            or connection.transport.address()
        )

    def hang_up(self, x: Exchange, why: str) -> None:
        connection: Connection = x.connection
        if not connection.closed:
            connection.complain("hung-up", f"{x.handler.name}: {why}")
        x.answer = []
        connection.close()

    def failed(self, x: Exchange, code: int, times: int = 1) -> None:
        self._errors.failed(x.handler.key, code, times)

    def finish(self, x: Exchange, pieces: list[Piece]) -> None:
        if self._throttling.active:
            pieces = self._throttling.apply(x, pieces, self.now_ns)
        body = 0
        for piece in pieces:
            size = len(piece) if isinstance(piece, bytes) else piece.length
            assert size > 0, "an empty piece can never be sent"
            body += size
        head = response_head(x.handler.key, x.version, x.correlation_id, body)
        first = pieces[0]
        if isinstance(first, bytes):
            pieces[0] = head + first
        else:
            pieces.insert(0, head)
        x.answer = pieces
        x.sent = len(head) + body
        connection: Connection = x.connection
        if not connection.dirty:
            connection.dirty = True
            self._shared.dirty.append(connection)

    def finish_silently(self, x: Exchange, close: bool) -> None:
        if self._throttling.active:
            self._throttling.apply(x, [], self.now_ns)
        x.answer = []
        connection: Connection = x.connection
        if close:
            connection.complain("hung-up", "a batch with acks=0 was refused")
            connection.close()
        else:
            connection.mark_dirty()
