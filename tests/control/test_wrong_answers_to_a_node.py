"""A controller that answers what contradicts the question, or itself: a node tells it, and goes on
to ask."""

import random
from types import SimpleNamespace

import pytest

from appliance.base import errors
from appliance.base.errors import CannotServe, PeerError
from appliance.config.load import load
from appliance.control.broker import forwarding
from appliance.control.broker.broker_asker import Asking, BrokerAsker
from appliance.control.broker.lifecycle import State
from appliance.control.broker.node import Node
from appliance.control.broker.reports import Proposal
from appliance.control.requests.voter_probe import Prober, Probing
from appliance.controller.topics import NewTopic
from appliance.metadata.image import MetadataImage
from appliance.replication.isr_change import IsrChange
from appliance.shell.log import Log
from tests.callers import caller
from tests.control.test_broker_without_controller import SETTINGS
from tests.wrong_answers import any_answer

CONTROLLER = 1
STEP_MS = 3_000
STEPS = 4_000


class Link:
    """What is asked waits for a test."""

    connected = True

    def __init__(self):
        self.waits = []

    def ask_peer(self, api_key, version, values, done, timeout_ms, lowest=0):
        self.waits.append((api_key, version, done))

    def run_once(self):
        return 0

    def close(self):
        pass

    def answer(self, rng):
        """Anything, to all that waits."""
        waits, self.waits = self.waits, []
        for key, version, done in waits:
            lost = PeerError(errors.NETWORK_EXCEPTION, "gone")
            done(any_answer(key, version, rng) if rng.random() < 0.9 else lost)


class Ears:
    def __init__(self):
        self.blocks = []

    def isr_refused(self, proposal, code):
        assert code

    def ids(self, ioproc, first, count):
        self.blocks.append((first, count))


def node_of(link, ears):
    roles = {
        "process.roles": "broker,controller",
        "controller.quorum.voters": "1@127.0.0.1:9091,2@127.0.0.1:9093",
    }
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"}
    config, _ = load(None, SETTINGS | roles | listeners)
    identity = SimpleNamespace(node_id=2, directory_id=bytes(16), cluster_id="c")
    incarnation = SimpleNamespace(
        broker_id=bytes(16), controller_id=bytes(16), endpoints=(), rack=None
    )
    birth = SimpleNamespace(
        identity=identity, incarnation=incarnation, log_dirs=(), previous_epoch=-1, controllers=()
    )
    return Node(config, birth, lambda controller: link, None, ears, Log("control"))


TOPIC = NewTopic("t", 1, 1)
QUESTIONS = (
    forwarding.creation(TOPIC, None),
    forwarding.creation(TOPIC, caller()),
    forwarding.enveloped(19, 7, caller(), b""),
)


@pytest.mark.parametrize("seed", range(4))
def test_a_node_lives_with_whatever_its_controller_answers(seed):
    rng, link, ears = random.Random(seed), Link(), Ears()
    node, image, now_ms, answered, states = node_of(link, ears), MetadataImage(), 1, 0, set()
    image.features["metadata.version"] = 30
    node.turn_to(CONTROLLER, image)
    for step in range(STEPS // 4):
        node.propose(Proposal(0, 1, IsrChange(bytes(16), step % 3, 1, 1, {2: 1})))
        node.assign(bytes(16), step % 3, bytes(16))
        node.want_ids(0)
        node.forwarding.forward_request(
            0, step, rng.choice(QUESTIONS), lambda code: (code, b""), now_ms + STEP_MS
        )
        node.run_once(now_ms, 1 << 62, image, True)
        assert link.waits, "it goes on to ask"
        try:
            link.answer(rng)
        except CannotServe:  # it is not invited: the next start
            node = node_of(link, ears)
            node.turn_to(CONTROLLER, image)
        node.run_once(now_ms, 1 << 62, image, True)
        answered += len(list(node.forwarding.release(1 << 62)))
        states.add(node.state)
        now_ms += STEP_MS
    assert answered > STEPS // 8, "who asked is answered"
    assert {State.NEW, State.FENCED, State.RUNNING} <= states
    blocks = [(first, count) for first, count in ears.blocks if count]
    assert blocks and all(first >= 0 and count > 0 for first, count in blocks)


@pytest.mark.parametrize("seed", range(4))
def test_who_is_asked_for_a_decision_may_answer_anything(seed):
    """The others of it are heard, and it is made."""
    rng, link, heard = random.Random(seed), Link(), []
    broker = SimpleNamespace(broker_id=3)
    asker = BrokerAsker(lambda _: link, lambda _: True, lambda *told: heard.append(told))
    prober = Prober(lambda *_: link, lambda *told: heard.append(told), 1_000)
    now_ms = 0
    for step in range(STEPS // 20):
        asker.ask_brokers(0, step, Asking(("t",), None), [broker], now_ms)
        if not prober.busy:
            prober.probe_node(0, -step, Probing(3, ("h", 1), None))
        link.answer(rng)
        now_ms += 10 * STEP_MS
        asker.run_once(now_ms)
    tokens = [token for _, token, *_ in heard]
    assert set(range(1, STEPS // 20)) <= set(tokens)
    assert len(tokens) == len(set(tokens)) + 1, "each once; 0 was used twice"
