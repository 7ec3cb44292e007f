"""What an Envelope carries, against kio's schemas and hostile bytes."""

import pytest
from kio.schema.default_principal_data.v0.data import DefaultPrincipalData

from appliance.base.errors import MalformedRequest
from appliance.wire.envelope import (
    decode_address,
    decode_principal,
    disclose,
    disclose_answer,
    enclose,
    enclose_answer,
    encode_address,
    encode_principal,
)
from appliance.wire.messages import encode_request


def test_a_principal_is_written_as_kafka_does():
    for by_token in (False, True):
        kio = DefaultPrincipalData(type_="User", name="ännchen", token_authenticated=by_token)
        ours = encode_principal("User", "ännchen", by_token)
        assert ours == b"\0\0" + encode_request(kio)
        assert decode_principal(ours) == ("User", "ännchen", by_token)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\0\0\x05Us", b"\xff\xff\x01\x01\0\0"])
def test_a_principal_that_cannot_be_read_is_malformed(data):
    with pytest.raises(MalformedRequest):
        decode_principal(data)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", ""])
def test_addresses(address):
    assert decode_address(encode_address(address)) == address


def test_an_address_of_another_length_is_malformed():
    with pytest.raises(MalformedRequest):
        decode_address(b"12345")


@pytest.mark.parametrize(("key", "version"), [(19, 7), (19, 2), (33, 0), (43, 2)])
def test_a_request_and_its_answer_travel_with_headers(key, version):
    request = disclose(enclose(key, version, "me", b"body"))
    assert request == (key, version, 0, "me", b"body")
    assert disclose_answer(key, version, enclose_answer(request, b"answer")) == b"answer"


@pytest.mark.parametrize("data", [b"", b"123", bytes(9)])
def test_what_is_no_request_is_malformed(data):
    with pytest.raises(MalformedRequest):
        disclose(data)
    with pytest.raises(MalformedRequest):
        disclose_answer(19, 7, data[:3])
