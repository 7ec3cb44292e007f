"""The network process: its parts, and what it does in each turn.

Frames become exchanges (`intake`), their handlers ask through the `host`, what comes back is told
to them (`completions`), and answers leave in the order of the requests (`connections`).
"""

import select
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from secrets import randbits
from typing import Final

from appliance.base.clock import Clock
from appliance.config.bounds import FETCH_SESSIONS, setting_of
from appliance.config.broker import BrokerConfig
from appliance.handlers import registry
from appliance.handlers.exchange import Handler as Served
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.metadata.effective import broker_config
from appliance.metadata.follower import Follower
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.connections import Connections
from appliance.netproc.connections.connections_state import ConnectionsState
from appliance.netproc.connections.listener import Listener, OwnerListener
from appliance.netproc.connections.long_answers import LongAnswers
from appliance.netproc.handover import ANSWERS_NS, HandoverSource, covers, serves
from appliance.netproc.in_flight.exchanges import Exchanges
from appliance.netproc.in_flight.node_questions import NodeQuestions
from appliance.netproc.in_flight.outbox import CONTROL_HOME, Outbox
from appliance.netproc.limits.connection_rate import ConnectionRate
from appliance.netproc.listener_changes import ListenerChanges
from appliance.netproc.memory.slabs import check, give_back
from appliance.netproc.requests.client_throttling import ClientThrottling
from appliance.netproc.requests.completions import Completions
from appliance.netproc.requests.exchange_barrier import ExchangeBarrier
from appliance.netproc.requests.host import NetprocHost
from appliance.netproc.requests.intake import Intake
from appliance.netproc.requests.long_requests import LongRequests
from appliance.netproc.requests.metadata_replay import MetadataFollowing
from appliance.netproc.transport.tls_listeners import TlsListeners
from appliance.peers.link import Link
from appliance.ring.client_table import OpenConnections
from appliance.ring.messages import Message
from appliance.ring.process_table import (
    CONTROL,
    DRAIN,
    METADATA_OFFSET,
    NETPROC,
    READY,
    Peer,
    ProcessTable,
)
from appliance.shell.handed_connection import HandedConnection
from appliance.shell.links import Links
from appliance.shell.log import INFO, Log
from appliance.shell.loop import LONGEST_WAIT_MS, STOP, FileHandler, Loop
from appliance.shell.patience import NETPROC_ANSWERS_NS
from appliance.shell.read_retries import ReadRetries
from appliance.shell.seat import Seat

_SWEEP_NS: Final = 1_000_000_000
_LOOK_AGAIN_MS: Final = 2


def can_serve(table: ProcessTable) -> bool:
    """True if control and every ioproc are ready and control has published metadata."""
    return table.cluster_ready and table.metadata_offset > 0


