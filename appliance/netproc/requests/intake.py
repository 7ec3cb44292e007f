"""Requests out of frames: what is asked, who serves it, and a refusal for what nobody does.

Here a request becomes an exchange of its connection; what the connection knows of its client goes
with it from this one place.
"""

from typing import Final

from appliance.authorization.rights import Authorizer, Rights
from appliance.base.caller import Caller
from appliance.base.errors import UNSUPPORTED_VERSION, MalformedRequest
from appliance.handlers import k18_api_versions
from appliance.handlers.exchange import Exchange, Handler
from appliance.handlers.k36_sasl_authenticate import BARE
from appliance.netproc.connections.client_activity import ROLES
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.login_session import LoginSession
from appliance.netproc.connections.receivers import RequestReceiver
from appliance.netproc.in_flight.exchanges import NO_NUMBER
from appliance.netproc.requests.exchange_barrier import ExchangeBarrier
from appliance.netproc.requests.host import NetprocHost
from appliance.netproc.requests.long_requests import LONG, LongRequests
from appliance.netproc.requests.metadata_replay import MetadataFollowing
from appliance.ring.counters import API_KEYS
from appliance.shell.loop import Loop
from appliance.wire import request_head

_PREFIX: Final = 4  # bytes that say how long a frame is
_FETCH: Final = 1


