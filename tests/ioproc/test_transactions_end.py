"""Transactions that end: the coordinator over its log and the homes of the partitions in one I/O
process, from EndTxn to the record that completes it."""

import pytest
from core_world import NOW_MS, StillClock, World, batch
from sim.disk import PAGE, SimDisk
from test_coordinating import NoEvents, image_with
from test_full_core import fill, make_room

from appliance.authorization.rights import AllowAll, Callers
from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.base.ids import TRANSACTIONS_TOPIC
from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig
from appliance.coordinators.runtime.kind import Lent
from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.coordinators.transactions.states import NAMES
from appliance.ioproc.coordination.coordinator_host import CoordinatorHost
from appliance.ioproc.coordination.marker_sender import AT_ONCE, LONGEST_REST_MS
from appliance.ioproc.partitions.partition import Partition
from appliance.logstore.log import PartitionLog
from appliance.ring.counters import Counters
from appliance.ring.messages import (
    APPEND,
    APPENDED,
    COORDINATE,
    TRANSACTIONAL,
    UNVERIFIED,
    Message,
)
from appliance.ring.ring import RingReader, RingWriter, ring_bytes
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import NewRecord, build_batch
from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request, request_type
from tests.callers import caller

STATE_ID = b"s" * 16
INIT, ADD, END = 22, 24, 26
PRODUCER = 1000


class Ends(World):
    """One partition of `__transaction_state`, and topics of one partition each, opened by `add`."""

    def __init__(self, disk=None, topics=("a", "b")):
        memory = memoryview(bytearray(ring_bytes(1024, 4096)))
        self.ring = RingReader(memory, 1), RingWriter(memory, 1)
        self.events = NoEvents()
        memory = memoryview(bytearray(Counters.bytes_needed(1, 1)))
        self.counters = Counters(memory, ioprocs=1, netprocs=1)
        self.ids = iter(range(PRODUCER, PRODUCER + 100))
        self.known = image_with(
            (TRANSACTIONS_TOPIC, STATE_ID),
            *((name, name.encode().ljust(16, b"\0")) for name in topics),
        )
        if disk is None:
            disk = SimDisk()
            disk.mkdir("/d")
        super().__init__("/d", disk=disk, netprocs=1)
        self.endings.follow(self.known)
        handle = self.table.add(STATE_ID, 0)
        config = LogConfig(flush_policy="group", compact=True, delete=False)
        log = PartitionLog.create(
            self.disk, f"/d/{TRANSACTIONS_TOPIC}-0", STATE_ID, config, now_ms=NOW_MS
        )
        self.state = Partition(handle, TRANSACTIONS_TOPIC, 0, STATE_ID, log, 4)
        self.core.add(self.state, self.now_ns)
        self.topics = {name: self.add(name, flush_policy="group") for name in topics}

    def coordinators(self, appends, failures):
        self.host = CoordinatorHost(
            TRANSACTIONS,
            appends,
            failures,
            BrokerConfig.of({"transaction.state.log.num.partitions": "1"}),
            {0: self.ring[1]},
            self.known,
            StillClock(),
            Lent(bytes, lambda: next(self.ids, None)),
            self.counters.errors[0],
            Callers(AllowAll()),
            self.events,
            self.endings,
        )
        return {TRANSACTIONS_TOPIC: self.host}

    @property
    def shard(self):
        return self.host._led[self.state.handle].shard

    def turn(self, ms=1):
        if self.host.due_ms <= self.now_ms:
            self.host.run_once(self.now_ms)
        return super().turn(ms)

    def ask(self, key, version=3, **fields):
        """A request; its answer comes later."""
        body = encode_request(build(request_type(key, version), fields))
        who = caller().encode()
        message = Message(
            COORDINATE, 0, self.state.handle, key, 0, key << 16 | version, 0, 0, 0, 0, 0, 0,
            len(who), 0, who + body,
        )  # fmt: skip
        self.arrivals.handle(self.core.askers[0], [message], NOW_MS)

    def answered(self):
        """Error codes, by API key."""
        reader, writer = self.ring
        writer.publish()
        got = {}
        for one in reader.drain():
            if one.flags != 1:
                got[one.token] = one.flags - 1
                continue
            answer = decode_response(one.token, 3, one.payload)
            if one.token == ADD:
                topic, *_ = answer.results_by_topic_v3_and_below
                got[ADD] = topic.results_by_partition[0].partition_error_code.value
            else:
                got[one.token] = answer.error_code.value
        return got

    def rest(self):
        """Turns until nothing happens but what rests."""
        for _ in range(20):
            self.threads.run_all()
            self.turn()
        return self.answered()

    def begin(self, *names, writes=True):
        """A transaction in these topics; nothing is left to be written."""
        self.ask(INIT, transactional_id="x", transaction_timeout=60_000, producer_id=-1,
                 producer_epoch=-1)  # fmt: skip
        assert self.rest() == {INIT: errors.NONE}
        epoch = self.epoch
        for name in names:
            self.add_topic(name)
            assert self.rest() == {ADD: errors.NONE}
            if writes:
                sent = batch(b"v", producer=(PRODUCER, epoch, 0), transactional=True)
                own = self.core.appends.append_own
                assert own(self.topics[name], memoryview(bytearray(sent)), NOW_MS)
        self.rest()

    @property
    def epoch(self):
        return self.shard.state.known["x"].transaction.epoch

    def add_topic(self, name):
        self.ask(
            ADD, v3_and_below_transactional_id="x", v3_and_below_producer_id=PRODUCER,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[{"name": name, "partitions": [0]}],
        )  # fmt: skip

    def end(self, *, commit=True):
        self.ask(END, transactional_id="x", producer_id=PRODUCER, producer_epoch=self.epoch,
                 committed=commit)  # fmt: skip

    def phase(self):
        known = self.shard.state.known
        return NAMES[known["x"].transaction.state] if "x" in known else ""

    def stable(self):
        """Of each topic: log end, and whether a read-committed reader sees all of it."""
        return {
            name: (one.log.end_offset, one.last_stable_offset == one.log.end_offset)
            for name, one in self.topics.items()
        }

    def produced(self, name, epoch=0):
        """Whether the home appends a batch of the producer, or asks for its transaction first."""
        data = batch(b"v", producer=(PRODUCER, epoch, 0), transactional=True)
        self.core.askers[0].arena[: len(data)] = data
        self.ask_home(APPEND, name, e=len(data), f=-1)
        answers = self.turn()
        while not answers:
            self.threads.run_all()
            answers = self.turn()
        return answers[0].op

    def ask_home(self, op, name, **fields):
        World.ask(self, op, self.topics[name].handle, flags=TRANSACTIONAL, **fields)


