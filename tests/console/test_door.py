"""How requests of our own speak over TLS: as librdkafka would with the same properties, and with
one sentence where the two sides do not come together."""

import socket
import ssl
import threading

import pytest

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from penstock.door import Door, NotUsable
from penstock.reach import Trouble, barred
from tests.tls_front import DAY, HOUR, Authority, fronted, server_context, veiled

SSL = {"security.protocol": "SSL"}
CERTIFICATE = ("ssl.certificate.location=FILE", "ssl.key.location=FILE")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(authority):
    return authority.certificate("broker", "localhost", "127.0.0.1")


@pytest.fixture(scope="module")
def me(authority):
    return authority.certificate("me", password="secret")


@pytest.fixture(scope="module")
def behind(tmp_path_factory, broker):
    """An appliance and the front before it, whose context each test sets."""
    with veiled(tmp_path_factory.mktemp("behind"), server_context(*broker[:2])) as both:
        yield both


def says(behind, properties, context):
    """What is in the way of a client with these properties."""
    _, front = behind
    front.context = context
    return barred(f"127.0.0.1:{front.port}", Door(properties))


def trusting(authority, **more):
    return SSL | {"ssl.ca.location": str(authority.ca)} | more


def test_a_listener_with_tls_is_spoken_to(behind, authority, broker):
    context = server_context(*broker[:2])
    assert says(behind, trusting(authority), context) is None
    pem = SSL | {"ssl.ca.pem": authority.ca.read_text()}
    assert says(behind, pem, context) is None
    blind = SSL | {"enable.ssl.certificate.verification": "false"}
    assert says(behind, blind, context) is None
    assert says(behind, SSL | {"enable.ssl.certificate.verification": False}, context) is None


def test_who_is_not_trusted_is_told_with_the_remedy(behind, broker):
    told = says(behind, SSL, server_context(*broker[:2]))
    assert "has a certificate that is not trusted: " in told.what
    assert told.options == ("ssl.ca.location=FILE",)


def test_a_certificate_for_another_name_is_told(behind, authority):
    context = server_context(*authority.certificate("other", "other.example")[:2])
    told = says(behind, trusting(authority), context)
    assert "has a certificate for another name: " in told.what and "127.0.0.1" in told.what
    anyone = {"ssl.endpoint.identification.algorithm": "none"}
    assert says(behind, trusting(authority) | anyone, context) is None


def test_a_certificate_that_has_ended_is_told(behind, authority):
    import datetime

    begins = datetime.datetime.now(datetime.UTC) - 3 * DAY
    cert, key, _ = authority.certificate("old", "127.0.0.1", begins=begins, lasts=HOUR)
    told = says(behind, trusting(authority), server_context(cert, key))
    assert "is not valid now: certificate has expired" in told.what


@pytest.mark.parametrize("highest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_shows_its_certificate_where_it_is_asked(behind, authority, broker, me, highest):
    context = server_context(*broker[:2], authority.ca, highest)
    told = says(behind, trusting(authority), context)
    assert told.what.endswith("asks clients for a certificate") and told.options == CERTIFICATE
    cert, key, store = map(str, me)
    files = {
        "ssl.certificate.location": cert,
        "ssl.key.location": key,
        "ssl.key.password": "secret",
    }
    texts = {
        "ssl.certificate.pem": me[0].read_text(),
        "ssl.key.pem": me[1].read_text(),
        "ssl.key.password": "secret",
    }
    stored = {"ssl.keystore.location": store, "ssl.keystore.password": "secret"}
    for own in (files, texts, stored):
        assert says(behind, trusting(authority) | own, context) is None, own


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("ssl.ca.location", "/no/such.pem", "No such file"),
        ("ssl.ca.pem", "nonsense", ""),
        ("ssl.cipher.suites", "none-of-them", "No cipher can be selected"),
        ("ssl.crl.location", "/no/such.crl", "No such file"),
        ("ssl.certificate.location", "/no/such.pem", "No such file"),
        ("ssl.keystore.location", "/no/such.p12", "No such file"),
    ],
)
def test_what_cannot_be_used_is_named(key, value, why):
    with pytest.raises(NotUsable) as told:
        barred("127.0.0.1:1", Door(SSL | {key: value}))
    assert why in str(told.value) and str(told.value).startswith(key[:7])


def test_a_wrong_password_is_told_and_nobody_is_asked_for_it(authority, me):
    cert, key, store = map(str, me)
    files = {"ssl.certificate.location": cert, "ssl.key.location": key}
    for own in (
        files,
        files | {"ssl.key.password": "wrong"},
        {"ssl.keystore.location": store, "ssl.keystore.password": "wrong"},
    ):
        with pytest.raises(NotUsable):
            Door(trusting(authority) | own).context()


def test_who_speaks_in_the_clear_to_tls_is_told_so(behind, authority, broker):
    for trusts in (None, authority.ca):
        told = says(behind, {}, server_context(*broker[:2], trusts))
        assert told.what.endswith(" is a listener with TLS")
        assert told.options == ("security.protocol=SSL", "ssl.ca.location=FILE")


def test_who_speaks_tls_to_a_plain_listener_is_told_so(appliance, authority):
    told = barred(appliance.bootstrap, Door(trusting(authority)))
    assert told == Trouble(
        f"{appliance.bootstrap} is a listener without TLS", ("security.protocol=PLAINTEXT",)
    )


def test_of_somebody_who_only_hangs_up_nothing_is_known(authority):
    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]

    def hang_up():
        for _ in range(4):
            door.accept()[0].close()

    threading.Thread(target=hang_up, daemon=True).start()
    with door:
        assert barred(f"127.0.0.1:{port}") is None
        assert barred(f"127.0.0.1:{port}", Door(trusting(authority))) is None


def test_brokers_whose_certificate_does_not_cover_where_they_say_they_are(
    fresh_appliance, authority
):
    """The bootstrap name is covered, the advertised one is not: clients would find out late."""
    context = server_context(*authority.certificate("alias", "localhost")[:2])
    with fronted(context) as front:
        one = fresh_appliance(
            advertised_listeners=f"PLAINTEXT://127.0.0.1:{front.port}",
        )
        front.behind = "127.0.0.1", one.port
        told = barred(f"localhost:{front.port}", Door(trusting(authority)))
    assert told.elsewhere and "certificate for another name" in told.what
    assert f"it says it is at 127.0.0.1:{front.port}" in told.what


def test_brokers_that_send_their_clients_to_a_listener_without_tls(appliance, authority, broker):
    """Alone, an appliance tells the address that was reached: here the one behind a front."""
    with fronted(server_context(*broker[:2]), ("127.0.0.1", appliance.port)) as front:
        told = barred(f"127.0.0.1:{front.port}", Door(trusting(authority)))
    assert told.elsewhere
    assert f"it says it is at {appliance.bootstrap}, which is a listener without TLS" in told.what


def test_who_looks_waits_no_longer_than_the_command_may(monkeypatch):
    """A server accepts connections and answers nothing."""
    waits = []

    def connect(address, timeout):
        waits.append(timeout)
        return opened(address, timeout)

    opened = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", connect)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        link = Link(f"127.0.0.1:{silent.getsockname()[1]}", {}, 0.3)
        link.producer()
        with pytest.raises(Failure, match="cannot be reached"):
            Link("127.0.0.1:9", {}, 0.2).reach()
    assert set(waits) == {0.3, 0.2}, "and not the three seconds of who names no limit"
