"""A caller crosses rings as it is, and bytes that are none are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.caller import ANONYMOUS, Caller, Principal, decode
from appliance.base.errors import MalformedRequest

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
CALLERS = st.builds(Caller, st.builds(Principal, TEXT, TEXT), TEXT, TEXT, TEXT, st.booleans())
GOLDEN = Caller(ANONYMOUS, "läd\0er", "::1", "PLAINTEXT")
BYTES = (
    bytes.fromhex("04000000 09000000 07000000 03000000 09000000 00000000")
    + b"User"
    + b"ANONYMOUS"
    + b"l\xc3\xa4d\0er"
    + b"::1"
    + b"PLAINTEXT"
)


def test_the_bytes_are_these():
    assert GOLDEN.encode() == BYTES
    assert decode(BYTES) == GOLDEN


@given(CALLERS)
def test_what_is_encoded_is_decoded(caller):
    assert decode(caller.encode()) == caller


@given(CALLERS, CALLERS)
def test_two_callers_have_two_encodings(one, other):
    assert (one.encode() == other.encode()) == (one == other)


@given(CALLERS, st.data())
def test_whatever_is_cut_or_longer_is_refused(caller, data):
    encoded = caller.encode()
    cut = data.draw(st.integers(0, len(encoded) - 1))
    for wrong in (encoded[:cut], encoded + b"\0"):
        with pytest.raises(MalformedRequest):
            decode(wrong)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_caller_or_refused(data):
    try:
        found = decode(data)
    except MalformedRequest:
        return
    assert found.encode() == data


def test_what_is_not_utf_8_is_refused():
    with pytest.raises(MalformedRequest, match="UTF-8"):
        decode(BYTES.replace(b"::1", b"::\xff"))