@pytest.fixture
def world():
    return Ends()


def test_a_home_in_this_process_knows_what_was_added_and_asks_nobody(world):
    world.begin("a", writes=False)
    assert world.produced("b") == UNVERIFIED, "it was not added"
    assert world.produced("a", epoch=1) == UNVERIFIED, "somebody else's"
    assert world.produced("a") == APPENDED
    world.end()
    world.rest()
    assert world.phase() == "CompleteCommit" and world.stable()["a"] == (2, True)
    assert world.produced("a") == UNVERIFIED, "it is over"


def test_a_home_is_told_of_a_transaction_when_that_is_durable(world):
    """Else a power cut could take the transaction and leave its records."""
    world.begin()
    world.add_topic("a")
    world.turn()
    assert world.answered() == {} and world.produced("a") == UNVERIFIED
    assert world.rest() == {ADD: errors.NONE}
    assert world.produced("a") == APPENDED


def test_what_was_added_counts_no_more_when_the_transaction_was_aborted_unwritten(world):
    world.begin("a", writes=False)
    world.end(commit=False)
    world.rest()
    assert world.phase() == "CompleteAbort"
    assert world.produced("a") == UNVERIFIED


def test_markers_wait_until_the_decision_is_committed(world):
    world.begin("a", "b")
    world.end()
    world.turn()
    assert world.phase() == "PrepareCommit" and not world.endings.under_way
    assert world.answered() == {} and world.stable() == {"a": (1, False), "b": (1, False)}
    assert world.rest() == {END: errors.NONE}
    assert world.phase() == "CompleteCommit"
    assert world.stable() == {"a": (2, True), "b": (2, True)}
    assert world.endings.under_way == 0 and world.state.log.end_offset == 5


def test_nobody_waits_for_the_record_that_completes_a_transaction(world):
    """It is synced with the next one, or soon."""
    world.begin("a")
    world.end()
    world.rest()
    assert (world.state.high_watermark, world.state.log.end_offset) == (3, 4)
    world.add_topic("a")
    assert world.rest() == {ADD: errors.NONE} and world.state.high_watermark == 5
    world.end()
    world.rest()
    assert (world.state.high_watermark, world.state.log.end_offset) == (6, 7)
    world.settle()
    assert world.state.high_watermark == 7


def test_who_asks_what_became_of_a_transaction_waits_until_that_is_durable(world):
    world.begin("a")
    world.end()
    world.rest()
    assert world.state.high_watermark < world.state.log.end_offset
    world.end()
    world.turn()
    assert world.answered() == {}, "it would be told of what a power cut could take"
    assert world.rest() == {END: errors.NONE}
    assert world.state.high_watermark == world.state.log.end_offset


def test_the_next_coordinator_does_not_wait_for_what_nobody_waited_for(world):
    world.begin("a")
    world.end()
    world.rest()
    assert world.state.high_watermark < world.state.log.end_offset
    world.core.follow(world.state, 5)
    world.core.lead(world.state, 6)
    world.rest()
    assert world.phase() == "CompleteCommit" and world.shard.state.epoch == 6


def test_a_transaction_is_complete_when_its_last_marker_is_durable(world):
    world.begin("a", "b")
    world.end(commit=False)
    world.turn()
    world.threads.run_all()
    for _ in range(4):
        world.turn()
    assert world.endings.under_way == 1 and world.phase() == "PrepareAbort"
    assert world.stable() == {"a": (2, False), "b": (2, False)}, "written, and not synced"
    world.rest()
    assert world.phase() == "CompleteAbort" and world.stable()["a"] == (2, True)


