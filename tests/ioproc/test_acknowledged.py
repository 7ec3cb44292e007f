"""What was acknowledged survives a power cut at any disk operation, and a death of the process at
any moment: the whole core over a disk that forgets what was not synced."""

from contextlib import suppress
from random import Random

import pytest
from core_world import NOW_MS, World, batch
from sim.disk import PowerCut, SimDisk

from appliance.base.errors import KAFKA_STORAGE_ERROR, StorageFailed
from appliance.config.log_config import LogConfig
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.partitions.partition import Partition
from appliance.metadata.log_dirs import LogDirs
from appliance.ring import partition_table as columns
from appliance.ring.messages import APPENDED
from appliance.ring.partition_table import PartitionTable
from appliance.wire.batch import iter_records
from tests.seeds import each_seed

PARTITIONS = 3
DATA = "/data"
CONFIG = {"segment_bytes": 1200, "index_interval_bytes": 300, "retention_ms": -1}


def fresh_table():
    table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(64))), 64)
    for index in range(PARTITIONS):
        table.add(b"t".ljust(16, b"\0"), index)
    return table


class Story:
    """Lives of one ioproc on one disk. safe: (partition, offset) → value that must be there."""

    def __init__(self, seed):
        self.rng = Random(seed)
        self.disk = SimDisk(self.rng)
        self.disk.mkdir(DATA)
        self.disk.sync_dir("/")
        self.table = fresh_table()
        self.power_safe = {}
        self.process_safe = {}
        self.asked = {}
        self.count = self.groups = 0

    def open(self):
        world = self.world = World(DATA, disk=self.disk, table=self.table)
        world.quiet = self.rng.random() < 0.3
        left = JournalRecovery(self.disk, [DATA], clean=False)
        left.read_journals()
        opener = PartitionOpener(self.disk, LogDirs.of(DATA), self.table, left, clean=False)
        for index in range(PARTITIONS):
            topic_id = b"t".ljust(16, b"\0")
            log, *_ = opener.open_log("t", index, topic_id, index, LogConfig(**CONFIG), NOW_MS)
            world.core.add(Partition(index, "t", index, topic_id, log, 1), world.now_ns)
        left.remove_served(lambda topic_id: False)

    def live(self, steps):
        """Random requests and syncs. PowerCut may end it anywhere."""
        rng, world = self.rng, self.world
        for _ in range(steps):
            for _ in range(rng.randint(0, 4)):
                self.append(rng.randrange(PARTITIONS), rng.choice([-1, -1, 1, 0]))
            world.core.finish(world.now_ns)
            self.note(world.answers())
            for _ in range(rng.randint(0, len(world.threads.jobs))):
                world.threads.run_one()
            for _ in range(rng.randint(0, len(world.journal_writes.jobs))):
                world.journal_writes.run_one()
                self.groups += 1
            world.now_ns += rng.choice([0, 10**6, 10**9])
            if rng.random() < 0.1:
                partitions = world.core.partitions.values()
                points = {(p.topic, p.index): p.log.recovery_point for p in partitions}
                with suppress(StorageFailed):
                    checkpoints.merge(self.disk, DATA, checkpoints.RECOVERY_POINT, points)

    def append(self, index, acks):
        self.count += 1
        value = b"%d" % self.count * self.rng.randint(1, 60)
        self.asked[self.count] = (index, acks, value)
        self.world.append(index, batch(value), acks, self.count, position=self.count % 256 * 4096)

    def note(self, answers):
        for answer in answers:
            index, acks, value = self.asked.pop(answer.token)
            assert answer.op == APPENDED
            if self.world.core.partitions[index].broken is not None:
                assert answer.flags in (0, KAFKA_STORAGE_ERROR)
            else:
                assert answer.flags == 0
            if answer.flags:
                continue
            self.process_safe[index, answer.a] = value
            if acks == -1:
                self.power_safe[index, answer.a] = value

    def die(self, power):
        """What was acknowledged before a sync and is lost by a failed one may go."""
        for partition in self.world.core.partitions.values():
            folder = self.disk.root.names["data"].names[str(partition)].names
            if not any(node.lost for node in folder.values()):
                continue
            for home, at in list(self.process_safe):
                if home == partition.index and at >= partition.synced:
                    del self.process_safe[home, at]
        if power:
            self.disk.power_cut()
        else:
            self.disk.process_death()

    def check(self, safe):
        for index, partition in self.world.core.partitions.items():
            stored = {}
            offset = partition.log.log_start_offset
            while offset < partition.log.end_offset:
                self.world.read(index, offset, token=1)
                (found,) = self.world.turn()
                for record in iter_records(self.world.bytes_of(found, partition)[: found.f]):
                    stored[record.offset] = record.value
                offset = max(stored) + 1
            wanted = {at: value for (home, at), value in safe.items() if home == index}
            assert {at: stored.get(at) for at in wanted} == wanted
            # What was lost without an acknowledgement may be written anew at the same offsets.
            for kept in (self.power_safe, self.process_safe):
                for key in [k for k in kept if k[0] == index and k[1] not in stored]:
                    del kept[key]


@pytest.mark.parametrize("failing", [0, 0.02, 0.3])
@each_seed(40)
def test_nothing_acknowledged_is_lost_whatever_ends_a_life(seed, failing):
    """failing: the chance that a sync fails; then its partition is offline until the next life."""
    story = Story(seed)
    for _ in range(6):
        story.disk.crash_at = story.disk.steps + story.rng.randint(1, 250)
        power = False
        try:
            story.open()
            story.disk.failing = failing
            story.live(40)
        except PowerCut:
            power = True
        story.disk.failing = 0
        story.die(power)
        if power or story.rng.random() < 0.5:  # not this process alone: everything was killed
            story.table = fresh_table()
        story.disk.crash_at = -1
        story.asked.clear()
        story.open()
        story.check(story.power_safe if power else story.process_safe)
        assert story.table.read_column(0, columns.STATUS) == columns.ONLINE
        story.disk.process_death()
        story.table = fresh_table()
