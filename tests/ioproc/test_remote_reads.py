"""A log whose head is in a remote store answers as one that has everything here."""

from itertools import count

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tiered import NOW_MS, TieredWorld

from appliance.base import errors
from appliance.ring.messages import (
    ABORTED,
    FOUND,
    LIST_OFFSET,
    LISTED,
    READ,
    READ_COMMITTED,
    READ_REPLICA,
    READ_WAIT,
    REMOTE_COMES,
)
from appliance.wire import aborted
from appliance.wire.batch_header import HEADER, LENGTH_PREFIX
from tests.sim.disk import SimDisk

CONFIG = {"segment_bytes": 1500, "index_interval_bytes": 150, "flush_policy": "none"}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 4), st.integers(0, 300), st.integers(-50, 50)),
        st.tuples(st.just("open"), st.integers(0, 2), st.integers(0, 100)),
        st.tuples(st.just("end"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("epoch")),
    ),
    min_size=15,
    max_size=60,
)


def play(world, partition, steps):
    """The same steps give the same bytes."""
    sequences, opened, time = [0, 0, 0], set(), count(NOW_MS, 7)
    for kind, *rest in steps:
        if kind == "write":
            records, size, shift = rest
            values = [bytes(size) for _ in range(records)]
            world.write(partition, *values, timestamp=next(time) + shift)
        elif kind == "open":
            producer, size = rest
            world.write(
                partition,
                bytes(size),
                timestamp=next(time),
                producer=(producer, sequences[producer]),
            )
            sequences[producer] += 1
            opened.add(producer)
        elif kind == "end" and rest[0] in opened:
            world.end(partition, *rest)
            opened.discard(rest[0])
        elif kind == "epoch":
            world.core.lead(partition, partition.leader_epoch + 1)
    for producer in sorted(opened):
        world.end(partition, producer, commit=False)
    partition.log.roll(NOW_MS)
    world.settle()


def heads(data):
    """(first offset, last offset) of each batch; the bytes must be whole batches."""
    at, found = 0, []
    while at < len(data):
        header = HEADER.unpack_from(data, at)
        at += header[1] + LENGTH_PREFIX
        found.append((header[0], header[0] + header[6]))
    assert at == len(data), "an answer ends behind a batch"
    return found


def read(world, partition, offset, most, flags):
    """Error, bytes and aborted transactions of one read that waits."""
    world.ask(READ, partition.handle, 7, offset, e=most, f=1, flags=flags | READ_WAIT)
    got = world.turn()
    while not any(one.op == FOUND for one in got):
        assert world.come(most=1)
        got += world.turn()
    told = [one for piece in got if piece.op == ABORTED for one in aborted.decode(piece.payload)]
    [answer] = [one for one in got if one.op == FOUND]
    return answer, world.bytes_of(answer, partition) if answer.e else b"", told


UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]  # a world takes too long to shrink


@settings(max_examples=40, deadline=None, phases=UNSHRUNK)
@given(STEPS, st.integers(0, 40), st.integers(0, 2), st.sampled_from([1, 250, 700, 1 << 20]))
def test_every_read_gives_what_a_whole_log_gives(steps, copied, kept, chunk):
    world = TieredWorld("", disk=SimDisk(), chunk=chunk, payload=4096)
    twin = world.add("twin", **CONFIG)
    partition = world.add("t", **CONFIG)
    play(world, twin, steps)
    play(world, partition, steps)
    assert partition.log.end_offset == twin.log.end_offset
    world.tier(partition, copied, kept)
    end = twin.high_watermark
    for flags in (0, READ_COMMITTED):
        for offset in range(end):
            for most in (1, 400, 1 << 20):
                answer, data, told = read(world, partition, offset, most, flags)
                expected, whole, _ = read(world, twin, offset, 1 << 20, flags)
                assert answer.flags == expected.flags == errors.NONE
                assert data and whole.startswith(data)
                batches = heads(data)
                assert batches[0][0] <= offset <= batches[0][1]
                assert len(data) <= most or len(batches) == 1
                behind = heads(whole[len(data) :] or data)
                until = behind[0][0] if len(whole) > len(data) else batches[-1][1] + 1
                known = twin.aborted.within(offset, until) if flags else []
                if answer.i < 0:
                    assert told == known
                assert set(told) >= set(known), "a local segment's end may tell of more"
                assert (answer.a, answer.b, answer.c) == (expected.a, expected.b, expected.c)


