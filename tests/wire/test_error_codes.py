"""The errors that an answer tells of: the same that the message of its values has."""

import dataclasses
from random import Random

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map

from appliance.handlers.fetch_sessions import FetchSessions
from appliance.handlers.registry import handlers
from appliance.ring.counters import CODES
from appliance.wire import error_codes
from appliance.wire.build import build
from appliance.wire.messages import layout_of, response_type

SOME = [0, 0, 0, -1, 3, 27, 87]
PLAIN = {
    "bool": False, "float64": 0.0, "string": "s", "bytes": b"b", "uuid": bytes(16),
}  # fmt: skip
SERVED = handlers(FetchSessions(0, lambda: 1))


def values_of(layout, rng):
    """Plain values for every field of a struct, with errors here and there."""
    values = {}
    for field in layout.fields:
        if field.nested is not None:
            if field.array:
                values[field.name] = [
                    values_of(field.nested, rng) for _ in range(rng.randint(0, 3))
                ]
            elif not field.nullable or rng.random() < 0.5:
                values[field.name] = values_of(field.nested, rng)
            else:
                values[field.name] = None
        elif field.name in ("error_code", "partition_error_code"):
            values[field.name] = rng.choice(SOME)
        else:
            one = PLAIN.get(field.kind, 7)
            values[field.name] = [one] if field.array else one
    return values


def codes_in(message):
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if isinstance(value, ErrorCode):
            yield int(value)
        for one in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(one):
                yield from codes_in(one)


@pytest.mark.parametrize("key", sorted(SERVED))
def test_they_are_found_in_every_answer_that_is_served(key):
    handler = SERVED[key]
    rng = Random(key)
    found = 0
    for version in range(handler.lowest, handler.highest + 1):
        cls = response_type(key, version)
        for _ in range(20):
            values = values_of(layout_of(cls), rng)
            wanted = [code for code in codes_in(build(cls, values)) if code]
            assert sorted(error_codes.collect_codes(key, version, values)) == sorted(wanted)
            found += len(wanted)
    assert found, f"no version of {api_key_map[key]} has an error"


def test_what_has_no_value_has_no_error():
    assert error_codes.collect_codes(8, 8, {"throttle_time": 0}) == []
    assert error_codes.collect_codes(3, 9, {"topics": None}) == []


def test_every_error_that_kafka_has_can_be_counted():
    assert min(ErrorCode) == -1 and max(ErrorCode) <= CODES - 2