class Intake(RequestReceiver[Connection]):
    """handlers: by listener, then by API key. loop: knows when it saw the bytes that it brings.
    authorizer: who may do what. long: decodes long requests."""

    def __init__(
        self,
        host: NetprocHost,
        barrier: ExchangeBarrier,
        following: MetadataFollowing,
        handlers: list[dict[int, Handler]],
        loop: Loop,
        authorizer: Authorizer,
        long: LongRequests,
    ) -> None:
        self._host = host
        self._clients = host.clients
        self._authorizer = authorizer
        self._listeners = host.listeners
        self._exchanges = barrier.exchanges
        self._following = following
        assert all(max(one) < API_KEYS for one in handlers), "every request is counted"
        self._handlers = handlers
        self._memory = host.memory
        self._loop = loop
        self._barrier = barrier
        self._long = long
        self._logins = host.logins

    def request(self, connection: Connection, position: int, end: int) -> None:
        """Parse it where it lies, and let its handler begin."""
        session = connection.session
        if session is not None and session.is_bare:
            handler: Handler | None = BARE
            key, version, correlation_id, body = BARE.key, 0, 0, position
            client_id = connection.client_id
        else:
            try:
                key, version, correlation_id, client_id, body = request_head.parse(
                    self._memory, position, end
                )
            except MalformedRequest as problem:
                self._refuse(connection, str(problem))
                return
            served = self._handlers[connection.listener]
            handler = (
                served.get(key)
                if session is None or self._permits(connection, session, key, version)
                else None
            )
        rights = connection.rights
        if rights is None or client_id != connection.client_id:
            rights = self._identify(connection, client_id)
        if handler is None or not handler.lowest <= version <= handler.highest:
            received = _PREFIX + end - position
            self._unsupported(connection, rights, key, version, correlation_id, received)
            return
        x = Exchange(NO_NUMBER, handler, version, correlation_id, rights, body, end, connection)
        host, woke_ns = self._host, self._loop.woke_ns
        if woke_ns > host.now_ns:  # the last turn may have been long ago
            host.now_ns = woke_ns
        x.started_ns = host.now_ns
        x.received = _PREFIX + end - position
        connection.sending.queue.append(x)
        role = ROLES[key]
        if role & ~connection.habits.roles:
            connection.habits.learn(role, client_id)
        try:
            # Of a stranger only small requests are read, which are decoded at once.
            is_long = (
                end - body >= LONG and not handler.keeps_body and (session is None or session.known)
            )
            (self._long.begin_long if is_long else handler.begin)(host, x)
        except MalformedRequest as problem:
            self._end_malformed(connection, x, problem)
            return
        except Exception as bug:  # one request must not end the process, with all connections
            self._fail(connection, x, bug)
            return
        if x.pending:
            # Others decide what is no Fetch or Produce: a coordinator, control, another node.
            x.waits_ns = x.started_ns if key > _FETCH else x.waits_ns
            slab = connection.framing.slab
            if handler.keeps_body and slab is not None:
                x.slab = slab.hold_slab()
        elif x.number != NO_NUMBER:
            self._exchanges.end_if_done(x)
        else:
            assert x.answer is not None or connection.closed, "it asks nobody and is not answered"

    def _permits(
        self, connection: Connection, session: LoginSession, key: int, version: int
    ) -> bool:
        """True if the state of a login permits this request; else the connection is closed."""
        now_ns = max(self._host.now_ns, self._loop.woke_ns)
        why = self._logins.objection(connection, session, key, version, now_ns)
        if why:
            self._refuse(connection, why)
        return not why

    def _end_malformed(
        self, connection: Connection, x: Exchange, problem: MalformedRequest
    ) -> None:
        """End a request whose body its handler cannot read, with its connection."""
        if x.number != NO_NUMBER:
            self._exchanges.forget_exchange(x)
        self._refuse(connection, f"{x.handler.name} v{x.version}: {problem}", problem.bound)

    def _fail(self, connection: Connection, x: Exchange, bug: Exception) -> None:
        """Its bytes may be read until nothing that it has asked is pending."""
        slab = connection.framing.slab
        if x.pending and x.handler.keeps_body and slab is not None:
            x.slab = slab.hold_slab()
        self._barrier.fail(x, bug)

    def _identify(self, connection: Connection, client_id: bytes | None) -> Rights:
        """Make the caller of a client id that the connection did not use before."""
        name = (client_id or b"").decode(errors="replace")
        listener = self._listeners[connection.listener]
        session = connection.session
        by_token = session is not None and session.by_token
        caller = Caller(connection.principal, name, connection.address, listener, by_token)
        connection.client_id = client_id
        rights = connection.rights = Rights(caller, self._authorizer)
        self._clients.write_names(connection.row, connection.principal.name, name)
        return rights

    def level(self, connection: Connection) -> bool:
        """True if all committed metadata is replayed, or the next request does not depend on it."""
        if self._following.follow():
            return True
        handler = self._handlers[connection.listener].get(connection.framing.key())
        return handler is not None and handler.between_nodes

    def holds(self, connection: Connection) -> bool:
        """Several processes serve the requests of a transaction, so one would overtake another that
        came before it. Only a Fetch may, which can take long."""
        key, line = connection.framing.key(), connection.line
        if key == _FETCH:
            return False
        handler = self._handlers[connection.listener].get(key)
        if handler is not None and handler.in_order and line is not None and line.under_way:
            return True
        return any(x.handler.in_order and x.answer is None for x in connection.sending.queue)

    def end_polls(self, connection: Connection) -> None:
        """Most clients that end their side are gone, which the kernel does not tell from those that
        still read: Fetches are answered now with what there is."""
        host = self._host
        for x in connection.sending.queue:
            if x.handler.key == _FETCH and x.answer is None and x.deadline_ns > host.now_ns:
                x.deadline_ns = host.now_ns
                self._exchanges.schedule(x)

    def abandoned(self, x: Exchange) -> None:
        """Its parked reads are cancelled; what holds memory ends when its completions come, or when
        control is not asked any more."""
        self._host.abandoned(x)
        if x.number != NO_NUMBER and not x.handler.keeps_body:
            self._host.cancel(x)
            self._exchanges.forget_exchange(x)

    def _unsupported(
        self,
        connection: Connection,
        rights: Rights,
        key: int,
        version: int,
        correlation_id: int,
        received: int,
    ) -> None:
        if connection.closed:
            return
        if key == k18_api_versions.KEY:
            body = k18_api_versions.unsupported()
            handler = self._handlers[connection.listener][key]
            x = Exchange(NO_NUMBER, handler, 0, correlation_id, rights, 0, 0, connection)
            x.started_ns = max(self._host.now_ns, self._loop.woke_ns)
            x.received = received
            connection.sending.queue.append(x)
            self._host.failed(x, UNSUPPORTED_VERSION)
            self._host.finish(x, [body])
            return
        self._refuse(connection, f"API key {key} version {version} is not served")

    def _refuse(self, connection: Connection, why: str, bound: str = "") -> None:
        connection.complain("refused-request", why, bound)
        connection.close()
