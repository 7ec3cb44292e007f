"""Which settings of tiered storage fit together, for the broker and for a topic, and that a cluster
of several nodes has none of it."""

from dataclasses import replace

import pytest
from brokers import Brokers

from appliance.base.errors import INVALID_REGISTRATION, ConfigError, PeerError
from appliance.config.broker import BrokerConfig
from appliance.config.load import load
from appliance.config.log_config import LogConfig
from appliance.config.tiering_checks import check_store, check_tiered_topic, is_store_url
from appliance.metadata.image import TOPIC
from appliance.wire import kraft_records as kraft

ENABLED = {"remote.log.storage.system.enable": "true"}
URL = {"penstock.remote.storage.url": "s3://bucket/prefix"}
TIERED = LogConfig(remote_storage_enable=True)


@pytest.mark.parametrize(
    ("url", "right"),
    [
        ("file:///srv/remote", True), ("s3://bucket", True), ("s3://bucket/a/b", True),
        ("file:///", False), ("file://srv", False), ("s3://", False), ("s3:///x", False),
        ("/srv/remote", False), ("gs://bucket", False), ("", False),
    ],
)  # fmt: skip
def test_which_urls_a_store_can_have(url, right):
    assert is_store_url(url) is right


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ENABLED, "penstock.remote.storage.url is not set"),
        (ENABLED | {"penstock.remote.storage.url": "ftp://x"}, "ftp://x is not file:///FOLDER"),
        ({"penstock.remote.storage.url": "srv"}, "srv is not file:///FOLDER"),
        (ENABLED | URL | {"log.dirs": "/a,/b"}, "log.dirs has several"),
        (ENABLED | URL | {"controller.quorum.voters": "0@a:1,1@b:1,2@c:1", "node.id": "0"},
         "for one node alone"),
    ],
)  # fmt: skip
def test_what_keeps_an_appliance_from_tiering_is_said_at_the_start(settings, words):
    with pytest.raises(ConfigError, match=words):
        list(check_store(BrokerConfig.of(settings)))


@pytest.mark.parametrize("url", ["s3://id:canary@bucket/prefix", "s3://bucket/p?secret=canary"])
def test_credentials_are_no_part_of_a_stores_url_and_are_not_shown(url):
    """Whoever may describe the broker's settings sees it."""
    with pytest.raises(ConfigError, match="neither user nor query") as refused:
        load("", ENABLED | {"penstock.remote.storage.url": url})
    assert "canary" not in str(refused.value)


def test_the_settings_file_is_checked_for_it():
    load("", ENABLED | URL)
    with pytest.raises(ConfigError, match=r"penstock\.remote\.storage\.url is not set"):
        load("", ENABLED)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"compact": True}, "only supports topics with cleanup.policy=delete"),
        ({"retention_bytes": 10, "local_retention_bytes": 11}, "more than retention.bytes"),
        ({"retention_bytes": 10, "local_retention_bytes": -1}, "-1 as retention.bytes value"),
        ({"retention_ms": 10, "local_retention_ms": 11}, "more than retention.ms"),
        ({"remote_log_copy_disable": True, "retention_ms": 10, "local_retention_ms": 9},
         "local.retention.ms. and .retention.ms. must be set to the identical value"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_tiered_topic(changes, words):
    with pytest.raises(ConfigError, match=words):
        check_tiered_topic(replace(TIERED, **changes), False, True, 1)


def test_what_fits_a_tiered_topic_and_what_turns_it_off():
    fits = replace(TIERED, retention_ms=10, local_retention_ms=10, remote_log_copy_disable=True)
    for rules in (TIERED, fits, replace(TIERED, retention_bytes=-1, local_retention_bytes=5)):
        check_tiered_topic(rules, True, True, 1)
    with pytest.raises(ConfigError, match="Tiered Storage functionality is disabled"):
        check_tiered_topic(TIERED, False, False, 1)
    with pytest.raises(ConfigError, match="this cluster has 3 brokers"):
        check_tiered_topic(TIERED, False, True, 3)
    off = LogConfig(compact=True, local_retention_ms=5, retention_ms=1)
    check_tiered_topic(off, False, False, 3)
    with pytest.raises(ConfigError, match="without deleting remote data"):
        check_tiered_topic(off, True, True, 1)
    check_tiered_topic(replace(off, remote_log_delete_on_disable=True), True, True, 1)


def test_no_second_node_joins_while_a_topic_is_tiered():
    cluster = Brokers(1)
    cluster.create("t", [1])
    setting = kraft.ConfigRecord(
        resource_type=TOPIC, resource_name="t", name="remote.storage.enable", value="true"
    )
    cluster.replay([setting])
    cluster.register(1)  # a restart is no other node
    with pytest.raises(PeerError, match="topic t has remote") as refused:
        cluster.register(2)
    assert refused.value.code == INVALID_REGISTRATION
    cluster.replay([replace(setting, value="false")])
    cluster.register(2)
