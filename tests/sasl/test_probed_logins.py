"""Readiness where clients log in: ApiVersions is answer enough, the whole probe goes elsewhere."""

import pytest

from appliance.exporter.knock import plain_first, unanswered
from appliance.exporter.post import Address, of_endpoint
from appliance.exporter.probe import NotProbed, failed
from appliance.metadata.parts import Endpoint
from tests.broker_process import KAFKA
from tests.console_process import typing
from tests.sasl.logged import HOST

pytestmark = pytest.mark.skipif(KAFKA, reason="an appliance is looked at")


def at(broker, listener):
    protocol = "PLAINTEXT" if listener == "PLAINTEXT" else "SASL_PLAINTEXT"
    return Address(HOST, broker.ports[listener], listener, protocol)


def test_a_listener_that_asks_for_a_login_answers(broker):
    for listener in broker.names:
        assert unanswered([at(broker, listener)], 30) == ""
    assert "no-progress" not in broker.output()


def test_where_every_listener_asks_for_a_login_nothing_is_probed(broker):
    with pytest.raises(NotProbed, match=r"^every listener asks for a certificate or a login$"):
        failed([at(broker, "STATIC")], 1, "", 1)


def test_the_order_in_which_listeners_are_asked():
    ports = {"SASL_SSL": 1, "SSL": 2, "SASL_PLAINTEXT": 3, "PLAINTEXT": 4}
    found = plain_first([Address(HOST, port, name, name) for name, port in ports.items()])
    assert [one.port for one in found] == [4, 2, 3, 1]


@pytest.mark.parametrize(
    ("number", "protocol", "tls", "login"),
    [(0, "PLAINTEXT", False, False), (1, "SSL", True, False), (2, "SASL_PLAINTEXT", False, True),
     (3, "SASL_SSL", True, True)],
)  # fmt: skip
def test_what_a_node_has_registered(number, protocol, tls, login):
    found = of_endpoint(Endpoint(name="OUT", host=HOST, port=9092, security_protocol=number))
    assert (found.protocol, found.tls, found.logs_in) == (protocol, tls, login)


def test_wait_with_and_without_a_probe(broker):
    run = typing(broker.bootstrap)
    run("wait", "--data", str(broker.data), "--timeout", "30")
    run("wait", "--data", str(broker.data), "--timeout", "30", "--probe")
