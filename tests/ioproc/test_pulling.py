"""An I/O process without its process follows leaders that are made up: from their sockets to its
files."""

import errno
from random import Random

import pytest
from core_world import NOW_MS, batch
from made_up_leader import MadeUp, Poller
from pulling_world import OTHER, SMALL, Follower, files, level, same, some, write
from sim.disk import PowerCut, SimDisk

from appliance.base import errors
from appliance.base.errors import DiskFull
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.replica_fetcher.fetch_lanes import CaughtUpLane
from appliance.ioproc.replica_fetcher.leader_fetcher import HURRY_MS, LeaderFetcher
from appliance.replication.follower import Position
from appliance.ring import partition_table as columns
from appliance.wire import markers


@pytest.fixture
def poller():
    return Poller()


@pytest.fixture
def leader(poller):
    one = MadeUp(poller)
    yield one
    one.close()


@pytest.fixture
def follower(tmp_path, leader):
    one = Follower(tmp_path, leader)
    yield one
    one.pulling.close()


def test_a_replica_has_its_leader_s_files(leader, follower):
    rng = Random(1)
    led = leader.add("t", **SMALL)
    for epoch in (0, 3, 4):
        led.epoch = epoch
        led.log.begin_epoch(epoch)
        write(led.log, *some(rng, 20), epoch=epoch)
        for producer in (7, 8):
            first = batch(b"x", producer=(producer, 0, epoch), transactional=True)
            write(led.log, first, epoch=epoch)
        for producer in (7, 8):
            marker = markers.Marker(producer == 7, epoch)
            end = markers.build(producer, 0, marker, NOW_MS)
            write(led.log, end, epoch=epoch)
    partition = follower.add(led)
    follower.until(level(led, partition))
    assert len(partition.log.segments) > 3
    write(led.log, *some(rng, 10), epoch=4)
    follower.until(level(led, partition))
    row = follower.table.read_row(partition.handle)
    assert row[columns.STATUS] == columns.FOLLOWING
    assert row[columns.HIGH_WATERMARK] == row[columns.LOG_END] == led.log.end_offset
    assert partition.last_stable_offset == led.log.end_offset
    same(led, partition)


def test_who_fetches_says_that_what_is_below_is_on_the_disk(leader, follower):
    led = leader.add("t", flush_policy="group")
    partition = follower.add(led)
    write(led.log, batch(b"1"), epoch=0)
    follower.until(lambda: partition.progress.log_end == 1, syncs=False)
    for _ in range(100):
        follower.turn(syncs=False)
    assert led.fetched == [0]
    assert partition.unseen
    follower.until(lambda: led.fetched == [0, 1])
    assert not partition.unseen


@pytest.mark.parametrize(
    ("least", "policy", "waits"), [(2, "auto", False), (1, "auto", True), (2, "group", True)]
)
def test_where_other_nodes_are_enough_it_fetches_what_is_written(
    leader, follower, least, policy, waits
):
    led = leader.add("t", flush_policy=policy, min_insync_replicas=least)
    partition = follower.add(led)
    write(led.log, batch(b"1"), epoch=0)
    follower.until(lambda: partition.progress.log_end == 1, syncs=False)
    for _ in range(30):
        follower.turn(syncs=False)
    assert led.fetched == ([0] if waits else [0, 1])
    assert partition.unseen == waits


def test_it_asks_in_the_turn_in_which_the_sync_ended(leader, follower):
    led = leader.add("t", flush_policy="group")
    partition = follower.add(led)
    write(led.log, batch(b"1"), epoch=0)
    follower.until(lambda: partition.progress.log_end == 1, syncs=False)
    follower.turn(syncs=False)
    assert partition.syncing
    while partition.syncing:  # what was taken late in a turn is synced from the next one on
        follower.world.threads.run_all()
        follower.core.finish(0)
    (one,) = follower.pulling.leaders.values()
    while not follower.pulling.run_once(follower.clock.monotonic_ns(), NOW_MS):
        follower.core.finish(0)  # the time for taking was over, and it goes on at once
    assert one._fetcher.asked or led.fetched == [0, 1], "it asks, and may have the answer, too"
    follower.until(lambda: led.fetched == [0, 1])


