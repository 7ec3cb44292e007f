"""An I/O process of the machine: today's parts of it, coordinators of both kinds among them, put
together as its shell does, with threads that end when chance says so."""

from contextlib import suppress

from ioproc.core_world import HeldThreads, NoCluster, stays
from sim.transactional.machine import DATA, IOPROCS, NET, PARTITIONS, TOPICS, Process
from sim.transactional.machine import IDS_IN_A_BLOCK as IN_A_BLOCK

from appliance.authorization.rights import AllowAll, Callers
from appliance.base.errors import StorageFailed
from appliance.base.ids import INTERNAL_TOPICS
from appliance.base.space import SpaceGuard
from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig
from appliance.coordinators.kinds import KINDS
from appliance.coordinators.runtime.kind import Lent
from appliance.ioproc.coordination.coordinator_host import CoordinatorHost
from appliance.ioproc.coordination.marker_sender import MarkerSender
from appliance.ioproc.coordination.producer_id_pool import ProducerIdPool
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.durability.group_commit import GroupCommit
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.durability.journals import Journals
from appliance.ioproc.ioproc_peers import IoprocPeers, Loopback
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.ioproc.partition_failures import PartitionFailures
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.partitions.partition_rows import Rows
from appliance.ioproc.replication.replicas import Replicas
from appliance.ioproc.requests.appends import Appends
from appliance.ioproc.requests.reads import PartitionReads
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.ioproc.turn.core import Core
from appliance.ioproc.turn.dispatch import Dispatcher
from appliance.logstore.files import LOG, TXN_INDEX
from appliance.metadata.log_dirs import LogDirs
from appliance.replication.throttle import ReplicationThrottle
from appliance.ring.messages import PRODUCER_ID_BLOCK, Message
from tests.alone import alone

TICK_MS = 10
CHECKPOINT_MS = 60
CONFIG = BrokerConfig.of(
    {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "1"}
)
SMALL = {"segment_bytes": 3000, "index_interval_bytes": 300, "retention_ms": -1}
OUTPUT = LogConfig(**SMALL)
INTERNAL = LogConfig(**SMALL, flush_policy="group", compact=True, delete=False)


class Events:
    """The log of events: what is a bug or a loss breaks the world."""

    def event(self, priority, event, **fields):
        assert event in ("groups-loaded", "transactions-loaded", "marker-refused"), (event, fields)

    event_seldom = event

    def event_of(self, priority, event, about, **fields):
        """Of a group."""

    note_of = event_of


class Slices:
    """The clock of the world on the wall; the other one goes on with each look at it, so that
    loading takes several turns."""

    def __init__(self, clock):
        self.wall_ms = clock.wall_ms
        self._now_ns = 0

    def monotonic_ns(self):
        self._now_ns += 150_000
        return self._now_ns


