"""Requests of any API to a node in TLS, with values as `appliance.wire.build` takes them; where
nodes reach nodes, and what their quorum has."""

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


def doors(nodes):
    """Where nodes are reached by nodes, and nobody else by plaintext."""
    controllers = {place.number: place.controller_port for place in nodes.places}
    for number, node in nodes.all.items():
        yield node.host, node.brokers_port
        yield node.host, controllers[number]


def quorum_of(nodes):
    """(leader, epoch), and what quorum-state has, by node."""
    topic = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    [told] = nodes.ask(55, 1, {"topics": [topic]})["topics"][0]["partitions"]
    files = [next(one.data.rglob("quorum-state")).read_text() for one in nodes.all.values()]
    return told["leader_id"], told["leader_epoch"], files
