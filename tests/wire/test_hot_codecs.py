"""The hand-written Produce and Fetch codecs against kio's generated ones, for every version."""

import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema

from appliance.base.errors import MalformedRequest
from appliance.wire import fetch, messages, produce
from appliance.wire.build import build
from appliance.wire.produce import PartitionAnswer

PRODUCE_VERSIONS = range(produce.FIRST_BATCHES, produce.HIGHEST + 1)
FETCH_VERSIONS = range(fetch.FIRST_BATCHES, fetch.HIGHEST + 1)

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)
topic_ids = st.binary(min_size=16, max_size=16).filter(any)
i32 = st.integers(-(2**31), 2**31 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
times = st.just(-1) | st.integers(0, 2**41)  # what kio can hold as a date


def encode_request(key: int, version: int, values: dict) -> bytes:
    return messages.encode_request(build(load_request_schema(key, version), values))


produce_topics = st.lists(
    st.tuples(
        names,
        topic_ids,
        st.lists(st.tuples(i32, st.binary(max_size=40) | st.none()), max_size=3),
    ),
    max_size=3,
)


def produce_values(acks: int, timeout_ms: int, topics: list) -> dict:
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout": timeout_ms,
        "topic_data": [
            {
                "name": name,
                "topic_id": topic_id,
                "partition_data": [{"index": index, "records": data} for index, data in rows],
            }
            for name, topic_id, rows in topics
        ],
    }