class Home(Process):
    """books: is told of each life."""

    ends_with_storage = True
    kinds = KINDS
    output = OUTPUT

    def __init__(self, world, name, machine, number, books):
        super().__init__(world, name, machine, number)
        self.books = books
        self.core = None

    # A life ---------------------------------------------------------------------------------------

    def begin(self):
        machine, number = self.machine, self.number
        self.core = None
        self.jobs = 0  # on threads, each of which will end
        self.threads, self.journal_writes = HeldThreads(), HeldThreads()
        self.ids = ProducerIdPool(self.ask_ids)
        self.own = Loopback()
        ring = {n: machine.rings[number, n].writer for n in range(NET + 1) if n != number}
        to_net = ring.pop(NET)
        writers = {number: self.own.writer} | ring
        self.endings = self.make_endings(dict(sorted(writers.items())))
        for other in ring:
            self.endings.changed(other, up=machine.processes[other].up)
        core = self.put_together(writers, to_net)
        self.open(core)
        self.core = core
        self.books.opened(self)
        self.after(0, self.tick)
        self.after(CHECKPOINT_MS, self.checkpoint)

    def make_endings(self, writers):
        machine = self.machine
        return MarkerSender(writers, machine.image, machine.rows, self.books.refused, alone())

    def put_together(self, writers, to_net):
        journals = Journals(
            self.disk, [DATA], self.number, self.journal_writes, lambda: bytes(16),
            lambda total: 1 << 20,
        )  # fmt: skip
        syncing = GroupCommit(self.threads, journals, lambda: True)
        self.space = SpaceGuard(0, 0)
        self.space.read_space(self.world.clock.now_ns, *self.disk.space(DATA))
        served = ServedPartitions(Rows(self.machine.table), syncing, [self.space])
        served.askers[0] = NetprocPeer(0, self.machine.arena, to_net)
        for index, writer in writers.items():
            served.siblings[index] = NetprocPeer(index, memoryview(b""), writer)
        failures = PartitionFailures(served, self.broken)
        appends = Appends(served, failures)
        questions = PartitionReads(
            served,
            appends,
            failures,
            lambda partition, told: told(None),
            Replicas(served, NoCluster(), ReplicationThrottle()),
        )
        self.hosts = {
            kind.TOPIC.name: self.coordinators(kind, appends, failures, to_net)
            for kind in self.kinds
        }
        core = Core(served, appends, questions, failures, (), self.hosts)
        arrivals = Dispatcher(core, core.partitions.get, stays, self.endings)
        self.siblings = IoprocPeers(
            self.number, self.own, served.siblings, self.endings, arrivals.handle
        )
        self.arrivals = arrivals
        return core

    def coordinators(self, kind, appends, failures, to_net):
        lent = Lent(lambda: self.world.rng.randbytes(16), self.ids.take_id)
        return CoordinatorHost(
            kind, appends, failures, CONFIG, {0: to_net}, self.machine.image,
            Slices(self.world.clock), lent, self.machine.counters.errors[0],
            Callers(AllowAll()), Events(), self.endings,
        )  # fmt: skip

    def open(self, core):
        left = JournalRecovery(self.disk, [DATA], self.number, IOPROCS, clean=False)
        left.read_journals()
        opener = PartitionOpener(self.disk, LogDirs.of(DATA), self.machine.table, left, clean=False)
        for handle, (topic, index) in enumerate(PARTITIONS):
            if self.machine.home(topic, index) is self:
                config = INTERNAL if topic in INTERNAL_TOPICS else self.output
                topic_id, now_ms = TOPICS[topic][0], self.world.clock.wall_ms()
                log, *_ = opener.open_log(topic, index, topic_id, handle, config, now_ms)
                self.check_opened(log)
                partition = Partition(handle, topic, index, topic_id, log, 0)
                core.add(partition, self.world.clock.now_ns)
        left.remove_served(lambda topic_id: False)

    def check_opened(self, log):
        """What nothing can be built from again must be on the disk, whatever failed before."""
        for name in self.disk.listdir(log.path):
            if name.endswith((LOG, TXN_INDEX)):
                path = f"{log.path}/{name}"
                assert not self.disk.would_change(path), f"{path} is in memory alone"

    def broken(self, partition, failure):
        self.say(f"{partition} is offline: {failure}")
        assert self.disk.failing, "nothing failed"

    def tick(self):
        if (
            self.space.read_space(self.world.clock.now_ns, *self.disk.space(DATA))
            and not self.space.low
        ):
            self.core.has_room(0)
        self.turn_soon()
        self.after(TICK_MS, self.tick)

    def checkpoint(self):
        partitions = self.core.partitions.values()
        points = {(p.topic, p.index): p.log.recovery_point for p in partitions}
        with suppress(StorageFailed):
            checkpoints.merge(self.disk, DATA, checkpoints.RECOVERY_POINT, points)
        self.after(CHECKPOINT_MS, self.checkpoint)

    def ask_ids(self):
        self.after(self.world.rng.uniform(0.1, 10), self.ids_come)
        return True

    def ids_come(self):
        first = self.machine.take_ids()
        fields = PRODUCER_ID_BLOCK, 1, 0, 0, first, 0, 0, 0, 0, 0, 0, 0, IN_A_BLOCK, 0
        if self.ids.given(Message(*fields)):
            for host in self.hosts.values():
                host.ids_came()
            self.turn_soon()

    # Turns ----------------------------------------------------------------------------------------

    def drained(self, source, messages):
        served = self.core.served
        asker = served.askers[0] if source == NET else served.siblings[source]
        self.arrivals.handle(asker, messages, self.world.clock.wall_ms())

    def changed(self, number, *, up):
        if number != NET:
            if not up:
                self.core.drop_sibling(self.core.served.siblings[number])
            self.endings.changed(number, up=up)
        elif not up:
            self.core.drop(self.core.served.askers[0])
        self.turn_soon()

    def turn(self):
        now_ms, now_ns = self.world.clock.wall_ms(), self.world.clock.now_ns
        if self.core.postponed.held:
            self.arrivals.resume(now_ms)
        for host in self.hosts.values():
            if now_ms >= host.due_ms:
                host.run_once(now_ms)
        own = self.own
        if now_ms >= self.endings.due_ms or own.writer.head != own.reader.tail:
            self.siblings.run_once(now_ms)
        self.core.finish(now_ns)
        due = any(now_ms >= host.due_ms for host in self.hosts.values())
        due = due or bool(self.core.postponed.held)
        if own.writer.head != own.reader.tail or self.core.syncing.wanted or due:
            self.turn_soon()
        self.begin_jobs()
        self.books.turned(self)

    def begin_jobs(self):
        waiting = len(self.threads.jobs) + len(self.journal_writes.jobs)
        for _ in range(waiting - self.jobs):
            self.after(self.world.rng.uniform(0.05, 4), self.job_ends)
        self.jobs = waiting

    def job_ends(self):
        """One of the threads is ready, whichever; the journal has one of its own."""
        rng = self.world.rng
        self.jobs -= 1
        found = [threads for threads in (self.threads, self.journal_writes) if threads.jobs]
        threads = rng.choice(found)
        if threads is self.threads:
            rng.shuffle(threads.jobs)
        threads.run_one()
        self.turn_soon()
