"""The history's file against a dumb twin: what is whole is read back, what is torn counts as none,
a number never lends a name the past of another one, and the file does not grow."""

import os
import random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from appliance.base.os_disk import OsDisk
from appliance.history import format as layout
from appliance.history.format import (
    BYTES,
    MINUTE,
    MOST_BYTES,
    RINGS,
    SECOND,
    TABLES,
    TOPICS,
    WHOLE,
    Name,
    NameTable,
    Ring,
    SampleHead,
    UnknownHistory,
)
from appliance.history.history_reader import HistoryReader
from appliance.history.recorder import Names, Recorder
from appliance.history.samples import (
    ApiSample,
    ClientIdentity,
    ClientSample,
    FolderSample,
    HistorySample,
    ProcessSample,
    TopicSample,
    Whole,
)


def step(at_s, length=SECOND, **told):
    return HistorySample(length, at_s * 1000, length * 1000, told.pop("whole", Whole()), **told)


def recorder(path):
    return Recorder(OsDisk(), str(path))


def read(path):
    return HistoryReader(OsDisk(), str(path))


# Samples --------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.lists(st.tuples(st.binary(max_size=96), st.booleans(), st.integers(0, 127)), max_size=30))
def test_a_ring_holds_the_newest_samples_and_none_that_is_torn(written):
    ring = Ring(TOPICS, SECOND, 7, 128, 0)
    data = bytearray(ring.slots * ring.slot_bytes)
    twin = {}
    for number, (entries, torn, at) in enumerate(written, 1):
        sample = SampleHead(number, number * 1000, 1000, number % 3, entries)
        packed = layout.pack(ring, sample)
        slot, before = layout.slot_at(ring, number), twin.get(number % ring.slots)
        written_bytes = packed[:at] if torn else packed  # the process died in the middle
        data[slot : slot + len(written_bytes)] = written_bytes
        there = layout.unpack(ring, bytes(data), slot)
        assert there in (before, sample, None)
        if len(written_bytes) == len(packed):
            assert there == sample
        twin[number % ring.slots] = there
    kept = sorted(one for one in twin.values() if one is not None)
    assert layout.samples(ring, bytes(data)) == kept


@given(st.integers(0, 2**63 - 1))
def test_an_amount_is_squeezed_into_16_bits_nearly_as_it_is(amount):
    there = layout.spread(layout.squeeze(amount))
    assert abs(there - amount) <= (0 if amount < 1500 else amount * 0.0007)
    assert (there == 0) == (amount == 0), "what is more than nothing is seen"


# Names ----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 9), max_size=3, unique=True), max_size=30))
def test_a_number_says_nothing_about_a_name_that_did_not_have_it_then(moments):
    table = NameTable(TOPICS, 4, 64, 0)
    names, there, told = Names(table, {}), {}, []
    for second, used in enumerate(moments, 1):
        numbers = set()
        for text in used:
            number, fresh = names.number((f"t{text}",), second * 1000)
            if fresh is not None:
                there[number] = layout.pack_name(table, fresh)
            numbers.add(number)
            told.append((second * 1000, number, f"t{text}"))
        assert len(numbers) == len(used), "names of one moment have different numbers"
    data = b"".join(there.get(n, b"").ljust(table.name_bytes, b"\0") for n in range(table.names))
    found = layout.unpack_names(table, data)
    for at_ms, number, text in told:
        name = found[number]
        assert name.since_ms > at_ms or name.texts == (text,)
    for at_ms, number, _ in told[-1:]:
        assert found[number].since_ms <= at_ms, "the last one is known"
    again = Names(table, found)
    assert all(again.number(one.texts, 10**9)[0] == number for number, one in found.items())


def test_names_that_are_too_long_are_cut_and_still_told_apart():
    table = NameTable(TOPICS, 4, 64, 0)
    long = Name(5, layout.digest_of(("x" * 300, "y" * 300)), ("x" * 300, "y" * 300))
    data = layout.pack_name(table, long)
    assert len(data) <= table.name_bytes
    (one,) = layout.unpack_names(table, data.ljust(64, b"\0")).values()
    assert one.digest == long.digest and [set(text) for text in one.texts] == [{"x"}, {"y"}]
    assert layout.digest_of(("a", "bc")) != layout.digest_of(("ab", "c"))
    names = Names(table, {})
    assert names.number(("x" * 300,), 1)[0] != names.number(("x" * 301,), 1)[0]


# The file -------------------------------------------------------------------------------------


class Watched(OsDisk):
    """most: bytes that were read at once."""

    def __init__(self):
        self.most = 0

    def open_file(self, path, *, write=False):
        disk, file = self, super().open_file(path, write=write)

        class Watching(type(file)):
            def pread(self, length, position):
                disk.most = max(disk.most, length)
                return super().pread(length, position)

        file.__class__ = Watching
        return file


