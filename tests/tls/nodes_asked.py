"""Requests of any API to a node in TLS, with values as `appliance.wire.build` takes them."""

from appliance.wire.build import build
from appliance.wire.messages import encode_request, is_flexible, request_type


def send(link, key, version, /, **values):
    body = encode_request(build(request_type(key, version), values))
    link.send_raw(key, version, body, is_flexible(key, version))


def ask(link, key, version, /, **values):
    send(link, key, version, **values)
    return link.receive()


def codes(node):
    """Every error code in an answer, by Kafka's names."""
    if isinstance(node, dict):
        found = {node["error_code"].upper()} if "error_code" in node else set()
        return found.union(*map(codes, node.values()))
    return set().union(*map(codes, node)) if isinstance(node, list) else set()
