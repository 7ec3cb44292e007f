"""Tokens of any bytes and of any claims: somebody, or refused; nothing else is ever raised."""

import base64
import contextlib
import json

import jwt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from appliance.authentication.oauthbearer import parse_bearer
from appliance.authentication.refused import LoginRefused
from appliance.authentication.tokens import TokenRefused, Verified, parse_keys, verify_token
from tests.authentication.test_token_rules import RULES
from tests.sasl.provider import AUDIENCE, ISSUER, Provider

PROVIDER = Provider()
KEYS = parse_keys(PROVIDER.jwks())
GOOD = PROVIDER.token(exp=4_000_000_000)
DEEP = "[" * 20_000
bounded = settings(max_examples=150, deadline=None)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
claims = st.dictionaries(
    st.sampled_from(["sub", "iss", "aud", "iat", "exp", "nbf", "scope", "jti"]), values
)


def part(text):
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def decided(token):
    """Who it is, None for a refusal."""
    with contextlib.suppress(TokenRefused):
        found = verify_token(token, KEYS, RULES)
        assert isinstance(found, Verified) and found.user.strip()
        return found
    return None


@bounded
@given(st.text(max_size=60) | st.lists(st.text(max_size=30), max_size=4).map(".".join))
@example(f"{part(DEEP)}.{part('{}')}.x")
def test_any_text_is_no_token(text):
    assert decided(text) is None


@bounded
@given(
    st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "zip"]), values), claims
)
def test_any_head_without_a_signature_is_refused(head, told):
    assert decided(f"{part(json.dumps(head))}.{part(json.dumps(told))}.{part('x' * 256)}") is None


@bounded
@given(st.integers(0, len(GOOD) - 1), st.sampled_from("AZaz09-_.= é"))
def test_a_token_with_one_letter_changed_is_refused(at, letter):
    changed = GOOD[:at] + letter + GOOD[at + 1 :]
    if decided(changed) is not None:
        assert _bytes(changed) == _bytes(GOOD)
    else:
        assert changed != GOOD


def _bytes(token):
    """What a token says: the last letter of a part has bits that say nothing."""
    try:
        return [base64.urlsafe_b64decode(one + "=" * (-len(one) % 4)) for one in token.split(".")]
    except ValueError:
        return token


@bounded
@given(claims)
@example({"exp": float("inf")})
@example({"exp": float("nan")})
@example({"exp": 4e9, "iat": "1"})
@example({"exp": 4e9, "iat": [1]})
@example({"exp": 4e9, "iat": 1, "nbf": "1"})
@example({"exp": 10**400, "iat": 1})
@example({"exp": "4000000000", "iat": 1})
@example({"exp": "4000000000", "iat": "1"})
@example({"exp": 4e9, "iat": None})
def test_whatever_an_issuer_signs_is_somebody_or_refused(told):
    usual = {"sub": "carol", "iss": ISSUER, "aud": AUDIENCE, "iat": 1, "exp": 4_000_000_000}
    _, key = PROVIDER.keys["first"]
    payload = json.dumps(usual | told).encode()
    decided(jwt.api_jws.encode(payload, key, "RS256", headers={"kid": "first"}))


@bounded
@given(st.binary(max_size=200) | values.map(lambda one: json.dumps({"keys": one}).encode()))
@example(DEEP.encode())
@example(b'{"keys": [{"kty": []}]}')
def test_any_bytes_are_keys_or_refused(data):
    try:
        keys = parse_keys(data)
    except ValueError:
        return
    with contextlib.suppress(TokenRefused):
        verify_token(GOOD, keys, RULES)


@bounded
@given(st.binary(max_size=200))
@example(b"n,,\x01auth=Bearer\x01\x01")
@example(b"n,a=x,\x01a\x01auth=Bearer x\x01\x01")
def test_any_bytes_are_a_bearer_or_refused(data):
    for message in (data, b"n,," + data, b"n,,\x01auth=Bearer " + data + b"\x01\x01"):
        with contextlib.suppress(LoginRefused):
            assert parse_bearer(message).token


def test_the_good_one_is_good():
    assert decided(GOOD) == ("carol", 4_000_000_000_000)
    with pytest.raises(TokenRefused):
        verify_token(GOOD, [], RULES)
