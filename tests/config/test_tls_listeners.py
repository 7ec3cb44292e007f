"""Which listeners may speak TLS, whose words hold there, and what has no effect."""

import pytest

from appliance.base.errors import ConfigError
from appliance.certificates.settings import of_listener
from appliance.config import between_nodes, kept_listeners
from appliance.config.broker import DYNAMIC, BrokerConfig
from appliance.config.listener_settings import is_tls, key_of, setting_of, split
from appliance.config.setting import PASSWORD, PER_BROKER
from appliance.config.settings_reload import changes_at_once, compare, decode, encode, taken
from tests.config.loading import examine, load

STORE = {"listener.name.ssl.ssl.keystore.location": "/x.pem"}
NODE = {
    "node.id": "1",
    "controller.quorum.voters": "1@one.host:9093,2@two.host:9093,3@three.host:9093",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


def warnings(settings):
    return load(None, settings)[1]


def refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        load(None, settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"listeners": "SSL://0.0.0.0:9093"},
        {"listeners": "PLAINTEXT://localhost:9092,SSL://0.0.0.0:9093"},
        {
            "listeners": "OUTSIDE://:9093",
            "listener.security.protocol.map": "OUTSIDE:SSL",
            "listener.name.outside.ssl.keystore.location": "/x",
        },
    ],
)
def test_a_listener_for_clients_may_speak_tls(settings):
    words = STORE if "OUTSIDE" not in settings["listeners"] else {}
    assert warnings(settings | words) == []


def test_of_the_stores_a_listener_with_logins_asks_for_no_certificate_unless_it_says_so():
    words = STORE | {
        "listeners": "SSL://:0",
        "listener.security.protocol.map": "SSL:SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "ssl.client.auth": "required",
    }
    config, told = load(None, words)
    assert told == [] and of_listener(config, "SSL").client_auth == "none"
    own, _ = load(None, words | {"listener.name.ssl.ssl.client.auth": "required"})
    assert of_listener(own, "SSL").client_auth == "required"


# Nodes -------------------------------------------------------------------------------------------


MAPPED = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,CONTROLLER:"


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_controllers_speak_plaintext_or_tls(protocol):
    settings = NODE | {
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "listener.security.protocol.map": MAPPED + protocol,
    }
    assert warnings(settings) == []
    assert between_nodes.to_controllers(load(None, settings)[0]).protocol == protocol


def test_controllers_speak_nothing_else():
    settings = NODE | {
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "listener.security.protocol.map": MAPPED + "QUIC",
    }
    refused(settings, "Invalid security protocol 'QUIC' in 'CONTROLLER:QUIC'")


def test_a_node_that_has_others_needs_a_listener_for_them():
    settings = NODE | {"listeners": "SSL://:9092,CONTROLLER://:9093"} | STORE
    refused(settings, "the other nodes come by PLAINTEXT .* none of SSL stands for that: set")
    both = settings | {"listeners": "SSL://:9094,PLAINTEXT://:9092,CONTROLLER://:9093"}
    assert warnings(both) == []
    assert warnings(settings | {"security.inter.broker.protocol": "SSL"}) == []
    plain = NODE | {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}
    refused(plain | {"security.inter.broker.protocol": "SSL"}, "come by SSL .* none of PLAINTEXT")


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ({}, ("PLAINTEXT", "PLAINTEXT", "")),
        ({"inter.broker.listener.name": "PLAINTEXT"}, ("PLAINTEXT", "PLAINTEXT", "PLAINTEXT")),
        ({"inter.broker.listener.name": "SSL"}, ("SSL", "SSL", "SSL")),
        ({"security.inter.broker.protocol": "SSL"}, ("SSL", "SSL", "")),
        ({"security.inter.broker.protocol": "ssl"}, ("SSL", "SSL", "")),
    ],
)
def test_how_brokers_reach_one_another(said, way):
    settings = NODE | STORE | {"listeners": "SSL://:9094,PLAINTEXT://:9092,CONTROLLER://:9093"}
    config, remarks = load(None, settings | said)
    assert remarks == []
    assert between_nodes.to_brokers(config) == way


def test_name_and_protocol_between_brokers_are_not_set_both():
    settings = NODE | STORE | {"listeners": "SSL://:9094,PLAINTEXT://:9092,CONTROLLER://:9093"}
    both = {"inter.broker.listener.name": "SSL", "security.inter.broker.protocol": "SSL"}
    refused(settings | both, "Only one of inter.broker.listener.name and security.inter.broker")


def test_a_protocol_between_nodes_that_is_not_served_is_refused():
    settings = NODE | STORE | {"listeners": "SSL://:9094,PLAINTEXT://:9092,CONTROLLER://:9093"}
    protocol = settings | {"security.inter.broker.protocol": "QUIC"}
    refused(protocol, "security.inter.broker.protocol=QUIC: between nodes PLAINTEXT, SSL, SASL")
    login = settings | {"security.inter.broker.protocol": "SASL_SSL"}
    refused(login, "the other nodes come by SASL_SSL .* none of SSL, PLAINTEXT stands for that")


