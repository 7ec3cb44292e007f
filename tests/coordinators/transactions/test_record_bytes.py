"""Records of transactional ids by hand are those of the declared classes."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import MalformedRequest
from appliance.coordinators.runtime.records import encode_key, encode_value
from appliance.coordinators.transactions import routing
from appliance.coordinators.transactions.record_bytes import (
    NOBODY,
    EncodedPartitions,
    key_bytes,
    members,
    topic_bytes,
    value_bytes,
)
from appliance.coordinators.transactions.records import (
    RECORDS,
    WRITTEN,
    PartitionsOfTopic,
    TransactionLogKey,
    TransactionLogValue,
)
from appliance.coordinators.transactions.states import EMPTY, ONGOING, PREPARED, RESTING
from appliance.coordinators.transactions.transaction import Transaction, of_record
from appliance.wire.build import build
from appliance.wire.messages import encode_request, request_type

IDS = st.integers(-1, (1 << 63) - 1)
PARTITIONS = st.frozensets(
    st.tuples(st.sampled_from(("t", "topic-2", "ü" * 70)), st.integers(0, 300)), max_size=300
)


def declared(of):
    """As the class says it."""
    topics = {}
    for topic, index in sorted(of.partitions):
        topics.setdefault(topic, []).append(index)
    partitions = tuple(
        PartitionsOfTopic(topic=topic, partition_ids=tuple(found))
        for topic, found in topics.items()
    )
    return TransactionLogValue(
        producer_id=of.producer_id,
        previous_producer_id=of.previous_id,
        next_producer_id=of.next_id,
        producer_epoch=of.epoch,
        transaction_timeout=of.timeout_ms,
        transaction_status=of.state,
        transaction_partitions=None if of.state == EMPTY else partitions,
        last_update_timestamp=of.updated_ms,
        start_timestamp=of.started_ms,
        client_transaction_version=of.version,
    )


@given(
    st.builds(
        Transaction,
        producer_id=IDS,
        previous_id=IDS,
        next_id=IDS,
        epoch=st.integers(-1, 32_767),
        timeout_ms=st.integers(0, (1 << 31) - 1),
        state=st.sampled_from(sorted({EMPTY, ONGOING} | PREPARED | RESTING)),
        partitions=PARTITIONS,
        started_ms=st.integers(-1, 1 << 45),
        updated_ms=st.integers(-1, 1 << 45),
        version=st.integers(0, 2),
    )
)
def test_a_value_by_hand_is_the_declared_one(of):
    if of.state == EMPTY:
        of = of._replace(partitions=frozenset())
    assert value_bytes(of) == encode_value(declared(of), WRITTEN)
    _, found = RECORDS.decode(key_bytes("x"), value_bytes(of))
    assert of_record(found) == of


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_a_key_by_hand_is_the_declared_one(name):
    assert key_bytes(name) == encode_key(TransactionLogKey(transactional_id=name))


@given(st.lists(PARTITIONS, min_size=1, max_size=4), st.booleans())
def test_partitions_that_are_encoded_as_they_come_are_all_there(grown, encoded):
    partitions, known = frozenset(), NOBODY
    for more in grown:
        fresh = more - partitions
        partitions = partitions | more
        of = Transaction(1, -1, -1, 0, 1000, ONGOING, partitions, 5, 6, 2)
        ready = EncodedPartitions(
            fresh, len(fresh), b"".join(topic_bytes(t, [i]) for t, i in fresh)
        )
        known = members(known, of, ready if encoded else None) if partitions else NOBODY
        _, found = RECORDS.decode(key_bytes("x"), value_bytes(of, known))
        assert of_record(found) == of
        assert known.topics <= len(partitions)


@given(st.integers(1, 5), st.lists(st.tuples(st.text(max_size=9), PARTITIONS), max_size=5))
def test_a_request_of_brokers_is_split_by_its_bytes(partitions, transactions):
    rows = [
        {
            "transactional_id": name,
            "producer_id": 1,
            "producer_epoch": 2,
            "verify_only": True,
            "topics": [{"name": topic, "partitions": (index,)} for topic, index in its],
        }
        for name, its in transactions
    ]
    body = encode_request(build(request_type(24, 5), {"transactions": rows}))
    steps = routing.cut_adding(5, body, partitions)
    found = []
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found = end.value
            break
    assert found == routing.parts(24, 5, body, partitions)
    for cut in range(len(body)):
        with suppress(MalformedRequest):
            list(routing.cut_adding(5, body[:cut], partitions))
