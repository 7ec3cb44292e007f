"""Each read of a file that a story makes fails once with EIO: it costs the answer that needs it, or
the partition that is opened, and nobody else; nothing is changed because of it."""

import errno

from core_world import NOW_MS, World, batch
from sim.disk import SimDisk
from test_cleaning import COMPACT, CleaningWorld
from test_home import Cluster

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.ring.messages import (
    DELETE_RECORDS,
    EPOCH_END,
    LIST_OFFSET,
    MARK,
    READ,
    READ_COMMITTED,
)

SMALL = {"segment_bytes": 600, "index_interval_bytes": 100}
DATA = "/data"
ONE_OF = {errors.NONE, errors.KAFKA_STORAGE_ERROR}


class Unreadable(SimDisk):
    """A disk one of whose reads fails: number `fails_at` from when that was set."""

    def __init__(self):
        super().__init__()
        self.reads, self.fails_at, self.failed = 0, -1, ""
        self.mkdir(DATA)
        self.sync_dir("/")

    def begin(self, number):
        self.reads, self.fails_at = 0, number

    def refuse(self, path, kind):
        super().refuse(path, kind)
        if kind == "read":
            self.reads += 1
            if self.reads == self.fails_at:
                self.failed = path
                raise StorageFailed(path, errno.EIO, "Input/output error")


def each_read(story):
    """Play it once to count its reads, and once for each of them. story: takes the number of the
    read that fails, and returns how many there were."""
    count = story(0)
    assert count > 3, "the story reads too little"
    for number in range(1, count + 1):
        story(number)


def fill(world, partition):
    """Many small segments, and an aborted transaction in each of some."""
    for number in range(12):
        world.append(partition.handle, batch(b"%d" % number * 90), acks=1)
        world.turn()
        if number % 3 == 0:
            of = {"producer": (7, 0, number // 3), "transactional": True}
            world.append(partition.handle, batch(b"t" * 90, **of), acks=1)
            world.turn()
            world.ask(MARK, partition.handle, 0, 7, 0, e=0, f=1)
            world.turn()
    world.settle()


def questions(number):
    disk = Unreadable()
    world = World(DATA, disk)
    p, q = world.add("p", **SMALL), world.add("q", **SMALL)
    for one in (p, q):
        fill(world, one)
    disk.begin(number)
    asked = [(READ, offset, flags) for offset in (0, 5, 11) for flags in (0, READ_COMMITTED)]
    asked += [(LIST_OFFSET, a, 0) for a in (-1, -2, -3, NOW_MS - 5, NOW_MS, NOW_MS + 5)]
    asked += [(EPOCH_END, 1, 0), (DELETE_RECORDS, 3, 0), (READ, 4, 0)]
    answers = {}
    for token, (op, a, flags) in enumerate(asked):
        for one in (p, q):
            world.ask(op, one.handle, 2 * token + one.handle % 2, a, e=1 << 20, flags=flags)
            answers.update({m.token: m.flags for m in world.turn()})
    count = disk.reads
    answers.update({m.token: m.flags for m in world.settle()})
    bad = [code for code in answers.values() if code != errors.NONE]
    assert set(answers.values()) <= ONE_OF, answers
    assert len(bad) <= (number > 0), "one answer, and no other"
    assert p.broken is None and q.broken is None
    disk.begin(0)
    for one in (p, q):
        world.read(one.handle, 5, token=99)
        assert [(m.flags, m.token) for m in world.turn()] == [(errors.NONE, 99)]
    return count


def test_questions():
    each_read(questions)


def opening(number):
    disk = Unreadable()
    cluster = Cluster(DATA)
    for name in "pq":
        cluster.topic(name)
    first = cluster.live(disk=disk)
    parts = list(first.world.core.partitions.values())
    for one in parts:
        fill(first.world, one)
    ends = [one.log.end_offset for one in parts]
    first.end()
    disk.process_death()
    disk.begin(number)
    second = cluster.live(disk=disk)
    count = disk.reads
    assert number == 0 or disk.failed
    served = [one.topic for one in second.world.core.partitions.values()]
    assert len(served) >= 1 if number else served == ["p", "q"]
    assert len(served) == 2 or second.said().count("partition-offline") == 1
    second.end()
    disk.begin(0)
    disk.process_death()
    third = cluster.live(disk=disk)
    found = [one.log.end_offset for one in third.world.core.partitions.values()]
    assert found == ends, (disk.failed, "what could not be read was taken for the end")
    third.end()
    return count


def test_opening():
    each_read(opening)


def compaction(number):
    disk = Unreadable()
    world = CleaningWorld(DATA, disk)
    world.link._cleaner._disk = disk
    p, q = world.add("p", **COMPACT), world.add("q", **COMPACT)
    for one in (p, q):
        world.fill(one, count=30)
    before = [world.latest(one) for one in (p, q)]
    disk.begin(number)
    for _ in range(6):
        world.tick(100)
        world.run()
    count = disk.reads
    disk.begin(0)
    assert [world.latest(one) for one in (p, q)] == before
    assert p.broken is None and q.broken is None
    assert len([name for name, _ in world.events.said if name == "log-cleaned"]) == 2
    return count


def test_compaction():
    each_read(compaction)
