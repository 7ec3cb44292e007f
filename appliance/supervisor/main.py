"""Starting an appliance, keeping it alive and ending it in order: `run`.

Single-threaded; touches no ring in use. It waits on the signals' pipe, its doorbell (a child has
changed its state, confirmed an epoch or accuses a peer) and pidfds; the rest is `Fleet.step`.
"""

import gc
import importlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from appliance.base.clock import OsClock
from appliance.base.errors import ConfigError, StorageFailed
from appliance.config.broker import BrokerConfig
from appliance.config.metrics_door import metrics_url
from appliance.config.settings_reload import EXPORTERS, METRICS_LISTENER
from appliance.exporter.post import Post, addresses
from appliance.metadata.identity import new_uuid
from appliance.ring.event_ring import SUPERVISOR
from appliance.ring.process_table import CONTROL, IOPROC, KIND_NAMES, NETPROC, Peer, peers_of
from appliance.shell import process_authorizer, version
from appliance.shell.log import ERROR, INFO, WARNING, Log
from appliance.shell.seat import ANEW, Seat
from appliance.shell.settings_reload import SettingsReload
from appliance.supervisor import host
from appliance.supervisor.activation import passed
from appliance.supervisor.aside import Aside
from appliance.supervisor.bound_listeners import BoundListeners, with_kept
from appliance.supervisor.child import Child, Entry
from appliance.supervisor.fleet import SECOND, Fleet, why_not_begun
from appliance.supervisor.folder import DataFolder, Folders, lock_others
from appliance.supervisor.handed import Handed
from appliance.supervisor.layout import Layout
from appliance.supervisor.listeners import AddressInUse, Listeners, in_order, listen_for_scrapers
from appliance.supervisor.memory import SharedMemory
from appliance.supervisor.notify import this_process
from appliance.supervisor.push_target import push_target
from appliance.supervisor.reload_request import Read, ReloadRequest, Take
from appliance.supervisor.restart import RestartPolicy
from appliance.supervisor.service_manager import ServiceManager
from appliance.supervisor.signals import WANTED, Wishes
from appliance.supervisor.succession import SUCCEED, Succession, Successor, guests_of
from appliance.supervisor.tls_validation import TlsValidation
from appliance.wire.messages import limit_elements

OnReady = Callable[[Sequence[str], float], None]
_SIGNALS: Final = (*WANTED, signal.SIGHUP, SUCCEED)
EXPORTER: Final = "exporter"  # the process that tells how the appliance is


def run(
    config: object,
    *,
    data_dir: str,
    other_dirs: Sequence[str] = (),
    on_ready: OnReady,
    prepare: Callable[[], None] | None = None,
    read: Read | None = None,
    successor: Successor | None = None,
    layout: Layout | None = None,
    entries: Mapping[int, Entry] | None = None,
    log: Log | None = None,
) -> int:
    """Be the supervisor of one appliance in `data_dir`, and in `other_dirs` for more partitions,
    until it ends: its exit code, 0 after an orderly end.

    `config` goes to the children unseen. `prepare`: while the folder is locked and nothing else has
    begun: the place for formatting it. `read`: the settings once more when somebody asks (SIGHUP).
    `successor`: who takes over the listening sockets when somebody asks for that (SIGUSR2); then
    this does not return. `on_ready(addresses, seconds)`: once, when clients are served. Raises,
    before it changes anything: CannotStart (processor, address …), ConfigError (certificates).
    """
    began = time.monotonic_ns()
    host.check_processor()
    entries, log = entries or _entries(), log or Log(SUPERVISOR)
    folder = DataFolder(data_dir)
    others: list[DataFolder] = []
    try:
        others += lock_others(other_dirs, log)
        if prepare is not None:
            prepare()
        own, config = config, with_kept(config, data_dir, log)
        if layout is None:
            assert isinstance(config, BrokerConfig), "without a layout the settings tell it"
            layout = Layout.of(config)
            limit_elements(config.int("penstock.request.max.elements"))
        host.prepare(log)
        showing = TlsValidation(own, config, log)
        listeners = Listeners.checked(config, layout, passed(os.environ, os.getpid()), data_dir)
        scrapers = None
        try:
            if layout.metrics is not None:
                scrapers = listen_for_scrapers(*layout.metrics)
            memory = SharedMemory(layout, log)
            log.attach_ring(memory.events.writer(SUPERVISOR), memory.processes.log_levels)
            folders = Folders(folder, tuple(others), tuple(other_dirs))
            doors = BoundListeners(own, config, data_dir, listeners, layout.netprocs)
            supervisor = Supervisor(config, folders, layout, listeners, doors, memory, entries, log)
            supervisor.tell_metrics(scrapers)
            supervisor.reload_by(read, own, showing)
            supervisor.succeeded_by(successor)
            code = supervisor.run(began, on_ready)
            return 1 if supervisor.make_way() else code
        finally:
            listeners.close()
            if scrapers is not None:
                scrapers.close()
    finally:
        for one in (folder, *others):
            one.close()


