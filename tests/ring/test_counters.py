"""Counters in shared memory: what is counted where, what a killed writer leaves, what it costs."""

import mmap
import os
import signal
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from appliance.base.ids import TopicId
from appliance.ring import counters, histogram
from appliance.ring.counters import API_KEYS, CODES, Counters
from appliance.ring.partition_table import (
    BYTES_OUT,
    FETCHES,
    ROW_MASK,
    SERVED_COLUMNS,
    PartitionTable,
)

durations = st.one_of(
    st.integers(0, 200), st.integers(0, histogram.LONGEST_US - 1), st.floats(0, 27).map(
        lambda bits: min(int(2**bits), histogram.LONGEST_US - 1)
    )
)  # fmt: skip


@given(durations)
@example(31)
@example(32)
@example(histogram.LONGEST_US - 1)
def test_a_duration_lies_within_the_bounds_of_its_bucket(us):
    low, above = histogram.bounds(histogram.bucket_of(us))
    assert low <= us < above
    assert above - low <= max(1, low // histogram.EXACT), "about three percent wide"


def test_buckets_follow_one_another_without_gap():
    ends = [histogram.bounds(bucket) for bucket in range(histogram.BUCKETS)]
    assert ends[0][0] == 0 and ends[-1][1] == histogram.LONGEST_US
    assert all(here[1] == there[0] for here, there in pairwise(ends))


@given(st.lists(durations, min_size=1, max_size=300), st.floats(0.001, 1))
@example([5], 0.5)
@example([1, 2, 3, 4], 0.5)
def test_percentiles_are_those_of_the_sorted_list_within_two_percent(taken, share):
    counts = counted(taken)
    exact = sorted(taken)[max(1, -int(-share * len(taken) // 1)) - 1]
    found = histogram.percentile_us(counts, share)
    assert abs(found - exact) <= max(0.5, exact / 64)


def counted(taken):
    counts = [0] * histogram.BUCKETS
    for us in taken:
        counts[histogram.bucket_of(us)] += 1
    return counts


def test_nothing_counted_took_no_time():
    assert histogram.percentile_us([0] * histogram.BUCKETS, 0.99) == 0


def table(ioprocs=2, netprocs=3):
    memory = memoryview(bytearray(Counters.bytes_needed(ioprocs, netprocs)))
    return Counters(memory, ioprocs=ioprocs, netprocs=netprocs)


keys = st.integers(0, API_KEYS - 1)
amounts = st.integers(0, 1 << 40)
answers = st.tuples(st.integers(0, 2), keys, amounts, amounts, st.integers(0, 1 << 40))
failures = st.tuples(st.integers(0, 5), keys, st.integers(-1, CODES - 2).filter(bool))


@given(st.lists(answers), st.lists(failures))
def test_whatever_is_counted_stands_where_it_belongs_and_nowhere_else(answered, failed):
    counters = table()
    traffic, latencies, errors = {}, {}, {}
    for netproc, key, received, sent, took_ns in answered:
        counters.answers[netproc].answered(key, received, sent, took_ns)
        before = traffic.get((netproc, key), (0, 0))
        traffic[netproc, key] = before[0] + received, before[1] + sent
        latencies.setdefault((netproc, key), []).append(took_ns // 1000)
    for process, key, code in failed:
        counters.errors[process].failed(key, code)
        codes = errors.setdefault((process, key), {})
        codes[code] = codes.get(code, 0) + 1
    for netproc, region in enumerate(counters.answers):
        for key in range(API_KEYS):
            assert region.traffic(key) == traffic.get((netproc, key), (0, 0))
            assert region.latencies(key) == counted(latencies.get((netproc, key), []))
    for process, region in enumerate(counters.errors):
        for key in range(API_KEYS):
            assert region.of(key) == errors.get((process, key), {})


@pytest.mark.parametrize(("key", "code"), [(API_KEYS, 1), (-1, 1), (0, 0), (0, CODES), (0, -2)])
def test_what_has_no_place_is_not_counted_elsewhere(key, code):
    with pytest.raises(AssertionError):
        table().errors[0].failed(key, code)


def test_a_clock_that_went_back_counts_as_no_time():
    counters = table()
    counters.answers[0].answered(0, 1, 1, -5_000)
    assert counters.answers[0].latencies(0)[0] == 1


def test_after_a_kill_in_the_middle_counts_go_on_and_never_back():
    """The successor adds to the same region; what was half counted lacks in some words only."""
    memory = mmap.mmap(-1, Counters.bytes_needed(1, 1))
    region = Counters(memoryview(memory), ioprocs=1, netprocs=1).answers[0]
    before = (0, 0, 0)
    for _ in range(5):
        start, started = os.pipe()
        child = os.fork()
        if not child:
            region.answered(1, 10, 100, 50_000)
            os.write(started, b".")
            while True:
                region.answered(1, 10, 100, 50_000)
        os.read(start, 1)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(start)
        os.close(started)
        received, sent = region.traffic(1)
        now = (received // 10, sent // 100, sum(region.latencies(1)))
        assert all(here > there for here, there in zip(now, before, strict=True))
        assert max(now) - min(now) <= 5, "at most one request for each kill"
        before = now


def test_a_reader_over_memory_that_it_cannot_write_sees_all():
    memory = bytearray(Counters.bytes_needed(1, 1))
    Counters(memoryview(memory), ioprocs=1, netprocs=1).answers[0].answered(3, 7, 8, 9_000)
    reader = Counters(memoryview(memory).toreadonly(), ioprocs=1, netprocs=1)
    assert reader.answers[0].traffic(3) == (7, 8)
    with pytest.raises(TypeError):
        reader.answers[0].answered(3, 1, 1, 1)


def test_what_each_netproc_served_of_a_partition_ends_with_it():
    size = PartitionTable.bytes_needed(6, 2)
    rows = PartitionTable(memoryview(bytearray(size)), 6, 2)
    handle = rows.add(TopicId(b"a" * 16), 0)
    other = rows.add(TopicId(b"b" * 16), 0)
    for netproc, part in enumerate(rows.served):
        at = (handle & ROW_MASK) * SERVED_COLUMNS
        part[at + FETCHES] += 1
        part[at + BYTES_OUT] += 100 + netproc
    assert rows.served_of(handle) == (2, 201)
    assert rows.served_of(other) == (0, 0)
    rows.retire(handle, 9)
    again = rows.reuse(handle & ROW_MASK, TopicId(b"c" * 16), 0)
    assert rows.served_of(again) == (0, 0)


def test_sizes_are_those_that_the_room_tells():
    one_more = Counters.bytes_needed(1, 2) - Counters.bytes_needed(1, 1)
    assert Counters.bytes_needed(2, 1) - Counters.bytes_needed(1, 1) == 105_216
    assert one_more == 105_216 + 966_144
    assert PartitionTable.bytes_needed(1000, 2) - PartitionTable.bytes_needed(1000, 1) == 16_064


@given(st.integers(0, histogram.LONGEST_US - 1))
@example(3)
@example(4)
@example(histogram.LONGEST_US - 1)
def test_a_coarse_bucket_is_a_quarter_of_its_lowest_value_wide(us):
    low, above = histogram.bounds(histogram.coarse_bucket_of(us), histogram.COARSE)
    assert low <= us < above
    assert above - low <= max(1, low // histogram.COARSE)


def test_stages_of_a_request_add_up_to_its_total():
    """It was seen at 1 ms, taken at 3 ms, waited from 4 ms on and was answered at 12 ms."""
    region = table().answers[0]
    region.answered(0, 1, 1, 11_000_000, 0, 12_000_000, 3_000_000, 4_000_000)
    stages = region.stages(0)
    told = [sum(counts) and counts.index(1) for counts in stages]
    places = [histogram.coarse_bucket_of(us) for us in (11_000, 2_000, 1_000, 8_000)]
    assert told == [*places, 0] and not any(map(any, region.stages(1)))


def test_fetches_of_followers_have_stages_of_their_own():
    region = table().answers[0]
    region.answered(1, 1, 1, 5_000, counters.FOLLOWER_FETCH, 9_000, 0, 7_000)
    region.sent_late(counters.FOLLOWER_FETCH, 3_000_000)
    assert region.traffic(1) == (1, 1) and not any(map(any, region.stages(1)))
    total, queue, local, remote, send = region.stages(counters.FOLLOWER_FETCH)
    assert (total[histogram.coarse_bucket_of(5)], queue[0]) == (1, 1)
    assert (local[3], remote[2]) == (1, 1)
    assert send[histogram.coarse_bucket_of(3000)] == sum(send) == 1


def test_what_was_taken_before_it_was_seen_was_in_no_queue():
    """Clocks of two processes are the same, but a turn reads its clock once."""
    region = table().answers[0]
    region.answered(0, 1, 1, 1_000_000, 0, 9_000_000, 7_900_000, 0)
    total, queue, local, remote, _ = region.stages(0)
    assert queue[0] == remote[0] == 1 and total == local
