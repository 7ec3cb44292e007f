"""The shell of control: lead or follow the metadata log, answer requests.

One turn: requests of all netprocs are decided over the speculative image and appended in order, and
a thread begins one fdatasync for them all. When it has ended, rows of the partition table, the
committed offset and the answers become visible, in that order; what was appended meanwhile waits
for the next one. When leadership is lost, whatever is not committed is answered NOT_CONTROLLER.
Snapshots are written on a thread, too. A storage failure ends the process; its successor reads what
is on the disk.
"""

import os
from functools import partial
from typing import Any, Final

from appliance.authorization.rights import Callers, Rights
from appliance.base.errors import UNKNOWN_SERVER_ERROR, DiskFull, StorageFailed
from appliance.config.bounds import CALLERS, setting_of
from appliance.control.barrier import ControlBarrier
from appliance.control.broker.addresses import Addresses, own_controllers
from appliance.control.broker.birth import Birth
from appliance.control.broker.broker_asker import Asking, BrokerAsker, others
from appliance.control.broker.channel import Values
from appliance.control.broker.crew import Crew
from appliance.control.broker.dynamic_listeners import DynamicListeners
from appliance.control.broker.node import Node
from appliance.control.broker.own import OWN, OwnAnswers
from appliance.control.deletion.deletion_journal import NOTE, Burying
from appliance.control.fencing import Fencing
from appliance.control.folder.startup import Started, first_time
from appliance.control.followers import Followers
from appliance.control.history.audit_writer import Auditor
from appliance.control.history.history_writer import Keeper
from appliance.control.partitions.folder_room import Room
from appliance.control.partitions.ioproc_requests import Homes
from appliance.control.quorum import wire as quorum_wire
from appliance.control.quorum.driver import QuorumDriver
from appliance.control.quorum.new_leader import Leading
from appliance.control.quorum.served_requests import QuorumParts
from appliance.control.quorum.snapshots import Unwritten
from appliance.control.quorum.voter_duties import VoterDuties
from appliance.control.requests.admin_requests import AdminRequests, Elsewhere
from appliance.control.requests.change_events import log_change, report
from appliance.control.requests.contexts import Contexts
from appliance.control.requests.control_request import read
from appliance.control.requests.mutation_quotas import Mutations
from appliance.control.requests.paced_requests import PacedRequests
from appliance.control.requests.parts import InParts
from appliance.control.requests.pending_answers import LOST, UNDONE, Decision, WaitingAnswers
from appliance.control.requests.router import RequestRouter
from appliance.control.requests.voter_probe import Prober, Probing
from appliance.control.threads import InterruptibleThreads
from appliance.controller.decision import Record
from appliance.controller.producer_ids import ProducerIdBlocks
from appliance.controller.registration import Incarnation
from appliance.handlers.admin import AdminContext
from appliance.metadata.changes import BrokerChanged, Change
from appliance.peers.conversation import Done as Told
from appliance.peers.link import Watcher
from appliance.ring.messages import FORWARD, Message
from appliance.ring.process_table import IOPROC, NETPROC, READY, Peer
from appliance.ring.slots import read_forward
from appliance.shell.answers import Answers
from appliance.shell.bugs import Bugs
from appliance.shell.links import Links
from appliance.shell.log import ERROR, NOTICE, Log
from appliance.shell.loop import STOP
from appliance.shell.seat import Seat

_SYNC: Final = 0
_SNAPSHOT: Final = 1
_SOON_MS: Final = 100
"""A chore that has raised an exception is tried again after so long."""
DRAIN_STAGE: Final = 3
"""The stage of the orderly end in which control stops (`ProcessTable.drain`)."""