def _entries() -> dict[int, Entry]:
    """The entry points of the children, after the limits of all rooms are checked together."""
    from appliance.supervisor import relations  # here: who only locks a folder needs no rooms

    relations.assert_relations()
    return {
        kind: importlib.import_module(f"appliance.{name}.main").run
        for kind, name in enumerate(KIND_NAMES)
    }


class Supervisor:
    """Wires the parts together and turns until the end."""

    def __init__(
        self,
        config: object,
        folder: Folders,
        layout: Layout,
        listeners: Listeners,
        doors: BoundListeners,
        memory: SharedMemory,
        entries: Mapping[int, Entry],
        log: Log,
    ) -> None:
        self._config = config
        self._folder = folder
        self._layout = layout
        self._listeners = listeners
        self._doors = doors
        self._handed = Handed(layout.netprocs, guests_of(os.environ, doors.names))
        self._memory = memory
        self._log = log
        self._run_id = new_uuid(os.urandom)
        self._clean = self._ready = False
        self._wishes = Wishes()
        flags = os.EFD_NONBLOCK | os.EFD_CLOEXEC
        self._doorbell = os.eventfd(0, flags)
        self._doorbells = {
            peer: os.eventfd(0, flags) for peer in peers_of(layout.ioprocs, layout.netprocs)
        }
        self._fleet = Fleet(
            layout, memory, log, entries, self._make_seat, self._settle, self._doorbells
        )
        self._reporting = ServiceManager(this_process(), self._fleet, memory.tables, log)
        self._reloading: ReloadRequest | None = None
        self._aside: Aside | None = None
        self._began_ms = OsClock().wall_ms()
        self._scrapers: socket.socket | None = None
        self._epoll = select.epoll(flags=select.EPOLL_CLOEXEC)
        self._watched: dict[int, Child] = {}
        self._watched_aside = -1
        self._signal_pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._succession = Succession(None, self._epoll, log)

    def succeeded_by(self, successor: Successor | None) -> None:
        """SIGUSR2 means: make way for it."""
        self._succession = Succession(successor, self._epoll, self._log, self._ports)

    def _ports(self) -> list[int]:
        scrapers = [] if self._scrapers is None else [self._scrapers.getsockname()[1]]
        return [*scrapers, *(port for _, port in self._listeners.addresses)]

    def make_way(self) -> bool:
        """After an end for a successor: go on as that one; True when there is none."""
        due = self._succession.due and not (self._wishes.count or self._fleet.fatal)
        if due:
            names = self._doors.names
            self._succession.become(self._listeners.keep_open(names), [*self._handed.all()], names)
        self._handed.close()
        return due

    def tell_metrics(self, listener: socket.socket | None) -> None:
        """A process beside the others is to tell how the appliance is, on this socket, or to push
        it; none where there is neither. May be called again, for another one in its place."""
        self._end_aside()
        self._scrapers = listener
        target = push_target(self._config, self._log)
        if listener is None and target is None:
            return
        assert isinstance(self._config, BrokerConfig)
        post = Post(
            config=self._config,
            folders=(self._folder.first.path, *self._folder.paths),
            tables=self._memory.tables,
            listener=listener,
            target=target,
            addresses=addresses(self._config, self._doors.addresses(self._config)),
            supervisor=os.getpid(),
            started_ms=self._began_ms,
        )
        levels, as_json = self._memory.processes.log_levels, self._log.json
        counts = self._memory.tables.bounds.regions[EXPORTER]

        def entry() -> int:
            self._leave_all()
            main = importlib.import_module("appliance.exporter.main")  # nobody else needs it
            return int(main.run(post, Log(EXPORTER, levels=levels, json=as_json, bounds=counts)))

        window_ns = int(self._layout.crash_window_seconds * SECOND)
        policy = RestartPolicy(limit=self._layout.crash_limit, window_ns=window_ns)
        self._aside = Aside(EXPORTER, entry, policy, self._log)
        if listener is not None:
            host, port = listener.getsockname()[:2]
            self._log.event(INFO, "metrics", at=metrics_url(self._config, host, port))
        if target is not None:
            self._log.event(INFO, "metrics-pushed", to=target.url)

    def reload_by(self, read: Read | None, own: object, showing: TlsValidation) -> None:
        """SIGHUP means: read the settings again, where one can. own: as they were read."""
        if read is None:
            return
        assert isinstance(own, BrokerConfig)
        self._reloading = ReloadRequest(
            own, read, self._memory.settings, self._fleet, self._reporting, self._log,
            self._prepare_metrics, showing,
        )  # fmt: skip

    def _prepare_metrics(self, config: BrokerConfig, keys: frozenset[str]) -> Take:
        """Another exporter where its settings change; its new listener is open by then."""
        if not keys & EXPORTERS:
            return lambda: None
        listener = self._scrapers
        if METRICS_LISTENER in keys:
            at = config.endpoint(METRICS_LISTENER)
            listener = None if at is None else self._listen_for_scrapers(at.host, at.port)

        def switch_listener() -> None:
            before = self._scrapers
            self.tell_metrics(listener)
            if before is not None and before is not listener:
                before.close()

        return switch_listener

    def _listen_for_scrapers(self, host: str, port: int) -> socket.socket:
        """Raises ConfigError. The port of today is free at another address when nobody has it."""
        before = self._scrapers
        try:
            if before is None or before.getsockname()[1] != port:
                return listen_for_scrapers(host, port)
            former = before.getsockname()[:2]
            self._end_aside()
            before.close()
            self._scrapers = None
            try:
                return listen_for_scrapers(host, port)
            except AddressInUse:
                self.tell_metrics(listen_for_scrapers(*former))
                raise
        except AddressInUse as taken:
            raise ConfigError(str(taken)) from None

    def _end_aside(self) -> None:
        """At once: there is nothing to flush."""
        if self._watched_aside >= 0:
            self._epoll.unregister(self._watched_aside)
            self._watched_aside = -1
        if self._aside is not None:
            self._aside.kill_process()
            self._aside = None

    def run(self, began: int, on_ready: OnReady) -> int:
        """From the first fork to the last exit."""
        previous = {number: signal.signal(number, _noted) for number in _SIGNALS}
        previous_fd = signal.set_wakeup_fd(self._signal_pipe[1])
        try:
            self._clean = self._folder.take_clean_markers()
            self._memory.processes.set_was_clean(self._clean)
            self._memory.tables.publish(os.getpid(), OsClock().wall_ms())
            version.current()  # before there are others, who are of this one then
            gc.freeze()
            self._fleet.start_all(time.monotonic_ns())
            self._clean = False
            self._epoll.register(self._doorbell, select.EPOLLIN | select.EPOLLET)
            self._epoll.register(self._signal_pipe[0], select.EPOLLIN)
            self._wishes.watch_parent(self._epoll)
            return self._turn_until_the_end(began, on_ready)
        finally:
            self._fleet.kill_all()
            self._succession.close()
            self._end_aside()
            if self._scrapers is not None:
                self._scrapers.close()
            signal.set_wakeup_fd(previous_fd)
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._close()

    def _turn_until_the_end(self, began: int, on_ready: OnReady) -> int:
        fleet = self._fleet
        again = 0
        while True:
            self._watch_new_children()
            wait = max(0, again - time.monotonic_ns()) / SECOND
            for fd, _ in self._epoll.poll(wait):
                if fd == self._signal_pipe[0]:
                    self._hear(os.read(self._signal_pipe[0], 64), time.monotonic_ns())
                elif fd == self._wishes.parent:
                    self._wishes.parent_ended(self._epoll, self._log)
                elif fd == self._watched_aside:
                    self._lose_aside()
                elif fd in self._watched:
                    self._epoll.unregister(fd)
                    child = self._watched.pop(fd)
                    fleet.died(child, time.monotonic_ns())
                    self._after_death(child)
            if self._wishes.count > 1:
                self._log.event(
                    WARNING, "ended", cause="asked a second time: at once, nothing was flushed"
                )
                return 1
            self._end_if_wished(time.monotonic_ns())
            self._handed.take_connections(self._doors)  # before a successor gets another end
            again = self._step_aside(fleet.step(time.monotonic_ns()))
            if fleet.drained:
                return self._end()
            self._check_ready(began, on_ready)
            if self._reloading is not None:
                self._reloading.finish_reload()
            again = min(again, self._reporting.report_due(time.monotonic_ns(), ready=self._ready))

    def _hear(self, numbers: bytes, now: int) -> None:
        self._wishes.add_signals(numbers, now)
        if self._reloading is not None and signal.SIGHUP in numbers:
            self._reloading.begin_reload(now, self._config)
        if SUCCEED in numbers and not self._fleet.draining:
            self._succession.begin_check(now, ready=self._ready)

    def _end_if_wished(self, now: int) -> None:
        """Begin the end; where a successor comes, clients wait for it, unless others serve them."""
        self._succession.finish_check(now)
        ends = bool(self._wishes.count or self._fleet.fatal)
        waits = not ends and not self._memory.processes.member
        wished = (ends or self._succession.due) and not self._fleet.draining
        if not wished or not self._fleet.begin_drain(now, heirs=waits):
            return
        if ends:
            self._reporting.send_state("STOPPING=1")
        else:
            self._reporting.reloads(now)
        if not waits:
            self._listeners.close()

    def _end(self) -> int:
        if self._fleet.fatal:
            self._log.event(ERROR, "ended", cause=self._fleet.fatal)
            return 1
        if not self._fleet.ended_clean():
            self._log.event(ERROR, "ended", cause="not everything was flushed; see above")
            return 1
        unchecked, agreed = self._fleet.unbegun(), self._memory.processes.metadata_offset > 0
        begun = why_not_begun(agreed=agreed, checked=not unchecked)
        if unchecked:
            self._log.event(INFO, "ended", clean="no", **begun)
            return 0
        try:
            self._folder.write_clean_markers()
        except StorageFailed as failure:  # all is flushed; the next start only does not know it
            self._log.event(WARNING, "ended", clean="no", cause=str(failure))
        else:
            self._log.event(INFO, "ended", clean="yes", **begun)
        return 0

    def _check_ready(self, began: int, on_ready: OnReady) -> None:
        table = self._memory.processes
        if self._ready or self._fleet.draining:
            return
        if not table.cluster_ready and self._fleet.ready(CONTROL, IOPROC):
            self._fleet.announce_cluster_ready()
        if table.cluster_ready and self._fleet.ready(NETPROC):
            self._ready = self._fleet.served = True
            self._reporting.send_state("READY=1")
            told = in_order(self._config, self._listeners.addresses)
            on_ready(told, (time.monotonic_ns() - began) / SECOND)

    def _watch_new_children(self) -> None:
        for child in self._fleet.children.values():
            if child.pidfd >= 0 and child.pidfd not in self._watched:
                self._epoll.register(child.pidfd, select.EPOLLIN)
                self._watched[child.pidfd] = child
                if child.peer.kind == NETPROC:
                    self._handed.let_go(child.peer.index)

    def _step_aside(self, again: int) -> int:
        """Start it when it is time. When (ns) to come again, the fleet included."""
        aside = self._aside
        if aside is None or self._fleet.draining:
            return again
        planned = aside.step(time.monotonic_ns())
        if aside.pidfd >= 0 > self._watched_aside:
            self._watched_aside = aside.pidfd
            self._epoll.register(aside.pidfd, select.EPOLLIN)
        return again if planned is None else min(again, planned)

    def _lose_aside(self) -> None:
        assert self._aside is not None
        self._epoll.unregister(self._watched_aside)
        self._watched_aside = -1
        self._aside.died(time.monotonic_ns())

    def _after_death(self, child: Child) -> None:
        """Connections must not wait at the door of a netproc that is not coming back."""
        if child.peer.kind == NETPROC and child.start_at < 0:
            self._listeners.close(child.peer.index)
            self._handed.let_go(child.peer.index)
        if child.exit_code == ANEW and not self._fleet.draining:
            self._config = self._doors.open_kept(self._config, self._log)
            if self._doors.has_closed:
                self.tell_metrics(self._scrapers)

    def _make_seat(self, peer: Peer, generation: int) -> Seat:
        layout, memory = self._layout, self._memory
        return Seat(
            kind=peer.kind,
            index=peer.index,
            generation=generation,
            config=self._config,
            run_id=self._run_id,
            data_dir=self._folder.first.path,
            other_dirs=self._folder.paths,
            clean=self._clean,
            processes=memory.processes,
            partitions=memory.partitions,
            arenas=memory.arenas,
            doorbell=self._doorbells[peer],
            doorbells={other: bell for other, bell in self._doorbells.items() if other != peer},
            supervisor_doorbell=self._doorbell,
            rings=memory.rings_of(peer),
            ioprocs=layout.ioprocs,
            netprocs=layout.netprocs,
            ring_slots=layout.ring_slots,
            listeners=self._listeners.of[peer.index] if peer.kind == NETPROC else (),
            guests=self._handed.of[peer.index] if peer.kind == NETPROC else (),
            names=self._doors.names,
            news=self._doors.pair(peer.index) if peer.kind == NETPROC else None,
            ports=self._doors.ports(self._config),
            spin_us=layout.spin_us,
            rereading=self._rereading(),
            log_json=self._log.json,
            quotas=memory.quotas,
            counters=memory.counters,
            clients=memory.clients,
            lags=memory.lags,
            pushes=memory.pushes,
            events=memory.events,
            security=memory.tables.security,
            bounds=memory.tables.bounds,
            authorizer=process_authorizer.authorizer_of(self._config),
        )

    def _rereading(self) -> SettingsReload:
        config = self._config if isinstance(self._config, BrokerConfig) else BrokerConfig()
        return SettingsReload(self._memory.settings, config)

    def _settle(self, seat: Seat) -> None:
        """Close in a new child what only the supervisor and other netprocs need."""
        self._leave_all(but=seat.index if seat.kind == NETPROC else None)
        if self._scrapers is not None:
            self._scrapers.close()

    def _leave_all(self, but: int | None = None) -> None:
        """but: the netproc that keeps its doors."""
        self._epoll.close()
        for fd in self._signal_pipe:
            os.close(fd)
        for netproc in range(self._layout.netprocs):
            if netproc != but:
                self._listeners.close(netproc)
        self._doors.close(but)
        self._handed.close(but)

    def _close(self) -> None:
        self._epoll.close()
        self._doors.close()
        if not self._succession.due:
            self._handed.close()
        for fd in (self._doorbell, *self._doorbells.values(), *self._signal_pipe):
            os.close(fd)


def _noted(_number: int, _frame: object) -> None:
    """The wakeup pipe has the signal already; this handler only keeps the default action away."""
