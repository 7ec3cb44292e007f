"""A link in TLS, against a TLS server on loopback: what is asked and answered crosses it whole,
certificates are checked by authority and name, and what does not agree fails with the reason."""

import datetime
import ssl

import pytest
from peers.other_side import ASK, METADATA, OtherSide, metadata, server, turns

from appliance.base.clock import OsClock
from appliance.base.errors import NETWORK_EXCEPTION, ConfigError, PeerError
from appliance.peers.link import Link
from appliance.peers.tls import TlsCarrier
from console.model.secure.authority import Authority, new_authority

__all__ = ["server", "turns"]
MANY = 30_000  # brokers in an answer: more than a megabyte


class Answering(OtherSide):
    """The other side in TLS: greets, and answers every request with so many brokers."""

    def __init__(self, server, context, brokers):
        super().__init__(server)
        self.sock = context.wrap_socket(self.sock, server_side=True)
        self.shown = self.sock.getpeercert(binary_form=True)
        self.brokers = brokers

    def serve(self, requests):
        self.greet()
        one = {"node_id": 1, "host": "node.example.org", "port": 9092, "rack": None}
        for _ in range(requests):
            brokers = [one | {"node_id": n} for n in range(self.brokers)]
            self.answer(self.take(), metadata() | {"brokers": brokers})
        with pytest.raises((AssertionError, OSError)), self.sock:  # the end: the link is closed
            self.take()


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pki")
    now = datetime.datetime.now(datetime.UTC)
    authority = Authority(*new_authority("CA", now))
    (folder / "ca.pem").write_bytes(authority.certificate)
    for name, host in (("node", "127.0.0.1"), ("elsewhere", "192.0.2.1")):
        issued = authority.issue_server([host], now)
        (folder / f"{name}.pem").write_bytes(issued.key + issued.certificate)
    other = Authority(*new_authority("CA", now)).issue_server(["127.0.0.1"], now)
    (folder / "foreign.pem").write_bytes(other.key + other.certificate)
    return folder


def server_side(pki, name="node"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / f"{name}.pem")
    context.load_verify_locations(pki / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_side(pki, name="node"):
    context = ssl.create_default_context(cafile=str(pki / "ca.pem"))
    context.load_cert_chain(pki / f"{name}.pem")
    return context


def encrypted(context):
    return lambda sock, host: TlsCarrier(sock, context(), host)


def secured(turns, server, context):
    port = server.getsockname()[1]
    return Link(2, "127.0.0.1", port, turns, OsClock(), "node 1", carry=encrypted(lambda: context))


@pytest.mark.parametrize("brokers", [0, 1, MANY])
def test_requests_and_answers_cross_it(turns, server, pki, beside, brokers):
    beside(lambda: Answering(server, server_side(pki), brokers).serve(3))
    link, heard = secured(turns, server, client_side(pki)), []
    for _ in range(3):
        link.ask_peer(METADATA, 12, ASK, heard.append, 60_000)
    turns.until(link, lambda: len(heard) == 3)
    assert [len(answer.brokers) for answer in heard] == [brokers] * 3
    assert [one.node_id for one in heard[2].brokers] == list(range(brokers))
    assert link.connected
    link.close()
    assert turns.watched == 0


def refused(turns, link):
    heard = []
    link.ask_peer(METADATA, 12, ASK, heard.append, 10_000)
    turns.until(link, lambda: heard)
    assert isinstance(heard[0], PeerError)
    assert heard[0].code == NETWORK_EXCEPTION
    assert not link.connected
    assert turns.watched == 0
    return str(heard[0])


def fails(server, context):
    def run():
        with pytest.raises((OSError, AssertionError)):
            Answering(server, context, 0).serve(1)

    return run


@pytest.mark.parametrize(
    ("shown", "words"),
    [("elsewhere", "IP address mismatch"), ("foreign", "self-signed certificate in certificate")],
)
def test_a_certificate_that_is_not_believed_ends_it(turns, server, pki, beside, shown, words):
    beside(fails(server, server_side(pki, shown)))
    assert words in refused(turns, secured(turns, server, client_side(pki)))


def test_a_node_that_shows_a_foreign_certificate_is_not_served(turns, server, pki, beside):
    beside(fails(server, server_side(pki)))
    link = secured(turns, server, client_side(pki, "foreign"))
    assert "alert" in refused(turns, link) or not link.connected


def test_a_plaintext_node_is_no_peer_in_tls(turns, server, pki, beside):
    def plaintext():
        other = OtherSide(server)
        other.sock.recv(5)
        other.sock.sendall(b"\0\0\0\4\0\0\0\1")
        other.sock.close()

    beside(plaintext)
    assert "TLS handshake failed" in refused(turns, secured(turns, server, client_side(pki)))


def test_without_a_usable_certificate_nothing_is_sent(turns, server):
    def missing():
        raise ConfigError("ssl.keystore.location: there is no such file")

    port = server.getsockname()[1]
    link = Link(2, "127.0.0.1", port, turns, OsClock(), "node 1", carry=encrypted(missing))
    assert "no such file" in refused(turns, link)
