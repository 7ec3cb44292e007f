"""Chunks of a segment hold whole batches wherever they are cut; the cache keeps to its room."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiered import MemoryStore, TieredWorld

from appliance.ioproc.remote_reads.checked_files import RemoteGarbage, fetch_chunk
from appliance.ioproc.remote_reads.file_cache import RemoteCache
from appliance.ioproc.remote_reads.segment_chunks import SegmentChunks, cut_chunks
from appliance.logstore.indexes import OffsetIndex
from appliance.remotelog.objects import LOG
from tests.sim.disk import SimDisk

SIZES = st.lists(st.integers(61, 500), min_size=1, max_size=40)


def index_of(sizes, every):
    """Ends of batches as positions, and an index of each `every`-th of them."""
    begins = [0, *accumulate(sizes)]
    index = OffsetIndex()
    for number in range(every, len(sizes), every):
        index.append(number, begins[number])
    return begins, index


@given(SIZES, st.integers(1, 5), st.integers(1, 3000))
def test_a_chunk_begins_with_a_batch_and_is_as_long_as_it_may_be(sizes, every, most):
    begins, index = index_of(sizes, every)
    size, known = begins[-1], [0, *index.positions, begins[-1]]
    cut = cut_chunks(index.positions, size, most)
    assert cut[0] == 0 and set(cut) <= set(begins)
    for begin, end in pairwise([*cut, size]):
        longest = [one for one in known if begin < one <= begin + most]
        assert end == (longest[-1] if longest else min(one for one in known if one > begin))


@given(SIZES, st.integers(1, 5), st.integers(1, 3000))
def test_an_offset_is_looked_for_where_it_is_or_before(sizes, every, most):
    begins, index = index_of(sizes, every)
    chunks = SegmentChunks(1000, begins[-1], index.pending(), most)
    for number, begin in enumerate(begins[:-1]):
        there = chunks.number_of(begin)
        assert chunks.first_of(1000 + number) <= there
        lower, upper = chunks.bounds(there)
        assert lower <= begin < upper
    for number in range(len(chunks)):  # once their ends were seen it is the chunk itself
        chunks.ends[number] = 1000 + begins.index(chunks.bounds(number)[1])
    for number, begin in enumerate(begins[:-1]):
        assert chunks.first_of(1000 + number) == chunks.number_of(begin)


@pytest.fixture(scope="module")
def stored():
    """A segment of ten batches in a store, where they begin, and a disk."""
    world = TieredWorld("", disk=SimDisk())
    partition = world.add("t", segment_bytes=1 << 20, index_interval_bytes=1)
    for number in range(10):
        world.write(partition, b"%d" % number * 20)
    partition.log.roll(0)
    world.tier(partition, 1)
    [one] = world.segments[partition].finished()
    size = one.segment_size_in_bytes // 10
    return world, one, size


def test_only_whole_batches_become_a_chunk(stored):
    world, one, size = stored
    store, path = world.fetcher.objects, f"{world.folder}/cache/1.log"
    for begin in (0, size, 4 * size):
        for end in range(begin + 1, begin + 3 * size + 2):
            if (end - begin) % size == 0:
                got = fetch_chunk(store, world.disk, one, begin, end, path)
                assert (got.size, got.end_offset) == (end - begin, end // size)
            else:
                with pytest.raises(RemoteGarbage):
                    fetch_chunk(store, world.disk, one, begin, end, path)
    for begin in range(1, size):
        with pytest.raises(RemoteGarbage):
            fetch_chunk(store, world.disk, one, begin, 3 * size, path)
    assert world.disk.listdir(f"{world.folder}/cache") == ["1.log"]


def test_every_flipped_byte_is_seen(stored):
    world, one, size = stored
    objects = world.fetcher.objects
    [name] = [name for name in world.store.kept if name.endswith("." + LOG)]
    whole = world.store.kept[name]
    for at in range(size):
        if 8 <= at - 0 < 12 + 4 and at < 16:  # offset, epoch: outside of the checksum
            continue
        store = MemoryStore()
        store.kept = {name: whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]}
        broken = type(objects)(store)
        try:
            got = fetch_chunk(broken, world.disk, one, 0, size, f"{world.folder}/cache/2.log")
        except RemoteGarbage:
            continue
        assert at < 8 and got.size == size, f"byte {at}"


def test_the_cache_forgets_what_was_read_least_recently_and_never_what_comes():
    cache = RemoteCache("/c", 7, room=100)
    files = [cache.begin_file((b"s", LOG, number)) for number in range(3)]
    assert [file.number for file in files] == [7, 8, 9]
    assert cache.landed(files[0], 60, 1) == []
    assert cache.landed(files[1], 30, 2) == []
    cache.find_file(files[0].key)
    assert cache.landed(files[2], 40, 3) == [8]
    assert cache.find_file(files[1].key) is None and cache.numbered(8) is None
    late = cache.begin_file((b"s", LOG, 5))
    assert cache.used == 100 and not late.here
    assert cache.landed(late, 1000, 9) == [9, 7], "one file always finds room"
    cache.forget_file(late)
    cache.forget_file(late)
    assert (cache.used, len(cache)) == (0, 0)
    assert cache.begin_file((b"s", LOG, 5)).number == 11, "no number comes twice"
