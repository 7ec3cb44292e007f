"""Message sets of formats 0 and 1 on their way to format 2 and back, and bad ones by seeds."""

import gzip
from random import Random
from types import SimpleNamespace

import pytest

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.wire import compression
from appliance.wire.batch import LongWalk, validate
from appliance.wire.batch_header import read_header
from appliance.wire.compression import GZIP, LZ4, NAMES, SNAPPY, ZSTD
from appliance.wire.down_conversion import MessageSet
from appliance.wire.message_set import mend_lz4, open_entry, read_entry
from appliance.wire.records import NewRecord, build_batch, iter_records
from appliance.wire.up_conversion import STEP, SetUpConversion, is_old_set
from tests.old_formats import APPEND_TIME, Plain, message, random_set, wrapper
from tests.seeds import each_seed

TIME = 1_700_000_000_000
EMPTY = Plain(0, 0, b"", b"")
RULES = SimpleNamespace(
    max_message_bytes=1 << 20, message_timestamp_type="CreateTime", compact=False,
    message_timestamp_before_max_ms=1 << 62, message_timestamp_after_max_ms=1 << 62,
)  # fmt: skip


def raise_format(data, rules=RULES, codec=-1):
    """The batch of a message set, as it is checked before an append, and how many steps it took."""
    made = SetUpConversion(memoryview(data), rules, codec)
    steps = 1
    while not made.advance():
        steps += 1
    try:
        validate(made.batch, rules, TIME)
    except LongWalk as longer:
        while not longer.walk.advance():
            pass
        validate(made.batch, rules, TIME, walk=longer.walk)
    return bytes(made.batch), steps


def lower_format(magic, *batches, first=0, most=1 << 30):
    made = MessageSet(magic, first, lambda size: min(size, most - len(made.out)))
    for batch in batches:
        for _ in made.add_batch(batch):
            pass
    return made


def told(data):
    """What a consumer sees in a message set."""
    found, at = [], 0
    while at < len(data):
        entry = read_entry(memoryview(data), at, len(data))
        found += [Plain(*one) for one in open_entry(entry)]
        at += entry.size
    return found


def seen(batch):
    return [Plain(*record[:4]) for record in iter_records(batch)]


def refusal(data, rules=RULES):
    with pytest.raises(PeerError) as found:
        raise_format(data, rules)
    return found.value.code


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages_become_one_batch(magic):
    some = [
        Plain(0, TIME, b"k", b"v"),
        Plain(0, TIME - 5, None, b""),
        Plain(0, TIME + 9, b"", None),
    ]
    batch, _ = raise_format(b"".join(message(one, magic) for one in some))
    times = [one.timestamp if magic else -1 for one in some]
    assert seen(batch) == [
        (number, time, one.key, one.value)
        for number, (one, time) in enumerate(zip(some, times, strict=True))
    ]
    assert read_header(batch).codec == 0
    assert read_header(batch).max_timestamp == max(times)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4], ids=NAMES[1:4])
def test_a_wrapper_becomes_one_batch_in_its_codec(magic, codec):
    some = [Plain(n, TIME + n, b"k", b"some value " * n) for n in range(40)]
    batch, _ = raise_format(wrapper(some, magic, codec))
    assert [one[2:] for one in seen(batch)] == [one[2:] for one in some]
    assert [one.offset for one in seen(batch)] == list(range(40))
    assert read_header(batch).codec == codec


def test_the_topics_codec_is_that_of_the_batch():
    batch, _ = raise_format(message(Plain(0, TIME, None, b"a" * 5000), 1), codec=GZIP)
    assert read_header(batch).codec == GZIP
    batch, _ = raise_format(wrapper([Plain(0, TIME, None, b"a")], 1, GZIP), codec=0)
    assert read_header(batch).codec == 0


def test_a_large_message_in_a_wrapper_comes_over_many_pieces():
    rng = Random(3)
    some = [Plain(n, TIME, b"k", rng.randbytes(700_000)) for n in range(3)]
    batch, _ = raise_format(
        wrapper(some, 1, SNAPPY), SimpleNamespace(**vars(RULES) | {"max_message_bytes": 1 << 24})
    )
    assert seen(batch) == some