def test_who_goes_on_with_a_history_does_not_read_all_of_it_at_once(tmp_path):
    """A thread's memory stays what it once was: 4 MB of nothing in each control process."""
    first, slots = recorder(tmp_path), RINGS[WHOLE, SECOND].slots
    for number in range(slots + 5):
        first.write_sample(step(number + 1))
    first.close()
    disk = Watched()
    second = Recorder(disk, str(tmp_path))
    assert 0 < disk.most <= max(1 << 16, *(t.names * t.name_bytes for t in TABLES.values()))
    second.write_sample(step(slots + 6))
    second.close()
    times = [one.at_ms // 1000 for one in read(tmp_path).whole(SECOND)]
    assert times == list(range(7, slots + 7)), "it found where the ring goes on"


def test_what_was_recorded_is_read_back_also_by_the_next_appliance(tmp_path):
    first = recorder(tmp_path)
    who, used = ClientIdentity("alice", "loader", "local"), ClientSample(1000, 20, 3, 400)
    first.write_sample(
        step(
            100, whole=Whole(7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 2**63),
            apis=[ApiSample(0, 10, 1, 2, 3, 4)],
            processes=[ProcessSample(2, 0, 2, 77, 12.5, 9000, 33)],
            disks=[FolderSample(0, 2**40, 2**39, 12)], topics={"orders": TopicSample(1000, 20, 3)},
            clients={who: used},
        )
    )  # fmt: skip
    first.write_sample(step(100, MINUTE, lags={("billing", "orders"): 12_345}))
    first.close()
    second = recorder(tmp_path)
    second.write_sample(
        step(101, topics={"orders": TopicSample(1, 2, 3), "new": TopicSample(4, 5, 6)})
    )
    second.close()
    reader = read(tmp_path)
    whole = reader.whole(SECOND)
    assert [one.at_ms for one in whole] == [100_000, 101_000]
    assert whole[0].value == Whole(7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 2**63)
    assert [one.value for one in reader.apis(SECOND).of[0]] == [ApiSample(0, 10, 1, 2, 3, 4)]
    assert reader.processes(SECOND).of[2, 0][0].value == ProcessSample(2, 0, 2, 77, 12.5, 9000, 33)
    assert reader.disks(SECOND).of[0][0].value == FolderSample(0, 2**40, 2**39, 12)
    topics = reader.topics(SECOND)
    assert [one.value for one in topics.of["orders"]] == [
        TopicSample(1000, 20, 3),
        TopicSample(1, 2, 3),
    ]
    assert [one.at_ms for one in topics.of["new"]] == [101_000]
    assert reader.clients(SECOND).of == {who: (reader.clients(SECOND).of[who][0],)}
    assert reader.clients(SECOND).of[who][0].value == used
    assert [one.value for one in reader.lags(MINUTE).of["billing", "orders"]] == [12_345]
    reader.close()


def test_the_file_has_its_bound_and_the_busiest_topics_have_the_room(tmp_path):
    one = recorder(tmp_path)
    most = RINGS[TOPICS, SECOND].most
    for second in range(1, 4):
        busy = {f"t{n}": TopicSample(n, 1, 0) for n in range(most + 100 * second)}
        one.write_sample(step(second, topics=busy))
    one.close()
    path = tmp_path / layout.FILE
    assert path.stat().st_size == BYTES <= MOST_BYTES
    assert path.stat().st_blocks * 512 < BYTES / 10, "what was not written takes no room"
    found = read(tmp_path).topics(SECOND)
    assert found.left_out == 300
    newest = [name for name, told in found.of.items() if told[-1].at_ms == 3000]
    assert sorted(newest) == sorted(f"t{n}" for n in range(300, most + 300))


def test_a_day_of_samples_leaves_the_newest(tmp_path):
    one = recorder(tmp_path)
    for second in range(1, 1000):
        one.write_sample(step(second))
    one.close()
    assert [m.at_ms for m in read(tmp_path).whole(SECOND)] == [n * 1000 for n in range(400, 1000)]
    assert [m.at_ms for m in read(tmp_path).whole(SECOND, 2)] == [998_000, 999_000]


def test_damage_anywhere_in_the_file_costs_samples_and_no_more(tmp_path):
    one = recorder(tmp_path)
    for second in range(1, 30):
        one.write_sample(
            step(
                second, topics={"a": TopicSample(second, 0, 0), f"b{second}": TopicSample(1, 1, 1)}
            )
        )
    one.close()
    path = tmp_path / layout.FILE
    whole = bytearray(path.read_bytes())
    rng = random.Random(3)
    for _ in range(8):
        torn = bytearray(whole)
        at = rng.randrange(layout.HEAD_BYTES, 600 * 128)
        torn[at : at + 300] = os.urandom(300)
        path.write_bytes(torn)
        told = {m.at_ms: m.value.bytes_in for m in read(tmp_path).topics(SECOND).of.get("a", ())}
        assert all(value * 1000 == at_ms for at_ms, value in told.items())
        again = recorder(tmp_path)
        again.write_sample(step(50))
        again.close()
        assert read(tmp_path).whole(SECOND)[-1].at_ms == 50_000


@pytest.mark.parametrize("change", ["format", "magic", "short"])
def test_a_file_of_another_format_is_refused_and_begun_anew(tmp_path, change):
    one = recorder(tmp_path)
    one.write_sample(step(1))
    one.close()
    path = tmp_path / layout.FILE
    data = bytearray(path.read_bytes())
    if change == "short":
        del data[5:]
    else:
        data[8 if change == "format" else 0] ^= 1
    path.write_bytes(data)
    with pytest.raises(UnknownHistory):
        read(tmp_path)
    one = recorder(tmp_path)
    assert read(tmp_path).whole(SECOND) == ()
    one.write_sample(step(2))
    one.close()
    assert [m.at_ms for m in read(tmp_path).whole(SECOND)] == [2000]
