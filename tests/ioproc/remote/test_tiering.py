"""Copies and deletions of one partition's segments, step by step, beside a twin that keeps all."""

from collections import Counter
from itertools import count
from random import Random

import pytest

from appliance.remotelog.journal import NAME, RemoteJournal
from tests.ioproc.remote.tiering_world import FOLDER, TOPIC_ID, Life, Store
from tests.seeds import each_seed
from tests.sim.disk import PowerCut, SimDisk

LOCAL = {"local_retention_bytes": 1, "retention_ms": -1}


def new_disk(rng=None):
    disk = SimDisk(rng)
    disk.mkdir("/data")
    disk.sync_dir("/")
    return disk


def new_ids():
    return (number.to_bytes(16, "big") for number in count(1))


def value(number):
    return b"|%06d|" % number + b"x" * 80


def filled(life, some=12, begin=0):
    for number in range(begin, begin + some):
        life.append(value(number))


def expected(numbers):
    return {number: b"%06d" % number for number in numbers}


@pytest.fixture
def story():
    return Life(new_disk(), Store(), {}, new_ids(), **LOCAL)


def again(life, **rules):
    """The next life on the same disk, after a kill."""
    return Life(
        life.disk, life.store, life.log_starts, new_ids_after(life), life.world.now_ns,
        **life.rules | rules,
    )  # fmt: skip


def new_ids_after(life):
    return (number.to_bytes(16, "big") for number in count(1000 + life.disk.steps))


def test_closed_segments_are_copied_and_then_dropped_here(story):
    filled(story)
    closed = [segment.base for segment in story.log.segments[:-1]]
    assert len(closed) >= 3
    story.retain()
    assert [one.base for one in story.log.segments[:-1]] == closed, "nothing is copied yet"
    story.finish()
    assert [one.start_offset for one in story.known().finished()] == closed
    assert (
        story.log.copied_end == story.log.active_base == story.known().finished()[-1].end_offset + 1
    )
    assert story.tiering.measure_lags() == (0, 0)
    story.retain()
    assert [one.base for one in story.log.segments] == [story.log.active_base]
    assert (story.log.log_start_offset, story.log.local_start) == (0, story.log.active_base)
    assert story.values() == expected(range(12))
    for life in (again(story), again(again(story))):
        assert (life.log.log_start_offset, life.log.copied_end) == (0, story.log.copied_end)
        assert life.values() == expected(range(12))
        life.finish()
        assert life.link.asked == []


def test_what_is_not_visible_and_synced_is_not_copied(story):
    for number in range(12):
        life_batch = value(number)
        story.world.append(story.partition.handle, *prepared(story, life_batch))
        story.world.turn()
    assert len(story.log.segments) > 3 and story.log.recovery_point == 0
    story.finish()
    assert story.known().finished() == []
    assert story.tiering.measure_lags()[1] == len(story.log.segments) - 1
    story.world.settle()
    story.finish()
    assert story.log.copied_end == story.log.active_base


def prepared(story, data):
    from tests.ioproc.core_world import NOW_MS, batch

    return batch(data, timestamp=NOW_MS), 1


def test_whole_retention_removes_the_oldest_and_moves_the_log_start(story):
    filled(story)
    story.finish()
    story.retain()
    sizes = [one.segment_size_in_bytes for one in story.known().finished()]
    story.set_rules(retention_bytes=sum(sizes[1:]) + story.log.active_size)
    story.finish()
    first = story.known().finished()[0]
    assert len(story.known().finished()) == len(sizes) - 1
    assert story.log.log_start_offset == first.start_offset == story.log_starts["t"]
    assert story.values() == expected(range(first.start_offset, 12))
    assert len(story.store.of_segments()) == 5 * len(story.known().finished())
    assert again(story).log.log_start_offset == first.start_offset


def test_what_is_old_goes_everywhere_and_the_active_segment_too(story):
    filled(story)
    story.finish()
    story.set_rules(retention_ms=1000, local_retention_ms=-2)
    story.world.now_ns += 2_000_000_000
    for _ in range(3):
        story.retain()  # rolls the active one, because it is old
        story.finish()
    story.retain()
    assert (story.log.log_start_offset, story.values(), story.store.of_segments()) == (
        12,
        {},
        set(),
    )
    assert again(story).log.log_start_offset == 12


