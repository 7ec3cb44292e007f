"""OffsetCommit and OffsetFetch by hand against the codec that is made of the schemas: every
version, whole messages, damaged ones, and what a fetch is split into."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import MalformedRequest
from appliance.coordinators.groups.offset_records import key_bytes, value_bytes
from appliance.coordinators.groups.records import (
    RECORDS,
    OffsetCommitKey,
    OffsetCommitValue,
)
from appliance.coordinators.groups.routing import parts
from appliance.coordinators.runtime.kind import partition_of
from appliance.coordinators.runtime.records import encode_key, encode_value
from appliance.wire import messages, own_batch, plain
from appliance.wire.build import build
from appliance.wire.fields import UNREADABLE
from appliance.wire.offset_messages import (
    COMMIT_VERSIONS,
    FETCH_VERSIONS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    uvarint,
)
from appliance.wire.records import NewRecord, build_batch

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20) | st.just("long" * 40)
IDS = st.binary(min_size=16, max_size=16) | st.just(bytes(16))
CODES = st.sampled_from([0, 3, 16, 25, 27])


def listed(of, most=3):
    return st.lists(st.fixed_dictionaries(of), max_size=most)


COMMITS = st.fixed_dictionaries(
    {
        "group_id": TEXT, "generation_id_or_member_epoch": I32, "member_id": TEXT,
        "group_instance_id": TEXT | st.none(),
        "topics": listed({
            "name": TEXT, "topic_id": IDS,
            "partitions": listed({
                "partition_index": I32, "committed_offset": I64, "committed_leader_epoch": I32,
                "committed_metadata": TEXT | st.none(),
            }),
        }),
    }
)  # fmt: skip
FETCHES = st.fixed_dictionaries(
    {
        "groups": listed({
            "group_id": TEXT, "member_id": TEXT | st.none(), "member_epoch": I32,
            "topics": st.none() | listed(
                {"name": TEXT, "topic_id": IDS, "partition_indexes": st.lists(I32, max_size=3)}
            ),
        }, 8),
        "require_stable": st.booleans(),
    }
)  # fmt: skip
COMMITTED = st.fixed_dictionaries(
    {
        "throttle_time": st.integers(0, 1000),
        "topics": listed({
            "name": TEXT, "topic_id": IDS,
            "partitions": listed({"partition_index": I32, "error_code": CODES}),
        }),
    }
)  # fmt: skip
FETCHED = st.fixed_dictionaries(
    {
        "throttle_time": st.integers(0, 1000),
        "groups": listed({
            "group_id": TEXT, "error_code": CODES,
            "topics": listed({
                "name": TEXT, "topic_id": IDS,
                "partitions": listed({
                    "partition_index": I32, "committed_offset": I64,
                    "committed_leader_epoch": I32, "metadata": TEXT, "error_code": CODES,
                }),
            }),
        }, 200),
    }
)  # fmt: skip
REQUESTS = st.one_of(
    st.tuples(st.just(OFFSET_COMMIT), st.sampled_from(COMMIT_VERSIONS), COMMITS),
    st.tuples(st.just(OFFSET_FETCH), st.sampled_from(FETCH_VERSIONS), FETCHES),
)
ANSWERS = st.one_of(
    st.tuples(st.just(OFFSET_COMMIT), st.sampled_from(COMMIT_VERSIONS), COMMITTED),
    st.tuples(st.just(OFFSET_FETCH), st.sampled_from(FETCH_VERSIONS), FETCHED),
)


def by_schema(key, version, body):
    """What the codec made of kio's classes reads."""
    reader = messages._reader(messages.request_type(key, version))
    message, _ = reader(bytes(body), 0, [messages.ELEMENTS_MAX])
    return message


def body_of(key, version, values):
    return messages.encode_request(build(messages.request_type(key, version), values))


def same(mine, kios):
    """Whether every field of kio's object is in ours, with the same value."""
    if isinstance(kios, tuple):
        return len(mine) == len(kios) and all(map(same, mine, kios))
    if hasattr(kios, "__dataclass_fields__"):
        return all(
            (getattr(mine, name) == (bytes(16) if one is None else one.bytes))
            if name == "topic_id"
            else same(getattr(mine, name), one)
            for name, one in ((f.name, getattr(kios, f.name)) for f in fields(kios))
        )
    return mine == kios