def test_many_messages_take_many_steps():
    some = b"".join(message(Plain(n, TIME, None, b"v"), 1) for n in range(3 * STEP))
    assert raise_format(some)[1] == 4


def test_a_wrapper_of_append_time_gives_its_time_to_all():
    some = [Plain(n, TIME + n, None, b"v") for n in range(3)]
    batch, _ = raise_format(wrapper(some, 1, GZIP, append_time=TIME + 77))
    assert [one.timestamp for one in seen(batch)] == [TIME + 77] * 3


@pytest.mark.parametrize("magic", [0, 1])
def test_what_is_cut_off_at_the_end_is_left_out(magic):
    two = message(Plain(0, TIME, None, b"1"), magic) + message(Plain(0, TIME, None, b"2"), magic)
    assert [one.value for one in seen(raise_format(two[:-3])[0])] == [b"1"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", errors.INVALID_RECORD),
        (b"\0" * 11, errors.INVALID_RECORD),
        (b"\0" * 40, errors.CORRUPT_MESSAGE),
        (message(Plain(0, TIME, b"k", b"v"), 1)[:-1] + b"x", errors.CORRUPT_MESSAGE),
        (message(Plain(0, -5, b"k", b"v"), 1), errors.INVALID_TIMESTAMP),
        (message(Plain(0, TIME, b"k", b"v" * (1 << 20)), 1), errors.MESSAGE_TOO_LARGE),
        (
            message(Plain(0, TIME, b"", b""), 1) + message(Plain(0, TIME, b"", b""), 0),
            errors.INVALID_RECORD,
        ),
        (2 * wrapper([Plain(0, TIME, b"", b"")], 1, GZIP), errors.INVALID_RECORD),
        (message(Plain(0, TIME, None, b"never gzip"), 1, GZIP), errors.CORRUPT_MESSAGE),
        (message(Plain(0, TIME, None, None), 1, GZIP), errors.INVALID_RECORD),
        (message(Plain(0, TIME, None, b"x"), 1, ZSTD), errors.INVALID_RECORD),
        (message(Plain(0, TIME, None, b"x"), 1, 7), errors.UNSUPPORTED_COMPRESSION_TYPE),
        (
            message(Plain(0, TIME, None, gzip.compress(wrapper([EMPTY], 1, 1))), 1, 1),
            errors.INVALID_RECORD,
        ),
        (
            message(Plain(0, TIME, None, gzip.compress(message(EMPTY, 0))), 1, 1),
            errors.INVALID_RECORD,
        ),
        (
            message(Plain(3, TIME, None, gzip.compress(message(Plain(9, 0, b"", b""), 1))), 1, 1),
            errors.INVALID_RECORD,
        ),
        (message(Plain(0, TIME, None, gzip.compress(b"\0" * 999)), 1, 1), errors.CORRUPT_MESSAGE),
    ],
    ids=lambda one: "set" if isinstance(one, bytes) else None,  # gzip has the time in it
)  # fmt: skip
def test_bad_sets_are_refused(data, code):
    assert refusal(data) == code


def test_a_topic_that_stamps_takes_no_append_times():
    rules = SimpleNamespace(**vars(RULES) | {"message_timestamp_type": "LogAppendTime"})
    data = message(Plain(0, TIME, b"k", b"v"), 1, APPEND_TIME)
    assert refusal(data, rules) == errors.INVALID_TIMESTAMP
    raise_format(data)


def test_a_bomb_opens_no_further_than_the_bound():
    bomb = gzip.compress(
        b"".join(message(Plain(0, TIME, None, b"\0" * 60_000), 1) for _ in range(1500))
    )
    before = compression.OPENED[0]
    assert refusal(message(Plain(0, TIME, None, bomb), 1, GZIP)) == errors.CORRUPT_MESSAGE
    opened = compression.OPENED[0] - before - 1500 * (3 << 10)
    assert opened <= compression.OUTPUT_CAP + compression.PIECE


