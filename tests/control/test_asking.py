"""The other brokers are asked what they keep of a deleted topic before it is brought back."""

from types import SimpleNamespace

import pytest

from appliance.base import errors
from appliance.base.errors import PeerError, Refused
from appliance.control.broker.broker_asker import Asking, BrokerAsker
from appliance.handlers.deleted_topics import LATER, one_name
from appliance.metadata.image import MetadataImage
from appliance.metadata.trash import Buried, Kept, bury, encode_kept
from appliance.peers.conversation import NEVER
from appliance.wire import kraft_records as kraft

ID = b"1" * 16


def buried() -> Buried:
    image = MetadataImage()
    image.apply(0, kraft.TopicRecord(name="t", topic_id=ID))
    return bury(image, image.topics_by_id[ID], 5, size=6, records=7)


class Link:
    def __init__(self):
        self.asked = []
        self.closed = False

    def ask_peer(self, api_key, version, values, done, timeout_ms, lowest):
        assert api_key == 32
        [resource] = values["resources"]
        assert resource["resource_name"] == "penstock:deleted:t"
        self.asked.append((done, timeout_ms))

    def run_once(self):
        return NEVER

    def close(self):
        self.closed = True

    def answer(self, *entries, code=errors.NONE):
        configs = [SimpleNamespace(name=key, value=value) for key, value in entries]
        row = SimpleNamespace(resource_name=one_name("t"), error_code=code, configs=configs)
        self.fail(SimpleNamespace(results=[row]))

    def fail(self, answer):
        self.asked.pop(0)[0](answer)


class World:
    def __init__(self):
        self.links = {2: Link(), 3: Link()}
        self.noted = True
        self.heard = []
        self.asker = BrokerAsker(
            lambda broker: self.links[broker.broker_id],
            lambda name: self.noted,
            lambda netproc, token, what, said: self.heard.append((netproc, token, said)),
        )
        brokers = [SimpleNamespace(broker_id=one) for one in self.links]
        self.asker.ask_brokers(4, 5, Asking(("t",), None), brokers, 1000)

    def turn(self, now_ms):
        return self.asker.run_once(now_ms)


@pytest.fixture
def world():
    return World()


def test_what_all_have_said_is_told_together(world):
    kept = Kept(buried(), frozenset({0, 2}))
    world.links[2].answer((kept.buried.topic_id.hex(), encode_kept(kept)))
    world.turn(1000)
    assert world.heard == []
    world.links[3].answer()
    world.turn(1001)
    assert world.heard == [(4, 5, {2: {"t": [kept]}, 3: {"t": []}})]
    assert all(link.closed for link in world.links.values())
    assert world.turn(1002) == NEVER


def test_who_has_not_heard_of_the_deletion_is_asked_again(world):
    world.links[3].answer()
    world.links[2].answer((LATER, ""))
    assert world.turn(1000) <= 20
    assert not world.links[2].asked
    world.turn(1020)
    world.links[2].answer()
    world.turn(1021)
    assert world.heard == [(4, 5, {2: {"t": []}, 3: {"t": []}})]


@pytest.mark.parametrize(
    "failure",
    [Refused(errors.NETWORK_EXCEPTION, ""), PeerError(errors.REQUEST_TIMED_OUT, "")],
)
def test_of_who_does_not_answer_nothing_is_known(world, failure):
    world.links[2].fail(failure)
    world.links[3].answer()
    world.turn(1000)
    assert world.heard == [(4, 5, {3: {"t": []}})]


def test_nor_of_who_refuses_or_says_what_is_no_topic(world):
    world.links[2].answer(code=errors.CLUSTER_AUTHORIZATION_FAILED)
    world.links[3].answer(("x", '{"name": 3}'))
    world.turn(1000)
    assert world.heard == [(4, 5, {})]


def test_apache_kafka_keeps_nothing(world):
    for link in world.links.values():
        link.answer(code=errors.INVALID_TOPIC_EXCEPTION)
    world.turn(1000)
    assert world.heard == [(4, 5, {2: {"t": []}, 3: {"t": []}})]


def test_who_hangs_is_waited_for_some_seconds(world):
    world.links[3].answer()
    assert world.turn(1000) <= 3000
    world.turn(3999)
    assert not world.heard
    world.turn(4000)
    assert world.heard == [(4, 5, {3: {"t": []}})]
    assert world.links[2].closed
    world.links[2].fail(PeerError(errors.NETWORK_EXCEPTION, ""))  # closing it says so
    assert world.turn(4001) == NEVER


def test_what_is_to_be_kept_here_is_noted_first(world):
    world.noted = False
    for link in world.links.values():
        link.answer()
    assert world.turn(1000) <= 20
    assert not world.heard
    world.noted = True
    world.turn(1020)
    assert len(world.heard) == 1


def test_the_dead_hear_nothing(world):
    world.asker.forget_netproc(4)
    assert world.turn(9000) == NEVER
    assert not world.heard
    assert all(link.closed for link in world.links.values())
