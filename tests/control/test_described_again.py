"""DescribeConfigs of the broker is explained once, and anew when a setting changes."""

import pytest
from test_control_shell import Appliance

from appliance.config.broker import BrokerConfig
from appliance.handlers import answer_cache


@pytest.fixture
def appliance(tmp_path):
    one = Appliance(tmp_path)
    yield one
    one.close()


@pytest.fixture
def explained(monkeypatch):
    calls = []
    real = answer_cache.explain_broker

    def explain(*args):
        calls.append(args)
        return real(*args)

    monkeypatch.setattr(answer_cache, "explain_broker", explain)
    return calls


def described(appliance, *, synonyms=False, keys=None, version=4):
    row = {"resource_type": 4, "resource_name": "1", "configuration_keys": keys}
    fields = {"include_synonyms": synonyms, "include_documentation": False}
    [told] = appliance.ask(32, version, resources=[row], **fields).results
    assert told.error_code == 0
    return {one.name: one for one in told.configs}


def altered(appliance, name, value):
    entry = {"name": name, "config_operation": 0, "value": value}
    row = {"resource_type": 4, "resource_name": "1", "configs": [entry]}
    [told] = appliance.ask(44, 1, resources=[row], validate_only=False).responses
    assert told.error_code == 0


def test_it_is_explained_once(appliance, explained):
    first = described(appliance)
    assert described(appliance) == first
    assert described(appliance, synonyms=True).keys() == first.keys()
    assert described(appliance, keys=["log.dirs"]).keys() == {"log.dirs"}
    assert described(appliance, version=1).keys() == first.keys()
    assert len(explained) == 1


def test_a_change_is_seen_at_once(appliance, explained):
    assert described(appliance)["log.retention.ms"].value != "77"
    altered(appliance, "log.retention.ms", "77")
    assert described(appliance)["log.retention.ms"].value == "77"
    assert len(explained) == 2


def test_settings_that_are_read_again_are_seen_at_once(appliance):
    before = described(appliance)["log.retention.ms"].value
    entry = BrokerConfig.of({"log.retention.ms": "78"}).entry("log.retention.ms")
    appliance.config.renew({"log.retention.ms": entry})
    assert before != described(appliance)["log.retention.ms"].value == "78"


def test_many_different_questions_are_not_kept_all(appliance):
    for number in range(40):
        described(appliance, keys=["log.dirs", f"unknown-{number}"])
    cache = appliance.control._contexts.context().described
    assert len(cache._answers) == 16
