"""A log on a disk that loses power, and under a process that dies: everything flushed is there,
nothing torn is served, and what is there is what the twin remembers, byte for byte."""

from random import Random

import pytest
from sim.disk import PowerCut, SimDisk
from twin import (
    TOPIC_ID,
    aborted,
    marker,
    producer_view,
    small_batch,
    stage,
    stored,
    told_of,
    transactional,
)

from appliance.base.errors import StorageFailed
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.wire.batch import read_header
from tests.seeds import each_seed

CONFIG = LogConfig(
    segment_bytes=6000, index_interval_bytes=600, retention_ms=-1, retention_bytes=40_000
)
PATH = "/t-0"


class World:
    """One log, its twin, and what survives: the checkpoint of the recovery point."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.disk = SimDisk(rng)
        self.batches: list[bytes] = []  # committed, as far as the writer knew
        self.staged: list[bytes] = []
        self.dropped: list[bytes] = []  # a cut may bring back what retention renamed
        self.flushed_end = 0  # acknowledged as durable
        self.checkpoint = 0
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.log_start = 0
        self.log: PartitionLog | None = None

    def open(self, *, clean: bool = False, alive: bool = False) -> None:
        if not self.disk.exists(PATH) or not self.disk.listdir(PATH):
            assert self.flushed_end == 0
            self.log = PartitionLog.create(self.disk, PATH, TOPIC_ID, CONFIG, now_ms=0)
        else:
            self.log = PartitionLog.open_folder(
                self.disk,
                PATH,
                CONFIG,
                recovery_point=self.checkpoint,
                log_start_offset=self.log_start,
                clean=clean,
                machine_lived=alive,
                now_ms=0,
            )
        self.check(alive=alive or clean)

    def power_cut(self, rng: Random) -> None:
        self.disk.power_cut(rng)

    def check(self, *, alive: bool) -> None:
        log = self.log
        assert self.log_start <= log.log_start_offset <= log.end_offset
        found = stored(log)
        sent = self.dropped + self.batches + self.staged
        start = read_header(found[0]).base_offset if found else log.end_offset
        self.dropped = [batch for batch in sent if read_header(batch).base_offset < start]
        left = sent[len(self.dropped) :]
        assert found == left[: len(found)], "the log holds something else than what was sent"
        floor = read_header(self.batches[-1]).last_offset + 1 if alive and self.batches else 0
        assert log.end_offset >= max(floor, self.flushed_end), "something promised is lost"
        assert log.size >= sum(map(len, found))
        self.batches, self.staged = found, []
        states, _ = told_of(found)
        whole = producer_view(states)
        ever = producer_view(told_of(self.dropped + found)[0])
        for producer_id, (epoch, sequence, window) in producer_view(log.producers).items():
            if producer_id in whole:  # its batches may be gone, it is known all the same
                assert (epoch, sequence) in (whole[producer_id][:2], ever[producer_id][:2])
                # a snapshot has one time of a producer: its last marker's, where that came later
                known, window = ([one[:3] for one in w] for w in (ever[producer_id][2], window))
                n = min(len(window), len(known))
                assert known[len(known) - n :] == window[len(window) - n :]
        assert set(whole) <= set(log.producers.producers)
        self.check_transactions(start)
        epochs = log.epochs
        for epoch, start in zip(epochs.epochs, epochs.starts, strict=True):
            for header in map(read_header, found):
                assert (header.leader_epoch >= epoch) == (header.last_offset >= start)
        told = {read_header(batch).leader_epoch for batch in found}
        assert told <= set(epochs.epochs), "an epoch that has batches is forgotten"
        self.sequences = {p: known.next_sequence for p, known in log.producers.producers.items()}

    def check_transactions(self, start: int) -> None:
        """Whose records are aborted, and whose are open. start: of the first segment; of what began
        before it only what a snapshot tells is known."""
        states, every = told_of(self.dropped + self.batches)
        told = {one[2]: one for one in aborted(self.log) if one[2] >= start}
        known = {one[2]: one for one in every if one[2] >= start}
        assert told.keys() <= known.keys()
        for last, one in known.items():
            if last in told and told[last][1] > one[1]:
                assert one[1] < start
            elif one[1] >= start or last in told:
                assert told[last][:3] == one[:3]
        open_ = self.log.producers.open
        assert open_.keys() <= states.open.keys()
        for producer, first in states.open.items():
            if first >= start:
                assert open_[producer] == first

    def next_batch(self) -> bytearray:
        if self.rng.random() < 0.15:
            producer = self.rng.choice((9, 10))
            if self.rng.random() < 0.5:
                return marker(producer, 0, committed=self.rng.random() < 0.3)
            sequence = self.sequences.get(producer, 0)
            batch = small_batch(self.rng, 5, (producer, 0, sequence))
            self.sequences[producer] = sequence + read_header(batch).record_count
            return transactional(batch)
        producer, epoch, sequence = self.rng.choice((-1, -1, 7, 8)), -1, -1
        if producer > 0:
            epoch, sequence = 0, self.sequences.get(producer, 0)
        batch = small_batch(self.rng, self.rng.randint(0, 10_000), (producer, epoch, sequence))
        if producer > 0:
            self.sequences[producer] = sequence + read_header(batch).record_count
        return batch

    def stage(self, batch: bytearray) -> None:
        """The twin knows it before the log does: a crash may come in between."""
        batch[0:8] = self.log.end_offset.to_bytes(8, "big")
        batch[12:16] = self.epoch.to_bytes(4, "big")
        self.staged.append(bytes(batch))
        batch[0:8] = bytes(8)
        stage(self.log, batch, self.epoch, 0)

    def commit(self) -> None:
        self.log.commit()
        self.batches += self.staged
        self.staged = []

    def sync_beside_appends(self) -> None:
        """As a thread does it: what is appended meanwhile waits for the next sync."""
        job = self.log.flush_job()
        end = self.log.end_offset
        for _ in range(self.rng.randint(0, 6)):
            self.stage(self.next_batch())
            self.commit()
        if job is not None:
            job.run()
            self.log.flushed(job)
        self.flushed_end = end

    def shrink(self) -> None:
        rng, log = self.rng, self.log
        if rng.random() < 0.5:
            log.advance_log_start(rng.randint(log.log_start_offset, self.flushed_end))
            self.log_start = log.log_start_offset  # made durable before it is answered
        for removal in log.retain(0, log.end_offset):
            if rng.random() < 0.5:
                removal.run(self.disk)

    def act(self) -> None:
        rng, log = self.rng, self.log
        what = rng.random()
        if what < 0.7:
            for _ in range(rng.randint(1, 5)):
                self.stage(self.next_batch())
            self.commit()
        elif what < 0.85:
            log.sync_now()
            self.flushed_end = log.recovery_point
        elif what < 0.88:
            self.sync_beside_appends()
        elif what < 0.91:
            self.checkpoint = log.recovery_point
        elif what < 0.93:
            self.epoch += 1
        elif what < 0.96:
            self.shrink()
        else:
            log.close()
            self.checkpoint = self.flushed_end = log.recovery_point
            self.open(clean=rng.random() < 0.7)


@each_seed(120)
def test_random_lives(seed):
    rng = Random(seed)
    world = World(rng)
    world.disk.mkdir("/other")
    for _ in range(6):
        world.disk.crash_at = world.disk.steps + rng.randint(1, 80)
        try:
            world.open()
            for _ in range(100):
                world.act()
        except PowerCut:
            pass
        alive = rng.random() < 0.4
        if alive:
            world.disk.process_death()
            world.open(alive=True)
        else:
            world.power_cut(rng)
            world.open()
        world.log.let_go() if rng.random() < 0.2 else world.log.close()
        world.flushed_end = max(world.flushed_end, world.log.recovery_point)
        world.checkpoint = min(world.flushed_end, world.log.recovery_point)


def script(world: World) -> None:
    """A short life with everything in it: appends, rolls, syncs, epochs, an orderly end."""
    world.open()
    for n in range(10):
        for k in range(3):
            world.stage(small_batch(Random(10 * n + k), 100 * n))
        if n % 2:
            world.stage(transactional(small_batch(Random(n), 100 * n, (9, 0, n), most=1)))
        if n in (4, 5, 8):
            world.stage(marker(9, 0, committed=n == 5))
        world.commit()
        world.epoch += n == 4
        if n % 3 == 2:
            world.log.sync_now()
            world.flushed_end = world.log.recovery_point
        if n == 6:
            world.checkpoint = world.log.recovery_point
    world.log.close()
    world.checkpoint = world.flushed_end = world.log.recovery_point
    world.open(clean=True)


@pytest.mark.parametrize("fate", ["nothing unsynced", "everything", "chance", "process"])
def test_a_crash_between_any_two_disk_operations(fate):
    whole = World(Random(1))
    script(whole)
    steps = whole.disk.steps
    assert steps > 60
    for step in range(1, steps + 1):
        world = World(Random(1))
        world.disk.crash_at = step
        with pytest.raises(PowerCut):
            script(world)
        if fate in ("process", "everything"):
            world.disk.process_death()
        else:
            world.power_cut(Least() if fate == "nothing unsynced" else Random(step))
        world.open(alive=fate == "process")
        # It goes on: what is appended now is there after another opening.
        world.stage(small_batch(Random(5), 5))
        world.commit()
        world.log.close()
        world.checkpoint = world.flushed_end = world.log.recovery_point
        world.open(clean=True)
        world.log.close()
        assert world.disk.open_files == 0


class Least(Random):
    """Chance that keeps nothing."""

    def random(self):
        return 1.0

    def randint(self, low, high):
        return low

    def choice(self, options):
        return options[0]


def test_damage_below_the_recovery_point_is_not_cut_off():
    world = World(Random(3))
    world.open()
    while len(world.log.segments) < 3 or not world.log.active_size:
        world.act()
    world.log.sync_now()
    recovery_point, log = world.log.recovery_point, world.log
    last = log.locate(log.end_offset - 1, 1, log.end_offset)
    log.close()
    node = world.disk._node(f"{PATH}/{last[0]:020d}.log")
    node.data[last[1] + 16] ^= 1  # the magic byte of the last batch
    before = bytes(node.data)
    for clean in (True, False):
        with pytest.raises(StorageFailed, match="below the recovery point"):
            PartitionLog.open_folder(
                world.disk,
                PATH,
                CONFIG,
                recovery_point=recovery_point,
                log_start_offset=0,
                clean=clean,
                machine_lived=False,
                now_ms=0,
            )
        assert node.data == before
    assert world.disk.open_files == 0
