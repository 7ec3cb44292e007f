"""Dynamic settings of TLS: loaded before they are promised, told as Apache Kafka 4.3.1 does."""

import pytest
from test_controller_scenarios import Cluster

from appliance.base import errors
from appliance.base.errors import ConfigError
from appliance.controller import configs
from appliance.controller.config_resources import ConfigResource
from appliance.controller.configs import DELETE, SET, ConfigOperation
from appliance.metadata.effective import broker_config, explain_broker
from appliance.metadata.image import BROKER

LOCATION = "listener.name.ssl.ssl.keystore.location"
AUTH = "listener.name.ssl.ssl.client.auth"


class Node(Cluster):
    """One whose listener SSL takes every store but those that are named bad."""

    def __init__(self):
        super().__init__(
            listeners="PLAINTEXT://localhost:9092,SSL://localhost:9093",
            ssl_truststore_location="/t",
        )
        self.asked = []
        self.situation.showing = self.show

    def show(self, config, only):
        location = config.of_listener("SSL", "ssl.keystore.location")
        self.asked.append((location, only))
        if location == "/bad":
            raise ConfigError(f"{LOCATION}=/bad: it is empty")

    def set(self, key, value, name="1"):
        return self.alter(BROKER, name, ConfigOperation(key, SET, value))

    def told(self, key):
        rows = explain_broker(self.image, self.situation.config, 1)
        (row,) = [one for one in rows if one.name == key]
        return row


@pytest.fixture
def node():
    return Node()


def test_a_store_that_can_be_loaded_is_in_force(node):
    assert node.set(LOCATION, "/good") == (errors.NONE, "")
    assert node.asked == [("/good", {"ssl"})]
    config = broker_config(node.image, node.situation.config)
    assert config.of_listener("SSL", "ssl.keystore.location") == "/good"


def test_a_store_that_cannot_be_loaded_is_refused_with_why(node):
    code, text = node.set(LOCATION, "/bad")
    assert (code, text) == (errors.INVALID_REQUEST, f"{LOCATION}=/bad: it is empty")
    assert not node.image.config(BROKER, "1")


def test_setting_the_same_file_again_is_a_change(node):
    """Kafka's way of having it read again: every process hears of the record."""
    node.set(LOCATION, "/good")
    for value, count in (("/good", 1), ("/good", 1), ("/other", 1)):
        wanted = [(ConfigResource(BROKER, "1"), [ConfigOperation(LOCATION, SET, value)])]
        records, _ = configs.alter_incrementally(node.situation, wanted)
        assert [one.value for one in records] == [value] * count
    log = "log.cleaner.backoff.ms"
    node.set(log, "1")
    wanted = [(ConfigResource(BROKER, "1"), [ConfigOperation(log, SET, "1")])]
    assert configs.alter_incrementally(node.situation, wanted)[0] == []


def test_taking_a_setting_away_is_checked_as_well(node):
    node.set(LOCATION, "/good")
    node.asked.clear()
    assert node.alter(BROKER, "1", ConfigOperation(LOCATION, DELETE, None)) == (errors.NONE, "")
    assert node.asked == [(None, {"ssl"})]


def test_what_replaces_everything_is_checked_as_well(node):
    node.set(LOCATION, "/good")
    node.asked.clear()
    wanted = [(ConfigResource(BROKER, "1"), [("log.cleaner.backoff.ms", "1")])]
    records, [(_, result)] = configs.replace_all(node.situation, wanted)
    assert result.code == errors.NONE and node.asked == [(None, {"ssl"})]
    assert (LOCATION, None) in [(one.name, one.value) for one in records]


def test_a_word_of_all_listeners_is_checked_for_all(node):
    assert node.set("ssl.client.auth", "required") == (errors.NONE, "")
    assert node.asked == [(None, None)]


def test_a_listener_that_is_opened_is_checked(node):
    node.set("listeners", "PLAINTEXT://localhost:9092,SSL://localhost:9093,SSL_2://:9094")
    assert not node.asked, "the name stands for no protocol"
    assert node.set("listeners", "PLAINTEXT://localhost:9092") == (errors.NONE, "")
    assert node.asked == [(None, None)]


def test_other_settings_read_no_files(node):
    node.set("log.cleaner.backoff.ms", "1")
    assert not node.asked


@pytest.mark.parametrize(
    "key",
    ["ssl.keystore.location", "ssl.keystore.key", "ssl.truststore.certificates", "ssl.key.password",
     "penstock.ssl.key.location"],
)  # fmt: skip
def test_stores_are_set_for_one_listener_only(node, key):
    assert node.set(key, "x") == (
        errors.INVALID_REQUEST,
        "These security configs can be dynamically updated only per-listener using the listener"
        f" prefix: [{key}]",
    )


def test_a_store_is_set_for_one_node_only(node):
    code, text = node.set(LOCATION, "/good", name="")
    assert code == errors.INVALID_REQUEST and "broker id must be specified" in text


def test_words_of_one_listener_are_described_as_kafka_does(node):
    node.set(AUTH, "required")
    node.set("ssl.client.auth", "requested")
    row = node.told(AUTH)
    assert (row.value, row.source, row.read_only) == ("required", 2, True)
    assert row.synonyms == (
        (AUTH, "required", 2),
        ("ssl.client.auth", "requested", 2),
        ("ssl.client.auth", "none", 5),
    )
    trust = "listener.name.ssl.ssl.truststore.location"
    node.set(trust, "/u")
    assert node.told(trust).synonyms == ((trust, "/u", 2), ("ssl.truststore.location", "/t", 4))


def test_secrets_are_sensitive_whoever_set_them(node):
    key = "listener.name.ssl.ssl.keystore.password"
    node.set(key, "tops3cret")
    assert node.told(key).sensitive
