"""Nodes reach one another by the listener that is named, else by the first of their protocol."""

import pytest

from appliance.config.between_nodes import NodeRoute
from appliance.metadata.endpoints import inter_broker, of_peers
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import BrokerImage, Endpoint

SSL = Endpoint(name="SSL", host="a", port=9093, security_protocol=1)
PLAIN = Endpoint(name="PLAINTEXT", host="a", port=9092, security_protocol=0)
INSIDE = Endpoint(name="INSIDE", host="b", port=9094, security_protocol=0)
BY_PLAINTEXT, BY_TLS = NodeRoute("PLAINTEXT", "PLAINTEXT"), NodeRoute("SSL", "SSL")
BY_NAME = NodeRoute("INSIDE", "PLAINTEXT", "INSIDE")


def broker(*endpoints):
    return BrokerImage(broker_id=1, incarnation_id=b"i" * 16, epoch=0, endpoints=endpoints)


@pytest.mark.parametrize(
    ("endpoints", "way", "found"),
    [
        ((PLAIN, INSIDE), BY_PLAINTEXT, PLAIN),
        ((SSL, PLAIN), BY_PLAINTEXT, PLAIN),
        ((SSL, PLAIN), BY_TLS, SSL),
        ((SSL, PLAIN, INSIDE), BY_NAME, INSIDE),
        ((SSL,), BY_PLAINTEXT, None),
        ((PLAIN, INSIDE), BY_TLS, None),
        ((PLAIN,), BY_NAME, None),
        ((), BY_PLAINTEXT, None),
    ],
)
def test_the_first_listener_of_the_protocol_is_taken_where_none_is_named(endpoints, way, found):
    assert of_peers(broker(*endpoints), way) == found


def test_the_address_is_found_by_the_id_of_a_node():
    image = MetadataImage()
    image.brokers[1] = broker(SSL, PLAIN)
    assert inter_broker(image, 1, BY_PLAINTEXT) == ("a", 9092)
    assert inter_broker(image, 2, BY_PLAINTEXT) is None
