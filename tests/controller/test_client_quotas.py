"""AlterClientQuotas and DescribeClientQuotas as scripts over a replayed image."""

import math

import pytest

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.controller.quotas import (
    ANY,
    DEFAULT,
    EXACT,
    Component,
    QuotaOperation,
    alter_quotas,
    describe_quotas,
)
from appliance.metadata.image import MetadataImage
from appliance.metadata.record_versions import encode
from appliance.wire import kraft_records as kraft

U, C, IP = "user", "client-id", "ip"
RATE = "producer_byte_rate"


def put(key, value):
    return QuotaOperation(key, value, False)


def drop(key):
    return QuotaOperation(key, 0.0, True)


class Cluster:
    def __init__(self):
        self.image = MetadataImage()
        self.offset = 0

    def alter(self, *wanted):
        records, results = alter_quotas(self.image, wanted)
        for record in records:
            self.image.apply(self.offset, kraft.decode(encode(record, 30)))
            self.offset += 1
        return len(records), [one.code for one in results]

    def refuse(self, parts, *operations):
        [result] = alter_quotas(self.image, [(parts, operations)])[1]
        assert result.code == errors.INVALID_REQUEST
        return result.message


def test_set_change_leave_and_remove():
    cluster = Cluster()
    both = [(U, "u"), (C, None)]
    assert cluster.alter((both, [put(RATE, 1024.0), put("request_percentage", 12.5)])) == (2, [0])
    assert cluster.alter((both[::-1], [put(RATE, 1024.0)])) == (0, [0])
    assert cluster.alter((both, [put(RATE, 2048.0), drop("consumer_byte_rate")])) == (1, [0])
    [(entity, quotas)] = cluster.image.quotas.items()
    assert dict(entity) == {U: "u", C: None}
    assert quotas == {RATE: 2048.0, "request_percentage": 12.5}
    assert cluster.alter((both, [drop(RATE), drop("request_percentage")])) == (2, [0])
    assert cluster.image.quotas == {}


def test_one_bad_entity_does_not_hold_up_another():
    cluster = Cluster()
    bad = ([(U, "u")], [put(RATE, 5.0), put("nonsense", 1.0)])
    good = ([(C, "c")], [put(RATE, 5.0)])
    assert cluster.alter(bad, good) == (1, [errors.INVALID_REQUEST, 0])
    assert list(cluster.image.quotas) == [((C, "c"),)]
    assert cluster.alter(good, good) == (0, [errors.INVALID_REQUEST] * 2)


@pytest.mark.parametrize(
    ("parts", "operation", "said"),
    [
        ([], put(RATE, 1.0), "empty"),
        ([("group", "g")], put(RATE, 1.0), "Unhandled"),
        ([(U, "")], put(RATE, 1.0), "Empty user"),
        ([(U, "a"), (U, "b")], put(RATE, 1.0), "twice"),
        ([(U, "a"), (IP, "10.0.0.1")], put(RATE, 1.0), "IP entity shouldnot be combined"),
        ([(IP, "10.0.0.300")], put("connection_creation_rate", 1.0), "valid IP"),
        ([(IP, None)], put(RATE, 1.0), "connection_creation_rate"),
        ([(U, "a")], put("connection_creation_rate", 1.0), "Invalid configuration key"),
        ([(U, "a")], put(RATE, 0.0), "greater than 0"),
        ([(U, "a")], put(RATE, math.nan), "greater than 0"),
        ([(U, "a")], put(RATE, math.inf), "greater than 0"),
        ([(U, "a")], put(RATE, 1.5), "cannot be a fractional value"),
        ([(U, "a")], put(RATE, 1e30), "too large"),
        ([(IP, None)], put("connection_creation_rate", 3e9), "too large"),
    ],
)
def test_what_is_refused_says_why(parts, operation, said):
    assert said in Cluster().refuse(parts, operation)


def test_a_kind_named_twice_is_refused():
    assert "twice" in Cluster().refuse([(U, "a")], put(RATE, 1.0), drop(RATE))


@pytest.fixture
def several():
    cluster = Cluster()
    entities = [[(U, "u")], [(U, None)], [(U, "u"), (C, "c")], [(C, "c")]]
    cluster.alter(*((parts, [put(RATE, 1.0)]) for parts in entities))
    cluster.alter(([(IP, "10.0.0.1")], [put("connection_creation_rate", 7.0)]))
    return cluster.image


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, 5),
        ([], True, 0),
        ([Component(U, EXACT, "u")], False, 2),
        ([Component(U, EXACT, "u")], True, 1),
        ([Component(U, DEFAULT, None)], False, 1),
        ([Component(U, ANY, None)], False, 3),
        ([Component(U, ANY, None)], True, 2),
        ([Component(U, ANY, None), Component(C, EXACT, "c")], True, 1),
        ([Component(IP, ANY, None)], True, 1),
        ([Component(C, EXACT, "d")], False, 0),
    ],
)
def test_filters(several, components, strict, found):
    assert len(describe_quotas(several, components, strict)) == found


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([Component("group", ANY, None)], errors.UNSUPPORTED_VERSION),
        ([Component("", ANY, None)], errors.INVALID_REQUEST),
        ([Component(U, 3, None)], errors.INVALID_REQUEST),
        ([Component(U, EXACT, None)], errors.INVALID_REQUEST),
        ([Component(U, ANY, "u")], errors.INVALID_REQUEST),
        ([Component(U, ANY, None)] * 2, errors.INVALID_REQUEST),
        ([Component(U, ANY, None), Component(IP, ANY, None)], errors.INVALID_REQUEST),
    ],
)
def test_filters_that_make_no_sense(components, code):
    with pytest.raises(PeerError) as refused:
        describe_quotas(MetadataImage(), components, False)
    assert refused.value.code == code