class Control:
    """The shell of control (`loop.Shell`)."""

    def __init__(
        self,
        seat: Seat,
        links: Links,
        log: Log,
        started: Started,
        threads: InterruptibleThreads,
        watcher: Watcher | None = None,
    ) -> None:
        """watcher: the loop, for connections to other nodes."""
        self.keeper: Keeper | None = None  # of the history
        self.auditor: Auditor | None = None
        self._seat, self._links, self._log = seat, links, log
        self._clock = started.clock
        self._disk = started.disk
        self._quorum = started.quorum
        self._identity = started.identity
        self._rows = started.rows
        self._dirs = started.dirs
        self._producer_ids = ProducerIdBlocks()
        self._burying = Burying(seat, started, threads, lambda: self._driver.level, log)
        self._leading = Leading(
            seat, self._disk, self._quorum, self._identity, started.random, self._register, log
        )
        committed = self._quorum.images.committed
        self._room = Room(self._disk, started.dirs, seat.config, committed, log)
        self._requests = AdminRequests(
            self._append,
            partial(report, log),
            self._burying.blocked_ms,
            lambda: self._room.describe_folder(0),
            seat.errors,
            lambda *who: self._router.become(*who),
            started.clock,
            log.trail,
        )
        own = own_controllers(seat.config, self._identity.node_id)
        parts = QuorumParts(self._quorum, self._identity, self._disk, self._clock, log)
        self._driver = QuorumDriver(parts, seat.config, self, own)
        self.barrier = ControlBarrier(Bugs(log), self._quorum, self._driver.served)
        self._waiting = WaitingAnswers(self.barrier.bugs)
        self._duties = VoterDuties(
            self._quorum, self._driver, self._identity.cluster_id, own, seat, log
        )
        self.doors = DynamicListeners(self._disk, seat.data_dir, seat.config, log)
        self._published = False  # what is committed, by this process
        self._threads = threads
        self._syncing = self._writing = False  # the log, a snapshot
        self._make_deciders(started)
        self._join(watcher)
        self._answers = {n: Answers(links.writer(NETPROC, n)) for n in range(seat.netprocs)}

    def _make_deciders(self, started: Started) -> None:
        """Makes the objects that decide requests."""
        seat, reach = self._seat, self._log.reach
        self._mutations = Mutations(seat, self._clock, self._quorum.images.committed, reach)
        self._followers = Followers(seat, self._quorum, self._mutations, self._room)
        self._contexts = Contexts(
            seat,
            started,
            self._room,
            self._burying.trash,
            self._producer_ids,
            self._mutations.usage,
            lambda: self._fencing.heartbeats,
            self._driver.described,
            lambda now_ms: self._duties.electing(now_ms, self._prober.busy),
            self.doors,
        )
        self._callers = Callers(seat.authorizer, seat.config.int(setting_of(CALLERS)), reach)
        self._router = RequestRouter(
            seat, self._quorum, self._requests, self._contexts, self._mutations, self._callers
        )

    def _join(self, watcher: Watcher | None) -> None:
        """Makes the objects of a cluster's node."""
        seat, log, node_id = self._seat, self._log, self._identity.node_id
        self._homes = Homes(
            {index: self._links.writer(IOPROC, index) for index in range(seat.ioprocs)},
            seat.partitions,
            self._dirs,
            self._quorum,
            self._producer_ids,
            self._append,
            self._contexts.situation,
        )
        addresses = Addresses(seat.config, node_id, watcher, self._clock, self._driver.places, log)
        if watcher is not None:
            self._driver.connect(addresses.voter)
        patience_ms = seat.config.int("controller.quorum.request.timeout.ms")
        self._prober = Prober(addresses.voter, self._go_on, patience_ms)
        self._asker = BrokerAsker(addresses.broker, self._burying.trash.settled, self._go_on)
        situation, wall_ms = self._contexts.situation, self._clock.wall_ms
        self._fencing = Fencing(
            node_id, seat.config, addresses.broker, self._append, situation, log, wall_ms
        )
        self._own_answers = OwnAnswers()
        self._paced = PacedRequests(
            self._decide, self.barrier.caught, self.reply, self._router, self._links, self._answer
        )
        incarnation, image = self._leading.incarnation, self._quorum.images.committed
        birth = Birth.of(seat, self._identity, self._dirs, incarnation, image)
        self._node = Node(seat.config, birth, addresses.controller, self._own, self._homes, log)
        lacking = self._rows.lacking
        self._crew = Crew(seat.processes, seat.ioprocs, seat.config, self._room.full, lacking, log)
        self._patience_ms = seat.config.int("request.timeout.ms")

    def open_for_business(self) -> None:
        """Leads at once if this is the only voter, and publishes what that appended; else waits for
        the quorum. Raises as `first_time`."""
        with first_time(self._seat):
            if self._quorum.alone:
                self.lead()
                self._show(self._quorum.sync())
            else:
                self._quorum.snapshots.began(self._clock.wall_ms())
        self._links.set_state(READY)

    def lead(self) -> None:
        """The only voter of a quorum leads, whenever it does not. Raises StorageFailed."""
        self._quorum.elected(self._clock.wall_ms())
        self._driver.apply_effects()

    def resign(self) -> None:
        """Lead no more."""
        self._quorum.replica.resign(self._now_ms())
        self._driver.apply_effects()

    # What the quorum says (`quorum_driver.RoleCallbacks`) -----------------------------------------

    def led(self) -> None:
        """This node was elected. Raises StorageFailed."""
        self._leading.lead(self._clock.wall_ms())
        self._fencing.lead(self._quorum.image, self._now_ms(), self._quorum.replica.silent)

    def lost(self) -> None:
        """Another node leads, or nobody: what is not committed was never decided here, and whoever
        waits for it hears so. What is, that this node votes no more, is answered first."""
        self._show(self._quorum.advance())
        self._release()
        self._leading.resign()
        self._fencing.resign()
        self._refuse(LOST)

    def leader_changed(self) -> None:
        """Everyone here may know who leads."""
        leadership = self._quorum.leadership
        leader, epoch = leadership.leader_id, leadership.epoch
        self._seat.processes.publish_leader(leader, epoch)
        self._node.turn_to(leader, self._quorum.images.committed)
        if not self._quorum.alone:
            self._log.event(NOTICE, "metadata-leader", node=leader, epoch=epoch)

    def reply(self, netproc: int, token: int, code: int, body: bytes) -> None:
        """The answer to a request: of another node, of a client, or of this node itself."""
        if netproc == OWN:
            self._own_answers.put_answer(token, code, body)
        else:
            self._answers[netproc].put_answer(token, code, body)

    def _refuse(self, why: int) -> None:
        """Refuses decisions behind the end of the image, which are lost."""
        for answer in self._waiting.refuse(self._quorum.replayed_end, why):
            self._paced.reply(*answer)
        self._homes.undo(self._quorum.replayed_end)

    def _register(self, incarnation: Incarnation) -> None:
        context = self._contexts.context()
        context.situation.directories = tuple(one for one in self._dirs.ids if one is not None)
        self._requests.register(incarnation, context, self._quorum.replayed_end)

    def peers_changed(self, peers: list[Peer]) -> None:
        """Answers to a dead netproc go nowhere; what it asked for is done all the same."""
        for peer in peers:
            if peer.kind == NETPROC:
                self._answers[peer.index].drop()
                self._paced.drop_netproc(peer.index)
                self._waiting.forget_netproc(peer.index)
                self._node.forwarding.forget_netproc(peer.index)
                self._driver.served.forget_netproc(peer.index)
                self._prober.forget_netproc(peer.index)
                self._asker.forget_netproc(peer.index)
            elif peer.kind == IOPROC:
                self._homes.forget_ioproc(peer.index)

    def handle(self, peer: Peer, messages: list[Message]) -> None:
        """Decide on what one netproc asks; answered when all that it could see is committed."""
        if peer.kind == IOPROC:
            self._homes.handle(peer.index, messages, self._node, self.barrier.caught)
            return
        self._paced.decide_all(peer.index, messages)

    def _decide(
        self, netproc: int, message: Message, context: AdminContext | None
    ) -> AdminContext | None:
        """Decide on a request. context: from the last decision, None where it does not hold any
        more; what is returned holds for the next one."""
        asked = read(message, self._callers)
        if message.op == FORWARD and read_forward(message).api >> 16 in quorum_wire.SERVED:
            self._serve_voter(netproc, message, asked.rights)
            return None  # it has changed by that
        context = self._contexts.context() if context is None else context
        context.rights = asked.rights
        controller = self._node.controller
        decision = self._router.decide(netproc, message, asked.topic, context, controller)
        if isinstance(decision, Elsewhere):
            until_ms = self._now_ms() + (decision.timeout_ms or self._patience_ms)
            self._node.forwarding.forward_request(
                netproc, message.token, decision.question, decision.refuse, until_ms
            )
            return None  # that one is kept, for a refusal
        if isinstance(decision, Asking):
            living = others(self._quorum.image, self._identity.node_id)
            self._asker.ask_brokers(netproc, message.token, decision, living, self._now_ms())
        elif isinstance(decision, Probing):
            self._prober.probe_node(netproc, message.token, decision)
        elif isinstance(decision, InParts):
            self._paced.begin_parts(netproc, message.token, decision)
        else:
            self._contexts.refresh(context)
            self._answer(netproc, message.token, decision)
        return context

    def _answer(self, netproc: int, token: int, decision: Decision) -> None:
        """When all that it was decided over is committed, or at once."""
        if decision.at_once:
            self._paced.reply(netproc, token, decision.code, decision.body)
        else:
            self._waiting.add_answer(netproc, token, decision, self._quorum.replayed_end)

    def _go_on(self, netproc: int, token: int, what: Probing | Asking, said: Any) -> None:
        """Other nodes were asked, and `said` this."""
        decision = self.barrier.run_chore(
            "an answer of other nodes", lambda: what.go_on(self._contexts.context(), said), None
        )
        if decision is None:
            self.reply(netproc, token, UNKNOWN_SERVER_ERROR, b"")
        else:
            self._answer(netproc, token, decision)

    def _serve_voter(self, netproc: int, message: Message, rights: Rights) -> None:
        request = read_forward(message)
        key, version = request.api >> 16, request.api & 0xFFFF
        body = bytes(self._seat.arenas[netproc][request.position :][: request.length])
        self._driver.served.serve(netproc, message.token, key, version, body, rights)

    def _own(self, key: int, version: int, values: Values, done: Told) -> None:
        """This node asks itself, while it leads; answered as anybody else is."""
        decision = self._router.decide_own(key, version, values)
        token = self._own_answers.token(key, version, done)
        self._waiting.add_answer(OWN, token, decision, self._quorum.replayed_end)

    def ready(self, mask: int) -> None:
        """A job ended: the turn that follows takes the result."""
        self._threads.hush()

    def run_once(self, now_ns: int) -> int:
        """Sync, publish, answer; now and then a snapshot."""
        bar, seat = self.barrier, self._seat
        bar.run_chore(
            "room", lambda: self._room.tick(now_ns, seat.processes.all_without_room), None
        )
        if self.keeper is not None:
            bar.bugs.guard("history", partial(self.keeper.keep_due, now_ns))
        if self.auditor is not None:
            bar.bugs.guard("audit", partial(self.auditor.run_turn, now_ns))
        now_ms, quorum, driver = self._clock.wall_ms(), self._quorum, self._driver
        if drain := seat.processes.drain:
            driver.leave()
        driver.tick(now_ns // 1_000_000, low=self._room.metadata_low)
        bar.run_chore("voter duties", lambda: self._duties.tick(now_ns // 1_000_000, now_ms), None)
        if self._leading.again(now_ns, now_ms, low=self._room.metadata_low):
            driver.make_way()
        due_ms = self._cluster()
        self._paced.run_turn()
        self._take(now_ms)
        while self._begin(now_ms):
            self._take(now_ms)  # it may have been quick
        asks_ms = bar.run_chore(
            "questions to nodes", partial(self._ask, now_ns // 1_000_000), _SOON_MS
        )
        wait_ms = min(driver.flush(now_ns // 1_000_000), asks_ms)
        seat.processes.add_commits(*driver.commits.take_totals())
        if quorum.behind or (driver.level and not self._published):
            self._show(quorum.advance())
        self._release()
        full = [answers for answers in self._answers.values() if not answers.push()]
        said = self._homes.release(quorum.committed)
        self._links.flush()
        bar.run_chore("deleted topics", partial(self._burying.drop_expired, now_ms), False)
        ends = drain >= DRAIN_STAGE or (self.doors.anew and not drain and said and not full)
        if ends and not (self._syncing or self._burying.writing or self._paced.busy):
            return STOP
        if quorum.behind or self._paced.busy or (quorum.log.unsynced and not self._syncing):
            return 0
        return 1 if full or not said else max(0, min(wait_ms, due_ms - self._now_ms()))

    def _ask(self, now_ms: int) -> int:
        """Other nodes, for who waits here; in how many ms to come again."""
        return min(self._prober.run_once(), self._asker.run_once(now_ms))

    def _release(self) -> None:
        """Sends the answers whose records are committed."""
        for waiting in (self._waiting, self._node.forwarding):
            for answer in waiting.release(self._quorum.committed):
                self._paced.reply(*answer)

    def _cluster(self) -> int:
        """This node among others: what it asks of the active controller, and whom it fences as
        that. When (ms) to come again at the latest."""
        quorum, processes, now_ms = self._quorum, self._seat.processes, self._now_ms()
        looks = partial(self._crew.check_ioprocs, now_ms, self._node, quorum.images.committed)
        ready = self.barrier.run_chore("I/O processes", looks, False)
        if processes.leaving:
            self._node.leave()
        due_ms = self._node.run_once(now_ms, quorum.committed, quorum.images.committed, ready)
        processes.set_answered(self._node.heard_ms(self._driver.followed_ms(now_ms)))
        self._node.stock_ids(self._producer_ids.left)
        if self._node.member != processes.member:
            processes.set_member(self._node.member)
            os.eventfd_write(self._seat.supervisor_doorbell, 1)
        fences = partial(self._fencing.fence_expired, now_ms)
        again_ms = self.barrier.run_chore("fencing", fences, now_ms + _SOON_MS)
        return min(due_ms, self._crew.due_ms, again_ms)

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // 1_000_000

    def _begin(self, now_ms: int) -> bool:
        """A sync for all that was appended, a note of what is to be deleted, and a snapshot of what
        is committed; whether there was something to begin.

        A snapshot that is being written when control ends is written by its successor."""
        quorum = self._quorum
        begun = self._burying.begin_note()
        if not self._writing and quorum.snapshot_due(now_ms):
            frozen = quorum.begin_snapshot(now_ms)
            self._writing = begun = True
            self._threads.submit(
                (_SNAPSHOT, frozen), partial(frozen.write_file, self._disk, quorum.log.folder)
            )
        if not self._syncing and quorum.log.unsynced:
            job = quorum.log.begin_sync()
            assert job is not None, "there is something to sync"
            self._syncing = begun = True
            self._threads.submit((_SYNC, job), job.run)
        return begun

    def _take(self, now_ms: int) -> None:
        for done in self._threads.take_ended():
            kind, what = done.tag
            if kind == _SNAPSHOT:
                self._writing = False
                self._snapshot_written(what, done.failure, now_ms)
            elif kind == NOTE:
                self._burying.wrote(what, done.failure)
                self._noted(what, now_ms)
            else:
                self._syncing = False
                self._show(self._quorum.end_sync(what, done.failure))

    def _noted(self, note: int, now_ms: int) -> None:
        """The deletions that waited for it go into the log."""
        try:
            self._quorum.noted(note, now_ms)
        except DiskFull as full:
            self._leading.lacks_room(full)
            self._refuse(UNDONE)

    def _snapshot_written(self, frozen: Unwritten, failure: Exception | None, now_ms: int) -> None:
        """Without a new snapshot the log only gets longer: a full disk is no reason to end."""
        try:
            if failure is not None:
                raise failure
            self._quorum.snapshots.end_snapshot(frozen, now_ms)
        except StorageFailed as cause:
            self._log.event(ERROR, "metadata-snapshot-failed", cause=str(cause))
        except Exception as bug:
            self.barrier.caught("a snapshot", bug)
        else:
            self._log.event(NOTICE, "metadata-snapshot", offset=frozen.snapshot.offset)

    def close(self) -> bool:
        """The orderly end: the log is synced, nobody asks any more. False: `Node.keeps_a_loss`."""
        self._quorum.log.close()
        for name, keeps in (("history", self.keeper), ("audit", self.auditor)):
            if keeps is not None:
                self.barrier.bugs.guard(name, keeps.close)
        return not self._node.keeps_a_loss

    def _append(self, records: list[Record]) -> None:
        """Raises DiskFull and NotController: none of it is there then."""
        with self._leading.deciding():
            now_ms = self._clock.wall_ms()
            if records := self._quorum.elected_by(records, now_ms):
                note = self._burying.before(records, now_ms)
                self._quorum.append(records, now_ms, behind=note)

    def _show(self, changes: list[Change]) -> None:
        """These changes are committed: rows first, then the offset."""
        committed, image = self._quorum.committed, self._quorum.images.committed
        for change in changes:
            self._rows.apply(change, image, committed)
            if self._published or self._quorum.alone:  # of what was agreed before nobody is told
                self.barrier.bugs.guard(
                    "events", partial(log_change, self._log, change, self._burying.trash)
                )
        self._followers.follow(changes, image)
        self._node.changed(changes, image)
        if any(isinstance(change, BrokerChanged) for change in changes):
            self._fencing.follow(image)
            self._leading.check_registered()
        if not self._driver.level or (self._burying.unwritten and not self._published):
            return  # others begin with what is agreed now, not with what was once
        self._published = True
        self._followers.admit(image)
        self.barrier.run_chore("doors", lambda: self.doors.apply_changes(changes, image), None)
        table = self._seat.processes
        table.publish_metadata(committed)
        table.set_applied(self._seat.me, committed)
        self._links.wake_sleepers()
