"""Enrolment: a new node gets a certificate by its token once, of the authority that the token names
and nobody else, for the names that were invited."""

import datetime
import socket
import threading
import time
from contextlib import suppress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from appliance.certificates.principal_mapping import Rules, principal_name
from console.model.asking.failure import Failure
from console.model.secure import enrolment
from console.model.secure.authority import Authority, fingerprint_of, new_authority, new_request
from console.model.secure.enrolment import Enrolling
from console.model.secure.inviting import settings_of_another
from console.model.secure.server_settings import NODES_UNIT, RULES

LIMIT_S = 60
NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)


class Place:
    """Who invites, in a thread. heard: who was not served, and why. sent: what was handed over."""

    def __init__(self, folder, authority=None, shown=None, limit_s=LIMIT_S):
        self.authority = authority or Authority(*new_authority("CA", NOW))
        server = self.authority.issue_server(["localhost"], NOW, unit=NODES_UNIT)
        file = folder / "server.pem"
        file.write_bytes(server.key + server.certificate)
        self.door = Enrolling(0, str(file), shown or self.authority.certificate)
        self.token = enrolment.new_token("localhost", self.door.port, self.authority.fingerprint)
        self.heard, self.sent, self.failed = [], None, None
        self.limit_s = limit_s
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def sign(self, request):
        certificate = self.authority.sign_request(request, ["b.example.org"], NOW, NODES_UNIT)
        return {"certificate": certificate.decode(), "cluster_id": "x"}

    def _serve(self):
        until = time.monotonic() + self.limit_s
        try:
            with self.door:
                self.sent = self.door.serve(
                    self.token, self.sign, until, lambda *why: self.heard.append(why)
                )
        except (Failure, OSError) as failure:
            self.failed = failure

    def end(self):
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive()


@pytest.fixture
def place(tmp_path):
    one = Place(tmp_path)
    yield one
    if one.thread.is_alive():  # the token ends it
        enrolment.enrol(one.token)
    one.end()


def test_the_certificate_is_for_the_key_of_the_node_and_the_name_that_was_invited(place):
    found = enrolment.enrol(enrolment.parse(str(place.token)))
    place.end()
    assert found.offer == place.sent and found.authority == place.authority.certificate
    made = x509.load_pem_x509_certificate(found.offer["certificate"].encode())
    key = serialization.load_pem_private_key(found.key, None)
    assert made.public_key() == key.public_key()
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["b.example.org"]
    der = made.public_bytes(serialization.Encoding.DER)
    assert principal_name(der, Rules(RULES, "rules")) == "OU=nodes"


def test_it_works_once(place):
    enrolment.enrol(place.token)
    place.end()
    with pytest.raises(Failure, match="it was used, withdrawn, or expired"):
        enrolment.enrol(place.token)


def test_another_token_gets_nothing_and_does_not_end_it(place):
    for wrong in (b"\0" * 24, b"", place.token.secret[:-1]):
        with pytest.raises(Failure, match="no certificate of localhost"):
            enrolment.enrol(place.token._replace(secret=wrong))
    enrolment.enrol(place.token)
    place.end()
    assert [why for _, why in place.heard] == ["it has another token"] * 3
    assert place.sent is not None


def test_nothing_is_sent_to_another_authority(place, tmp_path):
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    with pytest.raises(Failure, match="another authority than the token names"):
        enrolment.enrol(place.token._replace(port=other.door.port))
    enrolment.enrol(other.token)
    other.end()
    assert len(other.heard) == 1 and other.sent


def test_who_shows_the_authority_and_has_no_certificate_of_it_hears_nothing(place, tmp_path):
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other", shown=place.authority.certificate)
    with pytest.raises(Failure, match="its certificate is not accepted"):
        enrolment.enrol(place.token._replace(port=other.door.port))
    with pytest.raises(Failure):
        enrolment.enrol(other.token)
    other.door._door.shutdown(socket.SHUT_RDWR)  # nobody can end it by its token
    other.end()
    assert other.sent is None and len(other.heard) >= 2