def test_a_slow_sync_holds_up_its_own_partition_alone(leader, follower):
    slow, quick = leader.add("slow", flush_policy="group"), leader.add("quick", flush_policy="os")
    one, other = follower.add(slow), follower.add(quick)
    write(slow.log, batch(b"1"), epoch=0)
    follower.until(lambda: one.progress.log_end == 1, syncs=False)
    write(quick.log, batch(b"1"), epoch=0)
    follower.until(lambda: quick.fetched[-1] == 1, syncs=False)
    assert slow.fetched == [0]
    assert other.high_watermark == 1
    follower.until(lambda: slow.fetched[-1] == 1)


def test_the_high_watermark_is_the_leader_s_as_far_as_there_are_records(leader, follower):
    led = leader.add("t")
    write(led.log, *(batch(b"x") for _ in range(5)), epoch=0)
    led.high_watermark = 3
    partition = follower.add(led)
    follower.until(lambda: partition.high_watermark == 3)
    assert partition.progress.log_end == 5
    led.high_watermark = 5
    follower.until(lambda: partition.high_watermark == 5)
    assert follower.table.read_column(partition.handle, columns.LEADERS_MARK) == 5


def test_what_came_from_a_leader_is_counted_apart(leader, follower):
    led = leader.add("t")
    write(led.log, *some(Random(4), 50, size=3000), epoch=0)
    partition = follower.add(led)
    follower.until(level(led, partition))
    table, handle = follower.table, partition.handle
    assert (
        table.read_column(handle, columns.REPLICATED)
        == table.read_column(handle, columns.SIZE_BYTES)
        > 10_000
    )
    assert table.read_column(handle, columns.BYTES_IN) == 0, "nobody has produced here"


def test_what_a_former_leader_alone_had_goes(leader, follower):
    """It was elected, wrote, and was alone with that; the next leader has other records there."""
    led = leader.add("t", **SMALL)
    rng = Random(2)
    write(led.log, *some(rng, 10), epoch=0)
    led.epoch = 0
    partition = follower.add(led)
    follower.until(level(led, partition))
    follower.lead(partition, 1)
    shared = led.log.end_offset
    for one in some(rng, 30):
        follower.world.append(partition.handle, one)
        follower.world.turn()
    assert len(partition.log.segments) > 1
    led.log.begin_epoch(2)
    led.epoch = 2
    write(led.log, *some(rng, 3), epoch=2)
    follower.follow(partition, 2)
    follower.until(level(led, partition))
    assert partition.high_watermark == led.log.end_offset
    (said,) = follower.said.of("log-truncated")
    assert (said["to"], said["epoch"], said["leader"]) == (str(shared), "2", str(OTHER))
    assert "high_watermark" not in said
    same(led, partition)


def test_below_the_high_watermark_it_goes_back_too_and_says_so(leader, follower):
    """An unclean election: the leader lacks what was acknowledged."""
    led = leader.add("t")
    write(led.log, *(batch(b"x") for _ in range(9)), epoch=0)
    partition = follower.add(led)
    follower.until(level(led, partition))
    led.log.recovery_point = 0
    led.log.truncate_to(4, NOW_MS)
    led.log.begin_epoch(1)
    led.epoch = 1
    write(led.log, batch(b"other"), epoch=1)
    follower.follow(partition, 1)
    follower.until(level(led, partition))
    (said,) = follower.said.of("log-truncated")
    assert (said["end"], said["to"], said["high_watermark"]) == ("9", "4", "9")
    same(led, partition)


def test_epochs_without_records_part_nothing(leader, follower):
    """Several leaders in a row wrote nothing: the newest one's epochs are what counts."""
    led = leader.add("t")
    write(led.log, *(batch(b"x") for _ in range(4)), epoch=0)
    partition = follower.add(led)
    follower.until(level(led, partition))
    follower.lead(partition, 5)
    led.log.begin_epoch(6)
    led.epoch = 6
    follower.follow(partition, 6)
    write(led.log, batch(b"y"), epoch=6)
    follower.until(level(led, partition))
    assert not follower.said.of("log-truncated")
    same(led, partition)


