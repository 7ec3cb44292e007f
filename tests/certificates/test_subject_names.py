"""Names of certificates' subjects are those that Java gives: what OpenJDK 17 answered to
X500Principal.getName() for the same bytes, once."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.certificates.names import NameUnreadable, distinguished_name, rfc_2253
from tests.certificates.authority import authority, name

GOLDEN = json.loads(Path(__file__).with_name("java_names.json").read_text())


@pytest.mark.parametrize("case", GOLDEN)
def test_a_name_is_written_as_java_writes_it(case):
    der, java = GOLDEN[case]
    assert rfc_2253(bytes.fromhex(der)) == java


def test_the_subject_is_read_out_of_a_certificate():
    one = authority().sign(name("broker", "Acme, Inc."))
    assert distinguished_name(one.der) == "CN=broker,O=Acme\\, Inc."


@given(st.binary(max_size=200))
def test_bytes_that_are_no_certificate_are_refused_and_nothing_else_happens(der):
    with pytest.raises(NameUnreadable):
        distinguished_name(der)


CERTIFICATE = authority().sign("x").der


@given(st.integers(0, len(CERTIFICATE) - 1), st.integers(1, 255))
def test_a_certificate_with_one_byte_changed_gives_a_name_or_is_refused(at, by):
    broken = bytearray(CERTIFICATE)
    broken[at] ^= by
    with suppress(NameUnreadable):
        assert isinstance(distinguished_name(bytes(broken)), str)


@given(st.integers(0, len(CERTIFICATE) - 1))
def test_a_certificate_that_was_cut_is_refused(size):
    with pytest.raises(NameUnreadable):
        distinguished_name(CERTIFICATE[:size])


@pytest.mark.parametrize(
    "der", ["", "0c0161", "3003310130", "30053103300106", "300830063104300206ff"]
)
def test_what_is_no_name_is_refused(der):
    with pytest.raises(NameUnreadable):
        rfc_2253(bytes.fromhex(der))
