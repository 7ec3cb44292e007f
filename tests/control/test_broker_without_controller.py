"""A broker that its controller has not registered yet: it waits, for whoever is told next, and
keeps what that one has to hear."""

from types import SimpleNamespace

import pytest

from appliance.base import errors
from appliance.base.errors import CannotServe, PeerError
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
        self.asked, self.waits = [], []

    def ask_peer(self, api_key, version, values, done, timeout_ms):
        self.asked.append(api_key)
        self.waits.append(done)

    def run_once(self):
        return 0

    def close(self):
        pass


@pytest.fixture
def link():
    return Link()


def node_of(link, previous_epoch=-1, **changed):
    config, _ = load(None, {**SETTINGS, **changed})
    identity = SimpleNamespace(node_id=2, directory_id=bytes(16), cluster_id="c")
    incarnation = SimpleNamespace(broker_id=bytes(16), endpoints=(), rack=None)
    birth = SimpleNamespace(
        identity=identity, incarnation=incarnation, log_dirs=(), previous_epoch=previous_epoch
    )
    return Node(config, birth, lambda controller: link, None, None, Log("control"))


def test_who_knows_nobody_to_ask_does_not_look_again_at_once(link):
    node = node_of(link)
    assert node.controller == NOBODY
    assert node.run_once(NOW, 0, MetadataImage(), False) > NOW
    assert link.asked == []


def test_a_loss_is_kept_until_the_controller_has_registered_it(link):
    """Else the next start would say that this one, which ended in order, had lost nothing."""
    node, image = node_of(link), MetadataImage()
    assert node.keeps_a_loss
    node.turn_to(1, image)
    node.run_once(NOW, 0, image, False)
    assert link.asked == [62]
    link.waits.pop()(PeerError(errors.NETWORK_EXCEPTION, "it hung up"))
    assert node.keeps_a_loss, "it may not have heard"
    node.run_once(2 * NOW, 0, image, False)
    link.waits.pop()(SimpleNamespace(error_code=errors.NONE, broker_epoch=7))
    assert not node.keeps_a_loss
    node.run_once(10 * NOW, 0, image, False)
    link.waits.pop()(SimpleNamespace(error_code=errors.STALE_BROKER_EPOCH))
    assert not node.keeps_a_loss, "it has heard, whatever came then"


def test_who_lost_nothing_keeps_no_loss(link):
    assert not node_of(link, previous_epoch=5).keeps_a_loss


def test_who_is_no_broker_has_nothing_to_lose(link):
    roles = {
        "process.roles": "controller",
        "listeners": "CONTROLLER://127.0.0.1:9093",
        "controller.quorum.voters": "2@127.0.0.1:9093,3@127.0.0.1:9094",
    }
    assert not node_of(link, **roles).keeps_a_loss


def test_a_node_ends_that_another_living_one_keeps_out(link):
    node = node_of(link, **{"initial.broker.registration.timeout.ms": "5000"})
    node.turn_to(1, MetadataImage())

    def refuse(now):
        node.run_once(now, 0, MetadataImage(), False)
        waits, link.waits = link.waits, []
        for done in waits:
            done(SimpleNamespace(error_code=errors.DUPLICATE_BROKER_REGISTRATION))

    for now in range(NOW, NOW + 5000, 500):
        refuse(now)  # its own former life is waited for
    with pytest.raises(CannotServe, match=r"another living node has node\.id=2: every node"):
        refuse(NOW + 6000)
