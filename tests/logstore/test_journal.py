"""The journal that makes the ends of many logs durable with one write."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim.disk import PowerCut, SimDisk

from appliance.base.disk import PAGE
from appliance.base.errors import StorageFailed
from appliance.logstore.journal import (
    MOST_OF_ONE,
    OF_EACH,
    Continuation,
    End,
    Journal,
    Tail,
    read,
    size_for,
)
from appliance.wire.batch import NewRecord, assign, build_batch
from tests.seeds import each_seed

SIZE = 1 << 20
PATH = "/d/ioproc-0.1.journal"
NONCE = bytes(range(16))
TOPIC = b"t" * 16


class World:
    def __init__(self, seed=0):
        self.disk = SimDisk(Random(seed))
        self.disk.mkdir("/d")
        self.disk.sync_dir("/")
        self.journal = Journal.create(self.disk, PATH, NONCE, SIZE)
        self.file = self.disk.create("/d/log")

    def end(self, key, offset, data, topic_id=TOPIC):
        """An end of the log `key`, of one record, whose bytes are `data`."""
        position = self.file.size()
        self.file.pwritev([data], position)
        return End(key, topic_id, key, offset, offset + 1, self.file, position, len(data))

    def write(self, *ends):
        group = self.journal.begin_group(ends)
        group.run()
        self.journal.ended(group, failed=False)


def batch_at(offset):
    batch = bytearray(build_batch([NewRecord(0, None, b"%d" % offset)]))
    assign(memoryview(batch), offset, 0)
    return bytes(batch)


def held(disk):
    return [(tail.partition, tail.offset, tail.data) for tail in read(disk, PATH)]


def test_a_group_survives_a_power_cut_though_nothing_else_was_synced():
    world = World()
    world.write(world.end(1, 5, b"one"), world.end(2, 7, b"two"))
    world.write(world.end(1, 6, b"three"))
    world.disk.power_cut()
    assert held(world.disk) == [(1, 5, b"one"), (2, 7, b"two"), (1, 6, b"three")]
    assert read(world.disk, PATH)[0].topic_id == TOPIC


@each_seed(20)
def test_a_group_that_power_was_cut_in_is_whole_or_not_there(seed):
    world = World(seed)
    world.write(world.end(1, 0, b"kept"))
    long = world.end(1, 1, bytes([seed]) * 20_000)
    group = world.journal.begin_group([long])
    world.disk.crash_at = world.disk.steps + 1
    with pytest.raises(PowerCut):
        group.run()
    world.disk.power_cut()
    assert held(world.disk) in ([(1, 0, b"kept")], [(1, 0, b"kept"), (1, 1, long_data(seed))])


def long_data(seed):
    return bytes([seed]) * 20_000


def test_half_of_the_file_is_written_while_the_other_half_waits_for_its_logs():
    world = World()
    data = bytes(MOST_OF_ONE)
    groups = 0
    while world.journal.half == 0:
        world.write(world.end(1, groups, data))
        groups += 1
    assert groups * MOST_OF_ONE <= SIZE  # the first half, and one group in the second
    assert world.journal.unsettled() == [1]
    while (group := world.journal.begin_group([world.end(2, groups, data)])) is not None:
        group.run()
        world.journal.ended(group, failed=False)
        groups += 1
    world.journal.settled(1, groups)
    assert world.journal.unsettled() == []
    world.write(world.end(3, groups, data))
    assert world.journal.half == 0
    assert world.journal.unsettled() == [2]


def test_a_log_settles_when_its_file_has_all_that_a_group_holds_of_it():
    world = World()
    world.write(world.end(1, 5, b"one"))
    while world.journal.half == 0:
        world.write(world.end(2, 0, bytes(MOST_OF_ONE)))
    world.journal.settled(2, 1)
    world.journal.settled(1, 5)
    assert world.journal.unsettled() == [1]
    world.journal.settled(1, 6)
    assert world.journal.unsettled() == []


def test_what_a_client_wrote_is_never_taken_for_a_group():
    """A record may look like a whole group, at the begin of a page; it does not know the nonce."""
    other = World()
    other.write(other.end(9, 0, b"forged"))
    forged = other.journal.file.pread(PAGE, PAGE)
    world = World()
    world.journal.nonce = bytes(16)
    world.journal.file.pwritev([b"PENSTJRN" + bytes(16)], 0)
    world.journal.file.sync()
    filler = bytes(PAGE - 40 - OF_EACH)  # up to the next page
    world.write(world.end(1, 0, filler + forged))
    torn = bytearray(world.journal.file.pread(PAGE, PAGE))
    torn[30] ^= 1
    world.journal.file.pwrite_medium(bytes(torn), PAGE)
    assert held(world.disk) == []


def test_a_journal_that_failed_takes_no_more():
    world = World()
    group = world.journal.begin_group([world.end(1, 0, b"one")])
    world.disk.refusing["journal", "pwrite_medium"] = 5
    with pytest.raises(StorageFailed):
        group.run()
    world.journal.ended(group, failed=True)
    assert world.journal.begin_group([world.end(1, 0, b"one")]) is None


def test_nothing_is_left_of_one_that_could_not_be_made():
    world = World()
    world.disk.refusing["journal", "sync"] = 5
    with pytest.raises(StorageFailed):
        Journal.create(world.disk, "/d/ioproc-0.2.journal", NONCE, SIZE)
    assert not world.disk.exists("/d/ioproc-0.2.journal")


@pytest.mark.parametrize("data", [b"", b"PENSTJRN", bytes(3 * PAGE), b"x" * PAGE])
def test_what_is_no_journal_holds_nothing(data):
    world = World()
    file = world.disk.create("/d/other.journal")
    file.pwritev([data], 0)
    assert read(world.disk, "/d/other.journal") == []


@given(cuts=st.lists(st.integers(1, 12), min_size=1, max_size=6), start=st.integers(0, 12))
def test_a_log_goes_on_with_all_that_follows_its_end(cuts, start):
    """Groups of some batches each, which may overlap; twin: a dictionary of batches."""
    batches = {offset: batch_at(offset) for offset in range(12)}
    tails = []
    for first in cuts:
        begin = max(first - 3, 0)
        some = [batches[offset] for offset in range(begin, min(first + 2, 12))]
        tails.append(Tail(TOPIC, 0, begin, b"".join(some)))
    there = {
        offset
        for tail in tails
        for offset, data in batches.items()
        if tail.offset <= offset and data in tail.data
    }
    wanted = b""
    offset = start
    while offset in there:
        wanted += batches[offset]
        offset += 1
    assert Continuation(tails).after(start) == wanted


def test_what_was_truncated_does_not_come_back_behind_what_came_instead():
    """An older group still has the end of the log as it was, of an earlier leader epoch."""

    def tail(first, count, epoch):
        data = b""
        for offset in range(first, first + count):
            batch = bytearray(build_batch([NewRecord(0, None, b"%d" % epoch)]))
            assign(memoryview(batch), offset, epoch)
            data += batch
        return Tail(TOPIC, 0, first, data)

    old, new, same = tail(11, 6, 1), tail(5, 10, 5), tail(15, 2, 5)
    assert Continuation([old, new]).after(5) == new.data
    assert Continuation([old, new]).after(11) == new.data[len(new.data) * 6 // 10 :]
    assert Continuation([old, new, same]).after(5) == new.data + same.data
    assert Continuation([old]).after(11) == old.data


@pytest.mark.parametrize("total", [0, 1 << 20, 100 << 20, 3 << 30, 1 << 50])
def test_it_takes_a_small_part_of_a_file_system(total):
    size = size_for(total)
    assert size % (2 * PAGE) == 0
    assert size <= max(1 << 20, total // 64)
    assert size <= 16 << 20
