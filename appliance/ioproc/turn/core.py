"""One I/O process without its process: partitions, what is asked of them, what goes back.

A turn is `Dispatcher.handle` for each netproc's messages, then `finish`: one write per touched
partition, the syncs that somebody waits for, rows of the partition table, parked reads,
completions. Invariant: after `finish` nothing refers to an arena, and every observer knows what
became of every partition; an exception on the way takes that partition offline
(`turn_barrier.py`). `main.py` owns the loop, the clock and the links and calls this; tests
drive it over bytearrays.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final

from appliance.base.errors import (
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
    StorageFailed,
)
from appliance.ioproc.coordination.coordinator_host import CoordinatorHost
from appliance.ioproc.durability.group_commit import LOOK_EVERY_NS, Synced
from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.ioproc.partition_failures import HELD, LOST, OFFLINE, REPLACED, PartitionFailures
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.partitions.partition_listener import PartitionListener
from appliance.ioproc.requests.appends import Appends
from appliance.ioproc.requests.postponed import OPENINGS, PAYLOAD, SHARE
from appliance.ioproc.requests.reads import PartitionReads
from appliance.ioproc.requests.request_time import RequestTime
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.ioproc.turn.turn_barrier import TurnBarrier
from appliance.logstore.log import PartitionLog
from appliance.replication.role import ALONE, ELSEWHERE, PartitionRole
from appliance.wire.compression import OPENED

NO_COORDINATORS: Final[Mapping[str, CoordinatorHost]] = {}


class Core:
    """The partitions of one ioproc and everything that becomes of them.

    coordinators: by the topic that holds their records. observers: who is told besides them.
    billing: of what a turn takes, told before its answers.
    """

    __slots__ = (
        "_failures",
        "_hosts",
        "_observers",
        "_replicas",
        "_siblings",
        "_speakers",
        "appends",
        "askers",
        "barrier",
        "coordinators",
        "partitions",
        "postponed",
        "purgatory",
        "questions",
        "served",
        "syncing",
    )

    def __init__(
        self,
        served: ServedPartitions,
        appends: Appends,
        questions: PartitionReads,
        failures: PartitionFailures,
        observers: Sequence[PartitionListener] = (),
        coordinators: Mapping[str, CoordinatorHost] = NO_COORDINATORS,
        billing: RequestTime | None = None,
    ) -> None:
        self.served = served
        self.appends = appends
        self.postponed = self.appends.postponed
        self.questions = questions
        self._failures = failures
        self.barrier = TurnBarrier(failures)
        self.coordinators = coordinators
        self._hosts = tuple(coordinators.values())
        self._speakers: tuple[RequestTime | CoordinatorHost, ...] = self._hosts
        if billing is not None:
            self._speakers = (billing, *self._hosts)
        self._replicas = questions.replicas
        self._observers: tuple[PartitionListener, ...] = (*self._hosts, self._replicas, *observers)
        self.partitions = served.partitions
        self.askers = served.askers
        self._siblings = served.siblings
        self.purgatory = served.purgatory
        self.syncing = served.syncing

    def absent(self, handle: int) -> int:
        """The error for a partition that is not served here."""
        return self.served.absent(handle)

    # The end of a turn ----------------------------------------------------------------------------

    def finish(self, now_ns: int) -> bool:
        """Write, sync, publish, wake, answer. False when completions wait for room in a ring."""
        postponed = self.postponed
        postponed.payload, postponed.openings = PAYLOAD, OPENINGS
        postponed.began = OPENED[0]
        postponed.until = OPENED[0] + SHARE
        for host in self._hosts:
            if host.decided:
                host.stage()
        syncing = self.syncing
        self.served.now_ns = now_ns
        if self.appends.touched or syncing.under_way or syncing.wanted or now_ns >= syncing.due_ns:
            self._write_and_sync(now_ns)
        if self._failures.news:
            self.tell_observers()
        rows = self.served.rows
        if rows.changed:
            self._show_changes()
        if rows.watches.waits:
            self._tell_watching()
        sent = True
        try:
            for speaker in self._speakers:
                if speaker.waiting and not speaker.release():
                    sent = False
        except Exception as bug:
            self.barrier.report_bug("bills and answers of coordinators", bug)
        for asker in chain(self.askers.values(), self._siblings.values()):
            if asker.out and not asker.push():
                sent = False
        return sent

    def _show_changes(self) -> None:
        rows = self.served.rows
        for partition in rows.changed:
            try:
                risen = partition.risen
                rows.publish(partition)
                if (risen or partition.shared) and partition.parked:
                    self.questions.complete_parked(partition, risen)
            except Exception as bug:
                self.barrier.confine_bug("the end of a turn", partition, bug)
        rows.changed.clear()
        if self._failures.news:
            self.tell_observers()

    def _tell_watching(self) -> None:
        try:
            self.questions.tell_watching()
        except Exception as bug:  # their fetches end when their time is over
            self.barrier.report_bug("telling watches", bug)

    def _write_and_sync(self, now_ns: int) -> None:
        appends, syncing = self.appends, self.syncing
        if appends.touched:
            for partition in appends.touched:
                try:
                    appends.write_staged(partition)
                    if partition.broken is None:
                        syncing.wrote(partition, now_ns)
                except Exception as bug:
                    self.barrier.confine_bug("a write", partition, bug)
            appends.touched.clear()
        try:
            if syncing.under_way:
                for synced in syncing.ended():
                    self._conclude(synced, now_ns)
            if syncing.wanted:
                for synced in syncing.begin_syncs():
                    self._conclude(synced, now_ns)
            if now_ns >= syncing.due_ns:
                syncing.tick(now_ns)
        except Exception as bug:  # what is under way ends in a later turn
            syncing.due_ns = now_ns + LOOK_EVERY_NS
            self.barrier.report_bug("syncs", bug)

    def _conclude(self, synced: Synced, now_ns: int) -> None:
        """A sync ended: answer those it covers; begin the next one for those it does not."""
        partition, end, failure = synced
        if partition.broken is not None:
            return
        if isinstance(failure, StorageFailed):
            self._failures.fail(partition, failure)
            return
        try:
            if failure is not None:
                raise failure
            partition.on_synced(end)
            self.served.rows.changed[partition] = None
            if end < partition.progress.log_end:
                self.syncing.wrote(partition, now_ns)
            if partition.asking:
                self.questions.answer_visible(partition, end)
        except Exception as bug:
            self.barrier.confine_bug("a sync", partition, bug)

    def quiesce(self, partition: Partition, now_ns: int) -> None:
        """Commit and sync all that the partition has; no thread works on its files at return."""
        self.appends.write_staged(partition)
        self.appends.touched.pop(partition, None)
        if partition.broken is None and (partition.waiting or partition.unseen):
            self.syncing.request_sync(partition)
        self._let_syncs_end(partition, now_ns)

    def _let_syncs_end(self, partition: Partition, now_ns: int) -> None:
        """Those that are wanted too: one that ends may want another for what came meanwhile."""
        while partition.syncing:
            for synced in self.syncing.begin_syncs():
                self._conclude(synced, now_ns)
            if partition.syncing:
                self.syncing.wait()
            for synced in self.syncing.ended():
                self._conclude(synced, now_ns)

    def settle_all(self, now_ns: int) -> None:
        """Finish all that is under way: every record is visible, everybody is answered."""
        self.finish(now_ns)
        for partition in list(self.syncing.unseen):
            self.syncing.request_sync(partition)
        self.finish(now_ns)
        while self.syncing.busy():
            self.syncing.wait()
            self.finish(now_ns)

    # Partitions and askers come and go ------------------------------------------------------------

    def tell_observers(self) -> None:
        """Tell the observers what became of partitions since they were told last."""
        news = self._failures.news
        self.served.stirred = self.served.stirred or bool(news)  # some of them act by and by
        while news:
            partition, what = news.popleft()
            for observer in self._observers:
                try:
                    _tell_news(observer, partition, what)
                except Exception as bug:
                    self.barrier.confine_bug("what became of a partition", partition, bug)

    def add(self, partition: Partition, now_ns: int) -> None:
        """Serve a partition from now on."""
        served = self.served
        assert partition.handle not in self.partitions
        partition.space = served.spaces[partition.directory]
        self.partitions[partition.handle] = partition
        served.refused.pop(partition.handle, None)
        served.rows.take_over(partition)
        served.rows.publish(partition)
        served.rows.online(partition)
        for observer in self._observers:
            try:
                observer.opened(partition)
                _tell_role(observer, partition)
            except Exception as bug:
                self.barrier.confine_bug("a partition that was opened", partition, bug)
        if self._failures.news:
            self.tell_observers()

    def lead(
        self, partition: Partition, leader_epoch: int, role: PartitionRole = ALONE, now_ms: int = 0
    ) -> None:
        """This node leads the partition, in this epoch; the same epoch again: who is in sync is
        another. One that failed stays offline, whoever leads it."""
        if partition.broken is not None:
            return
        goes_on = partition.leads and partition.leader_epoch == leader_epoch
        partition.lead(leader_epoch, role, now_ms)
        if goes_on:
            self.served.rows.changed[partition] = None
            self._replicas.leads(partition)
        else:
            self.questions.new_epoch(partition)
            self._in_role(partition)

    def follow(
        self, partition: Partition, leader_epoch: int, role: PartitionRole = ELSEWHERE
    ) -> None:
        """Another node leads the partition: who asks or waits here is told to look for it. One that
        failed stays offline."""
        if partition.broken is not None:
            return
        goes_on = not partition.leads and partition.leader_epoch == leader_epoch
        partition.follow(leader_epoch, role)
        self.questions.new_epoch(partition)
        if not goes_on:
            self._in_role(partition)

    def isolate(self, *, isolated: bool) -> int:
        """This node is cut off from the others, it seems, or no more. Who waits for them is told to
        ask again: another node knows who leads. Returns how many partitions it deserts."""
        served = self.served
        served.isolated = isolated
        deserted = [one for one in self.partitions.values() if served.deserts(one)]
        for partition in deserted:
            partition.refuse_all(NOT_LEADER_OR_FOLLOWER)
            self.questions.deserted(partition)
        for host in self._hosts:
            host.isolate(isolated=isolated)
        return len(deserted)

    def brokers_changed(self) -> None:
        """Some node was registered, shut out or let in."""
        self._replicas.brokers_changed()

    def _in_role(self, partition: Partition) -> None:
        self.served.rows.online(partition)
        self.served.rows.changed[partition] = None
        for observer in self._observers:
            try:
                _tell_role(observer, partition)
            except Exception as bug:
                self.barrier.confine_bug("a partition's role", partition, bug)
        if self._failures.news:
            self.tell_observers()

    def remove(self, handle: int, now_ns: int) -> Partition:
        """Serve a partition no longer; who waits for it is told that it does not exist.

        Returns once no thread works on its files, so that its log can be closed or deleted.
        """
        partition, rows = self.partitions.pop(handle), self.served.rows
        rows.changed.pop(partition, None)
        for step in (
            partial(self._let_syncs_end, partition, now_ns),
            partial(self.appends.forget_partition, partition),
            partial(rows.changed.pop, partition, None),
            partial(self.syncing.forget_partition, partition),
            partial(partition.refuse_all, UNKNOWN_TOPIC_OR_PARTITION),
            partial(self._failures.refuse_questions, partition, UNKNOWN_TOPIC_OR_PARTITION),
            partial(rows.closed, partition),
        ):
            try:
                step()
            except Exception as bug:  # it goes all the same: its row is another's soon
                self.barrier.report_bug("a partition that goes", bug, partition=partition)
        self.tell_observers()
        for observer in self._observers:
            try:
                observer.closed(partition)
            except Exception as bug:
                self.barrier.report_bug("a partition that was closed", bug, partition=partition)
        return partition

    def replace(self, partition: Partition, log: PartitionLog, directory: int) -> None:
        """The partition lies in another log folder now; `quiesce` came before."""
        assert not (partition.syncing or partition.staged or partition.asking)
        assert partition.shared or not partition.waiting, "what was synced is visible"
        self.syncing.forget_partition(partition)
        partition.space = self.served.spaces[directory]
        partition.replace(log, directory, self.served.now_ms)
        self.served.rows.take_over(partition)
        self.served.rows.publish(partition)
        self._failures.news.append((partition, REPLACED))
        self.tell_observers()

    def fail(self, partition: Partition, failure: StorageFailed) -> None:
        """Take the partition offline, and tell everybody now."""
        self._failures.fail(partition, failure)
        self.tell_observers()

    def doubt(self, partition: Partition, failure: StorageFailed) -> None:
        """Somebody looked at its checksums, and one is wrong: others lead where they can."""
        self._failures.unreadable(partition, failure, checked=True)
        self.tell_observers()

    def drop(self, asker: NetprocPeer) -> None:
        """The netproc died: forget what it waits for."""
        asker.forget_requests()
        self.postponed.drop(asker.index)
        for host in self._hosts:
            host.drop(asker.index)
        self.purgatory.drop_peer(asker.index)
        self.served.watches.drop_peer(asker.index)
        for partition in self.partitions.values():
            partition.forget_asker(asker)

    def drop_sibling(self, asker: NetprocPeer) -> None:
        """The I/O process died: nobody waits for the markers that it asked for."""
        asker.forget_requests()
        for partition in self.partitions.values():
            partition.forget_asker(asker)

    # What others change ---------------------------------------------------------------------------

    def has_room(self, number: int) -> None:
        """There is room in this log folder again."""
        self.appends.has_room(number)

    def publish(self, partition: Partition) -> None:
        """Something about the partition changed outside a turn's messages."""
        self.served.rows.changed[partition] = None

    def new_layout(self, partition: Partition) -> None:
        """Full segments are about to be replaced: readers are told first."""
        partition.new_layout()
        self.served.rows.publish(partition)


def _tell_news(observer: PartitionListener, partition: Partition, what: int) -> None:
    if what in (HELD, LOST):
        observer.no_room(partition, lost=what == LOST)
        return
    assert what in (OFFLINE, REPLACED)
    observer.closed(partition)
    if what == REPLACED and partition.broken is None:
        observer.opened(partition)
        _tell_role(observer, partition)


def _tell_role(observer: PartitionListener, partition: Partition) -> None:
    if partition.progress.leads:
        observer.leads(partition)
    else:
        observer.follows(partition)