class Server:
    """One network process, as its loop sees it (`shell.loop.Shell`)."""

    def __init__(
        self, seat: Seat, links: Links, loop: Loop, follower: Follower, clock: Clock, log: Log
    ) -> None:
        self._seat = seat
        self._links = links
        self._loop, self._log = loop, log
        self._throttling = throttling = ClientThrottling(seat, log, clock)
        memory = seat.arenas[seat.index]
        counts, clients = seat.counters.answers[seat.index], seat.clients.rows[seat.index]
        clients.clear_rows()
        committed = seat.processes.word(METADATA_OFFSET)
        self.shared: ConnectionsState[Connection] = ConnectionsState(
            loop, log, throttling.watch, memory, seat.config, counts, clients, committed, seat.names
        )
        self.shared.limits.elsewhere = OpenConnections(seat.clients.rows, clients)
        self.shared.now_ns = clock.monotonic_ns()
        self.shared.long_answers = LongAnswers(loop, clock)
        self.exchanges = Exchanges()
        self._outbox = Outbox(links, seat.ioprocs, seat.config)
        self._kept = self._outbox.kept
        self._questions = NodeQuestions(seat.config, follower, loop, clock, log)
        self._asked_nodes = self._questions.links
        self.host = NetprocHost(
            seat, self.shared, self.exchanges, self._outbox, throttling, follower, self._questions
        )
        self.shared.sealing = self.sealing = sealing = TlsListeners(
            lambda: broker_config(follower.image, seat.config), log, clock, seat.index == 0
        )
        sealing.add(self.shared.listeners)
        told = self.host, throttling, self.shared, sealing
        self._following = MetadataFollowing(seat, follower, *told, ReadRetries(log))
        self._bugs = self.shared.bugs
        barrier = ExchangeBarrier(self.host, self.exchanges, self._bugs)
        self._completions = Completions(
            self.host, self.exchanges, self._following, throttling.watch, barrier, self._outbox
        )
        self._long = LongRequests(self.host, clock, throttling.watch, barrier)
        controllers = registry.controllers_handlers() if seat.config.several else {}
        legacy = seat.config.bool("penstock.legacy.protocol")
        self._serves = registry.handlers(_sessions(seat, log), legacy=legacy), controllers
        self._handlers = [self._handlers_of(name) for name in self.shared.listeners]
        served = self._handlers, loop, seat.authorizer, self._long
        intake = Intake(self.host, barrier, self._following, *served)
        self._arrivals = ConnectionRate(throttling.meters, self.shared.limits, loop, clock, log)
        self.connections = Connections(self.shared, intake, self._arrivals, seat.config)
        self.listeners: list[Listener] = []
        self._shut: list[Listener] = []  # nobody is accepted there yet
        self._listen(seat.listeners)
        # What to look at in every turn: empty, there is nothing to do.
        self._early = self._completions.early
        self._deadlines = self.exchanges.deadlines
        self._muted = throttling.muted
        self._held = self._arrivals.held
        self._shut_doors = self._arrivals.shut_doors
        self._next_sweep_ns = self.shared.now_ns + _SWEEP_NS
        self._drain = seat.processes.word(DRAIN)
        self._drain_until_ns = 0
        self._parting: HandoverSource | None = None
        self._early_days = True  # clients are not served yet
        self._news = None if seat.news is None else ListenerChanges(seat.news, loop, self)

    def listen_also(
        self,
        names: Sequence[str],
        doors: Sequence[socket.socket],
        settings: Mapping[str, str | None],
    ) -> None:
        """As `news.ListenerTarget`. An open connection is told no other place until its next
        request."""
        config = self.host.config  # in place: it is renewed with the settings file, too
        told = config.over({key: text for key, text in settings.items() if text is not None})
        config.renew(
            {key: told.entry(key) if text is not None else None for key, text in settings.items()}
        )
        if not self._serves[1] and config.several:
            self._serves = self._serves[0], registry.controllers_handlers()
        self.sealing.add(names)
        self._handlers += [self._handlers_of(name) for name in names]
        self.shared.listeners += names
        self.host.logins.renew()
        new = self._listen(doors)
        if not self._drain_until_ns:
            first = [not self._early_days or config.is_controllers(name) for name in names]
            self._open([one for one, now in zip(new, first, strict=True) if now])

    def close_listeners(self, numbers: Sequence[int]) -> None:
        """As `news.ListenerTarget`. What was asked there is answered, for a while."""
        for number in numbers:
            listener = self.listeners[number]
            self._arrivals.forget_door(listener)
            if listener in self._shut:
                self._shut.remove(listener)
            elif not self._drain_until_ns:
                self._loop.unregister(listener.sock.fileno())
            listener.sock.close()
            self.connections.end_listener(number, self.shared.now_ns)

    def _listen(self, doors: Sequence[socket.socket]) -> list[Listener]:
        """At these, too, which are the shared state's next ones by name; opened later."""
        config, names = self.host.config, self.shared.listeners
        first = len(self.listeners)
        new = []
        for number, sock in enumerate(doors, first):
            what = self.connections, config, number, sock, names[number], self.sealing
            owners = sock.family == socket.AF_UNIX
            new.append(OwnerListener(*what, self._seat.data_dir) if owners else Listener(*what))
        self.listeners += new
        self._shut += [one for one in new if one.sock.fileno() >= 0]  # else it was closed since
        return new

    def _handlers_of(self, listener: str) -> dict[int, Served]:
        clients_own, controllers = self._serves
        return controllers if self.host.config.is_controllers(listener) else clients_own

    def open_for_controllers(self, config: BrokerConfig) -> None:
        """Let the other controllers connect; clients have to wait until `open_for_business`."""
        doors = [config.is_controllers(name) for name in self.shared.listeners]
        self._open([one for one, first in zip(self.listeners, doors, strict=True) if first])

    def open_for_business(self) -> None:
        """Accept connections: control and every ioproc are ready."""
        self._open(list(self._shut))
        self._early_days = False
        self._links.set_state(READY)

    def _open(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            self._loop.register(listener.sock.fileno(), select.EPOLLIN, listener)
            self._shut.remove(listener)

    def begin_handover(self, *, for_good: bool = False) -> None:
        """End as soon as that disturbs nobody, and leave every connection to a successor. for_good:
        at the end of this appliance, to another one's, and now."""
        seat = self._seat
        if seat.news is None or self._early_days:
            return
        if self._parting is None:
            now_ns = self.shared.now_ns
            bell = seat.supervisor_doorbell
            self._parting = HandoverSource(seat.news, bell, self._protocol, self._log, now_ns)
        if for_good:
            self._parting.serves = [serves(handlers) for handlers in self._handlers]

    @property
    def parted(self) -> bool:
        """A successor is to come at once: it ended by its own wish, and the appliance goes on."""
        return self._parting is not None and not self._drain[0] and not self._parting.serves

    def adopt(self, guests: Sequence[HandedConnection]) -> None:
        """Go on with the connections of the process that was here before. Who was told by another
        version that something is served which is not here would ask for that: it is hung up on.
        So is whoever came by a listener that has another protocol now: it has proved too little,
        or speaks what is not understood."""
        hung_up = changed = 0
        for guest in guests:
            at = guest.listener
            if at >= len(self.listeners) or self.listeners[at].sock.fileno() < 0:
                guest.close()
                continue
            if guest.protocol != self._protocol(guest.listener):
                guest.close()
                changed += 1
                continue
            if guest.serves and not covers(self._handlers[guest.listener], guest.serves):
                guest.close()
                hung_up += 1
                continue
            try:
                one = self.connections.adopt(guest)
                if guest.muted_until_ns > self.shared.now_ns and not one.closed:
                    self._throttling.mute_again(one, guest.muted_until_ns)
            except Exception as bug:
                self._bugs.report("a connection that was handed over", bug, peer=guest.address)
        if hung_up:
            why = "the version before serves other APIs, or asks for less than this one"
            self._log.event(INFO, "connections-hung-up", connections=hung_up, why=why)
        if changed:
            why = "their listener has another protocol now (listener.security.protocol.map)"
            self._log.event(INFO, "connections-hung-up", connections=changed, why=why)

    def _protocol(self, listener: int) -> str:
        return self.sealing.protocol(self.shared.listeners[listener])

    def close(self) -> None:
        """End the thread of long answers; nobody is connected any more."""
        if self.shared.long_answers is not None:
            self.shared.long_answers.end_thread()

    def peers_changed(self, peers: list[Peer]) -> None:
        """Fail everything asked of these dead processes with retriable errors."""
        homes = {CONTROL_HOME if peer.kind == CONTROL else peer.index for peer in peers}
        self._outbox.drop(homes)
        self.host.forget_files()
        self.host.routing += 1  # a home has forgotten where replicas are that fetch from here
        self.exchanges.lose_all(homes, self._completions.early_tokens())

    def failed(self, file: FileHandler, bug: Exception) -> None:
        """Close the connection whose bytes could not be taken."""
        if isinstance(file, Connection):
            file.blame("what came from a client", bug)
            return
        self._bugs.report(type(file).__name__, bug)
        if isinstance(file, Link):
            file.close()

    def handle(self, peer: Peer, arrived: list[Message]) -> None:
        """Completions from an ioproc, answers from control."""
        self._completions.handle(peer, arrived)

    def run_once(self, now_ns: int) -> int:
        """Metadata, timers and sending; answers how many ms the loop may wait, or STOP."""
        shared, connections = self.shared, self.connections
        shared.now_ns = self.host.now_ns = now_ns
        shared.handshakes = 0
        level = shared.committed[0] == shared.applied or self._following.replay_slice()
        if level and self._early:
            self._completions.tell_early()
        questions_ms = self._ask_nodes() if self._asked_nodes else LONGEST_WAIT_MS
        deadlines = self._deadlines
        if (
            self.exchanges.lost
            or self._kept
            or (deadlines and deadlines[0][0] <= now_ns)
            or now_ns >= self._next_sweep_ns
            or self._muted
            or self._held
            or self._shut_doors
            or self._early_days
            or self._long.waiting
            or self._long.in_line
        ):
            self._due(now_ns)
        if shared.starving or shared.in_line or shared.hungry:
            connections.resume_waiting(level)
        outbox = self._outbox
        if outbox.fresh:
            outbox.fresh = False
            self._links.flush()  # the others work while this one sends
        if shared.dirty or shared.cold:
            connections.send_due()
        drained = (self._drain[0] or self._parting is not None) and self._drained()
        if outbox.fresh:  # who hung up just now had asked for something: it is cancelled
            outbox.fresh = False
            self._links.flush()
        if drained:
            return STOP
        if shared.dirty or not level or self._long.waiting:
            return 0  # who sent its share of this turn goes on in the next, and so does the replay
        if self._kept or shared.starving or shared.cold or shared.in_line or shared.hungry:
            return 1
        if deadlines or self._muted or self._held or self._shut_doors:
            return min(questions_ms, self._wait_ms(now_ns))
        if self._early_days or self._drain_until_ns:
            return _LOOK_AGAIN_MS
        return questions_ms

    def _ask_nodes(self) -> int:
        """Take the answers of other nodes. Returns how long the loop may wait for the next (ms)."""
        questions, rest_ms = self._questions, LONGEST_WAIT_MS
        try:
            rest_ms = min(rest_ms, questions.run_once())
        except Exception as bug:
            self._bugs.report("questions to other nodes", bug)
        if questions.heard:
            self._completions.take_answers(questions.take_answers())
        return rest_ms

    def _due(self, now_ns: int) -> None:
        """Something is to be done that neither rings nor sockets tell of."""
        if self.exchanges.lost:
            self._completions.tell_lost()
        if self._long.waiting or self._long.in_line:
            self._long.run_turn()
        if self._kept:
            for x in self._outbox.push_kept():
                x.pending.clear()
                self.exchanges.end_if_done(x)
        if self._early_days and not self._drain_until_ns and can_serve(self._seat.processes):
            self.open_for_business()
        self._completions.expire(now_ns)
        if now_ns >= self._next_sweep_ns:
            self._sweep(now_ns)
        self._throttling.unmute(now_ns)
        self._bugs.guard("arrivals", lambda: self._arrivals.reopen_due(now_ns))

    def _wait_ms(self, now_ns: int) -> int:
        """How long the loop may wait until something is due."""
        wait = self._throttling.wait_ms(now_ns, LONGEST_WAIT_MS)
        wait = self._arrivals.wait_ms(now_ns, wait)
        return self.exchanges.wait_ms(now_ns, wait)

    def _sweep(self, now_ns: int) -> None:
        """Once a second: requests out of time, idle or stuck connections, memory nobody needs."""
        self._next_sweep_ns = now_ns + _SWEEP_NS
        self._completions.expire_overdue(now_ns)
        self._bugs.guard("certificates", lambda: self.sealing.reload_changed(now_ns))
        me = Peer(NETPROC, self._seat.index)
        self._seat.processes.set_delayed(me, *self.exchanges.count_delayed())
        held = self.connections.sweep(now_ns)
        check(self.shared.arena, held + self.exchanges.check())
        give_back(self.shared.arena, self.shared.memory)

    def _drained(self) -> bool:
        """True if every request is answered and its answer sent, or the time for it is over."""
        now_ns, parting = self.shared.now_ns, self._parting
        if parting is not None and self._drain[0] and not parting.serves:
            parting = None  # all ends, and nobody comes
        self.shared.heir = parting
        if not self._drain_until_ns:
            living = self.exchanges.living.values()
            if parting is not None and not parting.may_begin(living, now_ns):
                return False
            self._drain_until_ns = now_ns + (ANSWERS_NS if self.parted else NETPROC_ANSWERS_NS)
            self._arrivals.close()
            for listener in self.listeners:
                if listener not in self._shut and listener.sock.fileno() >= 0:
                    self._loop.unregister(listener.sock.fileno())
        self._completions.hurry()
        if parting is not None:
            parting.try_again()
        over = self.connections.drain() or now_ns >= self._drain_until_ns
        if over and parting is not None:
            parting.report_left(len(self.shared.open))
        return over


def _sessions(seat: Seat, log: Log) -> FetchSessions:
    setting = setting_of(FETCH_SESSIONS)
    slots = seat.config.int(setting) // seat.netprocs
    on_full = partial(log.reach, FETCH_SESSIONS, f"{slots} fetch sessions are in use: {setting}")
    return FetchSessions(slots, lambda: randbits(31), on_full)
