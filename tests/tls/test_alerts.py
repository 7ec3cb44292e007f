"""What a client hears when a handshake comes to nothing: the alert of TLS (RFC 8446, 6.2), on an
appliance and on Apache Kafka. docs/differences.md tells where they differ."""

import ssl

import pytest

from benchmarks import requests
from benchmarks.peer import Wire
from tests.broker_process import KAFKA

OLD, NEW = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def heard(broker, listener, context):
    """OpenSSL's name for it. With TLS 1.3 a client that is refused for its certificate hears it
    with its first answer."""
    with (
        pytest.raises(ssl.SSLError) as problem,
        Wire(broker.address(listener), context=context) as wire,
    ):
        wire.call(requests.api_versions())
    return problem.value.reason


@pytest.mark.parametrize("version", [OLD, NEW], ids=["TLS 1.2", "TLS 1.3"])
@pytest.mark.parametrize(
    ("certificate", "ours", "kafkas"),
    [
        ("foreign", "TLSV1_ALERT_UNKNOWN_CA", "SSLV3_ALERT_CERTIFICATE_UNKNOWN"),
        ("expired", "SSLV3_ALERT_CERTIFICATE_EXPIRED", "SSLV3_ALERT_CERTIFICATE_UNKNOWN"),
    ],
)
@pytest.mark.parametrize("listener", ["REQUESTED", "MUTUAL"])
def test_a_certificate_that_is_not_taken(broker, pki, listener, version, certificate, ours, kafkas):
    """Ours says what is wrong with it."""
    context = pki.context(certificate=certificate, version=version)
    assert heard(broker, listener, context) == (kafkas if KAFKA else ours)


@pytest.mark.parametrize(
    ("version", "ours"),
    [(OLD, "SSLV3_ALERT_HANDSHAKE_FAILURE"), (NEW, "TLSV13_ALERT_CERTIFICATE_REQUIRED")],
    ids=["TLS 1.2", "TLS 1.3"],
)
def test_no_certificate_where_one_is_required(broker, pki, version, ours):
    """As RFC 5246, 7.4.6 and RFC 8446, 4.4.2.4 have it; Java says bad_certificate of both."""
    wanted = "SSLV3_ALERT_BAD_CERTIFICATE" if KAFKA else ours
    assert heard(broker, "MUTUAL", pki.context(version=version)) == wanted


@pytest.mark.parametrize(
    ("version", "listener"), [(OLD, "NEWER"), (NEW, "OLDER")], ids=["TLS 1.2", "TLS 1.3"]
)
def test_a_version_that_is_not_spoken(broker, pki, version, listener):
    context = pki.context(version=version)
    assert heard(broker, listener, context) == "TLSV1_ALERT_PROTOCOL_VERSION"


def test_no_suite_in_common(broker, pki):
    context = pki.context(version=OLD)
    context.set_ciphers("AES128-SHA")  # with a key exchange for RSA keys alone
    assert heard(broker, "SSL", context) == "SSLV3_ALERT_HANDSHAKE_FAILURE"
