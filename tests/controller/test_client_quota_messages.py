"""APIs 48 and 49 from bytes to bytes, in both versions."""

from types import SimpleNamespace

import pytest
from kio.index import load_request_schema

from appliance.base import errors
from appliance.handlers.admin_apis import APIS
from appliance.metadata.image import MetadataImage
from appliance.metadata.record_versions import encode
from appliance.wire import kraft_records as kraft
from appliance.wire.build import build, response
from appliance.wire.messages import decode_request, decode_response, encode_request, encode_response


def ask(image, key, version, **values):
    body = encode_request(build(load_request_schema(key, version), values))
    context = SimpleNamespace(situation=SimpleNamespace(image=image))
    answer = APIS[key].decide(decode_request(key, version, body), version, context)
    for record in answer.records:
        image.apply(image.applied_offset + 1, kraft.decode(encode(record, 30)))
    encoded = encode_response(response(key, version, answer.values))
    return decode_response(key, version, encoded)


def alter(image, version, value, *, validate_only=False):
    op = {"key": "consumer_byte_rate", "value": value, "remove": False}
    entity = [{"entity_type": "client-id", "entity_name": None}]
    entries = [{"entity": entity, "ops": [op]}]
    [entry] = ask(image, 49, version, entries=entries, validate_only=validate_only).entries
    assert entry.entity[0].entity_type == "client-id" and entry.entity[0].entity_name is None
    return entry


@pytest.mark.parametrize("version", [0, 1])
def test_what_was_altered_is_described(version):
    image = MetadataImage()
    assert alter(image, version, 5.0, validate_only=True).error_code == 0
    assert image.quotas == {}
    refused = alter(image, version, -5.0)
    assert refused.error_code == errors.INVALID_REQUEST and "greater" in refused.error_message
    assert alter(image, version, 5.0).error_code == 0
    component = {"entity_type": "client-id", "match_type": 1, "match": None}
    answer = ask(image, 48, version, components=[component], strict=True)
    [entry] = answer.entries
    assert answer.error_code == 0
    assert [(one.key, one.value) for one in entry.values] == [("consumer_byte_rate", 5.0)]
    component["entity_type"] = "nation"
    answer = ask(image, 48, version, components=[component], strict=True)
    assert answer.error_code == errors.UNSUPPORTED_VERSION and answer.entries is None
