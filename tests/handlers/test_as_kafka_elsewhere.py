"""What is told of other nodes, against what three nodes of Apache Kafka 4.3.1 told when they were
asked the same (`kafka_elsewhere.py`, recorded once): all alive, and with node 3 dead."""

import json

import pytest
from kafka_elsewhere import PATH, RACKS, questions
from three_brokers import Cluster

from appliance.base import errors
from appliance.handlers import registry
from appliance.handlers.exchange import Exchange
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.ioproc.partition_failures import ANSWERS
from appliance.ring.messages import ANSWERED, ANY_REPLICA, Message
from appliance.wire import kraft_records as kraft
from appliance.wire.build import response
from appliance.wire.messages import encode_response
from tests.callers import rights
from tests.differential.plain import decode, encode

HANDLERS = registry.handlers(FetchSessions(4, iter(range(7, 90)).__next__))
PHASES = json.loads(PATH.read_text())
HOST = "127.0.0.1"
OWN = frozenset(("cluster_id", "controller_id", "topic_id", "error_message"))
"""Fields that differ by chance, or whose words are ours."""
LISTED = {16: "groups", 66: "transaction_states"}


class Recorded(Cluster):
    """Node 1 as it was when node 1 of the recorded cluster was asked. Coordinators have nothing."""

    counts_all = False

    def __init__(self, phase):
        super().__init__(brokers=[_broker(int(n), at, phase) for n, at in phase["ports"].items()])
        self.phase = phase
        self.body = b""
        self.apply(kraft.RemoveTopicRecord(topic_id=b"f" * 16))
        for number, (name, partitions) in enumerate(phase["partitions"].items()):
            topic_id = bytes.fromhex(phase["topic_id"]) if not number else bytes([number]) * 16
            self.apply(kraft.TopicRecord(name=name, topic_id=topic_id))
            for index, (leader, epoch, replicas, isr) in enumerate(partitions):
                lost = () if isr else tuple(replicas)
                record = kraft.PartitionRecord(
                    partition_id=index, topic_id=topic_id, replicas=tuple(replicas),
                    isr=tuple(isr), leader=leader, leader_epoch=epoch, partition_epoch=0,
                    eligible_leader_replicas=lost, last_known_elr=lost,
                )  # fmt: skip
                self.apply(record)

    def reached(self, x):
        return HOST, self.phase["ports"]["1"]

    def finish(self, x, pieces):
        x.answer = pieces
        self.body = b"".join(pieces)

    def told(self, key, version, values):
        """The answer as plain values, without what is ours."""
        body = encode(key, version, values)
        self.memory = memoryview(body)
        x = Exchange(1, HANDLERS[key], version, 7, rights("test"), 0, len(body), None)
        self.publish()
        x.handler.begin(self, x)
        self.hear_home(x)
        for index, _ in self.sent:
            x.pending.pop(index)
            empty = {"throttle_time": 0, "error_code": 0, LISTED[key]: ()}
            answer = response(key, version, empty | {"unknown_state_filters": ()})
            told = Message(ANSWERED, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, encode_response(answer))
            x.handler.complete(self, x, index, told, told.payload)
        self.sent.clear()
        assert not self.asked and not x.pending
        return common(decode(key, version, self.body))

    def hear_home(self, x):
        """Of a partition that it follows its home knows the epoch, too."""
        for index, op, flags, _, epoch, *_ in self.asked:
            assert flags & ANY_REPLICA and epoch > self.phase["epoch"]
            x.pending.pop(index)
            code = errors.UNKNOWN_LEADER_EPOCH
            told = Message(ANSWERS[op], code + 1, 0, 0, *[-1] * 4, *[0] * 6)
            x.handler.complete(self, x, index, told, b"")
        self.asked.clear()


def _broker(number, port, phase):
    where = kraft.BrokerEndpoint(name="PLAINTEXT", host=HOST, port=port, security_protocol=0)
    return kraft.RegisterBrokerRecord(
        broker_id=number, incarnation_id=bytes(16), broker_epoch=number, end_points=(where,),
        features=(), rack=RACKS.get(number), fenced=number == phase["dead"],
    )  # fmt: skip


def common(value):
    """What must be the same: without what is ours; what is in no order sorted."""
    if isinstance(value, dict):
        return {name: common(one) for name, one in value.items() if name not in OWN}
    if isinstance(value, list):
        return sorted(map(common, value), key=repr)
    return value


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: f"dead-{phase['dead']}")
def test_answers_are_those_of_apache_kafka(phase):
    asked = list(questions(bytes.fromhex(phase["topic_id"]), phase["epoch"]))
    assert len(asked) == len(phase["answers"])
    different = {}
    for (key, version, values), theirs in zip(asked, phase["answers"], strict=True):
        ours = Recorded(phase).told(key, version, values)
        if ours != common(theirs):
            different[key, version, json.dumps(values, default=repr)[:200]] = ours, common(theirs)
    assert not different
