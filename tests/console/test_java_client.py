"""Properties files of Java's clients, with TLS as they say it."""

from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from console.commands.console_web import _properties
from console.model.access.java_client import as_librdkafkas
from console.model.asking.failure import USAGE, Failure
from console.model.asking.link import Link, asking
from console.model.asking.profiles import properties_of
from penstock.door import Door
from tests.tls_front import Authority, server_context, veiled


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def files(authority):
    """What Java's clients have: stores of both forms."""
    cert, key, store = authority.certificate("me", password="secret")
    both = cert.with_suffix(".both")
    both.write_bytes(key.read_bytes() + cert.read_bytes())
    trust = authority.folder / "trust.p12"
    ca = x509.load_pem_x509_certificate(authority.ca.read_bytes())
    named = pkcs12.PKCS12Certificate(ca, b"ca")
    trust.write_bytes(
        pkcs12.serialize_java_truststore([named], BestAvailableEncryption(b"changeit"))
    )
    return SimpleNamespace(cert=cert, key=key, store=store, both=both, trust=trust)


@pytest.fixture(scope="module")
def closed(tmp_path_factory, authority):
    """An appliance behind TLS that wants a certificate."""
    cert, key, _ = authority.certificate("broker", "localhost", "127.0.0.1")
    context = server_context(cert, key, authority.ca)
    with veiled(tmp_path_factory.mktemp("closed"), context) as (_, front):
        yield f"127.0.0.1:{front.port}"


def one_line(path):
    return path.read_text().replace("\n", "\\n")


def stores(authority, files):
    return f"""
security.protocol=SSL
ssl.protocol=TLSv1.3
ssl.truststore.type=PKCS12
ssl.truststore.location={files.trust}
ssl.truststore.password=changeit
ssl.keystore.location={files.store}
ssl.keystore.password=secret
ssl.key.password=secret
"""


def pem_files(authority, files):
    return f"""
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.location={authority.ca}
ssl.keystore.type=PEM
ssl.keystore.location={files.both}
ssl.key.password=secret
ssl.endpoint.identification.algorithm=
"""


def pem_texts(authority, files):
    flat = files.cert.read_text().replace("\n", " ")  # as such files often have it
    return f"""
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.certificates={one_line(authority.ca)}
ssl.keystore.type=PEM
ssl.keystore.certificate.chain={flat}
ssl.keystore.key={one_line(files.key)}
ssl.key.password=secret
"""


@pytest.mark.parametrize("said", [stores, pem_files, pem_texts])
def test_such_a_file_serves_librdkafka_and_our_own_requests(
    closed, authority, files, said, tmp_path
):
    file = tmp_path / "client.properties"
    file.write_text(said(authority, files))
    link = Link(closed, properties_of(str(file)), 30)
    with asking(link):
        assert link.admin().list_topics(timeout=30).brokers
    with _properties(link) as copied:  # for the console in a browser
        assert Door(properties_of(copied)).context()
        again = properties_of(copied)
    said = {key: value.rstrip("\n") for key, value in link.properties.items()}
    assert again | {"bootstrap.servers": closed} == said


def test_who_java_takes_for_anybody_is_anybody():
    key = "ssl.endpoint.identification.algorithm"
    assert as_librdkafkas({key: "", "acks": "all"}) == {key: "none", "acks": "all"}
    assert as_librdkafkas({key: "https"}) == {key: "https"}


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("old.jks", b"\xfe\xed\xfe\xed" + b"\0" * 40, "JKS"),
        ("empty.pem", b"nothing", "ssl.truststore.location="),
    ],
)
def test_a_store_that_cannot_be_read_is_named(tmp_path, name, data, why):
    store = tmp_path / name
    store.write_bytes(data)
    with pytest.raises(Failure, match=why) as told:
        as_librdkafkas({"ssl.truststore.location": str(store)})
    assert told.value.code == USAGE and str(store) in told.value.message


def test_a_store_that_is_not_there_is_named():
    with pytest.raises(Failure, match=r"/no/such\.p12 cannot be read: No such file"):
        as_librdkafkas({"ssl.keystore.location": "/no/such.p12"})


def test_a_wrong_password_is_told(files):
    with pytest.raises(Failure, match=r"ssl\.truststore\.location="):
        as_librdkafkas(
            {"ssl.truststore.location": str(files.trust), "ssl.truststore.password": "wrong"}
        )


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KEPT_SECRET = "hm4c-of-a-token"


@pytest.mark.parametrize(
    ("module", "option", "named"),
    [
        (SCRAM, 'tokenauth="true"', "tokenauth=true"),
        (SCRAM, "tokenauth=TRUE", "tokenauth=TRUE"),
        (BEARER, 'extension_logicalCluster="lkc-1"', "extension_logicalCluster"),
    ],
)
def test_what_librdkafka_cannot_do_is_refused_by_name(module, option, named):
    """Else the id of a token would be sent as a user's name, and its HMAC as a password."""
    login = f'{module} required username="LbKx1" password="{KEPT_SECRET}" {option};'
    with pytest.raises(Failure, match=named) as told:
        as_librdkafkas({"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": login})
    assert told.value.code == USAGE and told.value.hint
    assert KEPT_SECRET not in f"{told.value.message}{told.value.hint}"


def test_a_user_that_says_it_is_no_token_logs_in():
    login = f'{SCRAM} required username="anna" password="x" tokenauth="false";'
    found = as_librdkafkas({"sasl.jaas.config": login})
    assert found == {"sasl.username": "anna", "sasl.password": "x"}
