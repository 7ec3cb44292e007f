"""A whole ioproc core without its process: rings over bytearrays, a real or simulated disk, one
netproc.

`World` is what the tests of this room drive: ask, turn, and read the answers.
"""

from types import SimpleNamespace

from appliance.base import errors
from appliance.base.clock import OsClock
from appliance.base.os_disk import OsDisk
from appliance.base.space import SpaceGuard
from appliance.config.log_config import LogConfig
from appliance.ioproc.coordination.marker_sender import MarkerSender
from appliance.ioproc.durability.group_commit import VISIBLE_MS, GroupCommit
from appliance.ioproc.durability.journals import Journals
from appliance.ioproc.ioproc_peers import IoprocPeers, Loopback
from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.ioproc.partition_failures import PartitionFailures
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.partitions.partition_rows import Rows
from appliance.ioproc.replication.replicas import Replicas
from appliance.ioproc.requests.appends import Appends
from appliance.ioproc.requests.reads import PartitionReads
from appliance.ioproc.requests.request_time import RequestTime
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.ioproc.turn.core import Core
from appliance.ioproc.turn.dispatch import Dispatcher
from appliance.logstore.log import PartitionLog
from appliance.metadata.image import BrokerImage, MetadataImage
from appliance.replication.role import ALONE
from appliance.replication.throttle import ReplicationThrottle
from appliance.ring import messages
from appliance.ring.messages import Message
from appliance.ring.partition_table import PartitionTable
from appliance.ring.ring import RingReader, RingWriter, ring_bytes
from appliance.shell.flusher import run
from appliance.wire.batch import NewRecord, build_batch
from tests.alone import alone

NOW_MS = 1_700_000_000_000
RUN = b"this life of it."


def seat_of(folder, config, ioprocs=1):
    """What a `Home` looks at of its seat."""
    return SimpleNamespace(
        index=0, ioprocs=ioprocs, config=config, data_dir=str(folder), run_id=RUN
    )


def registration(incarnation=RUN):
    """Of node 1, in this life of it."""
    return BrokerImage(
        broker_id=1, incarnation_id=incarnation, epoch=50, endpoints=(), fenced=False
    )


class StillClock(OsClock):
    """On the wall it is always the same time."""

    def wall_ms(self):
        return NOW_MS


class HeldThreads:
    """Sync jobs that run when the test says so."""

    def __init__(self):
        self.jobs = []
        self.done = []

    def submit(self, tag, job):
        self.jobs.append((tag, job))

    def run_one(self):
        self.done.append(run(*self.jobs.pop(0)))

    def run_all(self):
        while self.jobs:
            self.run_one()

    def take_ended(self):
        done, self.done = self.done, []
        return done

    def outstanding(self):
        return len(self.jobs) + len(self.done)

    def wait(self):
        if self.jobs and not self.done:
            self.run_one()


class NoCluster:
    """`replicas.Cluster`: node 1 of those in `epochs`. lost: nodes that cannot write any replica.
    proposed: what control was told."""

    def __init__(self):
        self.node_id = 1
        self.lost = ()
        self.epochs = {}
        self.lag = 30_000
        self.proposed = []
        self.hears = True

    def broker_epoch(self, node):
        return self.epochs.get(node, -1)

    def holds(self, partition, node):
        return node not in self.lost

    def lag_ms(self):
        return self.lag

    def propose(self, partition, change):
        if self.hears:
            self.proposed.append(change)
        return self.hears


class Heard:
    """An observer that keeps what it is told, as (what, partition)."""

    def __init__(self, heard):
        self.heard = heard

    def opened(self, partition):
        self.heard.append(("opened", str(partition)))

    def leads(self, partition):
        self.heard.append((f"leads in {partition.leader_epoch}", str(partition)))

    def follows(self, partition):
        self.heard.append(("follows", str(partition)))

    def no_room(self, partition, *, lost):
        self.heard.append(("lost" if lost else "held", str(partition)))

    def closed(self, partition):
        self.heard.append(("closed", str(partition)))


def stays(partition, number, now_ms):
    """Who moves partitions where there is one folder."""
    return errors.NONE if number == partition.directory else errors.LOG_DIR_NOT_FOUND


STEP_NS = 30_000


class Steps:
    """A clock that every look at it moves on."""

    def __init__(self):
        self.now_ns = 0

    def monotonic_ns(self):
        self.now_ns += STEP_NS
        return self.now_ns