def test_it_ends_when_the_token_expires(tmp_path):
    place = Place(tmp_path, limit_s=0.05)
    place.end()
    assert place.sent is None and place.failed is None


def test_who_says_nothing_or_nonsense_is_not_served(place):
    at = ("localhost", place.door.port)
    with socket.create_connection(at) as one:
        one.sendall(b"GET / HTTP/1.0\r\n\r\n")
        with suppress(ConnectionResetError):
            while one.recv(4096):
                pass
    with socket.create_connection(at):
        pass
    enrolment.enrol(place.token)
    place.end()
    assert len(place.heard) == 2


@pytest.mark.parametrize(
    "text", ["", "a:1", "a:1/", "a:1/xyz", "a/" + "A" * 75, "a:x/" + "A" * 75, "a:1/" + "é" * 75]
)
def test_what_is_no_token_is_refused_without_showing_it(text):
    with pytest.raises(Failure) as refused:
        enrolment.parse(text)
    assert "A" * 75 not in refused.value.message + refused.value.hint


def test_a_token_of_an_address_with_colons_is_read_back():
    token = enrolment.new_token("2001:db8::1", 9096, b"f" * 32)
    assert enrolment.parse(str(token)) == token
    assert repr(token.secret) not in str(token)


# Signing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())],
    ids=["RSA", "P-384"],
)
def test_other_keys_are_refused(key):
    authority = Authority(*new_authority("CA", NOW))
    asked = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    request = asked.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    with pytest.raises(ValueError, match="P-256"):
        authority.sign_request(request, ["b"], NOW, NODES_UNIT)


def test_a_request_that_its_key_has_not_signed_is_refused():
    authority = Authority(*new_authority("CA", NOW))
    made = x509.load_pem_x509_csr(new_request().certificate)
    der = bytearray(made.public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1
    request = x509.load_der_x509_csr(bytes(der)).public_bytes(serialization.Encoding.PEM)
    with pytest.raises(ValueError, match="not signed by its key"):
        authority.sign_request(request, ["b"], NOW, NODES_UNIT)


def test_the_fingerprint_is_that_of_the_certificate():
    authority = Authority(*new_authority("CA", NOW))
    assert authority.fingerprint == fingerprint_of(authority.certificate)


@pytest.mark.parametrize("name", ["OU=nodes", "x,OU=nodes", "CN=x,OU=nodes", "nodes", "x\\"])
def test_no_client_of_the_authority_is_a_node(name):
    """Whatever its name is: `secure client` takes fewer names."""
    made = Authority(*new_authority("CA", NOW)).issue_client(name, NOW)
    der = x509.load_pem_x509_certificate(made.certificate).public_bytes(serialization.Encoding.DER)
    assert principal_name(der, Rules(RULES, "rules")) != "OU=nodes"


# What is handed over ------------------------------------------------------------------------------


def test_settings_of_another_node_are_those_of_this_one_for_another_host():
    here = {
        "node.id": "1", "broker.rack": "r1", "controller.quorum.bootstrap.servers": "x:1",
        "listeners": "PLAINTEXT://localhost:9092,SSL://:9093,NODES://:9094,CONTROLLER://:9095",
        "advertised.listeners":
            "PLAINTEXT://localhost:9092,SSL://a.example.org:9093,NODES://a.example.org:9094",
        "ssl.keystore.location": "/a/secure/server.pem", "log.dirs": "/data",
    }  # fmt: skip
    assert settings_of_another(here, "/a/secure", "b.example.org") == {
        "listeners": here["listeners"],
        "advertised.listeners":
            "PLAINTEXT://localhost:9092,SSL://b.example.org:9093,NODES://b.example.org:9094",
        "ssl.keystore.location": "{folder}/server.pem", "log.dirs": "/data",
    }  # fmt: skip
