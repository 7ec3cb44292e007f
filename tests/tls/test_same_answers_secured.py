"""The same requests over TLS to Apache Kafka and to an appliance with the same certificates, as in
tests/differential. What differs on purpose stands in `differences.toml` beside this file, which
docs/differences.md prints."""

import contextlib
from pathlib import Path

import pytest

from benchmarks import kafka
from benchmarks.certificates import put
from tests.broker_process import KAFKA
from tests.differential import table
from tests.differential.registry import Script
from tests.differential.run import SETTINGS, run
from tests.differential.scene import Target
from tests.tls.secured import PASSWORD, Pki, Secured

TABLE = Path(__file__).with_name("differences.toml")
PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
SET, DELETE = 0, 1
BROKER = 4
OWN = "listener.name.ssl."
ASKED = [
    "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password", "ssl.key.password",
    "ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password",
    "ssl.client.auth", "ssl.enabled.protocols", "ssl.cipher.suites", "ssl.protocol",
    "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates",
    "ssl.principal.mapping.rules", "ssl.allow.dn.changes", "ssl.allow.san.changes",
    "ssl.endpoint.identification.algorithm",
]  # fmt: skip


def api_versions(s):
    s.ask("plain", client_software_name="apache-kafka-java", client_software_version="4.3.1")


def metadata(s):
    topic = s.topic(partitions=2)
    s.ask("all there is", topics=[{"name": topic}], allow_auto_topic_creation=False)


def described(s):
    resource = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": ASKED}
    s.ask("of the broker", resources=[resource], include_synonyms=True)


def alter(s, step, *changes, name="1", only_asked=False):
    """(key, value) each; no value takes it away."""
    configs = [
        {"name": key, "config_operation": DELETE if value is None else SET, "value": value}
        for key, value in changes
    ]
    resource = {"resource_type": BROKER, "resource_name": name, "configs": configs}
    s.ask(step, resources=[resource], validate_only=only_asked)


def of_listener(answer):
    (result,) = answer["results"]
    return [one for one in result["configs"] if one["name"].startswith(OWN)]


def altered(s):
    """A listener's own settings; what was set is taken away again."""
    place = s.target.pki.path
    location = OWN + "ssl.keystore.location"
    alter(s, "a file that is not there", (location, place("nowhere.pem")))
    alter(s, "no certificate in it", (location, place("nothing.pem")))
    alter(s, "another name", (location, place("impostor.pem")))
    alter(s, "fewer hosts", (location, place("fewer.pem")))
    of_type, password = (OWN + f"ssl.keystore.{one}" for one in ("type", "password"))
    store = ((location, place("again.p12")), (of_type, "PKCS12"))
    alter(s, "a wrong password", *store, (password, "wrong"))
    alter(s, "only asked whether", (location, place("server-again.pem")), only_asked=True)
    alter(s, "the same file", (location, place("server.pem")))
    alter(s, "a renewed one", (location, place("server-again.pem")))
    alter(s, "a store", *store, (password, PASSWORD))
    answer = s.until(
        lambda told: any(one["value"] == place("again.p12") for one in of_listener(told)),
        "DescribeConfigs",
        resources=[{"resource_type": BROKER, "resource_name": "1", "configuration_keys": None}],
    )
    s.note("described then", {"configs": of_listener(answer)}, "DescribeConfigs")
    alter(s, "taken away", (location, None), (of_type, None), (password, None))


def altered_elsewhere(s):
    """Without a listener's name, and of listeners that are not there or speak no TLS."""
    file = s.target.pki.path("server-again.pem")
    alter(s, "of all listeners", ("ssl.keystore.location", file))
    alter(s, "of the cluster", (OWN + "ssl.keystore.location", file), name="")
    alter(s, "of no listener", ("listener.name.nobody.ssl.keystore.location", file))
    alter(s, "of a plain one", ("listener.name.plaintext.ssl.keystore.location", file))
    alter(s, "no such form", (OWN + "ssl.keystore.type", "SAFE"))
    alter(s, "no such value", (OWN + "ssl.client.auth", "perhaps"))
    alter(s, "no file of trust", (OWN + "ssl.truststore.location", s.target.pki.path("none.pem")))
    alter(s, "no such version", (OWN + "ssl.enabled.protocols", "TLSv9"))
    alter(s, "no version of its own", (OWN + "ssl.enabled.protocols", None))


SCRIPTS = [
    Script("tls_api_versions", "ApiVersions", api_versions, range(3, 5)),
    Script("tls_metadata", "Metadata", metadata, range(12, 14)),
    Script("tls_described", "DescribeConfigs", described, range(4, 5)),
    Script("tls_altered", "IncrementalAlterConfigs", altered, range(1, 2)),
    Script("tls_altered_elsewhere", "IncrementalAlterConfigs", altered_elsewhere, range(1, 2)),
]


@pytest.fixture
def targets(tmp_path):
    if KAFKA or (reason := kafka.unavailable()):
        pytest.skip("it starts Apache Kafka itself" if KAFKA else reason)
    with contextlib.ExitStack() as stack:
        found = []
        for name in ("penstock", "kafka"):
            folder = tmp_path / f"pki of {name}".replace(" ", "-")
            folder.mkdir()
            pki = Pki(folder)
            impostor = pki.ca.issue("CN=impostor,O=Tests")
            put(folder / "impostor.pem", impostor.pem())
            put(folder / "fewer.pem", pki.ca.issue("CN=broker,O=Tests", hosts=["127.0.0.1"]).pem())
            put(folder / "nothing.pem", "this is no certificate\n")
            put(folder / "again.p12", pki.made["server-again"].pkcs12(PASSWORD))
            settings = {
                key: value for key, value in SETTINGS.items() if not key.startswith("controller.l")
            }
            broker = Secured(
                tmp_path / name, pki, ["SSL"], settings, of_kafka=name == "kafka"
            )  # fmt: skip
            stack.enter_context(broker)
            target = Target(name, broker.address(), str(folder), pki.context())
            target.pki = pki
            target.ports = [broker.port, broker.ports["SSL"], broker.controllers]
            found.append(target)
        yield found


def in_plain_too():
    """What ApiVersions tells otherwise, it does over TLS as well."""
    return [
        one._replace(script="tls_api_versions/plain", low=max(one.low, 3))
        for one in table.read()
        if one.api == "ApiVersions" and one.script == "api_versions/plain"
    ]


@pytest.mark.timeout(300)
def test_the_answers_over_tls_are_the_same(targets):
    report = run(SCRIPTS, targets, table.read(TABLE) + in_plain_too())
    print(report)
    assert report.good, f"\n{report}"


def test_the_documentation_has_the_table():
    assert table.markdown(table.read(TABLE)) in PAGE.read_text()