def test_deleted_records_go_from_the_store_and_stay_gone(story):
    filled(story)
    story.finish()
    story.retain()
    bases = [one.start_offset for one in story.known().finished()]
    story.trim(bases[1])
    for life in (again(story), again(story)):
        assert life.log.log_start_offset == bases[1], "a restart brings nothing back"
        life.finish()
        assert [one.start_offset for one in life.known().finished()] == bases[1:]
        assert life.values() == expected(range(bases[1], 12))


def test_uncopied_segments_below_the_log_start_are_left_out(story):
    """A gap between what was copied before and after is none of what is kept."""
    filled(story, 4)
    story.finish()
    filled(story, 8, 4)
    trimmed = story.log.segments[-2].base
    story.trim(trimmed)
    story.finish()
    assert [one.start_offset for one in story.known().finished()] == [trimmed]
    assert story.log.copied_end == story.log.active_base


def test_a_store_that_is_away_costs_nothing_but_room(story):
    story.finish()
    filled(story)
    story.store.refuses = True
    for _ in range(20):
        story.step(100_000)
    story.retain()
    assert story.values() == expected(range(12))
    assert story.tiering.copies_failed + story.tiering.deletes_failed > 3
    told = [name for name, _ in story.events.said]
    assert told == ["remote-copy-failed"], "the same cause is said once"
    assert len(story.known().unfinished()) == 1, "and leaves one segment to remove"
    story.store.refuses = False
    story.finish()
    assert story.events.said[-1][0] == "remote-goes-on"
    assert story.known().unfinished() == [] and story.log.copied_end == story.log.active_base
    assert len(story.store.of_segments()) == 5 * len(story.known().finished())


def test_copies_stop_and_what_was_copied_stays(story):
    filled(story)
    story.finish()
    copied = story.log.copied_end
    story.set_rules(remote_log_copy_disable=True)
    filled(story, 12, 12)
    story.finish()
    story.retain()
    assert (story.log.copied_end, story.log.local_start) == (copied, copied)
    assert story.values() == expected(range(24))


def test_tiering_switched_off_with_its_data_leaves_what_is_here(story):
    filled(story)
    story.finish()
    filled(story, 12, 12)  # not copied, but for what closes
    local = story.log.local_start
    story.retain()
    local = story.log.local_start
    story.set_rules(remote_storage_enable=False, remote_log_delete_on_disable=True)
    story.finish()
    assert (story.store.of_segments(), story.log.copied_end) == (set(), -1)
    assert story.log.log_start_offset == local > 0
    assert story.values() == expected(range(local, 24))
    assert again(story).values() == expected(range(local, 24))


def test_a_file_with_much_that_is_over_is_written_anew(story, monkeypatch):
    monkeypatch.setattr("appliance.remotelog.journal._SMALL", 2000)
    filled(story, 40)
    story.finish()
    story.trim(story.log.segments[-1].base)
    story.finish()
    assert story.disk.size(f"{FOLDER}/{NAME}") < 2000
    filled(story, 12, 40)
    story.finish()
    story.retain()
    assert again(story).values() == story.values()


def test_a_damaged_file_is_no_shorter_one(story):
    filled(story)
    story.finish()
    path = f"{FOLDER}/{NAME}"
    file = story.disk.open_file(path, write=True)
    byte = file.pread(1, 40)
    file.pwritev([bytes([byte[0] ^ 1])], 40)
    with pytest.raises(Exception, match="corrupt at byte 0: an entry is damaged"):
        RemoteJournal.open_folder(story.disk, FOLDER, TOPIC_ID, 0)
    file.pwritev([byte], 40)
    size = file.size()
    file.truncate(size - 3)  # torn at its end
    found = RemoteJournal.open_folder(story.disk, FOLDER, TOPIC_ID, 0)
    assert len(found.known.unfinished()) == 1
    file.close()


# Cuts ---------------------------------------------------------------------------------------------


class Told:
    """What a reader may rely on: every value, and up to where it was allowed to go."""

    def __init__(self):
        self.end = self.allowed = 0

    def check(self, life):
        start = life.log.log_start_offset
        assert start <= self.allowed, "more is gone than anybody wanted"
        assert life.values() == expected(range(start, life.log.end_offset))
        assert life.log.end_offset >= self.end


