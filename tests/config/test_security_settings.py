"""No security setting of Apache Kafka 4.3.1 is ignored silently: each is served, or a start says by
its name that it has no effect, or refuses it. Which ones there are is read from its own classes."""

import csv
import re
import subprocess
from pathlib import Path

import pytest

from appliance.config.broker_settings import BROKER
from appliance.config.load import examine
from appliance.config.setting import BOOLEAN, DOUBLE, INT, LONG, SHORT
from benchmarks import kafka

ROOT = Path(__file__).parents[2]
FACTS = csv.DictReader((Path(__file__).parent / "kafka_4_3_settings.csv").read_text().splitlines())
OF_SECURITY = re.compile(
    r"(ssl|sasl|security|authorizer|delegation|principal)\.|super\.users$|.*\.principal\."
    r"|allow\.everyone|connections\.max\.reauth|connection\.failed|.*(authorizer|principal)"
)
NAMES = sorted(
    {one["name"] for one in FACTS if one["scope"] == "broker" and OF_SECURITY.match(one["name"])}
)
LISTENERS = {
    "listeners": "PLAINTEXT://localhost:1,SASL_SSL://localhost:2",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "ssl.keystore.location": "/k",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:a",
}
DECLARING = {"security_settings.py", "broker_settings.py"}
CODE = "".join(
    path.read_text()
    for path in sorted((ROOT / "appliance").rglob("*.py"))
    if path.name not in DECLARING
)
OAUTH = "sasl.oauthbearer."
LEFT_OUT = {"security.inter.broker.protocol": "this node is alone"}
"""Served, and of no effect on the node of this test."""


def other_value(name):
    """A value that is not the default."""
    setting = BROKER[name]
    if setting.type == BOOLEAN:
        return str(not setting.default).lower()
    if setting.type in (INT, LONG, SHORT):
        return str((setting.default or 0) + 1)
    if setting.type == DOUBLE:
        return str(setting.default / 2)
    others = [one for one in setting.choices if one != setting.default]
    return LISTENERS.get(name) or (others[0] if others else "SSL" if "protocol" in name else "x")


def test_they_are_all_known():
    assert len(NAMES) >= 80
    assert {"ssl.principal.mapping.rules", "sasl.kerberos.service.name"} < set(NAMES)
    assert {"delegation.token.secret.key", "authorizer.class.name"} < set(NAMES)


@pytest.fixture(scope="module")
def of_kafka():
    """Names by kind: "broker" those of KafkaConfig, "named" those in its classes of security."""
    if reason := kafka.unavailable():
        pytest.skip(reason)
    source = Path(__file__).with_name("SecurityNames.java")
    done = subprocess.run(
        kafka.java(str(source)), capture_output=True, text=True, check=True, timeout=120
    )
    found = {"broker": set(), "named": set()}
    for line in done.stdout.splitlines():
        kind, name = line.split()
        found[kind].add(name)
    return found


def test_they_are_those_of_apache_kafkas_classes(of_kafka):
    assert {one for one in of_kafka["broker"] if OF_SECURITY.match(one)} == set(NAMES)
    assert len(of_kafka["named"]) > 60 and "sasl.login.refresh.window.factor" in of_kafka["named"]


def test_what_is_no_brokers_is_said_by_its_name(of_kafka):
    """Those of clients alone, and those that other names took the place of."""
    others = sorted(of_kafka["named"] - set(BROKER))
    assert "sasl.mechanism" in others and not set(others) & set(NAMES)
    for name in others:
        _, remarks = examine(None, LISTENERS | {name: "x"})
        assert [one.text for one in remarks if name in one.text], name


@pytest.mark.parametrize("name", NAMES)
def test_each_is_served_or_refused_or_said_by_name(name):
    _, remarks = examine(None, LISTENERS | {name: other_value(name)})
    said = [one.text for one in remarks if name in one.text]
    if BROKER[name].inert:
        assert any("has no effect here" in one for one in said), remarks
    elif name in LEFT_OUT:
        assert any(LEFT_OUT[name] in one for one in said)
    else:
        own = name.removeprefix(OAUTH)  # read by these names behind one prefix
        assert f'"{name}"' in CODE or f'"{own}"' in CODE, "nothing reads it"


@pytest.mark.parametrize("name", NAMES)
def test_each_of_a_single_listener_is_served_or_said_by_name(name):
    key = f"listener.name.sasl_ssl.{name}"
    _, remarks = examine(None, LISTENERS | {key: other_value(name)})
    said = [one.text for one in remarks if key in one.text]
    served = name.startswith("ssl.") or name in ("sasl.enabled.mechanisms",) or "max." in name
    assert said or (served and not BROKER[name].inert)


@pytest.mark.parametrize(
    "line",
    [
        "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
        "sasl.enabled.mechanisms=GSSAPI",
        "security.inter.broker.protocol=QUIC",
        "ssl.client.auth=perhaps",
    ],
)
def test_what_cannot_be_served_is_refused_with_its_line(line):
    file = "\n".join(f"{key}={value}" for key, value in LISTENERS.items())
    _, remarks = examine(f"{line}\n{file}\n{line}\n", {})
    assert [one for one in remarks if one.wrong and one.line is not None]
