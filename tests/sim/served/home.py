"""A machine whose one I/O process is today's `Core`, with its journal, its syncs on threads that
end when chance says so, and its opening; a thin netproc hands on what clients ask."""

from contextlib import suppress

from ioproc.core_world import NOW_MS
from ioproc.core_world import World as CoreWorld
from sim.node import Node
from sim.served.talk import Append, Appended, Found

from appliance.base.errors import (
    KAFKA_STORAGE_ERROR,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    StorageFailed,
)
from appliance.config.log_config import LogConfig
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.partitions.partition import Partition
from appliance.metadata.log_dirs import LogDirs
from appliance.ring.messages import APPENDED, CANCEL, FOUND
from appliance.ring.partition_table import PartitionTable

DATA = "/data"
TOPIC_ID = b"t".ljust(16, b"\0")
PARTITIONS = range(3)
SLOT, SLOTS = 4096, 256  # of the arena: as many batches may wait for a turn
TICK_MS = 5
CHECKPOINT_MS = 60
READ_BYTES = 2000


class Home(Node):
    """ledger: is told what is opened, shown and acknowledged. table: survives the death of the
    process alone, not that of the machine."""

    ends_with_storage = True
    settings = LogConfig(segment_bytes=3000, index_interval_bytes=300, retention_ms=-1)

    def __init__(self, world, name, disk, ledger):
        super().__init__(world, name, disk)
        self.ledger = ledger
        self.table = None
        self.core = None
        disk.mkdir(DATA)
        disk.sync_dir("/")

    # A life ---------------------------------------------------------------------------------------

    def begin(self):
        self.core = None
        self.asked = {}  # token of ours → (end of the connection, the client's token)
        self.tokens = 0
        self.taken = 0  # slots of the arena, since the last turn
        self.turns = False
        self.jobs = 0  # on threads, each of which will end
        if self.table is None or self.world.rng.random() < 0.5:
            self.table = fresh_table()
        core = CoreWorld(DATA, disk=self.disk, table=self.table, netprocs=1, arena=SLOT * SLOTS)
        left = self.left_journals()
        opener = PartitionOpener(self.disk, LogDirs.of(DATA), self.table, left, clean=False)
        for index in PARTITIONS:
            log, *_ = opener.open_log("t", index, TOPIC_ID, index, self.settings, NOW_MS)
            partition = self.made(Partition(index, "t", index, TOPIC_ID, log, self.life + 1))
            core.core.add(partition, self.world.clock.now_ns)
        left.remove_served(lambda topic_id: False)
        self.core = core
        self.ledger.opened(self)
        self.after(TICK_MS, self.tick)
        self.after(CHECKPOINT_MS, self.checkpoint)

    def left_journals(self):
        left = JournalRecovery(self.disk, [DATA], clean=False)
        left.read_journals()
        return left

    def made(self, partition):
        """A partition that is about to be served."""
        return partition

    def stop(self, *, power):
        if power:
            self.table = None
            self.ledger.lost_power()
        super().stop(power=power)

    @property
    def partitions(self):
        return self.core.core.partitions

    def tick(self):
        core, now_ns = self.core, self.world.clock.now_ns
        if core.space.read_space(now_ns, *self.disk.space(DATA)) and not core.space.low:
            core.core.has_room(0)
        self.turn_soon()
        self.after(TICK_MS, self.tick)

    def checkpoint(self):
        points = {("t", p.index): p.log.recovery_point for p in self.partitions.values()}
        with suppress(StorageFailed):
            checkpoints.merge(self.disk, DATA, checkpoints.RECOVERY_POINT, points)
        self.after(CHECKPOINT_MS, self.checkpoint)

    # Turns ----------------------------------------------------------------------------------------

    def turn_soon(self):
        if not self.turns:
            self.turns = True
            self.after(self.world.rng.uniform(0.01, 0.2), self.turn)

    def turn(self):
        self.turns = False
        core = self.core
        self.taken = 0  # after a turn nothing refers to the arena
        core.now_ns = self.world.clock.now_ns
        core.core.finish(core.now_ns)
        for answer in core.answers():
            self.answer(answer)
        waiting = len(core.threads.jobs) + len(core.journal_writes.jobs)
        for _ in range(waiting - self.jobs):
            self.after(self.world.rng.uniform(0.05, 4), self.job_ends)
        self.jobs = waiting

    def job_ends(self):
        """One of the threads is ready, whichever; the journal has one of its own."""
        core, rng = self.core, self.world.rng
        self.jobs -= 1
        found = [threads for threads in (core.threads, core.journal_writes) if threads.jobs]
        threads = rng.choice(found)
        if threads is core.threads:
            rng.shuffle(threads.jobs)
        threads.run_one()
        self.turn_soon()

    # What clients ask -----------------------------------------------------------------------------

    def received(self, end, message):
        self.tokens += 1
        self.asked[self.tokens << 32] = end, message
        token = self.tokens << 32
        if isinstance(message, Append):
            if self.taken == SLOTS:
                self.turn()
            at = self.taken * SLOT
            self.taken += 1
            self.core.append(message.partition, message.batch, message.acks, token, position=at)
        else:
            limits = {"max_bytes": READ_BYTES, "wait": message.waits}
            self.core.read(message.partition, message.offset, token, **limits)
        self.turn_soon()

    def lost(self, end):
        """Who asked is gone: nobody waits for what it wanted to read."""
        for token in [token for token, (asker, _) in self.asked.items() if asker is end]:
            self.core.ask(CANCEL, 0, token)

    def answer(self, answer):
        end, message = self.asked.pop(answer.token)
        code, partition = answer.flags, self.partitions[answer.handle]
        if code == OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.world.reached("a batch out of order is refused")
        elif code == KAFKA_STORAGE_ERROR:
            self.world.reached("a partition is offline")
        assert code in (NONE, KAFKA_STORAGE_ERROR) or end.peer.node.may_hear(message, code), code
        if answer.op == APPENDED:
            if code == NONE:
                self.ledger.acknowledged(message, answer.a)
            end.send(Appended(message.token, code, answer.a))
        else:
            assert answer.op == FOUND
            data = b""
            if code == NONE:
                data = self.core.bytes_of(answer, partition)
                self.ledger.shown(partition.index, answer.a, data)
            end.send(Found(message.token, code, answer.a, data))


def fresh_table():
    table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(4))), 4)
    for index in PARTITIONS:
        table.add(TOPIC_ID, index)
    return table
