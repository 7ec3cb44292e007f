"""request_percentage in one process: where an answer tells its pause, and whose time is whose."""

import dataclasses
from types import SimpleNamespace

import pytest

from appliance.handlers import registry
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.netproc.connections.request_time import Stopwatch
from appliance.netproc.requests import throttle_field
from appliance.wire.build import response
from appliance.wire.messages import decode_response, encode_response, response_type

HANDLERS = registry.handlers(FetchSessions(1, lambda: 1))
APIS = [
    (key, version)
    for key, row in sorted(HANDLERS.items())
    for version in {row.lowest, row.highest, *range(row.lowest, row.highest + 1)}
]
KEYS = [{"api_key": n, "min_version": 0, "max_version": 3} for n in range(200)]


def least(cls):
    """The plainest values that a message of this class can be made of."""
    values = {}
    for item in dataclasses.fields(cls):
        kind = item.metadata.get("kafka_type", "")
        if item.name == "throttle_time":
            values[item.name] = 0
        elif item.name == "api_keys":
            values[item.name] = KEYS
        elif item.default is dataclasses.MISSING:
            plain = {"string": "", "bool": False, "uuid": bytes(16), "bytes": b""}
            array = "tuple" in str(item.type)
            values[item.name] = () if array else plain.get(kind, 0)
    return values


@pytest.mark.parametrize(("key", "version"), APIS)
def test_every_answer_that_can_tell_a_pause_tells_it(key, version):
    cls = response_type(key, version)
    answer = encode_response(response(key, version, least(cls)))
    changed = throttle_field.write_pause(key, version, answer, 1234)
    told = decode_response(key, version, changed)
    if not hasattr(told, "throttle_time"):
        assert changed == answer
        return
    assert told.throttle_time.total_seconds() == 1.234
    assert throttle_field.read_pause(key, version, changed) == 1234
    assert throttle_field.write_pause(key, version, changed, 0) == answer


class Clock:
    now = 0

    def monotonic_ns(self):
        return self.now


def test_time_is_billed_to_whom_it_was_spent_for():
    clock = Clock()
    watch = Stopwatch(clock)
    one, other = SimpleNamespace(spent_ns=0), SimpleNamespace(spent_ns=0)
    watch.begin_account(one)
    clock.now += 5
    assert watch.bill(one) == 5
    clock.now += 3  # after its answer was made: on the bill of the next one
    watch.begin_account(other)
    clock.now += 7
    assert watch.bill(one) == 3
    watch.end_account()
    clock.now += 100  # asleep
    watch.end_account()
    assert (watch.bill(one), watch.bill(other)) == (0, 7)