@settings(max_examples=30, deadline=None, phases=UNSHRUNK)
@given(STEPS, st.integers(0, 40), st.integers(0, 2), st.sampled_from([1, 250, 1 << 20]))
def test_every_offset_of_a_time_is_that_of_a_whole_log(steps, copied, kept, chunk):
    world = TieredWorld("", disk=SimDisk(), chunk=chunk, payload=4096)
    twin = world.add("twin", **CONFIG)
    partition = world.add("t", **CONFIG)
    play(world, twin, steps)
    play(world, partition, steps)
    world.tier(partition, copied, kept)
    for timestamp in (-1, -2, -3, *range(NOW_MS - 60, NOW_MS + 500, 5)):
        answers = []
        for one in (partition, twin):
            world.ask(LIST_OFFSET, one.handle, 7, timestamp, flags=READ_COMMITTED)
            [answer] = [each for each in world.all_come() if each.op == LISTED]
            answers.append((answer.flags, answer.a, answer.b, answer.c))
        assert answers[0] == answers[1], timestamp
    for epoch in range(twin.leader_epoch + 2):
        assert partition.log.epoch_end(epoch) == twin.log.epoch_end(epoch)


def filled(folder="", chunk=300, room=1 << 20, batches=30, **config):
    world = TieredWorld(folder, disk=SimDisk(), chunk=chunk, room=room, payload=4096)
    partition = world.add("t", **(CONFIG | config))
    for number in range(batches):
        world.write(partition, b"%d" % number * 100, timestamp=NOW_MS + number)
    partition.log.roll(NOW_MS)
    world.tier(partition, 100)
    world.write(partition, b"the first one that is here")
    world.answers()
    return world, partition


def ask(world, partition, offset, flags=0, token=7):
    world.ask(READ, partition.handle, token, offset, e=1 << 20, f=1, flags=flags)
    return [one for one in world.turn() if one.op == FOUND]


def listed(world, partition, timestamp):
    world.ask(LIST_OFFSET, partition.handle, 7, timestamp)
    [answer] = [one for one in world.all_come() if one.op == LISTED]
    return answer.b, answer.c


def test_special_times_tell_where_the_tiers_meet():
    world, partition = filled()
    start = partition.log.segments[0].base
    assert start > 20 and partition.log.log_start_offset == 0
    assert listed(world, partition, -2) == (0, 0)
    assert listed(world, partition, -4) == (start, 0)
    assert listed(world, partition, -5) == (start - 1, 0)
    assert listed(world, partition, -6) == (start, 0)
    local = world.add("local", **CONFIG)
    world.write(local, b"v")
    assert listed(world, local, -4) == (0, 0)
    assert listed(world, local, -5) == listed(world, local, -6) == (-1, -1)


def test_a_read_that_may_not_wait_is_told_that_its_bytes_are_coming():
    world, partition = filled()
    [answer] = ask(world, partition, 3)
    assert (answer.flags, answer.e, answer.i) == (errors.NONE, 0, REMOTE_COMES)
    assert ask(world, partition, 3, READ_WAIT) == []
    assert len(world.fetcher.asked) == 1, "both wait for the same index"
    world.come(most=1)
    assert world.turn() == [], "and for the chunk that it names"
    world.come(most=1)
    [answer] = [one for one in world.turn() if one.op == FOUND]
    assert answer.e and answer.i < REMOTE_COMES
    [again] = ask(world, partition, 3)
    assert (again.i, again.g, again.e) == (answer.i, answer.g, answer.e)


def test_who_goes_away_meanwhile_is_not_answered():
    world, partition = filled()
    assert ask(world, partition, 3, READ_WAIT) == []
    world.core.drop(world.core.askers[0])
    world.ask(LIST_OFFSET, partition.handle, 7, NOW_MS + 5, peer=1)
    world.core.drop(world.core.askers[1])
    assert world.all_come() == []
    assert len(world.served.purgatory) == 0 and not partition.parked


def test_a_sequential_reader_finds_what_was_fetched_ahead():
    world, partition = filled()
    offset, waited = 0, 0
    while offset < partition.log.segments[0].base:
        got = ask(world, partition, offset, READ_WAIT)
        if not got:
            waited += 1
            got = [one for one in world.all_come() if one.op == FOUND]
        offset = heads(world.bytes_of(got[0], partition))[-1][1] + 1
        while world.come():
            pass
    assert waited == 1, "only its first read waited"


def test_a_reader_somewhere_in_the_middle_has_nothing_fetched_ahead():
    world, partition = filled(chunk=150)
    segments = world.segments[partition].finished()
    read(world, partition, segments[1].start_offset + 3, 1, 0)
    assert [kind for kind, _ in world.fetcher.every] == ["index", "log"]


