"""TxnOffsetCommit in the network process: home, coordinator of the transaction, home again."""

import pytest
from test_coordinate_handler import HANDLERS, PARTITIONS, Host

from appliance.base import errors
from appliance.base.ids import OFFSETS_TOPIC
from appliance.coordinators.runtime import request_parts
from appliance.coordinators.runtime.kind import partition_of
from appliance.handlers.exchange import Route
from appliance.handlers.transaction_verification import KEY as ADD
from appliance.handlers.transaction_verification import VERSION as ADD_VERSION
from appliance.ring.messages import TRUSTED_GUARD, UNVERIFIED, Message
from appliance.wire import kraft_records as kraft
from appliance.wire import messages
from appliance.wire.build import response

GUARD = 1 << 60
HOME = partition_of("g", PARTITIONS)
ROW = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
REQUEST = {
    "transactional_id": "transaction", "group_id": "g", "producer_id": 7, "producer_epoch": 2,
    "generation_id": -1, "member_id": "", "group_instance_id": None,
    "topics": [{"name": "t", "partitions": [{**ROW, "committed_leader_epoch": -1}]}],
}  # fmt: skip
TRANSACTIONS = "__transaction_state"


class Within(Host):
    """again: what went to the home a second time, as (index, partition, body, code, guard)."""

    def __init__(self, partitions=PARTITIONS):
        super().__init__(partitions)
        self.again = []
        topic_id, at = b"s" * 16, self.image.applied_offset + 1
        self.image.apply(at, kraft.TopicRecord(name=TRANSACTIONS, topic_id=topic_id))
        one = kraft.PartitionRecord(
            partition_id=0, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
            partition_epoch=0, directories=(b"d" * 16,),
        )  # fmt: skip
        self.image.apply(at + 1, one)

    def route(self, topic, partition, by_id):
        if topic == OFFSETS_TOPIC.encode():
            return super().route(topic, partition, by_id)
        return Route(99, 9, topic.decode(), b"s" * 16, partition, 0)

    def coordinate_within(self, x, index, route, body, code, guard):
        x.pending[index] = route.home
        self.again.append((index, route.partition, body, code, guard))

    def commit(self, version):
        return self.start(HANDLERS[28], version, fields_of(version))

    def unverified(self, x, index=0):
        x.pending.pop(index)
        code = errors.INVALID_TXN_STATE
        message = Message(UNVERIFIED, code + 1, 0, 0, GUARD, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        x.handler.complete(self, x, index, message, b"")

    def judged(self, x, code):
        """What the coordinator of the transaction says."""
        ((index, asked),) = self.questions
        (one,) = asked.transactions
        results = [{"partition_index": HOME, "partition_error_code": code}]
        topics = [{"name": OFFSETS_TOPIC, "results_by_partition": results}]
        named = [{"transactional_id": one.transactional_id, "topic_results": topics}]
        values = {"throttle_time": 0, "error_code": 0, "results_by_transaction": named}
        body = messages.encode_response(response(ADD, ADD_VERSION, values))
        self.answered(x, index, [body[:5], body[5:]])
        return one

    def committed(self, x, code=errors.NONE):
        """What the home says in the end."""
        partitions = [{"partition_index": 0, "error_code": code}]
        values = {"throttle_time": 0, "topics": [{"name": "t", "partitions": partitions}]}
        self.answered(x, 0, [messages.encode_response(response(28, x.version, values))])
        return self.code()

    def code(self):
        return self.answer.topics[0].partitions[0].error_code


def fields_of(version):
    wanted = messages.request_type(28, version).__dataclass_fields__
    fields = {name: value for name, value in REQUEST.items() if name in wanted}
    if version < 2:
        fields["topics"] = [{"name": "t", "partitions": [ROW]}]
    return fields


@pytest.mark.parametrize("version", range(6))
def test_a_transaction_that_is_open_there_is_written_at_once(version):
    host = Within()
    x = host.commit(version)
    assert host.sent == [(0, HOME, bytes(host.memory))]
    assert host.committed(x) == errors.NONE
    assert not host.questions and not host.again


@pytest.mark.parametrize(
    ("version", "said", "told"),
    [
        (0, errors.NONE, errors.NONE),
        (5, errors.NONE, errors.NONE),
        (3, errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH),
        (3, errors.TRANSACTION_ABORTABLE, errors.INVALID_TXN_STATE),
        (4, errors.TRANSACTION_ABORTABLE, errors.TRANSACTION_ABORTABLE),
        (5, errors.INVALID_PRODUCER_ID_MAPPING, errors.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_what_the_coordinator_of_the_transaction_says_the_home_hears(version, said, told):
    host = Within()
    x = host.commit(version)
    host.unverified(x)
    one = host.judged(x, said)
    assert (one.transactional_id, one.producer_id, one.producer_epoch) == ("transaction", 7, 2)
    assert one.verify_only == (version < 5)
    assert [(topic.name, topic.partitions) for topic in one.topics] == [(OFFSETS_TOPIC, (HOME,))]
    assert host.again == [(0, HOME, bytes(host.memory), told, GUARD)]
    assert host.committed(x, told) == told


def test_who_does_not_verify_trusts_but_adds_all_the_same():
    host = Within()
    host.verifies = False
    host.unverified(host.commit(4))
    assert host.again[0][3:] == (errors.NONE, TRUSTED_GUARD)
    host.unverified(host.commit(5))
    assert len(host.questions) == len(host.again) == 1


def test_whoever_dies_is_told_as_something_to_try_again():
    host = Within()
    x = host.commit(5)
    host.unverified(x)
    ((index, _),) = host.questions
    host.lose(x, index)
    assert host.again[0][3] == errors.COORDINATOR_LOAD_IN_PROGRESS
    host.lose(x, 0)
    assert host.code() == errors.COORDINATOR_LOAD_IN_PROGRESS
    x = host.commit(5)
    host.lose(x, 0)
    assert host.code() == errors.COORDINATOR_LOAD_IN_PROGRESS


def test_each_part_of_a_long_request_is_decided_within_the_transaction():
    host, rows = Within(), 2 * request_parts.ROWS
    fields = fields_of(5)
    topic = fields["topics"][0]
    partitions = [{**topic["partitions"][0], "partition_index": index} for index in range(rows)]
    x = host.start(HANDLERS[28], 5, {**fields, "topics": [{**topic, "partitions": partitions}]})
    for part in range(2):
        assert [index for index, *_ in host.sent] == [part], "one after the other"
        host.sent.clear()
        host.unverified(x, part)
        host.judged(x, errors.NONE)
        host.questions.clear()
        ((index, _, body, code, guard),) = host.again
        host.again.clear()
        assert (index, code, guard) == (part, errors.NONE, GUARD)
        (asked,) = messages.decode_request(28, 5, body).topics
        told = [{"partition_index": one.partition_index, "error_code": 0}
                for one in asked.partitions]  # fmt: skip
        values = {"throttle_time": 0, "topics": [{"name": "t", "partitions": told}]}
        host.answered(x, part, [messages.encode_response(response(28, 5, values))])
    (answered,) = host.answer.topics
    assert [one.partition_index for one in answered.partitions] == list(range(rows))
