"""Our own commands and `penstock.connect` log in by tokens that they fetch (client credentials
grant), by librdkafka's names and by Java's; who has a wrong secret is told so, without it."""

import json
import ssl
import time

import pytest
from confluent_kafka import KafkaException

from penstock import connect
from penstock.door import Door
from penstock.login import LoginFailed, login_of
from penstock.tokens import NoToken, TokenSource, completed, source_of
from tests.broker_process import KAFKA
from tests.console_process import typing
from tests.sasl.provider import Served
from tests.sasl.test_tokens import ByToken
from tests.tls.secured import Pki

pytestmark = pytest.mark.skipif(KAFKA, reason="the console of an appliance")
SECRET = "s3cr3t-of-loader"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@pytest.fixture(scope="module")
def provider():
    served = Served()
    served.clients["loader"] = SECRET
    yield served
    served.close()


@pytest.fixture(scope="module")
def broker(provider, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "keys.json").write_bytes(provider.jwks())
    with ByToken(folder / "data", folder / "keys.json") as running:
        yield running


def librdkafkas(provider, secret=SECRET):
    return {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "loader",
        "sasl.oauthbearer.client.secret": secret, "sasl.oauthbearer.scope": "produce",
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
    }  # fmt: skip


def javas(provider):
    login = f'{MODULE} required clientId="loader" clientSecret="{SECRET}" scope="produce";'
    return {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.login.callback.handler.class": HANDLER, "sasl.jaas.config": login,
    }  # fmt: skip


def newer_javas(provider):
    """As Kafka 4.1 and later have it (KIP-1139)."""
    found = javas(provider)
    del found["sasl.jaas.config"]
    return found | {
        "sasl.oauthbearer.client.credentials.client.id": "loader",
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        "sasl.oauthbearer.scope": "produce",
    }


def file_of(folder, properties):
    file = folder / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return str(file)


@pytest.mark.parametrize("words", [librdkafkas, javas, newer_javas])
def test_commands_log_in_by_the_file_of_a_client(broker, provider, tmp_path, words):
    """Both by requests of our own and by librdkafka."""
    run = typing(broker.at("ONLY"))
    file = ("--command-config", file_of(tmp_path, words(provider)))
    topic = words.__name__
    before = len(provider.granted)
    run("topic", "create", topic, "-p", "1", *file)
    run("produce", topic, *file, stdin="hello\n")
    assert run("consume", topic, "-e", *file).stdout == "hello\n"
    shown = run("config", "get", "--topic", topic, "retention.ms", *file)
    assert SECRET not in shown.stdout + shown.stderr
    assert set(provider.granted[before:]) == {"produce"}
    seen = typing(broker.bootstrap)("audit", "--data", str(broker.data), "-o", "json").stdout
    known = {(one.get("principal"), one.get("mechanism")) for one in entries(seen)}
    assert ("User:loader", "OAUTHBEARER") in known


def entries(text):
    return json.loads(text) if text.startswith("[") else map(json.loads, text.splitlines())


def test_a_wrong_secret_is_told_and_not_shown(broker, provider, tmp_path):
    file = file_of(tmp_path, librdkafkas(provider, "wr0ng-secret"))
    done = typing(broker.at("ONLY"))("topic", "list", "--command-config", file, code=None)
    assert done.returncode and "HTTP 401, invalid_client" in done.stderr
    assert "wr0ng" not in done.stdout + done.stderr


def test_connect_logs_in_by_keywords(broker, provider):
    words = {key.replace(".", "_"): value for key, value in librdkafkas(provider).items()}
    link = connect(broker.at("ONLY"), **words)
    link.create_topic("by-keywords")
    with link.producer() as producer:
        producer.produce("by-keywords", b"hello")
    assert [one.value() for one in link.read("by-keywords")] == [b"hello"]


def test_connect_logs_in_by_a_callback(broker, provider):
    def tell(_):
        return provider.token(sub="loader"), time.time() + 300

    words = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    link = connect(broker.at("ONLY"), **words, oauth_cb=tell)
    link.create_topic("by-callback")
    assert list(link.read("by-callback")) == []
    refused = connect(
        broker.at("ONLY"), **words, oauth_cb=lambda _: (provider.unsigned(), time.time() + 300)
    )
    with pytest.raises(KafkaException, match="the token is not accepted: invalid_token"):
        refused.create_topic("never")


# Without a broker ---------------------------------------------------------------------------------


def test_a_token_is_fetched_again_before_it_ends():
    given, now = [], time.monotonic

    def fetch():
        given.append(len(given))
        return f"token-{len(given)}", 100.0

    source = TokenSource(fetch)
    assert [source.token() for _ in range(3)] == ["token-1"] * 3
    source._until_s = now() - 1
    assert source.token() == "token-2"


@pytest.mark.parametrize(
    ("status", "data", "words"),
    [
        (302, b"", "HTTP 302"), (500, b"<p>", "HTTP 500"), (200, b"[]", "HTTP 200"),
        (200, b'{"access_token":7}', "HTTP 200"), (200, b"x" * 99, "no JSON"),
        (400, b'{"error":"invalid_scope"}', "HTTP 400, invalid_scope"),
    ],
)  # fmt: skip
def test_what_is_no_token_is_said(provider, status, data, words):
    """A redirect is not followed: it would tell the secret to somebody else."""
    provider.answered = (status, data)
    try:
        with pytest.raises(NoToken, match=words) as told:
            source_of(librdkafkas(provider)).token()
    finally:
        provider.answered = None
    assert SECRET not in str(told.value)


def test_nobody_there_and_no_url_are_said(provider):
    nowhere = librdkafkas(provider) | {"sasl.oauthbearer.token.endpoint.url": "http://localhost:1/"}
    with pytest.raises(NoToken, match="gives no token: Connection refused"):
        source_of(nowhere).token()
    with pytest.raises(NoToken, match="is no https"):
        source_of(nowhere | {"sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd"}).token()


def test_the_provider_is_verified(tmp_path):
    pki = Pki(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.path("server.pem"))
    served = Served(context)
    served.clients["loader"], served.life_s = SECRET, None
    try:
        with pytest.raises(NoToken, match="certificate verify failed"):
            source_of(librdkafkas(served)).token()
        trusting = librdkafkas(served) | {"https.ca.location": pki.path("ca.pem")}
        assert source_of(trusting).token().count(".") == 2
    finally:
        served.close()


def test_who_can_log_in_and_what_librdkafka_lacks(provider):
    assert Door(librdkafkas(provider)).can_ask
    bare = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    assert login_of(bare) is None and not Door(bare).can_ask
    url = {"sasl.oauthbearer.token.endpoint.url": "https://x"}
    assert completed(bare | url)["sasl.oauthbearer.method"] == "oidc"
    assert "sasl.oauthbearer.method" not in completed(bare)
    assert SECRET not in repr(login_of(librdkafkas(provider)))
    assert issubclass(NoToken, OSError) and not issubclass(NoToken, LoginFailed)
