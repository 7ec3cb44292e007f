"""A large topic that is deleted: what one turn does for it, and what must wait for it. Steps are
counted, not timed."""

from collections import Counter

import pytest
from core_world import NOW_MS, HeldThreads, batch
from test_home import Cluster

from appliance.base import errors
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.os_disk import OsDisk, OsFile
from appliance.ioproc.deletion import partition_deletion
from appliance.ioproc.deletion.deleted_folders import read_mark
from appliance.ioproc.deletion.partition_deletion import A_JOB, A_TURN
from appliance.metadata.changes import PartitionAdded
from appliance.metadata.trash import bury, entry, write_trash
from appliance.ring import partition_table as columns

PARTITIONS = 3 * A_TURN


class CountingDisk(OsDisk):
    """Counts what blocks, by who does it: the loop, or a job."""

    def __init__(self):
        self.counts = Counter()

    def rename(self, old, new):
        self.counts["rename"] += 1
        super().rename(old, new)

    def sync_dir(self, path):
        self.counts["sync_dir"] += 1
        super().sync_dir(path)

    def create(self, path):
        self.counts["create"] += 1
        return super().create(path)

    def take(self):
        taken, self.counts = self.counts, Counter()
        return taken


@pytest.fixture
def life(tmp_path):
    cluster = Cluster(tmp_path)
    cluster.topic("other")
    cluster.topic("t", partitions=PARTITIONS)
    one = cluster.live()
    one.cluster = cluster
    one.leaving = one.home.leaving
    one.threads = one.leaving._threads = HeldThreads()
    one.disk = one.leaving._disk = one.keeping._disk = CountingDisk()
    for partition in one.world.core.partitions.values():
        partition.log._disk = one.disk
    yield one
    one.end()


def all_gone(life):
    while life.leaving.busy:
        life.home.open_slice(9, NOW_MS)
        life.keeping.tick(9, NOW_MS)
        life.threads.run_all()


def serves_others(life):
    life.world.append(0, batch(b"v"), acks=1)
    return [m.flags for m in life.world.turn()] == [0]


def test_a_turn_lets_some_go_and_touches_no_disk(life):
    life.home.apply([life.cluster.remove("t")], 40)
    life.disk.take()
    for turn in range(1, 4):
        done = life.home.open_slice(turn, NOW_MS)
        assert len(life.world.core.partitions) == 1 + PARTITIONS - turn * A_TURN
        assert not life.disk.take(), "what blocks is for the thread"
        assert done == (turn == 3)
        assert serves_others(life)
    assert life.leaving.replayed(50) == 40, "its rows are not free yet"


def test_a_job_renames_some_with_one_sync_of_what_they_lie_in(life):
    life.home.apply([life.cluster.remove("t")], 40)
    for turn in range(1, 4):
        life.home.open_slice(turn, NOW_MS)
    life.disk.take()
    jobs = 0
    while life.leaving._names:
        assert len(life.threads.jobs) == 1, "the next one waits until this one is taken"
        life.threads.run_all()
        done = life.disk.take()
        assert done["rename"] <= A_JOB and done["sync_dir"] <= 1
        jobs += 1
        life.home.open_slice(3, NOW_MS)
        assert not life.disk.take()["sync_dir"]
        assert serves_others(life)
    assert jobs == PARTITIONS // A_JOB + 1, "and one for the checkpoints"
    assert life.leaving.replayed(50) == 50


def test_a_sync_under_way_is_not_waited_for(life):
    life.world.append(1, batch(b"v"), acks=-1, token=7)
    life.world.core.finish(life.world.now_ns)
    assert life.world.core.partitions[1].syncing
    life.home.apply([life.cluster.remove("t")], 40)
    for turn in range(6):
        life.home.open_slice(turn, NOW_MS)
    assert list(life.world.core.partitions) == [0, 1]
    life.world.threads.run_all()
    assert [(m.token, m.flags) for m in life.world.turn()] == [(7, 0)], "it is durable"
    life.home.open_slice(7, NOW_MS)
    assert list(life.world.core.partitions) == [0]


@pytest.mark.parametrize("turns", range(5))
@pytest.mark.parametrize("ran", [False, True])
def test_a_name_that_is_asked_for_meanwhile_waits_for_one_partition(life, turns, ran):
    removed = life.cluster.remove("t")
    again = life.cluster.topic("t", identity=b"again".ljust(16, b"\0"))
    handle = life.cluster.handles[again.topic_id, 0]
    life.home.apply([removed, PartitionAdded("t", again.topic_id, 0)], 40)
    life.home._waiting, waiting = {}, life.home._waiting
    for turn in range(turns):
        life.home.open_slice(turn, NOW_MS)
        if ran:
            life.threads.run_all()
    life.disk.take()
    life.home._waiting = waiting
    life.world.append(handle, batch(b"new"), acks=1)
    assert [m.flags for m in life.world.turn()] == [0]
    assert life.disk.take()["rename"] <= A_JOB + 3
    assert life.world.core.partitions[handle].log.end_offset == 1
    all_gone(life)
    assert life.world.core.partitions[handle].broken is None
    assert list(life.world.core.partitions) == [0, handle]