def finish(steps):
    """What a generator returns in the end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@given(
    version=st.sampled_from(PRODUCE_VERSIONS),
    acks=st.sampled_from([-1, 0, 1]),
    timeout_ms=st.integers(0, 2**31 - 1),
    topics=produce_topics,
    before=st.binary(max_size=9),
    after=st.binary(max_size=9),
)
def test_produce_request_says_what_kio_wrote(version, acks, timeout_ms, topics, before, after):
    body = encode_request(0, version, produce_values(acks, timeout_ms, topics))
    memory = memoryview(before + body + after)
    request = produce.parse(memory, len(before), len(before) + len(body), version)
    assert (request.acks, request.timeout_ms) == (acks, timeout_ms)
    asked = [
        (topic_id if version >= 13 else name.encode(), index, data)
        for name, topic_id, rows in topics
        for index, data in rows
    ]
    found = [
        (b.topic, b.partition, None if b.length < 0 else bytes(memory[b.position :][: b.length]))
        for b in request.batches
    ]
    assert found == asked
    sliced = produce.parse_in_slices(memory, len(before), len(before) + len(body), version, 1000)
    assert finish(sliced) == request


@given(version=st.sampled_from(PRODUCE_VERSIONS), topics=produce_topics, data=st.data())
def test_produce_request_cut_anywhere_is_refused(version, topics, data):
    body = encode_request(0, version, produce_values(1, 5, topics))
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(MalformedRequest):
        produce.parse(memoryview(body), 0, cut, version)
    with pytest.raises(MalformedRequest):
        produce.parse(memoryview(body + b"\0"), 0, len(body) + 1, version)
    with pytest.raises(MalformedRequest):
        finish(produce.parse_in_slices(memoryview(body), 0, cut, version, 1000))
    with pytest.raises(MalformedRequest):
        finish(produce.parse_in_slices(memoryview(body + b"\0"), 0, len(body) + 1, version, 1000))


@given(version=st.sampled_from(PRODUCE_VERSIONS), topics=produce_topics, data=st.data())
def test_produce_response_is_what_kio_reads(version, topics, data):
    body = encode_request(0, version, produce_values(1, 5, topics))
    request = produce.parse(memoryview(body), 0, len(body), version)
    errors = st.sampled_from([0, 2, 10, 87])
    answers = [
        PartitionAnswer(
            data.draw(errors), data.draw(i64), data.draw(times), data.draw(i64),
            data.draw(st.none() | st.text(max_size=20)),
        )
        for _ in request.batches
    ]  # fmt: skip
    encoded = produce.encode(request, answers, version, 7)
    assert finish(produce.encode_in_slices(request, answers, version, 7)) == encoded
    answer = messages.decode_response(0, version, encoded)
    assert answer.throttle_time == timedelta(milliseconds=7)
    flat = [row for topic in answer.responses for row in topic.partition_responses]
    for row, batch, given_answer in zip(flat, request.batches, answers, strict=True):
        assert (row.index, int(row.error_code)) == (batch.partition, given_answer.error)
        assert row.base_offset == given_answer.base_offset
        if version >= 5:
            assert row.log_start_offset == given_answer.log_start_offset
        if version >= 8:
            assert row.error_message == given_answer.message


fetch_topics = st.lists(
    st.tuples(names, topic_ids, st.lists(st.tuples(i32, i32, i64, i32), max_size=3)), max_size=3
)


def fetch_values(topics: list, forgotten: list, session: tuple[int, int]) -> dict:
    return {
        "replica_id": 5,
        "replica_state": {"replica_id": 5, "replica_epoch": 9},
        "max_wait": 500,
        "min_bytes": 1,
        "max_bytes": 1000,
        "isolation_level": 1,
        "session_id": session[0],
        "session_epoch": session[1],
        "rack_id": "here",
        "topics": [
            {
                "topic": name,
                "topic_id": topic_id,
                "partitions": [
                    {
                        "partition": partition,
                        "current_leader_epoch": epoch,
                        "fetch_offset": offset,
                        "log_start_offset": offset // 2,
                        "partition_max_bytes": size,
                        "last_fetched_epoch": epoch // 2,
                    }
                    for partition, epoch, offset, size in rows
                ],
            }
            for name, topic_id, rows in topics
        ],
        "forgotten_topics_data": [
            {"topic": name, "topic_id": topic_id, "partitions": [row[0] for row in rows]}
            for name, topic_id, rows in forgotten
        ],
    }


@given(
    version=st.sampled_from(FETCH_VERSIONS),
    topics=fetch_topics,
    forgotten=fetch_topics,
    session=st.tuples(i32, i32),
    before=st.binary(max_size=9),
)
def test_fetch_request_says_what_kio_wrote(version, topics, forgotten, session, before):
    body = encode_request(1, version, fetch_values(topics, forgotten, session))
    memory = memoryview(before + body)
    request = fetch.parse(memory, len(before), len(memory), version)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 1000)
    assert request.read_committed
    assert (request.replica_id, request.replica_epoch) == (5, 9 if version >= 15 else -1)
    key = (lambda name, topic_id: topic_id) if version >= 13 else (lambda name, _: name.encode())
    asked = [
        (
            *(key(name, topic_id), partition, offset, size),
            epoch if version >= 9 else -1,
            epoch // 2 if version >= 12 else -1,
            offset // 2 if version >= 5 else -1,
        )
        for name, topic_id, rows in topics
        for partition, epoch, offset, size in rows
    ]
    assert [tuple(p) for p in request.partitions] == asked
    if version >= 7:
        assert (request.session_id, request.session_epoch) == session
        assert request.forgotten == [
            (key(name, topic_id), row[0]) for name, topic_id, rows in forgotten for row in rows
        ]


@given(version=st.sampled_from(FETCH_VERSIONS), topics=fetch_topics, data=st.data())
def test_fetch_request_cut_anywhere_is_refused(version, topics, data):
    body = encode_request(1, version, fetch_values(topics, topics, (0, -1)))
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(MalformedRequest):
        fetch.parse(memoryview(body), 0, cut, version)
    with pytest.raises(MalformedRequest):
        fetch.parse(memoryview(body + b"\0"), 0, len(body) + 1, version)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_response_is_what_kio_reads(version):
    topic = bytes(range(16)) if version >= 13 else b"flights"
    rows = [
        (fetch.PartitionData(topic, 0, 0, 9, 9, 1, 5), b"12345"),
        (fetch.PartitionData(topic, 1, 1, -1, -1, -1, 0), b""),
    ]
    out = fetch.top(version, 0, 0, 77, 1) + fetch.topic_head(version, topic, 2)
    for data, records in rows:
        out += fetch.partition_head(version, data) + records + fetch.tail(version)
    out += fetch.tail(version) + fetch.tail(version)
    answer = messages.decode_response(1, version, out)
    if version >= 7:
        assert answer.session_id == 77
    (entry,) = answer.responses
    if version >= 13:
        assert entry.topic_id == uuid.UUID(bytes=topic)
    else:
        assert entry.topic == "flights"
    first, second = entry.partitions
    assert (first.high_watermark, bytes(first.records)) == (9, b"12345")
    assert (int(second.error_code), bytes(second.records or b"")) == (1, b"")
