"""A settings file read again: what has changed, and what of it holds at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.config.broker import BrokerConfig
from appliance.config.broker_settings import BROKER
from appliance.config.setting import READ_ONLY
from appliance.config.settings_reload import changes_at_once, compare, decode, encode, taken


def config(**values):
    return BrokerConfig.of({key.replace("_", "."): value for key, value in values.items()})


@pytest.mark.parametrize(
    ("key", "at_once"),
    [
        ("log.retention.ms", True),
        ("log.retention.hours", True),  # another name of log.retention.ms
        ("log.roll.hours", True),
        ("max.connections", True),
        ("num.io.threads", True),  # it has no effect
        ("listeners", False),  # IncrementalAlterConfigs opens them
        ("node.id", False),
        ("num.partitions", False),
        ("log.dirs", False),
        ("log.dir", False),
    ],
)
def test_what_may_change_while_the_broker_runs(key, at_once):
    assert changes_at_once(key) is at_once


def test_whatever_kafka_changes_dynamically_is_taken():
    late = [
        key for key, one in BROKER.items() if one.mode != READ_ONLY and not changes_at_once(key)
    ]
    assert late == ["listeners", "listener.security.protocol.map"]  # IncrementalAlterConfigs


def test_values_are_compared_not_texts():
    old = config(log_retention_ms="1000", num_partitions="1", max_connections=" 7")
    new = config(log_retention_ms=" 1000 ", max_connections="8")
    (one,) = compare(old, new)
    assert one == ("max.connections", "7", "8", True)
    assert str(one) == "max.connections: 7 → 8"
    assert compare(new, config(log_retention_ms="1000")) == [
        ("max.connections", "8", str(BROKER["max.connections"].default), True)
    ]


def test_a_secret_is_named_and_not_told():
    secret = next(key for key, one in BROKER.items() if one.sensitive)
    (one,) = compare(BrokerConfig(), BrokerConfig.of({secret: "hunter2"}))
    assert (one.key, one.before, one.after) == (secret, "(hidden)", "(hidden)")


def test_what_holds_at_once_goes_to_every_process():
    old = config(log_retention_hours="1", listeners="A://:1", max_connections="5")
    new = config(log_retention_hours="2", listeners="A://:2")
    entries = taken(new, compare(old, new))
    assert decode(encode(entries)) == entries
    kept = old.over({})
    old.renew(entries)
    assert old.int("log.retention.ms") == 7_200_000
    assert old.entry("max.connections") is None
    assert old.list("listeners") == ("A://:1",)
    assert kept.int("max.connections") == 5, "a configuration made of it is one of its own"


SETTINGS = st.dictionaries(
    st.sampled_from(["log.retention.ms", "log.retention.hours", "max.connections", "log.roll.ms"]),
    st.integers(1, 9).map(str),
)


@given(st.lists(SETTINGS, min_size=1))
def test_after_each_reload_nothing_is_left_that_is_another_one(files):
    running = BrokerConfig()
    for texts in files:
        new = BrokerConfig.of(texts)
        running.renew(decode(encode(taken(new, compare(running, new)))))
        assert compare(running, new) == []
        for key in ("log.retention.ms", "max.connections", "log.roll.ms"):
            assert running.get_value(key) == new.get_value(key)
