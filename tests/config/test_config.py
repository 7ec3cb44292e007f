"""Settings: Kafka's files load, wrong values are refused in words that help, the strongest source
wins."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import ConfigError
from appliance.config import acl_checks
from appliance.config.broker import BrokerConfig
from appliance.config.broker_settings import BROKER
from appliance.config.effective import log_config, topic_value
from appliance.config.listeners import Endpoint, parse_endpoint
from appliance.config.log_config import LogConfig
from appliance.config.properties import parse_properties
from appliance.config.setting import TYPE_NAMES, shown
from appliance.config.topic_settings import BROKER_SYNONYM, TOPIC
from tests.config.loading import examine, load

STOCK = """
# a combined node, as Apache Kafka 4 ships it
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
log.dirs=/var/kraft-combined-logs
num.partitions=3
log.retention.hours=48
log.segment.bytes=1073741824
"""


def test_a_stock_file_of_kafka_loads():
    config, warnings = load(STOCK, {})
    assert config.endpoints() == [Endpoint("PLAINTEXT", "", 9092)]
    assert config.advertised("PLAINTEXT") == ("localhost", 9092)
    assert config.int("num.partitions") == 3
    assert config.int("log.retention.ms") == 48 * 3_600_000
    assert config.several and not config.joins, "others can come, and it begins by itself"
    assert not any("num.io.threads" in warning for warning in warnings), "8 is the default"


def test_unknown_keys_are_warned_about_with_a_guess_and_removed_ones_with_what_replaced_them():
    _, warnings = load("num.partition=3\nzookeeper.connect=localhost\nfoo.bar=1\n", {})
    assert "did you mean num.partitions?" in warnings[0]
    assert "ZooKeeper" in warnings[1]
    assert "foo.bar is not known" in warnings[2]


def test_the_command_line_wins_over_the_file():
    config, _ = load("num.partitions=3", {"num.partitions": "5"})
    assert config.int("num.partitions") == 5


SECURED = f"authorizer.class.name={acl_checks.STANDARD}\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("num.partitions=0", ["num.partitions", "value 0", "from 1"]),
        ("num.partitions=many", ["num.partitions", "value many", "whole number"]),
        ("auto.create.topics.enable=yes", ["auto.create.topics.enable", "true or false"]),
        ("log.cleanup.policy=shred", ["log.cleanup.policy", "compact, delete"]),
        ("log.segment.bytes=1", ["log.segment.bytes", "1048576"]),
        ("listeners=localhost", ["listeners", "PLAINTEXT://localhost:9092"]),
        ("listeners=PLAINTEXT://localhost:99999", ["listeners", "65535"]),
        ("listeners=SASL_SSL://localhost:9093", ["GSSAPI", "SASL_SSL", "SCRAM-SHA-512"]),
        ("listeners=OTHER://localhost:9093", ["OTHER", "no protocol", "PLAINTEXT", "SSL"]),
        ("ssl.client.auth=maybe", ["ssl.client.auth", "required, requested, none"]),
        ("listeners=CONTROLLER://:9093", ["controller"]),
        ("log.dirs=" + "/a," * 300, ["log.dirs", "at most 254"]),
        ("authorizer.class.name=x.Y", ["authorizer.class.name", "x.Y is not supported"]),
        (SECURED + "super.users=admin", ["super.users", "User:admin"]),
        (SECURED + "process.roles=broker\ncontroller.quorum.voters=1@a:1", ["User:ANONYMOUS"]),
        ("max.connections.per.ip.overrides=ten", ["ADDRESS:NUMBER"]),
        (
            "socket.request.max.bytes=200000000",
            ["socket.request.max.bytes", "penstock.arena.bytes", "134217728", "400000000"],
        ),
    ],
)
def test_a_wrong_value_is_refused_with_key_value_and_range(line, words):
    with pytest.raises(ConfigError) as refused:
        load(line, {})
    for word in words:
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (SECURED, "no principal may add the first ACL"),
        ("super.users=User:a", "super.users has no effect without authorizer.class.name"),
        ("allow.everyone.if.no.acl.found=true", "has no effect without authorizer.class.name"),
        (SECURED + "allow.everyone.if.no.acl.found=true", ""),
        (SECURED + "super.users=User:a;User:CN=b,O=c", ""),
    ],
)
def test_of_acls_it_is_said_what_they_lack(lines, words):
    config, told = load(lines, {})
    assert [one for one in told if words and words in one] == told
    assert bool(told) == bool(words)
    assert acl_checks.is_secured(config) == lines.startswith(SECURED)


def test_super_users_are_principals_with_semicolons_between_them():
    config, _ = load(SECURED + "super.users= User:a; User:CN=b,O=c ;", {})
    assert acl_checks.super_users(config) == ("User:a", "User:CN=b,O=c")


def test_what_is_set_while_running_wins():
    config, _ = load("num.partitions=3", {"max.connections": "9"})
    changed = config.over({"max.connections": "7"})
    assert (changed.int("max.connections"), changed.int("num.partitions")) == (7, 3)
    assert config.int("max.connections") == 9


def test_a_password_is_never_shown():
    setting = BROKER["ssl.keystore.password"]
    assert setting.sensitive
    assert "hunter2" not in str(setting._wrong("hunter2", "takes nothing"))


def test_defaults_are_within_their_own_ranges():
    for setting in (*BROKER.values(), *TOPIC.values()):
        text = shown(setting.default)
        if text is not None:
            assert setting.parse(text) == setting.default, setting.name
        assert setting.doc.endswith("."), setting.name


def test_topic_settings_resolve_strongest_first():
    config = BrokerConfig.of({"log.retention.bytes": "1"})
    sources = [{"retention.bytes": "4"}, {"log.retention.bytes": "3"}, {"log.retention.bytes": "2"}]
    for expected in (4, 3, 2, 1):
        assert topic_value("retention.bytes", *sources, config) == expected
        if expected > 1:
            sources[4 - expected] = {}
    assert topic_value("retention.bytes", {}, {}, {}, BrokerConfig()) == -1


def test_the_log_config_of_nobodys_wishes_is_its_default():
    assert log_config({}, {}, {}, BrokerConfig()) == LogConfig()


def test_cleanup_policies():
    both = log_config({"cleanup.policy": "compact,delete"}, {}, {}, BrokerConfig())
    assert both.compact
    assert both.delete
    for_ever = log_config({"cleanup.policy": ""}, {}, {}, BrokerConfig())
    assert not for_ever.compact
    assert not for_ever.delete


def test_every_topic_default_has_a_broker_setting():
    assert set(BROKER_SYNONYM.values()) <= set(BROKER)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PLAINTEXT://localhost:9092", Endpoint("PLAINTEXT", "localhost", 9092)),
        ("localhost:0", Endpoint("PLAINTEXT", "localhost", 0)),
        ("INTERNAL://[::1]:9092", Endpoint("INTERNAL", "::1", 9092)),
        ("PLAINTEXT://:9092", Endpoint("PLAINTEXT", "", 9092)),
    ],
)
def test_listener_texts(text, expected):
    assert parse_endpoint("listeners", text) == expected


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ("advertised.listeners", "takes NAME://HOST:PORT .* PLAINTEXT://localhost:9092$"),
        ("penstock.metrics.listener", "takes HOST:PORT .* example localhost:9092$"),
    ],
)
def test_what_is_no_address_is_told_what_its_setting_takes(key, shape):
    with pytest.raises(ConfigError, match=shape):
        parse_endpoint(key, "foo")


def test_properties_syntax_is_javas():
    text = "a=1\n b : 2\nc 3\n#x=y\n!z\nlong=one,\\\n   two\n"
    text += "key\\ with\\=signs=v\\tw\nu=\\u00e9\nempty=\nback=c:\\\\dir\n"
    assert [(key, value) for key, value, _ in parse_properties(text)] == [
        ("a", "1"), ("b", "2"), ("c", "3"), ("long", "one,two"), ("key with=signs", "v\tw"),
        ("u", "é"), ("empty", ""), ("back", "c:\\dir"),
    ]  # fmt: skip


@given(st.text())
def test_any_text_is_some_properties(text):
    for key, value, line in parse_properties(text):
        assert isinstance(key, str)
        assert isinstance(value, str)
        assert line >= 1


FACTS = list(
    csv.DictReader((Path(__file__).parent / "kafka_4_3_settings.csv").read_text().splitlines())
)
"""What Apache Kafka 4.3.1 prints about its own settings."""

OTHER_DEFAULTS = {
    *("node.id", "process.roles", "controller.listener.names", "log.dir", "log.flush.interval.ms"),
    *("listeners", "listener.security.protocol.map", "socket.listen.backlog.size"),
    "log.flush.offset.checkpoint.interval.ms",
    *("socket.send.buffer.bytes", "socket.receive.buffer.bytes"),
    *("offsets.topic.replication.factor", "transaction.state.log.replication.factor"),
    *("transaction.state.log.min.isr", "share.coordinator.state.topic.replication.factor"),
    *("share.coordinator.state.topic.min.isr", "group.initial.rebalance.delay.ms"),
    *("group.coordinator.rebalance.protocols", "metric.reporters", "principal.builder.class"),
    *("remote.log.metadata.manager.class.name", "log.cleaner.io.max.bytes.per.second"),
    *("sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.jwt.validator.class"),
}
OTHER_TYPES = {"listener.security.protocol.map", "max.connections.per.ip.overrides", "log.dir"}
OTHER_MODES = {"default.replication.factor"}


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact['scope']}-{fact['name']}")
def test_every_setting_of_kafka_is_declared_as_kafka_has_it(fact):
    name = fact["name"]
    setting = (BROKER if fact["scope"] == "broker" else TOPIC)[name]
    if name not in OTHER_TYPES:
        assert TYPE_NAMES[setting.type] == fact["type"]
    if name not in OTHER_DEFAULTS:
        assert (shown(setting.default) or "") == fact["default"]
    if fact["mode"] and name not in OTHER_MODES:
        assert setting.mode == fact["mode"]


def test_a_wrong_value_is_said_once():
    _, remarks = examine("listeners=PLAINTEXT://nowhere\n", {})
    assert [one.line for one in remarks if one.wrong] == [1]


def test_ours_say_that_they_are_ours():
    theirs = {fact["name"] for fact in FACTS}
    ours = {name for name in (*BROKER, *TOPIC) if name not in theirs}
    unlisted = {"super.users", "allow.everyone.if.no.acl.found"}  # read by Kafka's authorizer
    for name in ours - unlisted:
        assert name.startswith("penstock.") or "flush.policy" in name


@pytest.mark.parametrize(
    "text", ["1_000", "٣", "0x10", "1e3", "--1", "+", "", "9" * 5000, "1.0", "1 000"]
)
def test_only_plain_decimal_is_a_whole_number(text):
    with pytest.raises(ConfigError) as refused:
        BROKER["num.partitions"].parse(text)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1_0", "half", "1.5"])
def test_a_ratio_is_a_number_within_its_range(text):
    with pytest.raises(ConfigError):
        TOPIC["min.cleanable.dirty.ratio"].parse(text)


def test_settings_of_single_listeners_and_whole_families_of_removed_keys_are_warned_about():
    text = "zookeeper.session.timeout.ms=1\nlistener.name.ssl.ssl.keystore.location=/x\n"
    _, warnings = load(text + "password.encoder.iterations=7\n", {})
    assert "ZooKeeper" in warnings[0]
    assert "there is no listener SSL, only PLAINTEXT" in warnings[1]
    assert "since Kafka 4.0" in warnings[2]


VOTERS = "1@one.host:9093,2@[2001:db8::1]:9094,3@other.host:9095"
SEVERAL = {
    "node.id": "1",
    "controller.quorum.voters": VOTERS,
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


def test_several_voters_open_a_listener_for_controllers_behind_those_of_clients():
    turned = {**SEVERAL, "listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"}
    for settings in (SEVERAL, turned):
        config, warnings = load(None, settings)
        assert not warnings
        assert config.several
        assert config.voters() == (
            (1, "one.host", 9093), (2, "2001:db8::1", 9094), (3, "other.host", 9095)
        )  # fmt: skip
        assert [one.name for one in config.endpoints()] == ["PLAINTEXT"]
        assert [one.name for one in config.opened()] == ["PLAINTEXT", "CONTROLLER"]


ONLY_BROKER = {
    "process.roles": "broker",
    "node.id": "4",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://:9092",
}
ONLY_CONTROLLER = {
    "process.roles": "controller",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "CONTROLLER://:9093",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


def test_a_node_may_be_a_broker_or_a_controller_alone():
    broker, warnings = load(None, ONLY_BROKER)
    assert not warnings
    assert broker.is_broker and not broker.is_controller and broker.several
    assert [one.name for one in broker.opened()] == ["PLAINTEXT"]
    controller, warnings = load(None, ONLY_CONTROLLER)
    assert not warnings
    assert controller.is_controller and not controller.is_broker and controller.several
    assert [one.name for one in controller.opened()] == ["CONTROLLER"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ONLY_BROKER | {"process.roles": ""}, "broker, controller, or both"),
        (ONLY_BROKER | {"process.roles": "voter"}, "process.roles"),
        (ONLY_BROKER | {"controller.quorum.voters": ""}, "must name the controllers"),
        (ONLY_BROKER | {"controller.listener.names": ""}, "must name a listener"),
        (ONLY_BROKER | {"node.id": "1"}, "must not be among the voters"),
        (ONLY_BROKER | {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}, "must not have"),
        (ONLY_BROKER | {"inter.broker.listener.name": "INTERNAL"}, "must be one of the listeners"),
        (ONLY_CONTROLLER | {"controller.quorum.voters": ""}, "must name the controllers"),
        (ONLY_CONTROLLER | {"node.id": "2"}, "is not among"),
        (ONLY_CONTROLLER | {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}, "must only have"),
        (ONLY_CONTROLLER | {"listeners": "PLAINTEXT://:9092"}, "must only have"),
    ],
)
def test_roles_that_do_not_fit_are_refused_as_by_apache_kafka(settings, words):
    """Each of them was refused by `kafka-storage format` of Apache Kafka 4.3.1, too."""
    with pytest.raises(ConfigError, match=words):
        load(None, settings)


def test_others_can_come_to_who_has_a_listener_for_controllers():
    alone = {"controller.quorum.voters": "1@localhost:9093"}
    assert not load(None, alone)[0].several
    open_ = load(None, alone | {"listeners": SEVERAL["listeners"]})[0]
    assert open_.several
    assert [one.name for one in open_.opened()] == ["PLAINTEXT", "CONTROLLER"]


@pytest.mark.parametrize(
    ("seeds", "joins"),
    [("", False), ("localhost:9093", False), ("localhost:9094", True), ("a:9093,b:9093", True)],
)
def test_who_asks_others_for_the_voters_joins_them(seeds, joins):
    settings = {"controller.quorum.bootstrap.servers": seeds, "listeners": SEVERAL["listeners"]}
    assert BrokerConfig.of(settings).joins == joins


KEPT_BY = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
}


def test_what_all_clients_rely_on_is_kept_by_as_many_as_kafka_says_or_as_there_are():
    def kept(voters):
        return [BrokerConfig.of(voters).int(name) for name in KEPT_BY]

    key = "controller.quorum.voters"
    assert kept({}) == kept({key: "1@h:1"}) == [1, 1, 1]
    assert kept({key: "1@h:1,2@h:2"}) == [2, 2, 2]
    assert kept({key: VOTERS}) == kept({key: f"{VOTERS},4@h:1,5@h:2"}) == [*KEPT_BY.values()]
    facts = {fact["name"]: fact["default"] for fact in FACTS if fact["scope"] == "broker"}
    assert {name: int(facts[name]) for name in KEPT_BY} == KEPT_BY


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"node.id": ""}, "node.id is not set, .* set node.id"),
        ({"node.id": "4"}, "node.id=4 is not among"),
        ({"controller.quorum.voters": "1@h:9093,1@h:2"}, "of its own"),
        ({"controller.quorum.voters": "1@h:0,2@h:2"}, "ID@HOST:PORT"),
        ({"controller.quorum.voters": "h:1,2@h:2"}, "ID@HOST:PORT"),
        ({"controller.quorum.voters": "1@h:9093,2@H:9093"}, "1 and 2 are both at H:9093"),
        ({"controller.quorum.voters": "1@h:9093,2@0.0.0.0:9093"}, "nobody can connect to 0.0.0.0"),
        ({"listeners": "PLAINTEXT://:9092"}, "add CONTROLLER://one.host:9093"),
        (
            {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9095"},
            "node 1 at port 9093, and CONTROLLER in listeners has port 9095",
        ),
        ({"listeners": "PLAINTEXT://:9093,CONTROLLER://0.0.0.0:9093"}, "both at 0.0.0.0:9093"),
    ],
)
def test_voters_that_cannot_be_are_refused(settings, words):
    settings = {key: value for key, value in (SEVERAL | settings).items() if value}
    with pytest.raises(ConfigError, match=words):
        load(None, settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"controller.quorum.voters": "1@a:9093,2@b:1"}, "both of 2 voters"),
        ({"controller.quorum.voters": f"{VOTERS},4@d:1"}, "4 voters tolerate the loss of 1"),
        ({"controller.quorum.voters": "1@localhost:9093,2@b:1,3@c:1"}, "localhost is another host"),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://localhost:9093"}, "on localhost alone"),
        (
            {"listeners": "PLAINTEXT://localhost:9092,CONTROLLER://:9093"},
            "look for it at localhost:9092, which is another host to each",
        ),
        ({"default.replication.factor": "1"}, "kept by one node only"),
        ({"min.insync.replicas": "1"}, "that only one node has"),
        ({"min.insync.replicas": "3"}, "none may be away"),
    ],
)
def test_what_several_nodes_should_not_be_set_to_is_said(settings, words):
    _, warnings = load(None, SEVERAL | settings)
    assert re.search(words, "\n".join(warnings))
    assert len(warnings) == 1


def test_a_translated_port_of_the_controllers_listener_is_advertised():
    settings = SEVERAL | {"listeners": "PLAINTEXT://:9092,CONTROLLER://:19093"}
    _, warnings = load(None, settings | {"advertised.listeners": "CONTROLLER://one.host:9093"})
    assert not warnings


@pytest.mark.parametrize(
    ("listeners", "advertised", "told"),
    [
        ("PLAINTEXT://:9092", "", "PLAINTEXT://host.here:9092"),
        ("PLAINTEXT://a.host:9092", "", "PLAINTEXT://a.host:9092"),
        ("PLAINTEXT://[2001:db8::2]:9092", "", "PLAINTEXT://[2001:db8::2]:9092"),
        ("PLAINTEXT://0.0.0.0:0", "PLAINTEXT://:19092", "PLAINTEXT://host.here:19092"),
    ],
)
def test_several_nodes_tell_the_same_of_one_wherever_they_were_reached(listeners, advertised, told):
    settings = SEVERAL | {"listeners": f"{listeners},CONTROLLER://:9093"}
    config, warnings = load(
        None, settings | ({"advertised.listeners": advertised} if advertised else {})
    )
    assert not warnings
    assert config.telling(lambda: "host.here").list("advertised.listeners") == (told,)


def test_who_is_alone_tells_what_was_reached_unless_it_is_told_otherwise():
    config, _ = load(None, {"listeners": "PLAINTEXT://:9092"})
    assert config.telling(lambda: "host.here") is config
    config, _ = load(None, {"advertised.listeners": "PLAINTEXT://:1,OTHER://o:2"})
    assert config.telling(lambda: "here").advertised("PLAINTEXT") == ("here", 1)


@pytest.mark.parametrize("at", ["0.0.0.0:9092", "[::]:9092", "h:0"])
def test_nobody_is_told_to_connect_where_nobody_can(at):
    with pytest.raises(ConfigError, match="nobody can connect to"):
        load(None, {"advertised.listeners": f"PLAINTEXT://{at}"})
    several = SEVERAL | {"listeners": f"PLAINTEXT://{at},CONTROLLER://:9093"}
    with pytest.raises(ConfigError, match=r"advertised\.listeners=PLAINTEXT://HOST:PORT"):
        load(None, several)
    assert not load(None, several | {"advertised.listeners": "PLAINTEXT://h:1"})[1]
    assert not load(None, {"listeners": f"PLAINTEXT://{at}"})[1]  # alone
