"""PLAIN: what Apache Kafka's PlainSaslServer says to each message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.authentication import plain
from appliance.authentication.refused import LoginRefused


@pytest.mark.parametrize(("message", "told"), [
    (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    (b"a\0b", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
    (b"a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    (b"\0\0secret", "Authentication failed: username not specified"),
    (b"\0alice\0", "Authentication failed: password not specified"),
])  # fmt: skip
def test_what_is_refused(message, told):
    with pytest.raises(LoginRefused) as refused:
        plain.parse(message)
    assert refused.value.told == told


def test_who_wants_to_act_as_another():
    plain.parse(b"alice\0alice\0secret").check_acts_as()
    plain.parse(b"\0alice\0secret").check_acts_as()
    with pytest.raises(LoginRefused, match="authorization id that is different"):
        plain.parse(b"root\0alice\0secret").check_acts_as()


def test_static_users():
    users = {"alice": "secret", "empty": ""}
    assert plain.is_known(users, "alice", "secret")
    assert not plain.is_known(users, "alice", "Secret")
    assert not plain.is_known(users, "bob", "secret")
    assert not plain.is_known(users, "nobody", "")
    assert plain.is_known({"é": "ü"}, "é", "ü")


@given(st.binary(max_size=100))
def test_any_bytes_are_a_claim_or_refused(data):
    try:
        claim = plain.parse(data)
    except LoginRefused:
        return
    assert claim.user and claim.password and not plain.is_known({}, claim.user, claim.password)
