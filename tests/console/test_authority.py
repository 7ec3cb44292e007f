"""A certificate authority of ours: OpenSSL believes what it signs for the names that were said,
and nothing else is."""

import datetime
import ipaddress
import socket
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from console.model.secure.authority import Authority, new_authority

NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)


@pytest.fixture(scope="module")
def authority():
    return Authority(*new_authority("Penstock CA", NOW))


def agreed(authority, issued, name, tmp_path):
    """The certificate that a client sees, who verifies this name of the server."""
    chain = tmp_path / "server.pem"
    chain.write_bytes(issued.key + issued.certificate)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(chain)
    asking = ssl.create_default_context(cadata=authority.certificate.decode())
    ours, theirs = socket.socketpair()

    def serve():
        try:
            with serving.wrap_socket(theirs, server_side=True) as peer:
                peer.recv(1)
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        with asking.wrap_socket(ours, server_hostname=name) as peer:
            return peer.getpeercert()
    finally:
        ours.close()
        thread.join(10)


@pytest.mark.parametrize("name", ["edge.example.org", "localhost", "10.1.2.3", "::1"])
def test_a_server_is_believed_by_each_of_its_names(authority, tmp_path, name):
    hosts = ["edge.example.org", "localhost", "10.1.2.3", "::1"]
    assert agreed(authority, authority.issue_server(hosts, NOW), name, tmp_path)


def test_another_name_is_not_believed(authority, tmp_path):
    issued = authority.issue_server(["edge.example.org"], NOW)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        agreed(authority, issued, "other.example.org", tmp_path)


def test_another_authority_is_not_believed(authority, tmp_path):
    other = Authority(*new_authority("Penstock CA", NOW))
    issued = other.issue_server(["localhost"], NOW)
    signed = x509.load_pem_x509_certificate(issued.certificate)
    signed.verify_directly_issued_by(x509.load_pem_x509_certificate(other.certificate))
    with pytest.raises(InvalidSignature):
        signed.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    with pytest.raises(ssl.SSLCertVerificationError):
        agreed(authority, issued, "localhost", tmp_path)


def test_what_it_signs_cannot_sign_others(authority, tmp_path):
    server = authority.issue_server(["localhost"], NOW)
    with pytest.raises(ValueError, match="not one of an authority"):
        Authority(server.certificate, server.key)


def test_a_key_of_another_certificate_is_refused(authority):
    other = new_authority("Penstock CA", NOW)
    with pytest.raises(ValueError, match="does not belong"):
        Authority(authority.certificate, other.key)


def test_a_certificate_ends_with_its_authority():
    short = Authority(*new_authority("Penstock CA", NOW, days=3))
    signed = x509.load_pem_x509_certificate(short.issue_server(["a"], NOW, days=30).certificate)
    assert signed.not_valid_after_utc == short.ends == NOW + datetime.timedelta(days=3)


def test_names_and_addresses_are_told_apart_and_doubles_told_once(authority):
    hosts = ["a.example", "a.example", "192.0.2.7", "[2001:db8::1]", "bücher.example"]
    signed = x509.load_pem_x509_certificate(authority.issue_server(hosts, NOW).certificate)
    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example", "xn--bcher-kva.example"]
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("192.0.2.7"),
        ipaddress.ip_address("2001:db8::1"),
    ]
    assert isinstance(signed.public_key(), ec.EllipticCurvePublicKey)


@pytest.mark.parametrize("host", ["", "a b", "x" * 64 + ".example", "a/b", "né\0"])
def test_what_is_no_name_of_a_host_is_refused(authority, host):
    with pytest.raises(ValueError, match="no name of a host"):
        authority.issue_server([host], NOW)


def test_nobody_to_name_is_refused(authority):
    with pytest.raises(ValueError, match="at least one host"):
        authority.issue_server([], NOW)