def play(seed, cut_disk, cut_store):
    """Many lives with a cut in each: of the power or a kill, on the disk or within the store."""
    rng = Random(seed)
    disk, store, starts, told = new_disk(rng), Store(PowerCut), {}, Told()
    rules = {**LOCAL, "retention_bytes": -1}
    now_ns = 1_000_000_000
    for number in range(6):
        last = number == 5
        disk.crash_at = -1 if last or not cut_disk else disk.steps + rng.randrange(1, 500)
        store.cut_in = -1 if last or not cut_store else rng.randrange(40)
        try:
            ids = (one.to_bytes(16, "big") for one in count(1000 * number + 1))
            life = Life(disk, store, starts, ids, now_ns, **rules)
            told.check(life)
            for _ in range(60):
                act(life, rng, told)
                now_ns = life.world.now_ns
        except PowerCut:
            pass
        store.cut_in = -1
        if rng.random() < 0.5:
            disk.power_cut()
        else:
            disk.process_death()
    life = Life(
        disk, store, starts, (n.to_bytes(16, "big") for n in count(90_000)), now_ns, **rules
    )
    told.check(life)
    life.finish()
    life.retain()
    told.check(life)
    whole = {one.remote_log_segment_id.id.hex() for one in life.known().finished()}
    held = {
        name.rpartition("-")[2].partition(".")[0]
        for name in store.of_segments()
        if ".leader" not in name
    }
    assert held == whole, "objects that nobody knows are left in the store"


def act(life, rng, told):
    what = rng.randrange(12)
    if what < 5:
        life.append(value(life.log.end_offset))
        told.end = life.log.end_offset
    elif what < 7:
        life.retain()
    elif what < 8 and rng.random() < 0.3 and told.end:
        target = min(told.allowed + rng.randrange(5), told.end)
        told.allowed = max(told.allowed, target)
        if target > life.log.log_start_offset:
            life.trim(target)
    else:
        for _ in range(rng.randrange(6)):
            life.step(rng.choice((1, 100_000)), lambda: rng.random() < 0.5)
    told.check(life)


@each_seed(40)
def test_nothing_that_is_kept_is_lost_whatever_is_cut(seed):
    play(seed, cut_disk=seed % 3 != 0, cut_store=seed % 3 != 1)


def test_a_log_that_knows_of_no_segment_takes_none_for_its_own(story):
    """A restored one, whose log start is that of what was here: it neither reads nor removes."""
    filled(story)
    story.finish()
    story.retain()
    held = dict(story.store.held)
    story.disk.unlink(f"{FOLDER}/{NAME}")
    restored = again(story)
    for _ in range(30):
        restored.step(100_000)
    assert story.store.held == held
    assert restored.log.log_start_offset == restored.log.local_start > 0
    [(name, fields)] = restored.events.said
    assert name == "remote-copy-failed" and "to another prefix" in fields["cause"]


# Costs --------------------------------------------------------------------------------------------


class CountingStore(Store):
    """Counts requests by kind."""

    def __init__(self):
        super().__init__()
        self.asked = Counter()

    def names(self, prefix):
        self.asked["list"] += 1
        return super().names(prefix)

    def write_object(self, name, pieces):
        self.asked["put"] += 1
        super().write_object(name, pieces)

    def read_object(self, name):
        self.asked["get"] += 1
        return super().read_object(name)

    def delete(self, name):
        self.asked["delete"] += 1
        super().delete(name)

    def take(self):
        asked, self.asked = dict(self.asked), Counter()
        return asked


def test_how_many_requests_the_store_gets():
    store = CountingStore()
    story = Life(new_disk(), store, {}, new_ids(), **LOCAL)
    story.finish(1000)
    assert store.take() == {"list": 6, "put": 3, "delete": 1}, "a claim of a new partition"
    filled(story, 4)
    story.finish(1000)
    assert len(story.known().finished()) == 1
    assert store.take() == {"list": 1, "put": 6, "delete": 1}, "a copy"
    story = again(story)
    story.finish(1000)
    assert store.take() == {"list": 5, "put": 2, "get": 1, "delete": 2}, "a claim"
    story.set_rules(retention_bytes=0)
    story.finish(1000)
    assert story.known().finished() == []
    assert store.take() == {"list": 1, "put": 1, "delete": 7}, "a deletion"
