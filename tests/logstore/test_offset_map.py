"""The offset map of compaction against a dictionary, and its use of memory."""

import random
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.logstore.offset_map import SLOT_BYTES, OffsetMap, SlotTable

keys = st.binary(max_size=40)
batches = st.lists(st.lists(keys, min_size=1, max_size=12), max_size=40)


def places(found):
    return [(0, 0, delta, key, True) for delta, key in enumerate(found)]


@settings(max_examples=300, deadline=None)
@given(batches=batches, memory=st.integers(0, 4000), load=st.floats(0.1, 1.0))
def test_every_key_has_the_offset_that_a_dictionary_has(batches, memory, load):
    offsets, twin, end = OffsetMap(memory, load), {}, 0
    for batch in batches:
        offsets.note_batch(places(batch), end, 0)
        twin |= {key: end + delta for delta, key in enumerate(batch)}
        end += len(batch)
        assert all(offsets.newest(key) == offset for key, offset in twin.items())
    assert offsets.newest(b"a key of nobody") == -1


def test_records_below_the_first_delta_and_without_a_key_are_left_out():
    offsets = OffsetMap(1 << 20, 0.9)
    offsets.note_batch(
        [(0, 0, 0, b"old", True), (0, 0, 1, None, True), (0, 0, 2, b"new", True)], 10, 1
    )
    assert (offsets.newest(b"old"), offsets.newest(b"new")) == (-1, 12)


def test_it_is_full_when_its_share_of_the_slots_is_taken():
    memory, load = 240_000, 0.5
    offsets = OffsetMap(memory, load)
    count = 0
    while not offsets.full:
        offsets.note_batch(places([b"%d" % (count + n) for n in range(50)]), count, 0)
        offsets.note_batch(places([b"%d" % (count + n) for n in range(50)]), count, 0)  # doubles
        count += 50
    slots = memory * 7 / 8 / SLOT_BYTES
    assert load * slots * 0.98 < count <= load * slots + 50


def test_a_key_costs_its_slot_and_no_more():
    memory, seed = 8 << 20, random.Random(5)
    tracemalloc.start()
    try:
        offsets, count = OffsetMap(memory, 0.9), 0
        while not offsets.full:
            offsets.note_batch(places([seed.randbytes(20) for _ in range(500)]), count, 0)
            count += 500
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= memory / 4  # the dictionary; the table is mapped memory of a known size
    assert memory / count < 31  # 24 bytes at nine tenths, and the dictionary's eighth


def test_a_search_ends_in_a_table_with_one_free_slot():
    table = SlotTable(7)
    for number in range(6):
        table.set_offset(b"%d" % number, number)
        table.set_offset(b"%d" % number, number + 10)
    assert table.count == 6
    assert [table.offset_of(b"%d" % number) for number in range(6)] == list(range(10, 16))
    assert [table.offset_of(b"x%d" % number) for number in range(50)] == [-1] * 50
