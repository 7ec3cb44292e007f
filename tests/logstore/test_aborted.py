"""Aborted transactions are told as a reader of the whole log would tell them."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim.disk import SimDisk

from appliance.logstore.aborted import AbortedTransactions
from appliance.wire import aborted

KAFKA_S = bytes.fromhex(
    "00000000000000000000000000000000000000000000000000640000000000000032"
    "0000000000000000000100000000000000cc00000000000001310000000000000132"
)
"""Two entries of a file that Apache Kafka 4.3.1 wrote."""


def read(files, folder="/t-0"):
    disk = SimDisk()
    disk.mkdir(folder)
    for name, data in files.items():
        disk.create(f"{folder}/{name}").pwritev([data], 0)
    return AbortedTransactions(disk, folder, 1)


def entry(producer, first, last, stable):
    return pack(">hqqqq", 0, producer, first, last, stable)


def test_kafka_s_own_bytes():
    found = read({f"{0:020d}.txnindex": KAFKA_S})
    assert found.within(0, 1000) == [(0, 0), (1, 204)]
    assert found.within(101, 1000) == [(1, 204)]
    assert found.within(0, 204) == [(0, 0)]
    assert found.within(306, 1000) == []
    assert found.end == 306


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from("wac")), max_size=60),
    splits=st.sets(st.integers(0, 80), max_size=3),
    start=st.integers(0, 80),
    length=st.integers(1, 80),
)
def test_a_range_is_told_what_was_aborted_in_it(steps, splits, start, length):
    """Producers write, abort and commit in any order; markers lie in whichever segment is there."""
    open_, files, every, offset = {}, {f"{base:020d}.txnindex": b"" for base in (0, *splits)}, [], 0
    for producer, step in steps:
        if step == "w":
            open_.setdefault(producer, offset)
        elif producer in open_:
            first = open_.pop(producer)
            if step == "a":
                base = max(base for base in (0, *splits) if base <= offset)
                stable = min(open_.values(), default=offset + 1)
                files[f"{base:020d}.txnindex"] += entry(producer, first, offset, stable)
                every.append((producer, first, offset))
        else:
            continue
        offset += 1
    found = read(files)
    end = start + length
    wanted = [one[:2] for one in every if one[1] < end and one[2] >= start]
    told = found.within(start, end)
    if not {first for first in open_.values() if first < end}:  # below the last stable offset
        assert told == wanted
    assert set(told) <= set(wanted)
    assert aborted.decode(aborted.encode(told)) == told


@pytest.mark.parametrize(
    "tail", [b"\0" * 68, b"\0" * 7, entry(3, 400, 90, 400), b"\1" + entry(3, 310, 400, 400)[1:]]
)
def test_what_is_no_entry_ends_a_file(tail):
    found = read(
        {f"{0:020d}.txnindex": KAFKA_S + tail, f"{500:020d}.txnindex": entry(4, 600, 700, 701)}
    )
    assert found.within(0, 1000) == [(0, 0), (1, 204), (4, 600)]


def test_there_are_none_without_a_file():
    assert read({f"{0:020d}.log": b"x"}).end == 0
