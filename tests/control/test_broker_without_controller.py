"""A broker that knows no controller: it waits, for whoever is told next."""

from types import SimpleNamespace

from appliance.config.load import load
from appliance.control.broker.channel import NOBODY
from appliance.control.broker.node import Node
from appliance.metadata.image import MetadataImage
from appliance.shell.log import Log

SETTINGS = {
    "process.roles": "broker",
    "node.id": "2",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "controller.quorum.voters": "1@127.0.0.1:9093",
}
NOW = 1000


class Link:
    def __init__(self):
        self.asked = []

    def ask(self, api_key, *_):
        self.asked.append(api_key)

    def turn(self):
        return 0

    def close(self):
        pass


def test_who_knows_nobody_to_ask_does_not_look_again_at_once():
    config, _ = load(None, SETTINGS)
    identity = SimpleNamespace(node_id=2, directory_id=bytes(16))
    incarnation = SimpleNamespace(broker_id=bytes(16), endpoints=())
    birth = SimpleNamespace(identity=identity, incarnation=incarnation)
    link, image = Link(), MetadataImage()
    node = Node(config, birth, lambda controller: link, None, None, Log("control"))
    assert node.controller == NOBODY
    assert node.turn(NOW, 0, image, False) > NOW
    assert link.asked == []
