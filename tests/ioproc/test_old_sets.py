"""Message sets of formats 0 and 1 (Produce versions 0 to 2) on their way into a log."""

import pytest
from core_world import NOW_MS, World, batch

from appliance.base import errors
from appliance.ring.messages import APPEND, APPENDED, OLD_SET
from appliance.wire.batch import iter_records
from appliance.wire.batch_header import read_header
from appliance.wire.compression import GZIP, SNAPPY
from appliance.wire.up_conversion import STEP
from tests.old_formats import Plain, message, wrapper


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def append(world, partition, data, token=0, acks=1, position=0):
    world.core.askers[0].arena[position : position + len(data)] = data
    world.ask(APPEND, partition.handle, token, position, 0, len(data), acks, flags=OLD_SET)


def a_set(*values, magic=1, key=b"k"):
    return b"".join(message(Plain(0, NOW_MS, key, value), magic) for value in values)


def stored(world, partition, offset=0):
    world.read(partition.handle, offset)
    (found,) = world.turn()
    return world.bytes_of(found, partition)


def test_a_set_becomes_one_batch_with_the_next_offsets(world):
    p = world.add()
    append(world, p, a_set(b"a", b"b"), token=1)
    append(world, p, a_set(b"c", None, magic=0), token=2, position=4096)
    answers = world.settle()
    assert [(one.op, one.flags, one.token, one.a) for one in answers] == [
        (APPENDED, 0, 1, 0), (APPENDED, 0, 2, 2),
    ]  # fmt: skip
    data = stored(world, p)
    first = read_header(data).size
    records = [*iter_records(data[:first]), *iter_records(data[first:])]
    assert [(one.offset, one.timestamp, one.key, one.value) for one in records] == [
        (0, NOW_MS, b"k", b"a"), (1, NOW_MS, b"k", b"b"), (2, -1, b"k", b"c"), (3, -1, b"k", None),
    ]  # fmt: skip


def test_a_topic_that_stamps_tells_the_time(world):
    p = world.add(message_timestamp_type="LogAppendTime")
    append(world, p, a_set(b"a", magic=0))
    (answer,) = world.settle()
    assert answer.b == NOW_MS
    assert [one.timestamp for one in iter_records(stored(world, p))] == [NOW_MS]


def test_a_topics_codec_holds_for_old_sets(world):
    p = world.add(compression_type="gzip")
    append(world, p, a_set(b"a" * 500))
    append(world, p, wrapper([Plain(0, NOW_MS, b"k", b"b" * 500)], 0, SNAPPY), position=4096)
    assert [one.flags for one in world.settle()] == [0, 0]
    data = stored(world, p)
    first = read_header(data).size
    assert [read_header(data).codec, read_header(data[first:]).codec] == [GZIP, GZIP]


def test_a_compacted_topic_needs_keys(world):
    p = world.add(compact=True)
    append(world, p, a_set(b"a", key=None))
    assert [one.flags for one in world.settle()] == [errors.INVALID_RECORD]
    append(world, p, a_set(b"a", None))
    assert [one.flags for one in world.settle()] == [0]


def test_a_long_set_takes_several_turns_and_others_go_on(world):
    p, q = world.add(), world.add("q")
    data = wrapper([Plain(n, NOW_MS, b"k", b"v") for n in range(5 * STEP)], 1, GZIP)
    append(world, p, data, token=1)
    append(world, p, a_set(b"behind"), token=2, position=1 << 18)
    append(world, q, a_set(b"beside"), token=3, position=1 << 19)
    done = [one.token for one in world.turn(ms=1)]
    assert 1 not in done
    assert 2 not in done
    while len(done) < 3:
        done += [one.token for one in world.settle()]
    assert done.index(1) < done.index(2)
    assert p.log.end_offset == 5 * STEP + 1


def test_only_who_asks_so_may_send_an_old_set(world):
    p = world.add()
    world.append(p.handle, a_set(b"a" * 100))
    assert [one.flags for one in world.settle()] == [errors.INVALID_RECORD]


def test_a_batch_of_format_2_is_taken_as_it_is(world):
    p = world.add()
    append(world, p, batch(b"a", b"b"))
    assert [(one.flags, one.a) for one in world.settle()] == [(0, 0)]


def test_a_damaged_set_changes_nothing(world):
    p = world.add()
    append(world, p, a_set(b"a")[:-1] + b"x")
    assert [one.flags for one in world.settle()] == [errors.CORRUPT_MESSAGE]
    assert p.log.end_offset == 0