def test_who_is_alone_speaks_to_nobody():
    """As files of one Kafka broker with SSL alone have it."""
    settings = {"listeners": "SSL://:9093", "security.inter.broker.protocol": "SSL"} | STORE
    (words,) = warnings(settings)
    assert words.endswith("has no effect here: this node is alone")
    assert warnings({"listeners": "SSL://:9093", "inter.broker.listener.name": "SSL"} | STORE) == []


# Words of one listener ---------------------------------------------------------------------------


def test_a_listener_has_its_own_words_before_those_of_all():
    own = {"listener.name.ssl.ssl.client.auth": "required", "ssl.client.auth": "requested"}
    config, _ = load(None, own | STORE | {"listeners": "PLAINTEXT://:0,SSL://:0"})
    assert config.of_listener("SSL", "ssl.client.auth") == "required"
    assert config.of_listener("OTHER", "ssl.client.auth") == "requested"
    assert config.key_for("SSL", "ssl.client.auth") == key_of("SSL", "ssl.client.auth")
    assert config.of_listener("SSL", "ssl.enabled.protocols") == ("TLSv1.2", "TLSv1.3")


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("listener.name.ssl.ssl.client.auth", ("ssl", "ssl.client.auth")),
        ("listener.name.a-b_c.x", ("a-b_c", "x")),
        ("listener.name.ssl", None),
        ("listener.name..x", None),
        ("ssl.client.auth", None),
    ],
)
def test_a_key_of_one_listener_has_its_name_in_it(key, parts):
    assert split(key) == parts


def test_words_of_one_listener_are_declared_by_those_of_all():
    password = setting_of("listener.name.x.ssl.key.password")
    assert password.type == PASSWORD and password.mode == PER_BROKER and password.default is None
    assert setting_of("listener.name.x.ssl.principal.mapping.rules").mode == PER_BROKER
    assert setting_of("listener.name.x.num.partitions") is None
    assert setting_of("listener.name.x.ssl.nonsense") is None
    assert is_tls("listener.name.x.penstock.ssl.key.location") and is_tls("ssl.key.password")
    assert not is_tls("listener.name.x.plain.sasl.jaas.config") and not is_tls("log.dirs")


def test_a_wrong_value_of_one_listener_is_refused_with_its_line():
    text = "listeners=SSL://:0\nlistener.name.ssl.ssl.client.auth=maybe\n"
    _, remarks = examine(text, {})
    wrong = [one for one in remarks if one.wrong]
    assert [one.line for one in wrong] == [2]
    assert "listener.name.ssl.ssl.client.auth: String must be one of" in wrong[0].text


def test_a_secret_is_in_no_remark():
    text = "listeners=PLAINTEXT://:0\nlistener.name.ssl.ssl.key.password=tops3cret\n"
    assert "tops3cret" not in str(examine(text, {}))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("listener.name.SSL.ssl.client.auth", "in lower case there: listener.name.ssl.ssl.client"),
        ("listener.name.nope.ssl.client.auth", "there is no listener NOPE, only PLAINTEXT, SSL"),
        ("listener.name.plaintext.ssl.client.auth", "PLAINTEXT stands for PLAINTEXT, and does not"),
        ("listener.name.ssl.ssl.protocol", "ssl.enabled.protocols"),
        ("listener.name.ssl.num.partitions", "only TLS and logins can be set"),
    ],
)
def test_what_has_no_effect_is_warned_about(key, words):
    value = "3" if "partitions" in key else "none"
    (said,) = warnings(STORE | {"listeners": "PLAINTEXT://:0,SSL://:1", key: value})
    assert words in said


def test_words_of_tls_where_nothing_speaks_it_are_warned_about():
    (said,) = warnings({"ssl.keystore.location": "/x"})
    assert "no listener speaks TLS" in said


# Read again --------------------------------------------------------------------------------------


def test_words_of_tls_hold_without_a_restart():
    before, _ = load(None, STORE | {"listeners": "SSL://:0"})
    more = {"ssl.allow.dn.changes": "true", "listener.name.ssl.ssl.key.password": "tops3cret"}
    after, _ = load(None, more | {"listeners": "SSL://:0", "ssl.keystore.location": "/y"})
    changes = compare(before, after)
    assert {one.key for one in changes if one.at_once} == {*STORE, *more, "ssl.keystore.location"}
    assert "tops3cret" not in str(changes)
    assert changes_at_once("ssl.principal.mapping.rules")
    held = BrokerConfig({key: before.entry(key) for key in before.set_names()})
    held.renew(decode(encode(taken(after, changes))))
    assert held.of_listener("SSL", "ssl.keystore.location") == "/y"
    assert held.of_listener("SSL", "ssl.key.password") == "tops3cret"


def test_a_copy_that_is_renewed_leaves_the_original():
    config, _ = load(None, {"num.partitions": "3"})
    assert config.renewed({"num.partitions": None}).int("num.partitions") == 1
    assert config.int("num.partitions") == 3


def test_listeners_that_are_opened_later_may_speak_tls():
    config, _ = load(None, {"listeners": "PLAINTEXT://:9092"})
    kept_listeners.check(config, {}, {"listeners": "PLAINTEXT://:9092,SSL://:9093"})
    over = config.over({"listener.name.ssl.ssl.client.auth": "required"})
    assert over.entry("listener.name.ssl.ssl.client.auth").source == DYNAMIC