def test_the_next_coordinator_hands_out_what_is_not_complete(world):
    """Its markers go again: where they are already, nothing is written."""
    world.begin("a", "b")
    world.end()
    world.turn()
    world.threads.run_all()
    for _ in range(4):
        world.turn()
    world.core.follow(world.state, 5)
    assert world.endings.under_way == 0 and world.stable()["a"] == (2, False)
    world.core.lead(world.state, 6)
    world.rest()
    assert world.phase() == "CompleteCommit" and world.shard.state.epoch == 6
    assert world.stable()["a"][1] and world.stable()["b"][1]


def test_a_decision_that_was_not_written_has_no_markers(world, monkeypatch):
    """A bug in the middle of EndTxn: what it handed out is forgotten with its shard."""
    world.begin("a")
    before = world.shard
    handlers = type(before).HANDLERS
    whole = handlers[END]

    def half(turn, call, request):
        whole(turn, call, request)
        raise ZeroDivisionError

    monkeypatch.setitem(handlers, END, half)
    world.end()
    assert world.rest() == {END: errors.UNKNOWN_SERVER_ERROR}
    assert world.shard is not before and world.phase() == "Ongoing"
    assert world.endings.under_way == 0 and world.stable() == {"a": (1, False), "b": (0, True)}


def test_a_partition_that_is_offline_is_asked_until_it_is_back(world):
    world.begin("a", "b")
    broken = world.topics["b"]
    leads, broken.progress.leads = broken.progress.leads, False
    world.end()
    world.rest()
    assert world.phase() == "PrepareCommit" and world.stable()["a"] == (2, True)
    assert {code for _, code in world.refused} == {errors.NOT_LEADER_OR_FOLLOWER}
    seen = len(world.refused)
    for _ in range(20):
        world.turn(ms=LONGEST_REST_MS)
    assert seen < len(world.refused) <= seen + 20
    broken.progress.leads = leads
    world.turn(ms=LONGEST_REST_MS)
    world.rest()
    assert world.phase() == "CompleteCommit" and world.stable()["b"] == (2, True)


def test_a_deleted_topic_needs_no_marker(world):
    world.begin("a", "b")
    world.core.fail(world.topics.pop("b"), StorageFailed("b", 5, "broken"))
    world.end()
    world.rest()
    assert world.phase() == "PrepareCommit"
    topic = world.known.topics_by_name["b"]
    gone = kraft.RemoveTopicRecord(topic_id=topic.topic_id)
    world.known.apply(world.known.applied_offset + 1, gone)
    world.host.follow(world.known)
    world.host.topic_deleted("b", topic.topic_id, world.now_ms)
    world.rest()
    assert world.phase() == "CompleteCommit"
    world.turn(ms=LONGEST_REST_MS)
    assert world.endings.under_way == 0


def test_who_needs_a_producer_id_is_answered_when_a_block_has_come(world):
    world.ids = iter(())
    world.ask(INIT, transactional_id="x", transaction_timeout=60_000, producer_id=-1,
              producer_epoch=-1)  # fmt: skip
    assert world.rest() == {}
    world.ids = iter((PRODUCER,))
    world.host.ids_came()
    assert world.rest() == {INIT: errors.NONE} and world.phase() == "Empty"


@pytest.mark.parametrize("where", ["a", "state"])
def test_on_a_full_disk_nothing_is_lost_and_nobody_spins(world, where):
    """The next write to one log needs a page that there is not, when the others still have room in
    their last one."""
    world.begin("a", "b")
    if where == "a":
        fill_page(world, world.topics["a"])
        world.rest()
        fill(world.disk)
        world.end()
    else:
        world.end()
        world.turn()
        fill_page(world, world.state)
        fill(world.disk)
    at_once = 0
    for _ in range(300):
        world.threads.run_all()
        world.turn(ms=100)
        at_once += world.endings.due_ms == AT_ONCE
    assert (world.state if where == "state" else world.topics["a"]).log.has_unwritten
    assert at_once < 10, "it rests between its tries"
    assert world.stable()["a"] == ((3, False) if where == "a" else (2, True))
    assert (world.phase() == "PrepareCommit") == (where == "a")
    make_room(world)
    world.turn(ms=LONGEST_REST_MS)
    world.rest()
    assert world.phase() == "CompleteCommit" and world.endings.under_way == 0
    assert all(stable for _, stable in world.stable().values())
    assert world.failures == []


def fill_page(world, partition):
    """Whatever is appended to it next needs another page."""
    left = PAGE - partition.log.active_size % PAGE
    key = (99).to_bytes(2, "big") + b"k"  # of a record that nobody knows
    sent = next(
        one
        for size in range(left)
        if len(one := build_batch([NewRecord(NOW_MS, key, bytes(size))])) >= left - 8
    )
    assert len(sent) <= left
    assert world.core.appends.append_own(partition, memoryview(bytearray(sent)), NOW_MS)
    world.turn()
