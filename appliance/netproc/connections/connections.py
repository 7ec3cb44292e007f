"""Every connection of a network process: who is let in, who may send now, who is hung up on.

Called by the listeners and, once in a turn, by the server.
"""

from typing import Final

from appliance.base.addresses import plain_address
from appliance.base.caller import Principal
from appliance.config.bounds import RECEIVE_MEMORY
from appliance.config.broker import BrokerConfig
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.connection_sweep import ConnectionSweep
from appliance.netproc.connections.connections_state import ConnectionsState
from appliance.netproc.connections.receivers import RequestReceiver
from appliance.netproc.limits.connection_rate import ConnectionRate, Door
from appliance.netproc.memory.slabs import Slab
from appliance.netproc.transport.transport import Plain, Transport
from appliance.shell.handed_connection import HandedConnection
from appliance.shell.log import WARNING

_PAUSE_NS: Final = 1_000_000_000
_RECLAIM_NS: Final = 100_000_000
_ANSWERS_NS: Final = 5_000_000_000
"""How long answers may take after their listener was closed."""
_MOST_FED: Final = 64  # of those with short requests, in a turn


class Connections:
    """The open ones are the shared state's."""

    def __init__(
        self,
        shared: ConnectionsState[Connection],
        receiver: RequestReceiver[Connection],
        arrivals: ConnectionRate,
        config: BrokerConfig,
    ) -> None:
        self._shared = shared
        self._receiver = receiver
        self._arrivals = arrivals
        self._next_reclaim_ns = 0
        self._ending: dict[int, int] = {}  # numbers of closed listeners → when all must have ended
        self._sweeping = ConnectionSweep(
            shared,
            config.int("connections.max.idle.ms") * 1_000_000,
            config.int("penstock.connection.no.progress.ms") * 1_000_000,
            config.int("penstock.connection.receive.min.bytes.per.second"),
        )

    def admit(self, transport: Transport, address: str, door: Door) -> bool:
        """A client has connected; whether the door may let in the next one."""
        if self._arrivals.let_in(transport.sock, address):
            try:
                one = Connection(self._shared, self._receiver, transport, address, door.number)
                if door.principal is not None:
                    one.principal = door.principal
            except OSError as problem:  # the loop cannot watch one more
                self._shared.limits.release(address)
                transport.close()
                self.cannot_accept(door, problem)
                return False
            except Exception as bug:
                found = self._shared.open.get(transport.fd)
                if found is None:
                    self._shared.limits.release(address)
                    raise
                found.blame("the begin of a connection", bug)
        return self._arrivals.accept_next(door)

    def adopt(self, guest: HandedConnection) -> Connection:
        """A client that was connected to the process that was here before."""
        address = plain_address(guest.address)
        self._shared.limits.admit_again(address)
        transport = Plain(guest.sock)
        one = Connection(self._shared, self._receiver, transport, address, guest.listener)
        one.principal = Principal(*guest.principal)
        if guest.software is not None:
            one.software = guest.software
            self._shared.clients.software(one.row, *guest.software)
        one.habits.continue_habits(guest.roles, guest.client_id, guest.asked, guest.gone)
        one.framing.adopt(guest.received)
        if one.session is not None and not self._take_login(one, guest):
            return one
        self._shared.starving[one] = None  # the next turn looks at it
        return one

    def _take_login(self, one: Connection, guest: HandedConnection) -> bool:
        """Go on with the login that the process before accepted. False: there was none, and the
        connection is closed, because its client does not expect to log in."""
        keeper, session = self._shared.doorkeeper, one.session
        if guest.login is None or keeper is None or session is None:
            one.close()
            return False
        keeper.restore_login(session, *guest.login, guest.by_token)
        one.end_login(known=True)
        return True

    def cannot_accept(self, door: Door, problem: OSError) -> None:
        """The system lacks descriptors or memory for one more: clients wait in the backlog."""
        self._shared.log.event_seldom(WARNING, "accept-failed", why=str(problem))
        self._arrivals.shut(door, _PAUSE_NS)

    def resume_waiting(self, level: bool) -> None:
        """There may be room for those who wait for it. level: metadata is replayed, so that
        requests can be taken."""
        shared = self._shared
        if level:
            waiting = shared.starving
            shared.starving = {}
            for connection in waiting:
                try:
                    connection.resume()
                except Exception as bug:
                    connection.blame("reading on", bug)
        if shared.in_line or shared.hungry:
            self._feed()

    def _feed(self) -> None:
        """Give memory to those who wait for it: to those with long requests in their order, to the
        others as far as there is."""
        shared = self._shared
        admission, in_line, hungry = shared.admission, shared.in_line, shared.hungry
        if shared.now_ns >= self._next_reclaim_ns:
            self._reclaim()
        for _ in range(min(len(hungry), _MOST_FED)):
            connection = next(iter(hungry))
            if not self._fed(connection):
                hungry[connection] = hungry.pop(connection)  # perhaps its address has too much
        while in_line:
            admission.head = True
            fed = self._fed(next(iter(in_line)))
            admission.head = False
            if not fed:
                break

    def _fed(self, connection: Connection) -> bool:
        try:
            return connection.feed()
        except Exception as bug:
            connection.blame("reading on", bug)
            return True

    def _reclaim(self) -> None:
        """Take back what connections hold and do not need: somebody waits for memory."""
        shared = self._shared
        self._next_reclaim_ns = shared.now_ns + _RECLAIM_NS
        waiting = len(shared.in_line) + len(shared.hungry)
        why = f"{waiting} connections wait for memory for their requests: penstock.arena.bytes"
        shared.log.event_seldom(WARNING, "receive-memory-short", bound=RECEIVE_MEMORY, why=why)
        for connection in shared.open.values():
            connection.framing.rest()

    def send_due(self) -> None:
        """To everybody for whom there is something, and to those who waited for the disk."""
        shared = self._shared
        while shared.cold:
            shared.cold.popitem()[0].mark_dirty()
        dirty = shared.dirty
        shared.dirty = []
        for connection in dirty:
            connection.dirty = False
            if shared.watch.running:
                shared.watch.begin_account(connection.account)
            try:
                connection.flush()
            except Exception as bug:
                connection.blame("sending", bug)
        if shared.watch.running:
            shared.watch.end_account()

    def sweep(self, now_ns: int) -> list[Slab | None]:
        """Once a second: hang up on the idle and the stuck. The memory that the others hold."""
        for number in list(self._ending):
            self._end_those(number, now_ns)
        for connection in list(self._shared.open.values()):
            try:
                self._sweeping.sweep(connection, now_ns)
            except Exception as bug:
                connection.blame("the look once a second", bug)
        return [connection.framing.slab for connection in self._shared.open.values()]

    def end_listener(self, number: int, now_ns: int) -> None:
        """End the connections that came by this listener, as soon as what they have asked is
        answered."""
        self._ending[number] = now_ns + _ANSWERS_NS
        self._end_those(number, now_ns)

    def _end_those(self, number: int, now_ns: int) -> None:
        over = now_ns >= self._ending[number]
        left = 0
        for connection in list(self._shared.open.values()):
            if connection.listener != number:
                continue
            try:
                connection.close() if over else connection.drain()
            except Exception as bug:
                connection.blame("the end of its listener", bug)
            left += not connection.closed
        if not left:
            del self._ending[number]

    def drain(self) -> bool:
        """Take no more requests; whether everything asked is answered and sent."""
        for connection in list(self._shared.open.values()):
            try:
                connection.drain()
            except Exception as bug:
                connection.blame("the end of this process", bug)
        return not self._shared.open
