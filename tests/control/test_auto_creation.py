"""A client has only so many topics created in a minute by naming them, whatever its client id."""

import os

import pytest
from test_control_shell import Appliance

from appliance.base import errors
from appliance.control.requests.auto_creation import SETTING, AutoCreations
from tests.callers import caller

MINUTE_NS = 60_000_000_000


class Still:
    now_ns = 10**9

    def monotonic_ns(self):
        return self.now_ns


@pytest.fixture
def clock():
    return Still()


def test_a_minute_brings_as_many_back(clock):
    creations, who = AutoCreations(clock), caller()
    assert [creations.admit(who, 3) for _ in range(4)] == [True, True, True, False]
    clock.now_ns += MINUTE_NS // 3 + 1
    assert [creations.admit(who, 3) for _ in range(2)] == [True, False]


def test_another_client_id_is_the_same_client_and_another_address_is_not(clock):
    creations = AutoCreations(clock)
    assert creations.admit(caller("one"), 1)
    assert not creations.admit(caller("two"), 1)
    assert creations.admit(caller(address="10.0.0.9"), 1)


def test_what_is_kept_of_clients_is_bounded(clock):
    creations = AutoCreations(clock)
    for number in range(10_000):
        assert creations.admit(caller(address=str(number)), 2)
    assert len(creations._used) <= 4096


def test_a_request_that_names_many_topics_is_told_once(tmp_path):
    one = Appliance(tmp_path, {SETTING: "3"})
    try:
        codes = [one.ensure(f"t{number}") for number in range(8)]
        assert codes == [errors.NONE] * 3 + [errors.UNKNOWN_TOPIC_OR_PARTITION] * 5
        logged = os.pread(one.fd, 1 << 20, 0).decode().splitlines()
        told = [line for line in logged if "topic-not-created" in line]
        assert len(told) == 1
        assert SETTING in told[0]
    finally:
        one.close()
