"""The answer of DescribeProducers that is put together by hand is the one that kio makes."""

from appliance.wire import producers
from appliance.wire.build import response
from appliance.wire.messages import encode_response
from appliance.wire.producers import DescribedProducers

FIELDS = (
    "producer_id",
    "producer_epoch",
    "last_sequence",
    "last_timestamp",
    "coordinator_epoch",
    "current_txn_start_offset",
)


def plain(one):
    """A row's pieces as fields."""
    rows = producers.ROW.iter_unpack(b"".join(one.rows))
    return {
        "partition_index": one.partition,
        "error_code": one.code,
        "error_message": one.message,
        "active_producers": [dict(zip(FIELDS, row, strict=True)) for row in rows],
    }


def test_it_is_the_answer_that_kio_makes():
    rows = [(n, n % 7, n * 3, 1_700_000_000_000 + n, -1, n or -1) for n in range(300)]
    cut = producers.encode(rows[:9])
    some = DescribedProducers(3, 0, None, [cut[:100], cut[100:], producers.encode(rows[9:])])
    refused = DescribedProducers(2**31 - 1, 3, "This server does not h\u00f6st it", ())
    topics = [
        ("t", [some, refused]),
        ("none", []),
        ("x" * 249, [DescribedProducers(0, 0, None, ())]),
    ]
    values = {
        "throttle_time": 0,
        "topics": [
            {"name": name, "partitions": [plain(one) for one in told]} for name, told in topics
        ],
    }
    expected = encode_response(response(61, 0, values))
    assert b"".join(producers.answer(topics)) == expected
    assert b"".join(producers.answer([])) == encode_response(
        response(61, 0, {"throttle_time": 0, "topics": []})
    )