@each_seed(60)
def test_damaged_sets_give_an_error_or_a_sound_batch(seed):
    rng = Random(seed)
    data, _ = random_set(rng, 0, 12, seed % 2)
    if seed % 3:  # one entry of it
        size = int.from_bytes(data[8:12], "big") + 12
        data = data[:size]
    codes = set()
    for _ in range(200):
        bad = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
        bad = bytes(bad[: rng.choice((len(bad), rng.randrange(len(bad) + 1)))])
        if not is_old_set(memoryview(bad), 0, len(bad)):
            continue
        try:
            batch, _ = raise_format(bad)
        except PeerError as refused:
            codes.add(refused.code)
        else:
            assert len(seen(batch)) == read_header(batch).record_count
    assert codes <= {
        *(errors.CORRUPT_MESSAGE, errors.INVALID_RECORD, errors.INVALID_TIMESTAMP),
        *(errors.MESSAGE_TOO_LARGE, errors.UNSUPPORTED_COMPRESSION_TYPE),
    }


def some_batches(rng, start):
    """Batches of every kind, and what an old consumer sees of them, as format 1."""
    made, all_seen, offset = [], [], start
    for _ in range(12):
        count = rng.randint(1, 6)
        kind = rng.choice(("plain", "plain", "control", "append"))
        codec = rng.choice((0, 0, GZIP, SNAPPY, LZ4))
        deltas, at = [], 0
        for _ in range(count):
            deltas.append(at)
            at += rng.randint(1, 3)
        records = [
            NewRecord(
                TIME + rng.randint(0, 99), rng.choice((None, b"", b"key")),
                rng.choice((None, b"", b"value " * 50)), ((b"h", b"1"),) * rng.randint(0, 2),
            )
            for _ in range(count)
        ]  # fmt: skip
        batch = build_batch(
            records, base_offset=offset, deltas=deltas, codec=codec, control=kind == "control",
            transactional=kind == "control", producer_id=4, producer_epoch=0, base_sequence=0,
            log_append_time=kind == "append",
        )  # fmt: skip
        made.append(batch)
        if kind != "control":
            all_seen += seen(batch)
        offset += at
    return made, all_seen


@each_seed(60)
def test_old_consumers_see_every_record(seed):
    rng = Random(seed)
    batches, whole = some_batches(rng, rng.choice((0, 5_000_000_000)))
    for magic in (0, 1):
        made = lower_format(magic, *batches, first=read_header(batches[0]).base_offset)
        expected = whole if magic else [one._replace(timestamp=-1) for one in whole]
        assert told(bytes(made.out)) == expected
        assert made.next_offset == read_header(batches[-1]).last_offset + 1


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4], ids=NAMES[1:4])
def test_what_was_produced_comes_back(magic, codec):
    some = [Plain(n, TIME + n if magic else -1, b"k", b"v" * n) for n in range(30)]
    batch, _ = raise_format(wrapper(some, magic, codec))
    made = bytes(lower_format(magic, batch).out)
    assert told(made) == some
    entry = read_entry(memoryview(made), 0, len(made))
    assert (entry.magic, entry.codec, entry.offset) == (magic, codec, 29)
    if codec == LZ4 and not magic:  # the checksum of its head is the wrong one, as readers have it
        assert mend_lz4(entry.value) != entry.value


def test_plain_records_before_the_fetch_offset_are_left_out():
    batch = build_batch([NewRecord(TIME, None, b"%d" % n) for n in range(9)], base_offset=50)
    assert [one.offset for one in told(bytes(lower_format(1, batch, first=55).out))] == [
        55,
        56,
        57,
        58,
    ]


def test_a_set_is_cut_at_its_limit():
    batch = build_batch([NewRecord(TIME, None, b"v" * 100) for _ in range(9)])
    made = lower_format(0, batch, most=300)
    assert len(made.out) == 300
    assert made.is_full
    assert made.next_offset == 0
    whole = lower_format(0, batch)
    assert bytes(whole.out[:300]) == bytes(made.out)


def test_zstd_cannot_be_told():
    with pytest.raises(PeerError) as found:
        lower_format(1, build_batch([NewRecord(TIME, None, b"v")], codec=ZSTD))
    assert found.value.code == errors.UNSUPPORTED_COMPRESSION_TYPE


def test_a_batch_with_fewer_records_than_it_states_is_told_as_damage():
    batch = bytearray(build_batch([NewRecord(TIME, None, b"v")] * 3))
    batch[57:61] = (9).to_bytes(4, "big")
    with pytest.raises(PeerError):
        lower_format(1, bytes(batch))