def test_the_cache_keeps_to_its_room_and_what_was_evicted_comes_again():
    world, partition = filled(room=700)
    files = world.questions.remote.files
    for offset in [*range(partition.log.segments[0].base)] * 2:
        _, data, _ = read(world, partition, offset, 1, 0)
        assert heads(data)[0][0] <= offset
        assert files.cache.used <= 700 or len(files.cache) == 1
    assert world.fetcher.removed
    there = world.disk.listdir(f"{world.folder}/cache")
    assert len(there) == len(files.cache), "a file that is forgotten is removed"


def test_a_file_that_somebody_removed_or_changed_is_fetched_again():
    world, partition = filled()
    answer, data, _ = read(world, partition, 3, 1, 0)
    path = world.questions.remote.files.cache.path(-answer.i)
    world.disk.unlink(path)
    assert read(world, partition, 3, 1, 0)[1] == data
    answer, _, _ = read(world, partition, 3, 1, 0)
    path = world.questions.remote.files.cache.path(-answer.i)
    world.disk.open_file(path, write=True).pwritev([bytes(60)], 0)
    assert read(world, partition, 3, 1, 0)[1] == data


# The store ----------------------------------------------------------------------------------------


def test_a_store_that_is_away_is_told_to_all_and_asked_once_a_second():
    world, partition = filled()
    assert ask(world, partition, 3, READ_WAIT, token=1 << 32) == []
    assert ask(world, partition, 4, READ_WAIT, token=2 << 32) == []
    world.come(failure="connection refused")
    got = world.turn()
    assert [one.flags for one in got] == [errors.KAFKA_STORAGE_ERROR] * 2
    assert world.told == [("t-0", "connection refused")]
    for _ in range(5):
        [answer] = ask(world, partition, 3, READ_WAIT)
        assert answer.flags == errors.KAFKA_STORAGE_ERROR
    assert not world.fetcher.asked, "nobody asked the store"
    assert ask(world, partition, partition.log.segments[0].base)[0].e, "what is here is served"
    world.turn(ms=1100)
    assert read(world, partition, 3, 1, 0)[0].flags == errors.NONE
    files = world.questions.remote.files
    assert (files.failed_fetches, len(world.told)) == (1, 1)


def damage(world, kind, change):
    for name in [name for name in world.store.kept if name.endswith("." + kind)]:
        world.store.kept[name] = change(world.store.kept[name])


