"""Requests for groups in the network process: whom they go to, what is answered for a home that is
not there."""

import pytest
from fake_host import FakeHost

from appliance.base import errors
from appliance.base.errors import MalformedRequest
from appliance.base.ids import OFFSETS_TOPIC
from appliance.coordinators.runtime import request_parts
from appliance.coordinators.runtime.kind import partition_of
from appliance.coordinators.runtime.routing import first_text, second_text
from appliance.handlers import registry
from appliance.handlers.exchange import Route
from appliance.ring.messages import ANSWERED, Message
from appliance.wire import kraft_records as kraft
from appliance.wire import messages
from appliance.wire.build import response
from tests.differential.plain import encode

HANDLERS = {handler.key: handler for handler in registry.GROUPS}
PARTITIONS = 5
NAMED = {
    9: {"groups": [{"group_id": "g"}]},
    15: {"groups": ["g"]},
    42: {"groups_names": ["g"]},
    69: {"group_ids": ["g"]},
}
"""Requests that name several groups."""
HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}


class Host(FakeHost):
    """A host whose offsets topic has five partitions, or none yet. Homes count their errors."""

    counts_all = False

    def __init__(self, partitions=PARTITIONS):
        super().__init__()
        self.sent = []
        self.paused = []
        if partitions:
            self.image.apply(0, kraft.TopicRecord(name=OFFSETS_TOPIC, topic_id=b"o" * 16))
        for index in range(partitions):
            record = kraft.PartitionRecord(
                partition_id=index, topic_id=b"o" * 16, replicas=(1,), isr=(1,), leader=1,
                leader_epoch=0, partition_epoch=0, directories=(b"d" * 16,),
            )  # fmt: skip
            self.image.apply(index + 1, record)

    def route(self, topic, partition, by_id):
        return Route(partition, 0, OFFSETS_TOPIC, b"o" * 16, partition, 0)

    def coordinate(self, x, index, route, body):
        x.pending[index] = route.home
        self.sent.append((index, route.partition, body))

    def pause(self, x):
        self.paused.append(True)

    def unpause(self, x):
        self.paused.append(False)

    def hang_up(self, x, why):
        self.closed = True

    def answered(self, x, index, pieces, code=errors.NONE):
        """What a home sends: the pieces of an encoded answer."""
        for at, piece in enumerate(pieces):
            last = at == len(pieces) - 1
            if last:
                x.pending.pop(index)
            message = an_answer(code, int(not last))
            x.handler.complete(self, x, index, message, piece)


def an_answer(code, more):
    return Message(ANSWERED, code + 1, 0, 0, more, 0, 0, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_goes_to_the_home_of_its_group(version):
    host = Host()
    x = host.start(HANDLERS[12], version, HEARTBEAT)
    ((index, partition, body),) = host.sent
    assert (index, partition) == (0, partition_of("g", PARTITIONS))
    assert body == bytes(host.memory)
    answer = response(12, version, {"throttle_time": 0, "error_code": 27})
    encoded = messages.encode_response(answer)
    host.answered(x, 0, [encoded[:1], encoded[1:]])
    assert host.answer == answer


def test_several_groups_are_asked_where_they_live_and_merged():
    host = Host()
    groups = [f"g{n}" for n in range(20)]
    x = host.start(HANDLERS[42], 2, {"groups_names": groups})
    assert [partition for _, partition, _ in host.sent] == list(range(PARTITIONS))
    for index, partition, _ in host.sent:
        mine = [one for one in groups if partition_of(one, PARTITIONS) == partition]
        results = [{"group_id": one, "error_code": errors.NONE} for one in mine]
        answer = response(42, 2, {"throttle_time": 0, "results": results})
        host.answered(x, index, [messages.encode_response(answer)])
    assert sorted(one.group_id for one in host.answer.results) == sorted(groups)


LEAVE = {"group_id": "g", "members": []}
SYNC = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None,
        "protocol_type": "consumer", "protocol_name": "range", "assignments": []}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "fields", "code"),
    [(13, LEAVE, errors.COORDINATOR_LOAD_IN_PROGRESS), (14, SYNC, errors.REBALANCE_IN_PROGRESS),
     (12, HEARTBEAT, errors.NONE)],
)  # fmt: skip
def test_a_home_that_dies_is_answered_for_as_a_coordinator_that_loads(key, fields, code):
    """FindCoordinator would name this node again: clients must not look for another one."""
    host = Host()
    host.lose(host.start(HANDLERS[key], 4, fields), 0)
    assert host.answer.error_code == code


def test_a_listing_waits_for_a_home_that_died():
    host = Host()
    x = host.start(HANDLERS[16], 4, {"states_filter": []})
    for index in range(PARTITIONS):
        host.lose(x, index)
    assert host.answer.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("key", [12, 13, 14])
def test_a_partition_that_another_node_leads_is_looked_for_there(key):
    host = Host()
    host.route = lambda *names, **named: None
    host.start(HANDLERS[key], 4, {12: HEARTBEAT, 13: LEAVE, 14: SYNC}[key])
    assert host.answer.error_code == errors.NOT_COORDINATOR and not host.sent


def test_a_home_that_dies_while_another_node_begins_to_lead():
    host = Host()
    x = host.start(HANDLERS[13], 4, LEAVE)
    host.route = lambda *names, **named: None
    host.lose(x, 0)
    assert host.answer.error_code == errors.NOT_COORDINATOR


