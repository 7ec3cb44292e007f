"""Connections that a node opens: they show the listener's certificate, believe its trust store, and
go on with what can be used."""

import ssl

import pytest

from appliance.base.errors import ConfigError
from appliance.certificates.client_certificates import OutgoingCertificates
from tests.certificates.authority import authority
from tests.certificates.shown import SECOND_NS, Failed, handshake


class Moved:
    """A clock that a test moves."""

    def __init__(self):
        self.ns = 0

    def monotonic_ns(self):
        return self.ns


@pytest.fixture
def clock():
    return Moved()


@pytest.fixture
def outgoing(place, clock):
    place.given["ssl_truststore_location"] = place.trust
    return OutgoingCertificates(place.settings, "SSL", clock)


def accepting(place):
    """The other node's side, with the same settings: it demands a certificate."""
    return place.certificates(ssl_client_auth="required").context("SSL")


def shown(place, outgoing):
    ours, _ = handshake(accepting(place), outgoing.context())
    return ours.getpeercert(binary_form=True)


def test_it_checks_names_and_shows_what_the_listener_shows(place, outgoing):
    context = outgoing.context()
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert shown(place, outgoing) == place.pair.der
    with pytest.raises(Failed, match="Hostname mismatch"):
        handshake(accepting(place), context, host="elsewhere.example")


def test_names_are_not_checked_where_the_algorithm_is_empty(place, outgoing):
    place.given["ssl_endpoint_identification_algorithm"] = ""
    context = outgoing.context()
    assert not context.check_hostname
    handshake(accepting(place), context, host="elsewhere.example")


def test_a_node_of_another_authority_is_not_believed(place, outgoing):
    place.trust.write_bytes(authority("Another").chain_pem())
    context = outgoing.context()
    place.trust.write_bytes(place.root.chain_pem())
    with pytest.raises(Failed, match="certificate verify failed"):
        handshake(accepting(place), context)


def test_a_file_that_changed_is_shown_from_a_second_later_on(place, outgoing, clock):
    before, first = place.pair, outgoing.context()
    after = place.write(place.root.sign("broker"))
    assert outgoing.context() is first
    clock.ns += SECOND_NS
    assert shown(place, outgoing) == after.der != before.der


def test_what_cannot_be_used_never_takes_the_place_of_what_can(place, outgoing, clock):
    first = outgoing.context()
    place.store.write_bytes(b"no certificate")
    clock.ns += SECOND_NS
    assert outgoing.context() is first
    after = place.write(place.root.sign("broker"))
    clock.ns += SECOND_NS
    assert shown(place, outgoing) == after.der


def test_without_any_that_can_be_used_it_says_why_and_tries_again(place, outgoing):
    pair = place.pair
    place.store.unlink()
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"ssl\.keystore\.location"):
            outgoing.context()
    place.write(pair)
    assert shown(place, outgoing) == pair.der