CHANGES = {
    "short": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "flipped": lambda data: data[:70] + bytes([data[70] ^ 1]) + data[71:],
    "zeros": lambda data: bytes(len(data)),
    "other": lambda data: b"<html>" * (len(data) // 6 + 1),
}


def test_what_is_not_what_was_written_is_never_served():
    for kind, names in (("log", CHANGES), ("index", ("other",))):
        for name in names:
            world, partition = filled(chunk=1 << 20)
            damage(world, kind, CHANGES[name])
            answer, data, _ = read(world, partition, 1, 1 << 20, 0)
            assert (answer.flags, data) == (errors.KAFKA_STORAGE_ERROR, b""), (kind, name)
            assert len(world.told) == 1
            left = world.disk.listdir(f"{world.folder}/cache")
            assert not [one for one in left if one.endswith(".part")]


def test_a_damaged_transaction_index_hides_no_aborted_transaction():
    world, partition = filled()
    partition = world.add("x", **CONFIG)
    for number in range(12):
        world.write(partition, bytes(100), producer=(5, number))
        world.end(partition, 5, commit=False)
    partition.log.roll(NOW_MS)
    world.tier(partition, 100)
    damage(world, "txnindex", CHANGES["zeros"])
    answer, data, told = read(world, partition, 1, 1 << 20, READ_COMMITTED)
    assert (answer.flags, data, told) == (errors.KAFKA_STORAGE_ERROR, b"", [])
    assert read(world, partition, 1, 1 << 20, 0)[0].flags == errors.NONE


def test_an_offset_that_no_segment_has_is_out_of_range():
    world, partition = filled()
    known = world.segments.pop(partition)
    assert ask(world, partition, 3)[0].flags == errors.KAFKA_STORAGE_ERROR, "not read yet"
    world.segments[partition] = type(known)(partition.topic_id, 0)
    assert ask(world, partition, 3)[0].flags == errors.OFFSET_OUT_OF_RANGE
    partition.log.advance_log_start(4)
    world.segments[partition] = known
    assert ask(world, partition, 3)[0].flags == errors.OFFSET_OUT_OF_RANGE
    assert read(world, partition, 4, 1, 0)[0].flags == errors.NONE


def test_records_that_an_unclean_election_lost_are_not_read():
    """The store has them, and the log has others from the new leader's epoch on."""
    world, partition = filled(chunk=2000)
    epochs, local = partition.log.epochs, partition.log.segments[0].base
    (first, *_) = world.segments[partition].finished()
    lost = first.start_offset + 2
    assert lost < first.end_offset
    assert heads(read(world, partition, lost - 1, 1 << 20, 0)[1])[-1][1] > lost
    epoch = epochs.latest
    epochs.assign(epoch + 1, lost)
    answer, data, _ = read(world, partition, lost - 1, 1 << 20, 0)
    assert (answer.flags, heads(data)[-1][1]) == (errors.NONE, lost - 1)
    for offset in (lost, local - 1):
        assert ask(world, partition, offset)[0].flags == errors.OFFSET_OUT_OF_RANGE


def test_a_search_by_time_ends_when_the_store_does_not_answer():
    world, partition = filled()
    world.ask(LIST_OFFSET, partition.handle, 7, NOW_MS + 5)
    assert world.turn() == []
    world.questions.complete_remote_reads(world.served.now_ms + 29_000)
    assert world.turn() == []
    world.questions.complete_remote_reads(world.served.now_ms + 31_000)
    assert [one.flags for one in world.turn()] == [errors.REQUEST_TIMED_OUT]
    world.ask(LIST_OFFSET, partition.handle, 7, NOW_MS + 5)
    world.turn()
    world.come(failure="away")
    assert [one.flags for one in world.turn()] == [errors.KAFKA_STORAGE_ERROR]


def test_a_process_that_died_is_asked_again_and_nobody_hears_of_it():
    world, partition = filled()
    assert ask(world, partition, 3, READ_WAIT) == []
    assert world.come(failure="killed", most=2, lost=True) == 2
    assert world.turn() == [] and world.told == []
    assert len(world.fetcher.asked) == 1
    got = world.all_come()
    assert [one.flags for one in got if one.op == FOUND] == [errors.NONE]
    world.questions.remote.files.cache.room = 0  # what comes goes again
    assert ask(world, partition, partition.log.segments[0].base - 1, READ_WAIT) == []
    world.come(failure="killed", lost=True)
    assert [one.flags for one in world.turn()] == [errors.KAFKA_STORAGE_ERROR], "not for ever"


def test_a_search_by_time_fetches_again_what_somebody_changed():
    world, partition = filled()
    first = listed(world, partition, NOW_MS + 5)
    cache = world.questions.remote.files.cache
    for name in world.disk.listdir(cache.folder):
        path = f"{cache.folder}/{name}"
        if world.disk.size(path) > 100:
            world.disk.open_file(path, write=True).pwritev([bytes(61)], 0)
    assert listed(world, partition, NOW_MS + 5) == first == (5, 0)
    assert world.fetcher.removed


def test_a_partition_that_goes_takes_those_who_wait_for_the_store_with_it():
    world, partition = filled()
    assert ask(world, partition, 3, READ_WAIT) == []
    world.ask(LIST_OFFSET, partition.handle, 8, NOW_MS + 5)
    assert world.turn() == []
    world.core.remove(partition.handle, world.now_ns)
    world.questions.complete_remote_reads(world.served.now_ms)
    got = {one.op: one.flags for one in world.turn()}
    gone = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert got == {FOUND: gone, LISTED: gone}
    world.come()
    assert world.turn() == [], "what comes now is nobody's"


def test_a_new_leader_epoch_is_told_to_who_waits_for_the_store():
    world, partition = filled()
    world.ask(READ, partition.handle, 7, 3, b=0, e=1000, f=1, flags=READ_WAIT)
    assert world.turn() == []
    world.core.lead(partition, 1)
    assert [one.flags for one in world.turn() if one.op == FOUND] == [errors.FENCED_LEADER_EPOCH]
    assert read(world, partition, 3, 1, 0)[0].flags == errors.NONE, "the epochs are the log's own"


def test_another_replica_is_told_where_its_records_are():
    world, partition = filled()
    answer = world.questions.remote.find_bytes(partition, 7, READ_REPLICA | READ_WAIT, 3, -1, 1000)
    assert answer[:4] == (
        FOUND, errors.OFFSET_MOVED_TO_TIERED_STORAGE + 1, partition.handle, 7,
    )  # fmt: skip
    assert not world.fetcher.asked
