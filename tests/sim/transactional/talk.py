"""What clients and the network process say to each other: Kafka's requests and answers."""

from typing import NamedTuple

from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request, request_type


class Ask(NamedTuple):
    """token: of the client. body: without the header."""

    token: int
    key: int
    version: int
    body: bytes


class Answer(NamedTuple):
    token: int
    body: bytes


def ask(token, key, version, fields):
    """fields: of the request, by name."""
    return Ask(token, key, version, encode_request(build(request_type(key, version), fields)))


def answer(asked, body):
    """The answer to an Ask, decoded."""
    return decode_response(asked.key, asked.version, body)
