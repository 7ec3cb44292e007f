"""Tokens: who signed them, for whom, for how long. Keys: read over https within bounds."""

import json
import ssl

import pytest
from jwt.warnings import InsecureKeyLengthWarning

from appliance.authentication.oauthbearer import parse_bearer
from appliance.authentication.refused import LoginRefused
from appliance.authentication.tokens import (
    KeyPlace,
    TokenRefused,
    TokenRules,
    UnknownKey,
    parse_keys,
    verify_token,
)
from appliance.netproc.sasl import jwks
from appliance.netproc.sasl.jwks import TokenKeys, read_url
from tests.sasl.provider import AUDIENCE, ISSUER, Provider, Served
from tests.tls_front import Authority

RULES = TokenRules((AUDIENCE,), ISSUER)
MS = 1_000_000


def is_good(token, keys):
    try:
        verify_token(token, keys, RULES)
    except TokenRefused:
        return False
    return True


@pytest.fixture(scope="module")
def provider():
    return Provider()


@pytest.fixture(scope="module")
def keys(provider):
    return parse_keys(provider.jwks())


def test_a_good_token_says_who_it_is_and_until_when(provider, keys):
    found = verify_token(provider.token(exp=4_000_000_000), keys, RULES)
    assert found == ("carol", 4_000_000_000_000)
    named = TokenRules((AUDIENCE,), ISSUER, user_claim="email")
    assert verify_token(provider.token(email="c@example.org"), keys, named).user == "c@example.org"


def test_every_bad_token_is_refused(provider, keys):
    assert [name for name, token in provider.bad().items() if is_good(token, keys)] == []


def test_an_unknown_key_is_told_from_a_wrong_signature(provider, keys):
    bad = provider.bad()
    with pytest.raises(UnknownKey):
        verify_token(bad["of an unknown key"], keys, RULES)
    with pytest.raises(UnknownKey):
        verify_token(provider.token(), [], RULES)
    with pytest.raises(TokenRefused) as refused:
        verify_token(bad["signed by a stranger"], keys, RULES)
    assert not isinstance(refused.value, UnknownKey)


def test_small_and_secret_keys_are_no_keys():
    small = Provider()
    small.add_key("first", bits=1024)
    with pytest.warns(InsecureKeyLengthWarning):
        token = small.token()
    with pytest.raises(TokenRefused, match="2048"):
        verify_token(token, parse_keys(small.jwks()), RULES)
    assert parse_keys(json.dumps({"keys": [{"kty": "oct", "k": "AA"}, 7]}).encode()) == []
    for wrong in (b"[]", b"{}", b"x", json.dumps({"keys": [{}] * 101}).encode()):
        with pytest.raises(ValueError, match=r"keys|JSON|value"):
            parse_keys(wrong)


NO_MESSAGES = (
    *(b"", b"n,,", b"n,,\x01\x01", b"n,,\x01auth=Bearer\x01\x01", b"\xff" * 100),
    b"n,,\x01auth=Bearer a.b.c\x01" + b"\x01" * 9,
)


@pytest.mark.parametrize("data", NO_MESSAGES)
def test_what_is_no_message_is_refused(data):
    with pytest.raises(LoginRefused):
        parse_bearer(data)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("https")
    authority = Authority(folder)
    certificate, key, *_ = authority.certificate("localhost", "localhost")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    running = Served(server)
    running.trusting = ssl.create_default_context(cafile=authority.ca)
    yield running
    running.close()


def test_keys_come_over_https_only_from_whom_we_trust_and_within_bounds(served, monkeypatch):
    assert len(parse_keys(read_url(served.url, served.trusting))) == 1
    with pytest.raises(ssl.SSLError):
        read_url(served.url)
    with pytest.raises(ValueError, match="only"):
        read_url(served.url.replace("https", "http"))
    served.status = 302
    with pytest.raises(ValueError, match="302"):
        read_url(served.url, served.trusting)
    served.status = 200
    monkeypatch.setattr(jwks, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        read_url(served.url, served.trusting)


def test_keys_are_asked_for_no_more_often_than_the_backoff_allows(served):
    now, told = [1], []
    place = KeyPlace(served.url, 3_600_000, 100, 10_000)
    keys = TokenKeys(place, told.append, lambda: now[0], served.trusting)
    assert keys.are_old and keys.renew() and not keys.are_old
    before = served.asked
    for _ in range(100):
        assert not keys.renew()
    assert served.asked == before, "a flood of unknown keys asks the issuer nothing"
    served.add_key("second")
    now[0] += 10_000 * MS
    assert keys.renew() and len(keys.keys) == 2
    now[0] += 3_600_000 * MS
    assert keys.are_old
    served.status = 500
    assert not keys.renew() and len(keys.keys) == 2, "the earlier ones stay in force"
    assert "status 500" in told[0]
    served.status = 200
    now[0] += 200 * MS
    keys.renew()
    assert not keys.are_old