def test_epochs_that_each_had_records_of_their_own_take_several_steps(leader, follower):
    """KIP-279: neither knows the other's epochs."""
    led = leader.add("t", **SMALL)
    write(led.log, *(batch(b"both") for _ in range(4)), epoch=0)
    partition = follower.add(led)
    follower.until(level(led, partition))
    for epoch in (1, 3, 5):
        follower.lead(partition, epoch)
        for _ in range(3):
            follower.world.append(partition.handle, batch(b"mine", b"%d" % epoch))
            follower.world.turn()
    for epoch in (2, 4, 6):
        led.log.begin_epoch(epoch)
        write(led.log, *(batch(b"theirs") for _ in range(epoch)), epoch=epoch)
    led.epoch = 6
    follower.follow(partition, 6)
    follower.until(level(led, partition))
    assert len(follower.said.of("log-truncated")) > 1
    same(led, partition)


class Starts:
    """What a log needs that begins behind remote segments comes when it is asked for again."""

    def __init__(self):
        self.asked = []

    def is_ready(self, partition, offset, now_ns):
        self.asked.append(offset)
        return len(self.asked) > 3

    def begin_log(self, partition, now_ms):
        partition.log.begin_anew(self.asked[-1])
        partition.log.log_start_offset = 0  # it knows what is remote


def test_who_lacks_what_is_remote_begins_where_the_leader_s_local_log_does(leader, follower):
    led = leader.add("t", **SMALL)
    write(led.log, *some(Random(2), 100), epoch=0)
    led.local = led.log.segments[3].base
    partition = follower.add(led)
    follower.until(lambda: follower.said.of("no-remote-store"))
    assert partition.log.end_offset == 0, "a node without a store takes nothing for all"
    starts = follower.pulling._parting._starts = Starts()
    follower.until(lambda: partition.log.end_offset == led.log.end_offset)
    assert partition.log.segments[0].base == led.local > 0
    assert partition.log.log_start_offset == 0
    assert set(starts.asked) == {led.local}
    write(led.log, *some(Random(3), 3), epoch=0)
    follower.until(lambda: partition.log.end_offset == led.log.end_offset)


def test_who_lacks_what_the_leader_has_no_more_begins_anew(leader, follower, tmp_path):
    led = leader.add("t", **SMALL, retention_ms=-1)
    rng = Random(3)
    write(led.log, *some(rng, 5), epoch=0)
    partition = follower.add(led)
    follower.until(level(led, partition))
    follower.follow(partition, 1, -1)
    led.epoch = 2
    led.log.begin_epoch(2)
    write(led.log, *some(rng, 40), epoch=2)
    led.log.sync_now()
    led.log.advance_log_start(led.log.segments[-1].base)
    led.log.retain(NOW_MS, led.log.end_offset)
    follower.follow(partition, 2)
    follower.until(level(led, partition))
    start = led.log.log_start_offset
    assert partition.log.log_start_offset == partition.progress.log_start == start
    assert follower.table.read_row(partition.handle)[columns.LOG_START] == start
    assert start in led.fetched
    point = checkpoints.read(follower.world.disk, str(tmp_path), checkpoints.RECOVERY_POINT)
    assert point["t", 0] == 0


@pytest.mark.parametrize("confirmed", [False, True])
def test_producers_of_records_that_no_leader_has_are_forgotten(leader, follower, confirmed):
    """Its end is where the leader's log starts, and the leader's epochs say nothing of what lies
    before: a batch that was lost would be taken for a duplicate."""
    led = leader.add("t")
    partition = follower.add(led)
    mine = batch(b"mine", producer=(7, 0, 0))
    if confirmed:
        write(led.log, mine, epoch=1)
        led.epoch = 1
        follower.follow(partition, 1)
        follower.until(level(led, partition))
    else:
        follower.lead(partition, 1)
        follower.world.append(partition.handle, mine)
        follower.world.turn()
        write(led.log, batch(b"theirs"), epoch=2)
    assert partition.log.end_offset == 1 and list(partition.log.producers.producers) == [7]
    led.epoch = 2
    led.log.begin_epoch(2)
    led.log.sync_now()
    led.log.advance_log_start(1)
    follower.follow(partition, 2)
    follower.until(lambda: partition.log.log_start_offset == 1)
    write(led.log, batch(b"both"), epoch=2)
    follower.until(level(led, partition))
    assert list(partition.log.producers.producers) == ([7] if confirmed else [])


def test_the_log_starts_where_the_leader_s_does(leader, follower, tmp_path):
    led = leader.add("t")
    write(led.log, *(batch(b"x") for _ in range(9)), epoch=0)
    partition = follower.add(led)
    follower.until(level(led, partition))
    led.log.advance_log_start(5)
    follower.until(lambda: partition.log.log_start_offset == 5)
    follower.until(lambda: not partition.start_unsaved)
    kept = checkpoints.read(follower.world.disk, str(tmp_path), checkpoints.LOG_START)
    assert kept["t", 0] == 5


