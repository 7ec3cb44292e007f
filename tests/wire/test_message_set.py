"""Message sets of formats 0 and 1: Kafka's own bytes, a twin that writes them, and damage."""

from itertools import pairwise
from random import Random

import pytest
from golden_lines import golden

from appliance.base.errors import PeerError
from appliance.wire.batch_header import HEADER_SIZE, read_header
from appliance.wire.compression import NAMES
from appliance.wire.message_set import convert_entries, open_entry, read_entry
from appliance.wire.records import iter_records
from tests.old_formats import APPEND_TIME, CODECS, Plain, message, random_set, wrapper

APPENDED = 1_600_000_000_000


def entries(data):
    view, at = memoryview(data), 0
    while at < len(data):
        yield read_entry(view, at, len(data))
        at += int.from_bytes(data[at + 8 : at + 12], "big") + 12


def batches(data):
    return list(convert_entries(entries(data)))


def seen(made):
    return [Plain(*record[:4]) for batch in made for record in iter_records(batch)]


@pytest.mark.parametrize("line", golden("message_sets.hex"), ids=lambda line: "-".join(line[:3]))
def test_kafkas_own_bytes_are_read_and_converted(line):
    magic, codec, kind, data = int(line[0]), line[1], line[2], bytes.fromhex(line[3])
    times = [1_500_000_000_000 + more for more in (0, 7, 3)] if magic else [-1] * 3
    if kind == "LogAppendTime":
        times = [APPENDED] * 3
    told = [
        Plain(40, times[0], b"k0", b"v0"),
        Plain(41, times[1], None, b"v1 v1 v1 v1 v1 v1 v1 v1"),
        Plain(43, times[2], b"k3", None),
    ]
    assert [one for entry in entries(data) for one in open_entry(entry)] == told
    (made,) = batches(data)
    assert seen([made]) == told
    header = read_header(made)
    assert (header.base_offset, header.last_offset, header.record_count) == (40, 43, 3)
    assert NAMES[header.codec] == codec
    assert header.is_log_append_time == (kind == "LogAppendTime")
    assert header.max_timestamp == max(times)
    assert (header.leader_epoch, header.producer_id, header.base_sequence) == (-1, -1, -1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_twins_sets_keep_every_message(magic, gaps):
    for seed in range(30):
        data, told = random_set(Random(seed), 7 * seed, 40, magic, gaps=gaps)
        made = batches(data)
        assert seen(made) == told
        ends = [(read_header(one).base_offset, read_header(one).last_offset) for one in made]
        assert all(before[1] < after[0] for before, after in pairwise(ends))


def test_plain_messages_are_put_together_up_to_a_bound():
    alike = b"".join(message(Plain(n, 5, b"k", b"v" * 99), 1) for n in range(1000))
    made = batches(alike)
    assert 5 < len(made) < 10
    assert max(len(one) for one in made) < (16 << 10) + 166 * 10 + HEADER_SIZE
    stamped = b"".join(message(Plain(n, 5 + n // 2, b"k", b"v"), 1, APPEND_TIME) for n in range(6))
    assert [read_header(one).max_timestamp for one in batches(stamped)] == [5, 6, 7]


def test_damage_is_told_wherever_a_byte_changes():
    data = bytearray(message(Plain(3, 9, b"key", b"value"), 1))
    for at in range(8, len(data)):
        hurt = bytearray(data)
        hurt[at] ^= 0x11
        with pytest.raises(PeerError):
            list(entries(hurt))
    for end in range(1, len(data)):
        with pytest.raises(PeerError, match=r"cut off|no message"):
            read_entry(memoryview(data), 0, end)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_that_cannot_be_right_is_refused(codec, magic):
    some = [Plain(5, 1, b"a", b"b"), Plain(6, 1, b"c", b"d" * 5000)]
    good = wrapper(some, magic, codec)
    (entry,) = entries(good)
    with pytest.raises(PeerError, match="more than"):
        open_entry(entry, cap=1000)
    for wrong in (
        entry._replace(value=None),
        entry._replace(value=b""),
        entry._replace(value=entry.value[:-9]),
        entry._replace(attributes=4),
        entry._replace(attributes=7),
    ):
        with pytest.raises(PeerError):
            open_entry(wrong)
    nested = wrapper([Plain(1, 1, None, b"x")], magic, codec)
    inner = read_entry(memoryview(nested), 0, len(nested))
    back = [some[1], some[0]]
    with pytest.raises(PeerError, match="follows"):
        list(convert_entries(entries(wrapper(back, 0, codec))))
    with pytest.raises(PeerError, match="follows"):
        list(convert_entries([inner, inner]))


def test_a_compressed_set_in_a_compressed_set_is_refused():
    import gzip

    inside = wrapper([Plain(1, 1, None, b"x")], 1, 1)
    data = message(Plain(1, 1, None, gzip.compress(inside)), 1, 1)
    with pytest.raises(PeerError, match="another one"):
        batches(data)


def test_random_bytes_never_end_otherwise():
    rng = Random(3)
    for _ in range(2000):
        data = bytearray(random_set(rng, 0, 3, rng.randint(0, 1))[0])
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            seen(batches(data))
        except PeerError:
            continue