def test_before_there_is_a_topic_there_are_no_groups():
    host = Host(partitions=0)
    host.start(HANDLERS[16], 4, {"states_filter": []})
    assert (host.answer.error_code, host.answer.groups) == (errors.NONE, ())
    assert not host.sent and not host.ensured


@pytest.mark.parametrize("key", sorted(HANDLERS.keys() - {10, 16}))
def test_the_first_request_has_the_topic_created(key):
    """And is asked when it is there, or refused when it could not be created."""
    handler = HANDLERS[key]
    body = encode(key, handler.highest, NAMED.get(key, {"group_id": "g"}))
    for created in (True, False):
        host = Host(partitions=0)
        x = host.start_encoded(handler, handler.highest, body)
        assert host.ensured == [(0, OFFSETS_TOPIC)] and not host.sent
        if created:
            host.image = Host().image
        host.lose(x, 0)
        assert len(host.ensured) == 1
        assert (host.answer is None, bool(host.sent)) == (created, created)


def test_a_home_that_cannot_read_a_request_has_it_hung_up():
    host = Host()
    x = host.start(HANDLERS[12], 4, HEARTBEAT)
    host.answered(x, 0, [b""], errors.INVALID_REQUEST)
    assert host.closed


@pytest.mark.parametrize(
    ("version", "body"),
    [(3, b""), (3, b"\0"), (3, b"\xff\xff"), (3, b"\0\5abc"), (4, b""), (4, b"\0"), (4, b"\x09ab"),
     (4, b"\xff\xff\xff\xff\xff"), (4, b"\3\xff\xfe")],
)  # fmt: skip
def test_bytes_that_name_no_group(version, body):
    with pytest.raises(MalformedRequest):
        first_text(12, version, body)
    within, before = (2, b"\0\1x") if version == 3 else (3, b"\2x")
    for other in (body, before + body):
        with pytest.raises(MalformedRequest):
            second_text(28, within, other)


def test_parts_of_a_long_request_are_asked_one_after_the_other():
    """And those of a home that dies meanwhile are answered for."""
    host, count = Host(), 1000
    paused = host.paused = []
    rows = [{"partition_index": at, "committed_offset": 1, "committed_metadata": None}
            for at in range(count)]  # fmt: skip
    topics = [{"name": "t", "partitions": rows}]
    fields = {"group_id": "g", "generation_id_or_member_epoch": 1, "member_id": "m"}
    x = host.start(HANDLERS[8], 9, {**fields, "group_instance_id": None, "topics": topics})
    assert paused == [True]
    asked = []
    while host.answer is None:
        ((index, partition, body),) = host.sent
        host.sent.clear()
        assert partition == partition_of("g", PARTITIONS)
        (topic,) = messages.decode_request(8, 9, body).topics
        told = [{"partition_index": one.partition_index, "error_code": 0}
                for one in topic.partitions]  # fmt: skip
        asked += [one["partition_index"] for one in told]
        values = {"throttle_time": 0, "topics": [{"name": "t", "partitions": told}]}
        if index == 1:
            host.lose(x, index)
        else:
            host.answered(x, index, [messages.encode_response(response(8, 9, values))])
    assert paused == [True, False]
    assert asked == list(range(count))
    (topic,) = host.answer.topics
    assert [one.partition_index for one in topic.partitions] == asked
    codes = [int(one.error_code) for one in topic.partitions]
    lost = [at for at, code in enumerate(codes) if code == errors.COORDINATOR_LOAD_IN_PROGRESS]
    assert lost == list(range(request_parts.ROWS, 2 * request_parts.ROWS))
    assert set(codes) == {errors.NONE, errors.COORDINATOR_LOAD_IN_PROGRESS}


def test_a_long_listing_asks_one_partition_after_the_other():
    """Else each of them has all of its bytes in a ring at once, and everybody else's behind."""
    host = Host()
    states = [f"state-{at:05}" for at in range(1000)]
    x = host.start(HANDLERS[16], 5, {"states_filter": states, "types_filter": []})
    for partition in range(PARTITIONS):
        ((index, asked, body),) = host.sent
        assert (index, asked) == (partition, partition) and body == bytes(host.memory)
        host.sent.clear()
        group = {"group_id": f"g{partition}", "protocol_type": "", "group_state": "Empty",
                 "group_type": "classic"}  # fmt: skip
        values = {"throttle_time": 0, "error_code": 0, "groups": [group]}
        host.answered(x, index, [messages.encode_response(response(16, 5, values))])
    assert [one.group_id for one in host.answer.groups] == [f"g{at}" for at in range(PARTITIONS)]
    assert host.paused == [True, False]


def test_what_comes_behind_a_long_join_waits_as_it_is_decoded_over_several_turns():
    host = Host()
    protocols = [{"name": f"protocol-{at:05}", "metadata": b""} for at in range(1000)]
    fields = {"group_id": "g", "session_timeout": 1000, "rebalance_timeout": 1000, "member_id": "m",
              "group_instance_id": None, "protocol_type": "consumer", "reason": None}  # fmt: skip
    x = host.start(HANDLERS[11], 9, {**fields, "protocols": protocols})
    assert host.paused == [True] and len(host.sent) == 1
    host.lose(x, 0)
    assert host.answer.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert host.paused == [True, False]
