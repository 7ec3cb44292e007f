"""A follower and a leader to whom anything may happen, and whose logs are equal in the end."""

from random import Random

import pytest
from core_world import NOW_MS, batch
from logstore.twin import stored
from made_up_leader import MadeUp, Poller
from pulling_world import SMALL, Follower, level, write
from sim.disk import PowerCut, SimDisk

from appliance.wire import markers
from tests.seeds import each_seed


@pytest.fixture
def poller():
    return Poller()


class History:
    """Random things that happen to a leader and to one that follows it."""

    def __init__(self, poller, seed):
        self.rng = Random(seed)
        self.disk = SimDisk(Random(seed))
        self.disk.mkdir("/data")
        self.disk.sync_dir("/")
        self.leader = MadeUp(poller, sessions=self.rng.random() < 0.9)
        self.leader.most = self.rng.choice((300, 2000, 1 << 20))
        policy = self.rng.choice(("group", "os"))
        self.led = self.leader.add("t", **SMALL, flush_policy=policy, retention_ms=-1)
        self.follower = Follower("/data", self.leader, disk=self.disk)
        self.partition = self.follower.add(self.led)
        self.sequences = {}

    def batches(self, log, epoch):
        """Some of them of producers, some in transactions."""
        for _ in range(self.rng.randrange(1, 8)):
            producer = self.rng.randrange(4)
            known = log.producers.producers.get(producer)
            if producer < 2:
                yield batch(self.rng.randbytes(self.rng.randrange(300)))
            elif producer in log.producers.open and self.rng.random() < 0.5:
                marker = markers.Marker(self.rng.random() < 0.5, epoch)
                yield markers.build(producer, 0, marker, NOW_MS)
            else:
                sequence = known.next_sequence if known else 0
                transactional = producer == 3
                yield batch(b"p", producer=(producer, 0, sequence), transactional=transactional)

    def write(self):
        for one in self.batches(self.led.log, self.led.epoch):
            write(self.led.log, one, epoch=self.led.epoch)

    def elect(self):
        """The leader is another, which may lack the end of what this one had."""
        log, led = self.led.log, self.led
        if self.rng.random() < 0.5:
            log.recovery_point = 0
            log.truncate_to(self.rng.randint(log.log_start_offset, log.end_offset), NOW_MS)
        led.epoch = max(led.epoch, self.partition.leader_epoch) + 1
        log.begin_epoch(led.epoch)
        self.follower.follow(self.partition, led.epoch)

    def lead(self):
        """The follower leads for a while, writes, and follows again."""
        if self.partition.broken is None:
            partition = self.partition
            self.follower.lead(partition, max(self.led.epoch, partition.leader_epoch) + 1)
            for one in self.batches(partition.log, partition.leader_epoch):
                view = memoryview(bytearray(one))
                assert self.follower.core.appends.append_own(partition, view, NOW_MS)
                self.follower.core.finish(self.follower.world.now_ns)
            self.elect()

    def trim(self):
        log = self.led.log
        log.sync_now()
        stable = min(log.producers.open.values(), default=log.end_offset)
        start = log.log_start_offset
        log.advance_log_start(self.rng.randint(start, max(start, stable)))
        log.retain(NOW_MS, log.end_offset)

    def turn(self):
        for _ in range(self.rng.randrange(20)):
            self.follower.turn(syncs=self.rng.random() < 0.7)

    def checkpoint(self):
        self.follower.checkpoint()

    def die(self):
        """At some change of a file that comes soon, or now."""
        self.disk.crash_at = self.disk.steps + self.rng.randrange(1, 30)
        try:
            self.turn()
            self.write()
            self.turn()
        except PowerCut:
            pass
        self.follower.pulling.close()
        table, handle = self.follower.table, self.partition.handle
        if self.rng.random() < 0.5:
            self.disk.process_death()
        else:
            self.disk.power_cut(self.rng)
            table = handle = None
        self.follower = Follower("/data", self.leader, disk=self.disk, table=table)
        self.partition = self.follower.add(self.led, handle)

    def end(self):
        led = self.led
        led.epoch = max(led.epoch, self.partition.leader_epoch) + 1
        led.log.begin_epoch(led.epoch)
        self.follower.follow(self.partition, led.epoch)
        self.write()
        is_level = level(led, self.partition)
        self.follower.until(lambda: is_level() and self.partition.log.latest_epoch == led.epoch)
        progress, log = self.partition.progress, led.log
        assert progress.log_start == self.partition.log.log_start_offset >= log.log_start_offset
        begun = log.producers.open
        stable = min(begun.values(), default=log.end_offset)
        if not progress.log_start:  # else what began one may be gone, here or there
            assert self.partition.log.producers.open == begun
            assert progress.last_stable == max(stable, progress.log_start)
        got, wanted = stored(self.partition.log), stored(log)
        assert (
            got[len(got) - len(wanted) :] == wanted
            if len(got) >= len(wanted)
            else (wanted[len(wanted) - len(got) :] == got)
        )
        assert self.partition.log.epochs.epochs[-1:] == log.epochs.epochs[-1:]
        self.follower.pulling.close()
        self.partition.log.close()
        self.leader.close()


@each_seed(20)
def test_whatever_happened_it_has_in_the_end_what_its_leader_has(poller, seed):
    history = History(poller, seed)
    for _ in range(25):
        what = history.rng.choice(
            ("write", "write", "elect", "lead", "trim", "turn", "turn", "checkpoint", "die")
        )
        getattr(history, what)()
    history.end()