def test_who_is_refused_is_asked_for_again_and_the_others_go_on(leader, follower):
    led, other = leader.add("t"), leader.add("u")
    for each in (led, other):
        write(each.log, batch(b"x"), epoch=0)
    led.refuses = errors.KAFKA_STORAGE_ERROR
    partition, second = follower.add(led), follower.add(other)
    follower.until(level(other, second))
    assert partition.progress.log_end == 0
    assert follower.said.of("fetch-refused")
    led.refuses = 0
    follower.until(level(led, partition))


def test_who_is_throttled_waits_and_the_others_go_on(leader, follower):
    led, other = leader.add("t"), leader.add("u")
    partition, second = follower.add(led), follower.add(other)
    follower.throttle.set(1.0, [(led.topic_id, led.index)])
    for each in (led, other):
        write(each.log, batch(b"x" * 500), epoch=0)
    follower.until(lambda: level(led, partition)() and level(other, second)())
    asked = len(led.fetched)
    for number in range(3):
        for each in (led, other):
            write(each.log, batch(b"%d" % number), epoch=0)
        follower.until(level(other, second))
    assert partition.progress.log_end == 1 and len(led.fetched) <= asked + 1


def test_another_leader_is_fetched_from_and_the_one_before_no_more(tmp_path, poller, leader):
    second = MadeUp(poller)
    follower = Follower(tmp_path, leader, second)
    led, there = leader.add("t"), second.add("t")
    for each in (led, there):
        write(each.log, *(batch(b"x") for _ in range(3)), epoch=0)
    partition = follower.add(led)
    follower.until(level(led, partition))
    there.epoch = 1
    there.log.begin_epoch(1)
    write(there.log, batch(b"y"), epoch=1)
    follower.follow(partition, 1, OTHER + 1)
    asked = len(leader.questions)
    follower.until(level(there, partition))
    assert len(leader.questions) == asked
    follower.until(lambda: not leader.connections)
    assert list(follower.pulling.leaders) == [OTHER + 1]
    follower.lead(partition, 2)
    follower.until(lambda: not second.connections)
    assert not follower.pulling.leaders
    follower.pulling.close()
    second.close()


def test_a_connection_that_is_lost_is_made_again(leader, follower):
    led = leader.add("t")
    write(led.log, batch(b"x"), epoch=0)
    partition = follower.add(led)
    follower.until(level(led, partition))
    for _ in range(3):
        for connection in list(leader.connections):
            connection.close()
        write(led.log, batch(b"y"), epoch=0)
        follower.until(level(led, partition))
    assert leader.number > 3, "each connection has a session of its own"


def test_newcomers_do_not_wait_for_a_question_that_waits(leader, follower):
    led, other = leader.add("t"), leader.add("u")
    partition = follower.add(led)
    follower.until(lambda: led.fetched == [0])
    leader.paused = True
    follower.until(lambda: leader.waiting)
    write(other.log, batch(b"x"), epoch=0)
    second = follower.add(other)
    (waited,) = leader.connections
    follower.until(lambda: waited not in leader.connections)
    leader.resume()
    follower.until(level(other, second))
    assert partition.progress.log_end == 0


def test_who_follows_many_gives_a_question_up_later(follower):
    """A new session tells the leader of each of them: thousands that come one after the other
    would be told again and again."""

    def given_up_ms(count):
        made = LeaderFetcher(OTHER, follower.env, CaughtUpLane(follower.env))
        for number in range(count):
            made._fetcher.at((bytes(16), number), Position(0, 0, 0, 0))
        assert made._fetcher.next_fetch(0) is not None
        made._waits = True
        made._fetcher.at((bytes(16), count), Position(0, 0, 0, 0))
        return next(now_ms for now_ms in range(10_000) if not made._hurry(now_ms))

    assert given_up_ms(1) == HURRY_MS
    assert given_up_ms(3000) > 5 * HURRY_MS


