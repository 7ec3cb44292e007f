"""What a network process asks of other nodes: the answer comes to the handler that waits for it."""

from types import SimpleNamespace

import pytest
from peers.other_side import OtherSide, greeted, server, turns

from appliance.authorization.rights import OURSELVES
from appliance.base import errors
from appliance.base.clock import OsClock
from appliance.config.broker import BrokerConfig
from appliance.handlers.exchange import Exchange, Handler, never
from appliance.metadata.image import MetadataImage
from appliance.netproc.connections.request_time import Stopwatch
from appliance.netproc.in_flight.exchanges import NO_NUMBER, Exchanges
from appliance.netproc.in_flight.node_questions import NodeQuestions
from appliance.netproc.in_flight.outbox import NOBODY_HOME
from appliance.netproc.requests.completions import Completions
from appliance.ring.messages import ANSWERED
from appliance.shell.log import Log
from appliance.wire import kraft_records as kraft
from appliance.wire import messages
from appliance.wire.build import build

__all__ = ["server", "turns"]  # fixtures
pytestmark = pytest.mark.interpreted("completions without a host")
KEY, VERSION = 24, 5
ANSWER = {"throttle_time": 0, "error_code": errors.NOT_COORDINATOR, "results_by_transaction": []}


class Side(OtherSide):
    def greet(self):
        keys = [{"api_key": KEY, "min_version": 0, "max_version": VERSION}]
        self.answer(self.take(), {"error_code": 0, "api_keys": keys, "throttle_time": 0})


class World:
    """Node 1 knows node 2 at this address. completed: (index, message, payload)."""

    def __init__(self, turns, host, port):
        self.turns = turns
        self.completed = []
        image = MetadataImage()
        where = kraft.BrokerEndpoint(name="PLAINTEXT", host=host, port=port, security_protocol=0)
        other = where.__class__(name="OTHER", host=host, port=1, security_protocol=0)
        registered = kraft.RegisterBrokerRecord(
            broker_id=2, incarnation_id=bytes(16), broker_epoch=1, end_points=(other, where),
            features=(), rack=None, fenced=False,
        )  # fmt: skip
        image.apply(0, registered)
        config = BrokerConfig.of({"inter.broker.listener.name": "PLAINTEXT"})
        follower = SimpleNamespace(image=image)
        self.questions = NodeQuestions(config, follower, turns, OsClock(), Log("netproc-0"))
        self.exchanges = Exchanges()
        self.completions = Completions(None, self.exchanges, None, Stopwatch(None))

    def exchange(self):
        connection = SimpleNamespace(closed=False)
        handler = Handler(0, "Produce", 3, 13, never, self.complete)
        x = Exchange(NO_NUMBER, handler, 12, 7, OURSELVES, 0, 0, connection)
        self.exchanges.number_exchange(x)
        return x

    def complete(self, host, x, index, message, payload):
        self.completed.append((index, message, payload))
        if not x.pending:
            x.answer = [b"answered"]

    def ask(self, x, index, node=2):
        x.pending[index] = NOBODY_HOME
        request = build(messages.request_type(KEY, VERSION), {"transactions": []})
        body = messages.encode_request(request)
        return self.questions.ask_node(x.number << 32 | index, node, KEY, VERSION, body)

    def run_once(self):
        rest_ms = self.questions.run_once()
        self.completions.take_answers(self.questions.take_answers())
        self.completions.tell_lost()
        return rest_ms

    def other_side(self, listening):
        return greeted(self.turns, self, listening, self.link, Side)

    def link(self):
        (link,) = self.questions.links.values()
        return link


@pytest.fixture
def world(turns, server):
    made = World(turns, *server.getsockname())
    yield made
    for link in made.questions.links.values():
        link.close()


def test_an_answer_comes_to_who_asked(world, turns, server):
    x = world.exchange()
    assert world.ask(x, 5)
    other = world.other_side(server)
    other.answer(other.take(), ANSWER)
    turns.until(world, lambda: world.completed)
    ((index, message, payload),) = world.completed
    assert (index, message.op, message.flags, message.a) == (5, ANSWERED, 1, 0)
    answer = messages.decode_response(KEY, VERSION, payload)
    assert answer.error_code == errors.NOT_COORDINATOR
    assert not x.pending and not world.exchanges.living
    other.sock.close()


def test_a_node_that_hangs_up_is_a_home_that_died(world, turns, server):
    x = world.exchange()
    world.ask(x, 5)
    other = world.other_side(server)
    other.take()
    other.sock.close()
    turns.until(world, lambda: world.completed)
    assert world.completed == [(5, None, b"")]
    assert not world.exchanges.living


def test_who_does_not_wait_any_more_is_told_nothing(world, turns, server):
    x, waits = world.exchange(), world.exchange()
    world.ask(x, 5)
    world.ask(waits, 6)
    x.pending.clear()
    world.exchanges.forget_exchange(x)
    other = world.other_side(server)
    other.answer(other.take(), ANSWER)
    other.answer(other.take(), ANSWER)
    turns.until(world, lambda: world.completed)
    assert [index for index, *_ in world.completed] == [6]
    other.sock.close()


def test_a_node_that_is_not_registered_is_not_asked(world):
    assert not world.ask(world.exchange(), 5, node=3)
    assert not world.questions.links
