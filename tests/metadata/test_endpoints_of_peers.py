"""Nodes reach one another by a listener that speaks plaintext."""

import pytest

from appliance.metadata.endpoints import inter_broker, of_peers
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import BrokerImage, Endpoint

SSL = Endpoint(name="SSL", host="a", port=9093, security_protocol=1)
PLAIN = Endpoint(name="PLAINTEXT", host="a", port=9092, security_protocol=0)
INSIDE = Endpoint(name="INSIDE", host="b", port=9094, security_protocol=0)


def broker(*endpoints):
    return BrokerImage(broker_id=1, incarnation_id=b"i" * 16, epoch=0, endpoints=endpoints)


@pytest.mark.parametrize(
    ("endpoints", "listener", "found"),
    [
        ((PLAIN, INSIDE), None, PLAIN),
        ((SSL, PLAIN), None, PLAIN),
        ((SSL, PLAIN, INSIDE), "INSIDE", INSIDE),
        ((SSL, PLAIN), "", PLAIN),
        ((SSL,), None, None),
        ((PLAIN,), "INSIDE", None),
        ((), None, None),
    ],
)
def test_the_first_plain_listener_is_taken_where_none_is_named(endpoints, listener, found):
    assert of_peers(broker(*endpoints), listener) == found


def test_the_address_is_found_by_the_id_of_a_node():
    image = MetadataImage()
    image.brokers[1] = broker(SSL, PLAIN)
    assert inter_broker(image, 1, None) == ("a", 9092)
    assert inter_broker(image, 2, None) is None