class World:
    def __init__(
        self,
        folder,
        disk=None,
        netprocs=2,
        arena=1 << 20,
        capacity=1024,
        table=None,
        folders=None,
        payload=0,
        me=0,
        others=(),
    ):
        """others: the rings to the other I/O processes, by index; this one is number `me`."""
        self.disk = disk or OsDisk()
        self.folder = str(folder)
        if table is None:
            table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(256))), 256)
        self.table = table
        self.rows = {}  # (topic id, partition) → handle
        self.threads = HeldThreads()
        self.quiet = False  # true: a lone append is synced at once
        self.space = SpaceGuard(0, 0)
        self.space.read_space(0, 1 << 40, 1 << 40)
        self.failures = []
        self.checkpointed = []
        self.now_ns = 1_000_000_000
        self.flushes = []  # ns of each that reached the disk
        self.journal_writes = HeldThreads()
        self.journals = Journals(
            self.disk,
            folders or [self.folder] * 4,  # whatever folders a test has
            me,
            self.journal_writes,  # while none of them has run, there is no journal
            lambda: bytes(16),
            lambda total: 1 << 20,
            count_flush=self.flushes.append,
        )
        syncing = GroupCommit(
            self.threads, self.journals, lambda: not self.quiet, self.flushes.append
        )
        self.served = ServedPartitions(Rows(self.table), syncing, self.spaces())
        failures = PartitionFailures(
            self.served, lambda p, failure: self.failures.append((str(p), failure))
        )
        appends = Appends(self.served, failures)
        self.image = MetadataImage()
        self.own = Loopback()
        self.refused = []  # codes with which homes refused markers
        siblings = {me: self.own.writer, **dict(others)}
        self.endings = MarkerSender(
            siblings,
            self.image,
            self.rows,
            lambda ending, where, code: self.refused.append((where, code)),
            alone(),
        )
        self.cluster = NoCluster()
        self.throttle = ReplicationThrottle()
        replicas = Replicas(self.served, self.cluster, self.throttle)
        self.questions = PartitionReads(self.served, appends, failures, self.checkpoint, replicas)
        self.observers = []
        for index, writer in siblings.items():
            self.served.siblings[index] = NetprocPeer(index, memoryview(b""), writer)
        coordinators = self.coordinators(appends, failures)
        self.billing = RequestTime(Steps(), self.served.askers)
        observers = [Heard(self.observers)]
        self.core = Core(
            self.served, appends, self.questions, failures, observers, coordinators, self.billing
        )
        self.arrivals = Dispatcher(self.core, self.core.partitions.get, stays, self.endings)
        askers = self.served.siblings
        self.siblings = IoprocPeers(me, self.own, askers, self.endings, self.arrivals.handle)
        self.readers = []
        for index in range(netprocs):
            memory = memoryview(bytearray(ring_bytes(capacity, payload)))
            writer = RingWriter(memory, 1, capacity=capacity)
            self.readers.append((RingReader(memory, 1, capacity=capacity), writer))
            view = memoryview(bytearray(arena))
            self.core.askers[index] = NetprocPeer(index, view, writer)

    def spaces(self):
        """The guards of the log folders."""
        return [self.space]

    def coordinators(self, appends, failures):
        """Who coordinates here, by topic."""
        return {}

    def checkpoint(self, partition, told):
        """As if it were durable at once."""
        self.checkpointed.append((str(partition), partition.log.log_start_offset))
        partition.start_unsaved = False
        told(None)

    def add(self, name="t", index=0, epoch=0, role=ALONE, handle=-1, **config):
        """handle: of a row that is there."""
        topic_id = name.encode().ljust(16, b"\0")
        handle = handle if handle >= 0 else self.table.add(topic_id, index)
        self.rows[topic_id, index] = handle
        log = PartitionLog.create(
            self.disk, f"{self.folder}/{name}-{index}", topic_id, LogConfig(**config), now_ms=NOW_MS
        )
        partition = Partition(handle, name, index, topic_id, log, epoch, role, now_ms=self.now_ms)
        self.core.add(partition, self.now_ns)
        return self.core.partitions[handle]

    def ask(self, op, handle, token=0, a=0, b=-1, e=0, f=0, flags=0, peer=0):
        message = Message(op, flags, handle, token, a, b, 0, 0, 0, 0, 0, 0, e, f)
        self.arrivals.handle(self.core.askers[peer], [message], NOW_MS)

    def append(self, handle, batch, acks=1, token=0, peer=0, position=0):
        self.core.askers[peer].arena[position : position + len(batch)] = batch
        self.ask(messages.APPEND, handle, token, position, 0, len(batch), acks, peer=peer)

    def read(self, handle, offset, token=0, max_bytes=1 << 20, enough=1, wait=True, **rest):
        flags = messages.READ_WAIT if wait else 0
        self.ask(messages.READ, handle, token, offset, e=max_bytes, f=enough, flags=flags, **rest)

    def turn(self, ms=1):
        """End the turn; the completions that came for each netproc, flags turned into error
        codes."""
        self.now_ns += ms * 1_000_000
        self.served.now_ms = self.now_ms
        self.siblings.run_once(self.now_ms)
        if self.core.postponed.held:
            self.arrivals.resume(NOW_MS)
        self.core.finish(self.now_ns)
        return self.answers()

    @property
    def now_ms(self):
        """The wall clock goes as the other one does."""
        return NOW_MS + self.now_ns // 1_000_000 - 1000

    def settle(self):
        """Turns until every record is visible and nobody waits; the completions."""
        got = self.turn(ms=VISIBLE_MS)
        while self.threads.outstanding() or self.core.syncing.unseen:
            self.threads.run_all()
            got += self.turn(ms=VISIBLE_MS)
        return got

    def answers(self, peer=None):
        got = []
        for number, (reader, writer) in enumerate(self.readers):
            writer.publish()
            found = reader.drain()
            if peer in (None, number):
                got += [m._replace(flags=m.flags - 1) for m in found]
        return got

    def bytes_of(self, answer, partition):
        """The batches a FOUND names."""
        folder = partition.log.path if isinstance(partition, Partition) else ""
        path = f"{folder or f'{self.folder}/{partition}'}/{answer.d:020d}.log"
        file = self.disk.open_file(path)
        try:
            return file.pread(answer.e, answer.g)
        finally:
            file.close()


def batch(*values, producer=(-1, -1, -1), timestamp=NOW_MS, **rest):
    records = [NewRecord(timestamp, None, value) for value in values]
    return build_batch(
        records,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        **rest,
    )
