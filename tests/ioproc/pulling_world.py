"""A whole I/O process core that follows, without its process: what pulls for it, over loopback
sockets to leaders that are made up, and what tests compare."""

from core_world import NOW_MS, HeldThreads, World, batch, stays

from appliance.base.clock import OsClock
from appliance.base.retention_clock import RetentionClock
from appliance.config.broker import BrokerConfig
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.durability.log_start_checkpoint import LogStartCheckpoint
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.replica_fetcher.divergence import DivergenceTruncation
from appliance.ioproc.replica_fetcher.fetcher_context import FetcherContext
from appliance.ioproc.replica_fetcher.fetchers import LeaderChanges, ReplicaFetchers
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.turn.core import Core
from appliance.ioproc.turn.dispatch import Dispatcher
from appliance.ioproc.turn.job_context import JobContext
from appliance.metadata.log_dirs import LogDirs
from appliance.metadata.parts import BrokerImage, Endpoint
from appliance.replication.role import PartitionRole
from appliance.replication.throttle import ReplicationThrottle
from appliance.wire.batch_header import read_header

ME, OTHER = 1, 2


def _endpoint(port):
    return Endpoint(name="PLAINTEXT", host="127.0.0.1", port=port, security_protocol=0)


class NoMoves:
    """Nothing moves between log folders."""

    def begin_again(self, partition, now_ms):
        pass


class NoCleaner:
    """Nothing is compacted."""

    def cancel(self, partition):
        pass

    def lower(self, partition, end):
        pass


class Said:
    """What people would read."""

    def __init__(self):
        self.lines = []

    def event(self, priority, event, /, **fields):
        self.lines.append((event, {name: str(value) for name, value in fields.items()}))

    event_seldom = event

    def of(self, event):
        return [fields for name, fields in self.lines if name == event]


class Follower:
    """A core, what pulls for it, and the leaders that it knows."""

    def __init__(self, folder, *leaders, disk=None, table=None, **settings):
        self.poller = leaders[0].poller
        self.world = World(folder, disk, table=table)
        self.table = self.world.table
        self.said = Said()
        told = LeaderChanges()
        old = self.world.core
        self.core = self.world.core = Core(
            self.world.served, old.appends, old.questions, old._failures, [told]
        )
        self.world.arrivals = Dispatcher(
            self.core, self.core.partitions.get, stays, self.world.endings
        )
        for number, leader in enumerate(leaders, OTHER):
            broker = BrokerImage(
                broker_id=number,
                incarnation_id=bytes(16),
                epoch=number,
                endpoints=(_endpoint(leader.port),),
            )
            self.world.image.brokers[number] = broker
        config = BrokerConfig.of({"node.id": str(ME), **settings})
        dirs = LogDirs.of(str(folder))
        self.chores = HeldThreads()
        self.trim_threads = HeldThreads()
        self.trims = LogStartCheckpoint(self.world.disk, self.trim_threads, dirs.paths)
        ground = JobContext(self.world.disk, dirs, self.core, self.said)
        self.keeping = Housekeeping(config, ground, self.chores, self.trims, RetentionClock())
        clock, core, image = OsClock(), self.core, self.world.image
        self.throttle = ReplicationThrottle()
        self.env = FetcherContext(
            config, lambda: image, core, self.trims.add, self.throttle, self.poller, clock,
            self.said,
        )  # fmt: skip
        parting = DivergenceTruncation(
            ground, self.keeping, NoMoves(), NoCleaner(), self.env.parted
        )
        serves = core.partitions
        self.pulling = ReplicaFetchers(
            told, self.env, parting, lambda p: serves.get(p.handle) is p, lambda: old.appends.count
        )
        self.clock = clock

    def add(self, led, handle=None):
        """A replica of what is led there, opened as at a start. handle: of its row, that a life
        before has left."""
        if handle is None:
            handle = self.table.add(led.topic_id, led.index)
        disk, config = self.world.disk, led.log.config
        left = JournalRecovery(disk, [self.world.folder], clean=False)
        left.read_journals()
        opener = PartitionOpener(disk, LogDirs.of(self.world.folder), self.table, left, clean=False)
        where = led.name, led.index, led.topic_id
        log, _, visible, _ = opener.open_log(*where, handle, config, NOW_MS)
        role = PartitionRole(False, OTHER, 0, (OTHER,), (OTHER,))
        partition = Partition(handle, *where, log, led.epoch, role, visible)
        self.core.add(partition, self.world.now_ns)
        return partition

    def follow(self, partition, epoch, leader=OTHER):
        self.core.follow(partition, epoch, PartitionRole(False, leader, 0, (leader,), (leader,)))

    def lead(self, partition, epoch):
        self.core.lead(partition, epoch, PartitionRole(True, ME, 0, (OTHER,), ()))

    def checkpoint(self):
        """Recovery points and high watermarks into their files."""
        self.keeping._checkpoint_recovery_points()
        self.keeping._checkpoint_watermarks()
        self.chores.run_all()
        self.keeping._take()

    def turn(self, syncs=True):
        now_ns = self.clock.monotonic_ns()
        self.core.finish(now_ns)
        rest_ms = self.pulling.run_once(now_ns, NOW_MS)
        if syncs:
            self.world.threads.run_all()
            self.world.journal_writes.run_all()
        self.trims.trim_next()
        self.trim_threads.run_all()
        if rest_ms:
            self.poller.poll(min(rest_ms, 2) / 1000)

    def until(self, fact, turns=2000, **rest):
        for _ in range(turns):
            if fact():
                return
            self.turn(**rest)
        raise AssertionError(f"not in {turns} turns: {self.said.lines}")


def write(log, *batches, epoch):
    for one in batches:
        view = memoryview(bytearray(one))
        log.stage(view, read_header(view), epoch, NOW_MS)
        log.commit()


def some(rng, count, size=100):
    return [batch(*(rng.randbytes(size) for _ in range(rng.randrange(1, 4)))) for _ in range(count)]


def files(log):
    """All that is a function of the batches alone; the log is closed for it."""
    log.close()
    found = {}
    for name in log.disk.listdir(log.path):
        if not name.endswith((".snapshot", ".metadata")):
            file = log.disk.open_file(f"{log.path}/{name}")
            found[name] = bytes(file.pread(file.size(), 0))
            file.close()
    return found


def same(led, partition):
    """The files of leader and follower are equal."""
    partition.log.sync_now()
    led.log.sync_now()
    assert files(partition.log) == files(led.log)


def level(led, partition):
    """Whether the follower has all that there is by now, visibly and on the disk."""
    end = led.log.end_offset

    def is_level():
        progress = partition.progress
        return progress.log_end == end == progress.high_watermark and not partition.unseen

    return is_level


SMALL = {"segment_bytes": 4000, "index_interval_bytes": 500}
