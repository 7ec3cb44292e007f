"""Apache Kafka's console producer and consumer and kafka-configs over TLS, with PEM files and with
PKCS12 stores."""

import pytest

from benchmarks import kafka
from tests.tls import java

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]
LINES = "".join(f"line {number}\n" for number in range(100))
FORMS = {
    "PEM": ("SSL", lambda pki: java.pem(pki)),
    "PEM, certificate": ("MUTUAL", lambda pki: java.pem(pki, certificate="client")),
    "PEM, encrypted key": (
        "MUTUAL", lambda pki: java.pem(pki, certificate="client", locked=True),
    ),
    "PKCS12": ("SSL", lambda pki: java.stores(pki)),
    "PKCS12, certificate": ("MUTUAL", lambda pki: java.stores(pki, keystore="client.p12")),
}  # fmt: skip


@pytest.fixture
def tools(tmp_path, pki, broker):
    def made(form):
        listener, properties = FORMS[form]
        return java.Tools(tmp_path, broker.at(listener), properties(pki))

    return made


@pytest.mark.parametrize("form", FORMS)
def test_lines_go_there_and_back(tools, topic, form):
    ours = tools(form)
    ours.run("ConsoleProducer", "--topic", topic, stdin=LINES)
    words = ["--topic", topic, "--from-beginning", "--max-messages", "100", "--timeout-ms", "60000"]
    assert ours.run("consumer.ConsoleConsumer", *words) == LINES


def test_a_topic_is_changed_and_described(tools, topic):
    ours = tools("PEM, certificate")
    entity = ("--entity-type", "topics", "--entity-name", topic)
    ours.configs("--alter", *entity, "--add-config", "retention.ms=12345678")
    assert "retention.ms=12345678" in ours.configs("--describe", *entity)


@pytest.mark.parametrize(
    ("listener", "properties", "said"),
    [
        ("SSL", lambda pki: java.pem(pki, ca="foreign-ca.pem"), "SslAuthenticationException"),
        (
            "SSL",
            lambda pki: java.stores(pki, truststore="foreign-trust.p12"),
            "SslAuthenticationException",
        ),
        ("MUTUAL", lambda pki: java.pem(pki), "SslAuthenticationException"),
        ("MUTUAL", lambda pki: java.pem(pki, certificate="foreign"), "SslAuthenticationException"),
    ],
    ids=["CA unknown, PEM", "CA unknown, PKCS12", "no certificate", "foreign certificate"],
)
def test_who_is_refused_is_told_of_the_handshake(
    tmp_path, broker, pki, topic, listener, properties, said
):
    ours = java.Tools(tmp_path, broker.at(listener), properties(pki))
    entity = ("--entity-type", "topics", "--entity-name", topic)
    assert said in ours.configs("--describe", *entity, code=1)