def test_damaged_records_are_not_taken(leader, follower):
    led = leader.add("t")
    write(led.log, batch(b"x" * 50), epoch=0)
    path = f"{led.log.path}/{0:020d}.log"
    file = led.log.disk.open_file(path, write=True)
    file.pwritev([b"!"], 70)
    partition = follower.add(led)
    follower.until(lambda: follower.said.of("records-not-taken"))
    assert partition.progress.log_end == partition.log.end_offset == 0
    file.pwritev([b"x"], 70)
    file.pwritev([batch(b"x" * 50)[61:]], 61)
    follower.until(level(led, partition))


def test_a_large_answer_takes_several_turns(leader, follower):
    led = leader.add("t")
    rng = Random(4)
    write(led.log, *some(rng, 300, size=3000), epoch=0)
    partition = follower.add(led)
    ends = set()
    follower.until(lambda: ends.add(partition.progress.log_end) or level(led, partition)())
    assert len(ends) > 2
    same(led, partition)


def test_a_batch_larger_than_a_piece_is_taken_whole(leader, follower):
    led = leader.add("t")
    write(led.log, batch(b"x" * 400_000), batch(b"y"), epoch=0)
    partition = follower.add(led)
    follower.until(level(led, partition))
    same(led, partition)


def test_without_room_nothing_is_taken_until_there_is(leader, follower):
    led = leader.add("t")
    write(led.log, batch(b"x"), epoch=0)
    follower.world.space.low = True
    partition = follower.add(led)
    follower.until(lambda: follower.said.of("records-not-taken"))
    assert partition.log.end_offset == 0
    follower.world.space.low = False
    follower.until(level(led, partition))


@pytest.mark.interpreted("a log whose disk is full")
def test_a_full_disk_leaves_what_was_written_and_goes_on(leader, follower, monkeypatch):
    led = leader.add("t", **SMALL)
    rng = Random(5)
    write(led.log, *some(rng, 40), epoch=0)
    partition = follower.add(led)
    commit = partition.log.active.__class__.commit
    full = [3]

    def commits(active):
        if active.has_unwritten and full[0] > 0 and active.producers is partition.log.producers:
            full[0] -= 1
            if full[0] == 0:
                raise DiskFull("disk", errno.ENOSPC, "full")
        commit(active)

    monkeypatch.setattr(partition.log.active.__class__, "commit", commits)
    follower.until(lambda: follower.said.of("records-not-taken"))
    assert partition.progress.log_end == partition.log.end_offset == partition.log.written_end
    follower.world.space.low = False
    follower.until(level(led, partition))
    same(led, partition)


@pytest.mark.parametrize("fate", ["process", "power"])
def test_who_dies_at_any_step_of_going_back_gets_level_after_a_start(poller, fate):
    """It led, has what nobody else has, and follows again: killed before each change of a file."""
    step, done, truncated = 0, False, 0
    while not done:
        step += 1
        rng, disk = Random(1), SimDisk(Random(step))
        disk.mkdir("/data")
        disk.sync_dir("/")
        leader = MadeUp(poller)
        led = leader.add("t", **SMALL, flush_policy="group")
        first = Follower("/data", leader, disk=disk)
        write(led.log, *some(rng, 12), epoch=0)
        partition = first.add(led)
        first.until(level(led, partition))
        first.lead(partition, 1)
        for one in some(rng, 30):
            first.world.append(partition.handle, one)
            first.world.turn()
        first.world.settle()
        partition.log.sync_now()
        first.checkpoint()
        led.log.begin_epoch(2)
        led.epoch = 2
        write(led.log, *some(rng, 8), epoch=2)
        first.follow(partition, 2)
        disk.crash_at = disk.steps + step
        last, table = partition, first.table
        try:
            first.until(level(led, partition))
            done, disk.crash_at = True, -1
        except PowerCut:
            truncated += bool(first.said.of("log-truncated"))
            if fate == "power":
                table = None
            first.pulling.close()
            disk.process_death() if fate == "process" else disk.power_cut(Random(step))
            second = Follower("/data", leader, disk=disk, table=table)
            last = second.add(led, partition.handle if fate == "process" else None)
            second.until(level(led, last))
            second.pulling.close()
        last.log.sync_now()
        got, wanted = files(last.log), files(led.log)
        for name in wanted:
            if name.endswith((".log", "-checkpoint")):
                assert got[name] == wanted[name], (step, name)
        assert {name for name in got if name.endswith(".log")} <= set(wanted)
        first.pulling.close()
        leader.close()
    assert step > 20
    assert 0 < truncated < step
