"""Where in the files the high watermark and the last stable offset lie, as the rows say it: always
behind a whole batch, never beyond the offset."""

import tempfile
from pathlib import Path

from core_world import World, batch
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.ioproc.partitions.file_positions import MOST_ENDS, UNKNOWN, FilePositions
from appliance.ring import partition_table as columns
from appliance.wire.batch_header import read_header

ROWS = {"segment_bytes": 1400, "index_interval_bytes": 300}


def batches(partition):
    """Every batch in the files: (segment, position behind it, end offset)."""
    found = []
    for segment in partition.log.segments:
        data = Path(segment.path).read_bytes()
        at = 0
        while at < len(data):
            header = read_header(data, at)
            at += header.size
            found.append((segment.base, at, header.last_offset + 1))
    return found


def check(world, partition, exact):
    """What a reader may take by the columns is what lies below the offset."""
    row = world.table.read_row(partition.handle)
    for offset, segment, position in (
        (columns.HIGH_WATERMARK, columns.VISIBLE_SEGMENT, columns.VISIBLE_POSITION),
        (columns.LAST_STABLE, columns.STABLE_SEGMENT, columns.STABLE_POSITION),
    ):
        end, base, size = row[offset], row[segment], row[position]
        if base < 0:
            assert not exact
            continue
        told = [one for one in batches(partition) if one[0] < base or one[:2] <= (base, size)]
        assert all(one[2] <= end for one in told), "beyond the offset"
        assert size == 0 or any(one[:2] == (base, size) for one in told), "within a batch"
        if exact and end:
            below = max(one[2] for one in batches(partition) if one[2] <= end)
            assert max((one[2] for one in told), default=0) == below


step = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4), st.integers(1, 400)),
    st.tuples(st.just("append"), st.integers(1, 4), st.integers(1, 400)),
    st.tuples(st.just("turn")),
    st.tuples(st.just("sync")),
    st.tuples(st.just("begin")),
    st.tuples(st.just("end")),
    st.tuples(st.just("follower"), st.integers(0, 6)),
)


@given(st.lists(step, max_size=40), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_places_are_those_of_the_offsets(steps, group, followers):
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        p = world.add(flush_policy="group" if group else "os", **ROWS)
        if followers:
            p.progress.lead(0, (2,), (2,))
        opened = {}
        for name, *numbers in steps:
            if name == "append":
                count, size = numbers
                world.append(p.handle, batch(*[b"v" * size] * count), acks=1)
                world.turn(ms=0)
            elif name == "turn":
                world.turn(ms=0)
            elif name == "sync":
                world.core.syncing.request_sync(p)
                world.turn(ms=0)
                world.threads.run_all()
                world.turn(ms=0)
            elif name == "begin" and not opened:
                opened[7] = p.log.end_offset
                p.progress.begun(7, p.log.end_offset)
            elif name == "end" and opened.pop(7, None) is not None:
                if p.progress.ended(7, p.log.end_offset):
                    p.raise_visible()
            elif name == "follower" and followers:
                at = max(0, p.log.end_offset - numbers[0])
                if p.progress.replica_at(2, at, 0):
                    p.raise_visible()
            world.core.publish(p)
            world.turn(ms=0)
            check(world, p, exact=not (followers or opened))
        world.settle()
        p.log.close()


def test_a_lagging_follower_leaves_the_place_in_an_earlier_segment(tmp_path):
    world = World(tmp_path)
    p = world.add(flush_policy="os", **ROWS)
    p.progress.lead(0, (2,), (2,))
    for _ in range(12):
        world.append(p.handle, batch(b"v" * 400), acks=1)
        world.turn()
    assert len(p.log.segments) > 3
    p.progress.replica_at(2, 3, 0)
    p.raise_visible()
    world.core.publish(p)
    world.turn()
    row = world.table.read_row(p.handle)
    known = batches(p)[2]
    assert row[columns.HIGH_WATERMARK] == known[2] == 3
    assert (row[columns.VISIBLE_SEGMENT], row[columns.VISIBLE_POSITION]) == known[:2]
    assert row[columns.END_SEGMENT] > row[columns.VISIBLE_SEGMENT]


def test_places_in_segments_that_are_replaced_are_forgotten():
    places = FilePositions(0, 500)
    places.ends.append((8, 5, 90))
    places.set_visible(8, 8)
    places.drop_places(5, 8, 8)
    assert (places.visible, places.stable) == ((5, 90), (5, 90)), "the active one stays as it is"
    places.drop_places(8, 8, 8)
    assert (places.visible, places.stable) == ((8, 0), (8, 0)), "all before it is visible"
    places.drop_places(9, 8, 8)
    assert (places.visible, places.stable) == (UNKNOWN, UNKNOWN)


def test_ends_that_nothing_reaches_are_bounded():
    places = FilePositions(0, 0)
    for end in range(3 * MOST_ENDS):
        places.ends.append((end, 0, end * 10))
    places.set_visible(3 * MOST_ENDS, 1)
    assert len(places.ends) == MOST_ENDS
    assert places.visible == (0, (3 * MOST_ENDS - 1) * 10)