def test_who_asks_a_partition_on_its_way_is_told_that_it_is_gone(life):
    life.home.apply([life.cluster.remove("t")], 40)
    life.home.open_slice(0, NOW_MS)
    life.world.append(1, batch(b"v"), acks=1)
    assert [m.flags for m in life.world.turn()] == [errors.UNKNOWN_TOPIC_OR_PARTITION]


def test_what_is_deleted_during_a_round_of_retention_takes_no_row_offline(life, monkeypatch):
    monkeypatch.setattr("appliance.ioproc.retention.housekeeping.RETAIN_NS", 0)
    assert not life.keeping.tick(1, NOW_MS), "there is more of the round to come"
    life.home.apply([life.cluster.remove("t")], 40)
    all_gone(life)
    for turn in range(PARTITIONS + 2):
        life.keeping.tick(turn, NOW_MS)
    assert life.world.failures == []
    assert [life.world.table.read_column(row, columns.STATUS) for row in range(3)] == [
        columns.ONLINE, columns.NOT_OPEN, columns.NOT_OPEN,
    ]  # fmt: skip


def test_what_finds_no_room_for_its_mark_is_deleted_for_good(life, monkeypatch):
    def no_room(disk, folder, mark):
        raise DiskFull(folder, 28, "No space left on device")

    monkeypatch.setattr(partition_deletion, "write_mark", no_room)
    change = life.cluster.remove("t")
    life.home._trash._ids = frozenset([change.topic_id])
    life.home.apply([change], 40)
    for turn in range(1, 20):
        life.home.open_slice(turn, NOW_MS)
        life.threads.run_all()
    assert not life.leaving.busy
    assert "not-deleted" not in life.said()
    gone = [one[2].folder for one in life.keeping._removals]
    assert len(gone) == PARTITIONS and not life.home._trash._folders


@pytest.fixture
def kept(life, monkeypatch):
    """The large topic was deleted and may come back; of its first two partitions nobody has synced
    the records. file_syncs: paths that were synced, by whomever."""
    for handle in (1, 2):
        life.world.append(handle, batch(b"v"), acks=1)
    life.world.turn()
    life.logs = [life.world.core.partitions[handle].log for handle in (1, 2)]
    assert [log.recovery_point for log in life.logs] == [0, 0]
    assert not life.world.threads.jobs
    life.file_syncs = []
    for name in ("sync", "pread_medium"):
        monkeypatch.setattr(OsFile, name, counted(getattr(OsFile, name), life.file_syncs))
    image = life.cluster.image
    topic = life.topic = image.topics_by_name["t"]
    listed = entry(bury(image, topic, NOW_MS, size=140, records=2))
    write_trash(life.disk, str(life.cluster.folder), [listed], {})
    life.home.apply([life.cluster.remove("t")], 40)
    return life


def counted(call, paths):
    def count(file, *rest):
        paths.append(file.path)
        return call(file, *rest)

    return count


def logs_synced(life):
    found = [path for path in life.file_syncs if path.endswith(".log")]
    life.file_syncs.clear()
    return found


def test_a_job_syncs_what_may_come_back_so_that_its_opening_need_not(kept):
    for turn in range(3):
        kept.home.open_slice(turn, NOW_MS)
    assert logs_synced(kept) == [], "the loop does not"
    kept.threads.run_all()
    assert len(logs_synced(kept)) == 2, "and nobody syncs what has no records"
    all_gone(kept)
    image, topic = kept.cluster.image, kept.topic
    image.topics_by_name["t"] = image.topics_by_id[topic.topic_id] = topic
    logs_synced(kept)
    added = [PartitionAdded("t", topic.topic_id, index) for index in range(PARTITIONS)]
    kept.home.apply(added, 50)
    while not kept.home.open_slice(9, NOW_MS) or kept.home.busy:
        pass
    assert logs_synced(kept) == [], "neither read back nor synced"
    back = [kept.world.core.partitions[handle].log for handle in (1, 2)]
    assert [(log.end_offset, log.recovery_point) for log in back] == [(1, 1), (1, 1)]


def test_a_job_does_not_sync_more_than_somebody_may_wait_for(kept, monkeypatch):
    monkeypatch.setattr(partition_deletion, "A_SYNC", kept.logs[0].unsynced_bytes)
    kept.home.open_slice(0, NOW_MS)
    sizes = []
    while kept.leaving._closed or kept.threads.jobs:
        sizes.append(len(kept.threads.jobs[0][0][0]))
        kept.threads.run_all()
        kept.home.open_slice(0, NOW_MS)
    assert sizes[0] == 1
    assert sum(sizes[:-1]) == PARTITIONS and max(sizes) == PARTITIONS, "the checkpoints are last"
    assert max(sizes[:-1]) == A_JOB


def test_a_log_whose_sync_fails_goes_all_the_same_and_is_checked_when_it_comes_back(
    kept, monkeypatch
):
    sync = OsFile.sync

    def refuse(file):
        if file.path == kept.logs[0].active.path:
            raise StorageFailed(file.path, 5, "Input/output error")
        sync(file)

    monkeypatch.setattr(OsFile, "sync", refuse)
    all_gone(kept)
    marks = [
        read_mark(kept.disk, kept.home._trash._folders[kept.topic.topic_id, index])
        for index in (0, 1)
    ]
    assert marks == [(0, 0), (0, 1)]
    assert "not-deleted" not in kept.said()
