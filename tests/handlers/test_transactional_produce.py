"""Transactional batches: what is verified, in which order batches arrive, what clients are told."""

import random
from collections import deque
from itertools import count

import pytest
from fake_host import FakeHost
from kio.schema.errors import ErrorCode

from appliance.authorization.operations import TOPIC as TOPICS
from appliance.authorization.rights import Authorizer
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.handlers.k00_produce import HANDLER
from appliance.logstore.producer_state import ProducerStates
from appliance.ring.messages import ADDS, APPEND, TRANSACTIONAL, TRUSTED, UNVERIFIED
from appliance.wire import kraft_records as kraft
from appliance.wire import messages
from appliance.wire.batch import NewRecord, build_batch, read_header
from appliance.wire.build import response
from appliance.wire.markers import Marker
from tests.seeds import each_seed

PRODUCER = 7
TOPIC = {9: {"name": "flights"}, 13: {"topic_id": b"f" * 16}}


def batch(sequence=0, producer=PRODUCER, epoch=0, transactional=True):
    return build_batch(
        [NewRecord(1, None, b"v")],
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def request(batches, version=12, transactional_id="t", acks=-1):
    """batches: by partition."""
    rows = [{"index": index, "records": records} for index, records in batches.items()]
    topic = TOPIC[13 if version >= 13 else 9]
    return {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout": 1000,
        "topic_data": [topic | {"partition_data": rows}],
    }


class TopicsAlone(Authorizer):
    """Whoever it is may do everything with topics."""

    def allows_everything(self, caller):
        return False

    def allows(self, caller, operation, resource):
        return resource.kind == TOPICS

    def allows_some(self, caller, operation, kind):
        return kind == TOPICS


class Host(FakeHost):
    """With two partitions of `__transaction_state`, unless `coordinated` is False."""

    def __init__(self, coordinated=True, partitions=4):
        super().__init__(partitions)
        if coordinated:
            record = kraft.TopicRecord(name="__transaction_state", topic_id=b"s" * 16)
            self.image.apply(0, record)
            for index in range(2):
                record = kraft.PartitionRecord(
                    partition_id=index, topic_id=b"s" * 16, replicas=(1,), isr=(1,), leader=1,
                    leader_epoch=0, partition_epoch=0, directories=(b"d" * 16,),
                )  # fmt: skip
                self.image.apply(index + 1, record)

    def begin(self, batches, version=12, **rest):
        return self.start(HANDLER, version, request(batches, version, **rest))

    def unverified(self, x, index, guard):
        code = errors.INVALID_TXN_STATE
        self.complete(x, index, op=UNVERIFIED, a=guard, error=code)

    def told(self):
        """By partition: error code, base offset."""
        return {
            row.index: (int(row.error_code), row.base_offset)
            for topic in self.answer.responses
            for row in topic.partition_responses
        }

    def tell(self, x, codes, whole=errors.NONE, pieces=1):
        """The coordinator answers the oldest question. codes: by partition."""
        index, _ = self.questions.pop(0)
        results = [
            {"partition_index": partition, "partition_error_code": code}
            for partition, code in codes.items()
        ]
        topics = [{"name": "flights", "results_by_partition": results}]
        transactions = [{"transactional_id": "t", "topic_results": topics}] if codes else []
        values = {
            "throttle_time": 0,
            "error_code": whole,
            "results_by_transaction": transactions,
        }
        body = messages.encode_response(response(24, 5, values))
        size = -(-len(body) // pieces)
        for at in range(0, len(body), size):
            more = at + size < len(body)
            self.complete(x, index, more=more, a=int(more), payload=body[at : at + size])


def asked(host):
    """Index, flags, guard of each APPEND so far."""
    found = [(index, flags, guard) for index, op, flags, _, guard, *_ in host.asked if op == APPEND]
    host.asked.clear()
    return found


def test_a_batch_of_an_open_transaction_is_appended_at_once():
    host = Host()
    x = host.begin({0: batch(), 2: batch()})
    flags = TRANSACTIONAL | ADDS
    assert asked(host) == [(0, flags, 0), (1, flags, 0)]
    host.complete(x, 0, a=5)
    host.complete(x, 1, a=6)
    assert host.told() == {0: (0, 5), 2: (0, 6)}
    assert not host.questions
    assert not host.one_line.under_way


def test_what_no_home_knows_is_asked_at_once_and_sent_again_with_its_guard():
    host = Host()
    x = host.begin({0: batch(), 1: batch(), 2: batch()})
    asked(host)
    host.unverified(x, 0, 11)
    host.complete(x, 1, a=70)
    assert not host.questions
    host.unverified(x, 2, 13)
    ((_, question),) = host.questions
    (one,) = question.transactions
    assert (one.transactional_id, one.producer_id, one.producer_epoch) == ("t", PRODUCER, 0)
    assert not one.verify_only
    assert [(topic.name, topic.partitions) for topic in one.topics] == [("flights", (0, 2))]
    host.tell(x, {0: errors.NONE, 2: errors.TRANSACTION_ABORTABLE}, pieces=3)
    assert asked(host) == [(0, TRANSACTIONAL | ADDS, 11)]
    assert host.answer is None
    host.complete(x, 0, a=50)
    assert host.told() == {
        0: (0, 50), 1: (0, 70), 2: (errors.TRANSACTION_ABORTABLE, -1)
    }  # fmt: skip
    assert not host.one_line.under_way


@pytest.mark.parametrize(
    ("version", "flags", "adds"),
    [(9, TRANSACTIONAL, False), (11, TRANSACTIONAL, False), (12, TRANSACTIONAL | ADDS, True)],
)
def test_from_produce_12_on_asking_adds(version, flags, adds):
    host = Host()
    x = host.begin({0: batch()}, version)
    assert asked(host) == [(0, flags, 0)]
    host.unverified(x, 0, 4)
    assert host.questions[0][1].transactions[0].verify_only is not adds


@pytest.mark.parametrize(
    ("said", "told", "versions"),
    [
        (errors.TRANSACTION_ABORTABLE, errors.INVALID_TXN_STATE, (9, 10)),
        (errors.TRANSACTION_ABORTABLE, errors.TRANSACTION_ABORTABLE, (11, 12, 13)),
        (errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH, (9, 11, 12)),
        (errors.INVALID_PRODUCER_ID_MAPPING, errors.INVALID_PRODUCER_ID_MAPPING, (9, 11, 12)),
        (errors.CONCURRENT_TRANSACTIONS, errors.NOT_ENOUGH_REPLICAS, (9, 11)),
        (errors.COORDINATOR_LOAD_IN_PROGRESS, errors.NOT_ENOUGH_REPLICAS, (9, 11, 12)),
        (errors.NOT_COORDINATOR, errors.NOT_ENOUGH_REPLICAS, (9, 12)),
        (errors.INVALID_TXN_STATE, errors.INVALID_TXN_STATE, (9, 12)),
    ],
)
def test_what_the_coordinator_says_is_told_as_the_version_knows_it(said, told, versions):
    for version in versions:
        host = Host()
        x = host.begin({0: batch()}, version)
        host.unverified(x, 0, 4)
        host.tell(x, {0: said})
        assert host.told() == {0: (told, -1)}, ErrorCode(said)


def test_who_cannot_be_asked_is_a_retriable_error():
    retriable = {0: (errors.NOT_ENOUGH_REPLICAS, -1)}
    host = Host(coordinated=False)
    x = host.begin({0: batch()})
    host.unverified(x, 0, 4)
    ((index, delay),) = host.waits
    assert delay == 0
    host.wake(x, index)
    assert host.told() == retriable
    host = Host()
    x = host.begin({0: batch()})
    host.unverified(x, 0, 4)
    host.lose(x, host.questions[0][0])
    assert host.told() == retriable
    x = host.begin({0: batch()})
    host.unverified(x, 0, 4)
    host.tell(x, {}, whole=errors.COORDINATOR_LOAD_IN_PROGRESS)
    assert host.told() == retriable
    x = host.begin({0: batch()})
    host.unverified(x, 0, 4)
    host.questions.clear()
    host.complete(x, next(iter(x.pending)), error=errors.UNKNOWN_SERVER_ERROR)
    assert host.told() == {0: (errors.UNKNOWN_SERVER_ERROR, -1)}
    assert not host.one_line.under_way and host.one_line.asking is None


def test_the_end_of_an_earlier_transaction_is_waited_for_a_tenth_of_a_second():
    host = Host()
    x = host.begin({0: batch()})
    host.unverified(x, 0, 4)
    waited = []
    while host.questions:
        host.tell(x, {0: errors.CONCURRENT_TRANSACTIONS})
        if host.waits:
            index, delay = host.waits.pop()
            waited.append(delay // 1_000_000)
            host.now_ns += delay
            host.wake(x, index)
    assert waited == [1, 2, 4, 8, 16, 20, 20, 20, 20]
    assert host.told() == {0: (errors.NOT_ENOUGH_REPLICAS, -1)}


def test_without_verification_the_home_is_told_so_but_for_what_is_added():
    host = Host()
    host.verifies = False
    host.begin({0: batch()}, 11)
    host.begin({0: batch()}, 12)
    assert [flags for _, flags, _ in asked(host)] == [
        TRANSACTIONAL | TRUSTED, TRANSACTIONAL | ADDS
    ]  # fmt: skip


def test_requests_that_kafka_refuses_whole():
    host = Host()
    mixed = {0: batch(), 1: batch(transactional=False)}
    host.begin(mixed, transactional_id=None)
    refused = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert host.told() == {0: (refused, -1), 1: (refused, -1)}
    for other in (batch(producer=8), batch(epoch=1)):
        host.begin({0: batch(), 1: other})
        refused = errors.INVALID_PRODUCER_ID_MAPPING
        assert host.told() == {0: (refused, -1), 1: (refused, -1)}
    assert not host.asked
    assert not host.one_line.under_way


def test_a_transactional_id_without_transactional_batches_changes_nothing():
    host = Host()
    x = host.begin({0: batch(transactional=False)})
    assert asked(host) == [(0, 0, 0)]
    host.complete(x, 0, a=5)
    assert host.told() == {0: (0, 5)}


def test_who_may_not_write_the_transactional_id_writes_nothing():
    host = Host()
    host.authorizer = TopicsAlone()
    host.begin({0: batch(), 1: batch(transactional=False)})
    assert set(host.told().values()) == {(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)}


def test_out_of_time_while_it_asks_it_is_answered_and_lets_the_next_one_go_on():
    host = Host()
    first, second = host.begin({0: batch()}), None
    host.unverified(first, 0, 4)
    second = host.begin({0: batch(1)})
    asked(host)
    HANDLER.expire(host, first)
    assert host.told() == {0: (errors.REQUEST_TIMED_OUT, -1)}
    assert asked(host) == []
    host.tell(first, {0: errors.NONE})
    assert asked(host) == [(0, TRANSACTIONAL | ADDS, 0)], (
        "the second one; nobody waits for the first"
    )
    assert not first.pending
    host.unverified(second, 0, 4)
    assert len(host.questions) == 1
    third = host.begin({0: batch(2)})
    HANDLER.expire(host, third)
    assert not third.pending, "it was held"
    assert list(host.one_line.under_way) == [second]


# Many requests ahead ------------------------------------------------------------------------------


class Homes(Host):
    """Two homes and a coordinator behind rings that keep their order, and move when the test says
    so: partitions 0 and 2 are at home in the first. early: how often of ten the coordinator is
    still busy with the last transaction."""

    counts_all = False

    def __init__(self, rng, early=0):
        super().__init__()
        self.rng = rng
        self.early = early
        self.bodies = {}
        self.rings = {name: deque() for name in (0, 1, "coordinator", "waits")}
        self.back = {name: deque() for name in self.rings}
        self.states = [ProducerStates() for _ in range(4)]
        self.offsets = [count() for _ in range(4)]
        self.sequences = [0] * 4
        self.appended = [[] for _ in range(4)]
        self.asked_of_coordinator = 0

    def route(self, topic, partition, by_id):
        found = super().route(topic, partition, by_id)
        return found if found.handle == 90 else found._replace(home=partition % 2)

    def ask_home(self, x, index, route, op, flags, a, b, e, f):
        x.pending[index] = route.home
        body = self.bodies.setdefault(x, self.memory)
        data = bytearray(body[a : a + e])
        self.rings[route.home].append((x, index, route.partition, data, flags, b))

    def question(self, x, index, route, key, version, body):
        x.pending[index] = route.home
        self.asked_of_coordinator += 1
        self.rings["coordinator"].append((x, index, messages.decode_request(key, version, body)))

    def later(self, x, index, delay_ns):
        self.hold_pending(x, index)
        self.rings["waits"].append((x, index, None))

    def hold_pending(self, x, index):
        self.bodies.setdefault(x, self.memory)
        super().hold_pending(x, index)

    def produce(self, epoch):
        """One request of the producer, of some partitions."""
        batches = {}
        for partition in sorted(self.rng.sample(range(4), self.rng.randint(1, 3))):
            batches[partition] = batch(self.sequences[partition], epoch=epoch)
            self.sequences[partition] += 1
        return self.begin(batches)

    def move(self):
        """One ring goes on by one message, if any has one."""
        ring = self.rng.choice(list(self.rings))
        if self.back[ring] and self.rng.random() < 0.5:
            x, index, fields = self.back[ring].popleft()
            if fields is None:
                self.wake(x, index)
            else:
                self.complete(x, index, **fields)
        elif self.rings[ring]:
            x, index, *asked = self.rings[ring].popleft()
            answer = {0: self.home, 1: self.home, "coordinator": self.decide}.get(ring)
            self.back[ring].append((x, index, answer and answer(*asked)))

    def home(self, partition, data, flags, guard):
        states, header = self.states[partition], read_header(data)
        adds = bool(flags & ADDS)
        new = states.guard(header[9], header[10], header[11], guard, 1, adds=adds)
        if new:
            return {"op": UNVERIFIED, "a": new, "error": errors.INVALID_TXN_STATE}
        try:
            assert states.check(header) == -1
        except PeerError as refused:
            return {"error": refused.code}
        offset = next(self.offsets[partition])
        states.update(header, offset, 1)
        self.appended[partition].append(header.base_sequence)
        return {"a": offset}

    def decide(self, request):
        (one,) = request.transactions
        code = errors.CONCURRENT_TRANSACTIONS if self.rng.randrange(10) < self.early else 0
        values = {
            "throttle_time": 0,
            "error_code": 0,
            "results_by_transaction": [
                {
                    "transactional_id": one.transactional_id,
                    "topic_results": [
                        {
                            "name": topic.name,
                            "results_by_partition": [
                                {"partition_index": index, "partition_error_code": code}
                                for index in topic.partitions
                            ],
                        }
                        for topic in one.topics
                    ],
                }
            ],
        }
        return {"payload": messages.encode_response(response(24, 5, values))}

    def end_transaction(self, epoch):
        """As transaction version 2 has it: the next one has a new epoch."""
        header = read_header(batch(epoch=epoch + 1))
        for states, offsets in zip(self.states, self.offsets, strict=True):
            states.end_transaction(header, next(offsets), 1, Marker(True, 0))
        self.sequences = [0] * 4
        for appended in self.appended:
            appended.clear()

    def busy(self):
        return any(self.rings.values()) or any(self.back.values())


@pytest.mark.parametrize("early", [0, 3])
@each_seed(40)
def test_batches_sent_ahead_arrive_in_their_order(seed, early):
    homes = Homes(random.Random(seed), early)
    for epoch in range(3):
        requests = []
        while len(requests) < 8 or homes.busy():
            if len(requests) < 8 and homes.rng.random() < 0.2:
                requests.append(homes.produce(epoch))
            homes.move()
        for x in requests:
            assert not x.pending
            assert [answer.error for answer in x.state[1]] == [0] * len(x.state[1])
        assert homes.appended == [list(range(number)) for number in homes.sequences]
        assert not homes.one_line.under_way
        homes.end_transaction(epoch)
    if not early:
        assert homes.asked_of_coordinator <= 3 * 4, "a partition is asked about once"


@each_seed(40)
def test_whatever_runs_out_of_time_nobody_waits_for_ever(seed):
    homes = Homes(random.Random(seed), early=3)
    requests = []
    while len(requests) < 30 or homes.busy():
        if len(requests) < 30 and homes.rng.random() < 0.2:
            requests.append(homes.produce(epoch=0))
        for x in requests:
            if x.answer is None and homes.rng.random() < 0.02:
                HANDLER.expire(homes, x)
        homes.move()
    assert all(x.answer is not None and not x.pending for x in requests)
    assert not homes.one_line.under_way and homes.one_line.asking is None