@given(REQUESTS, st.binary(max_size=3))
def test_a_request_is_read_as_its_schema_says(request_, rest):
    key, version, values = request_
    body = body_of(key, version, values)
    mine = messages.decode_request(key, version, body + rest)
    assert same(mine, by_schema(key, version, body))


@given(REQUESTS, st.data())
def test_damaged_bytes_are_refused_or_read_alike(request_, data):
    key, version, values = request_
    body = bytearray(body_of(key, version, values))
    for _ in range(data.draw(st.integers(1, 3))):
        if body:
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    del body[data.draw(st.integers(0, len(body))) :]
    try:
        kios = by_schema(key, version, body)
    except UNREADABLE:
        with pytest.raises(MalformedRequest):
            messages.decode_request(key, version, body)
    else:
        assert same(messages.decode_request(key, version, body), kios)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_more_elements_than_are_taken_are_refused(version):
    group = b"\x02g" + (b"\0\0\0\0\0" if version >= 9 else b"")
    topic = (b"i" * 16 if version >= 10 else b"\x02t") + b"\x01\0"
    count = messages.ELEMENTS_MAX // 2 + 1
    topics = uvarint(count + 1) + topic * count + b"\0"
    body = b"\x03" + (group + topics) * 2 + b"\0\0"
    with pytest.raises(MalformedRequest):
        messages.decode_request(OFFSET_FETCH, version, body)
    with pytest.raises(MalformedRequest):
        parts(OFFSET_FETCH, version, body, 50)


@given(ANSWERS)
def test_an_answer_is_written_as_its_schema_says(answer):
    key, version, values = answer
    out = []
    plain._writer_of(key, version)(out, values)
    assert plain.encode(key, version, values) == b"".join(out)


@given(st.sampled_from(FETCH_VERSIONS), FETCHES, st.sampled_from([1, 2, 50]), st.binary(max_size=2))
def test_a_fetch_is_split_without_loss(version, values, partitions, rest):
    body = body_of(OFFSET_FETCH, version, values)
    whole = messages.decode_request(OFFSET_FETCH, version, body)
    asked = parts(OFFSET_FETCH, version, body + rest, partitions)
    wanted = {}
    for group in whole.groups:
        wanted.setdefault(partition_of(group.group_id, partitions), []).append(group)
    assert [partition for partition, _ in asked] == (sorted(wanted) or [0])
    for partition, part in asked:
        found = messages.decode_request(OFFSET_FETCH, version, part)
        kios = by_schema(OFFSET_FETCH, version, part)
        assert same(found, kios)
        assert found.require_stable == whole.require_stable
        names = [group.group_id for group in wanted.get(partition, ())]
        assert [group.group_id for group in found.groups] == names


# Records and their batch --------------------------------------------------------------------------


@given(TEXT, TEXT, I32, I64, I32, TEXT, I64, IDS)
def test_a_commit_is_recorded_as_its_schema_says(
    group, topic, partition, offset, epoch, metadata, time, topic_id
):
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    value = OffsetCommitValue(
        offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=time,
        topic_id=topic_id,
    )  # fmt: skip
    assert key_bytes(key) == encode_key(key)
    assert value_bytes(value) == encode_value(value, 4)
    assert RECORDS.decode(key_bytes(key), value_bytes(value)) == (key, value)


LENGTHS = st.sampled_from([0, 1, 62, 63, 64, 127, 128, 8191, 8192, 9000])


@given(
    st.lists(st.tuples(LENGTHS, st.none() | LENGTHS), min_size=1, max_size=5)
    | st.integers(60, 140).map(lambda count: [(3, 4)] * count),
    st.integers(0, 1 << 45),
    st.none() | st.tuples(st.integers(0, 1 << 62), st.integers(0, 32_767)),
    st.booleans(),
)
def test_a_batch_of_our_own_is_a_batch(lengths, timestamp, producer, control):
    records = [(b"k" * key, None if value is None else b"v" * value) for key, value in lengths]
    whose = {} if producer is None else {"transactional": True}
    if producer is not None:
        whose |= {"producer_id": producer[0], "producer_epoch": producer[1]}
    new = [NewRecord(timestamp, key, value) for key, value in records]
    built = build_batch(new, control=control, **whose)
    whose = producer or own_batch.NOBODY
    assert own_batch.build(records, timestamp, whose, control=control) == built
