"""Transactional ids: who may write, what belongs to a transaction, how it ends; each with the error
that Apache Kafka gives."""

import pytest
from transaction_world import (
    CONCURRENT,
    DESCRIBE,
    FENCED,
    INIT,
    INVALID,
    LIST,
    MAPPING,
    OFFSETS,
    START_MS,
    TIMEOUT_MS,
    World,
)

from appliance.base import errors
from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.kind import partition_of
from appliance.coordinators.runtime.transaction_effects import PartitionsAdded
from appliance.coordinators.transactions import states
from appliance.coordinators.transactions.records import TransactionLogKey
from appliance.coordinators.transactions.transaction import LAST_EPOCH, first
from appliance.wire.build import build
from appliance.wire.messages import request_type

EXHAUSTED = LAST_EPOCH - 1


@pytest.fixture
def world():
    return World()


# Who may write ------------------------------------------------------------------------------------


def test_each_that_takes_an_id_over_gets_the_next_epoch(world):
    assert [world.init() for _ in range(3)] == [(1000, 0), (1000, 1), (1000, 2)]
    assert world.init("y") == (1001, 0)
    assert world.add((1000, 1), 0) == [FENCED]
    assert world.add((1000, 2), 0) == [errors.NONE]


def test_who_goes_on_after_an_error_says_who_he_was(world):
    producer = world.init()
    again = world.init(producer=producer)
    assert again == (1000, 1)
    assert world.init(producer=producer) == again, "the same request again"
    assert world.init() == (1000, 2)
    assert world.init(producer=again) == FENCED, "another took it over meanwhile"
    assert world.init(producer=(77, 2)) == FENCED
    assert world.init(producer=(1000, -1)) == errors.INVALID_REQUEST
    assert world.init(producer=again, version=3) == errors.INVALID_PRODUCER_EPOCH
    assert world.init("new", producer=(5, 5)) == (1001, 0), "nobody knew the id"


def test_a_repeated_request_is_not_known_to_another_coordinator(world):
    producer = world.init()
    world.init(producer=producer)
    world.restart()
    assert world.init(producer=producer) == FENCED


def test_when_the_epochs_are_used_up_there_is_another_id(world):
    world.init()
    used_up = world.jump(EXHAUSTED)
    taken = world.init(producer=used_up)
    assert taken == (1001, 0)
    assert world.init(producer=used_up) == (1001, 0), "the answer was lost"
    world.jump(EXHAUSTED)
    assert world.init() == (1002, 0)
    world.ids = iter(())
    world.jump(EXHAUSTED)
    assert world.init() == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert world.init("y") == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert world.state("y") == "none"


@pytest.mark.parametrize("timeout", [0, -5, 900_001])
def test_a_timeout_out_of_bounds_is_refused(world, timeout):
    assert world.init(timeout=timeout) == errors.INVALID_TRANSACTION_TIMEOUT
    assert world.log == []


def test_an_empty_id_is_refused(world):
    assert world.init("") == errors.INVALID_REQUEST
    assert world.add((1, 0), 0, name="") == [errors.INVALID_REQUEST]
    assert world.end((1, 0), name="") == errors.INVALID_REQUEST


def test_an_open_transaction_is_aborted_before_another_takes_its_id(world):
    producer = world.init()
    world.add(producer, 0, 1)
    assert world.init() == CONCURRENT
    assert world.state() == "PrepareAbort"
    (ending,) = world.endings
    assert (ending.producer_id, ending.epoch, ending.committed) == (1000, 1, False)
    assert ending.partitions == (("t", 0), ("t", 1))
    assert world.init() == CONCURRENT
    world.mark()
    assert world.state() == "CompleteAbort"
    assert world.init() == (1000, 2)
    assert world.end(producer) == FENCED


# What belongs to it -------------------------------------------------------------------------------


def test_the_first_partition_begins_a_transaction(world):
    producer = world.init()
    world.now += 5
    assert world.add(producer, 0) == [errors.NONE]
    world.now += 5
    assert world.add(producer, 1, 2) == [errors.NONE, errors.NONE]
    found = world.transactions()["x"]
    assert found.partitions == {("t", 0), ("t", 1), ("t", 2)}
    assert found.started_ms == START_MS + 5
    records = len(world.log)
    assert world.add(producer, 2) == [errors.NONE]
    assert len(world.log) == records, "it belongs to it already"


def test_who_may_add_partitions(world):
    assert world.add((1000, 0), 0) == [MAPPING]
    world.init()
    assert world.add((1001, 0), 0) == [MAPPING]
    assert world.add((1000, 1), 0) == [FENCED]
    assert world.add((1000, 1), 0, version=1) == [errors.INVALID_PRODUCER_EPOCH]
    assert world.add((1000, 0), 0, 9) == [
        errors.OPERATION_NOT_ATTEMPTED,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert world.state() == "Empty"
    world.add((1000, 0), 0)
    world.end((1000, 0))
    assert world.add((1000, 0), 0) == [CONCURRENT]
    assert world.add((9, 9), 0) == [CONCURRENT], "an id may be about to change"


def test_clients_may_not_add_what_coordinators_write(world):
    producer = world.init()
    assert world.add(producer, 0, topic="__consumer_offsets") == [errors.TOPIC_AUTHORIZATION_FAILED]
    assert world.add(producer, 0, topic="__consumer_offsets", version=5) == [0]


def test_a_broker_may_ask_whether_a_partition_belongs_to_it(world):
    producer = world.init()
    assert world.add(producer, 0, version=4, verify=True) == [errors.TRANSACTION_ABORTABLE]
    assert world.add(producer, 0, version=5) == [errors.NONE]
    assert world.add(producer, 0, 1, version=4, verify=True) == [
        errors.NONE,
        errors.TRANSACTION_ABORTABLE,
    ]
    assert world.add((1000, 3), 0, version=4, verify=True) == [FENCED]
    assert world.transactions()["x"].version == 2


def test_offsets_of_a_group_are_a_partition_too(world):
    producer = world.init()
    fields = {"transactional_id": "x", "producer_id": 1000, "producer_epoch": 0, "group_id": "g"}
    assert world.ask(OFFSETS, 4, **fields).error_code.value == errors.NONE
    place = ("__consumer_offsets", partition_of("g", 5))
    assert world.transactions()["x"].partitions == {place}
    world.end(producer)
    assert world.endings[0].partitions == (place,)
    answer = world.ask(OFFSETS, 1, **fields | {"producer_id": 5})
    assert answer.error_code.value == CONCURRENT
    world.delete_topic("__consumer_offsets")
    assert world.state() == "CompleteCommit"
    assert world.ask(OFFSETS, 4, **fields).error_code.value == errors.COORDINATOR_NOT_AVAILABLE


# How it ends, for clients whose epoch stays -------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_markers_complete_what_was_decided(world, commit):
    producer = world.init()
    world.add(producer, 0, 1)
    assert world.end(producer, commit) == errors.NONE
    assert world.state() == ("PrepareCommit" if commit else "PrepareAbort")
    (ending,) = world.endings
    assert (ending.epoch, ending.committed, ending.version) == (0, commit, 0)
    assert world.end(producer, commit) == CONCURRENT
    assert world.end(producer, not commit) == CONCURRENT
    world.mark(("t", 1))
    assert world.end(producer, commit) == CONCURRENT
    world.mark()
    assert world.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert world.end(producer, commit) == errors.NONE, "the answer was lost"
    assert world.end(producer, not commit) == INVALID
    assert world.add(producer, 2) == [errors.NONE]
    assert world.transactions()["x"].partitions == {("t", 2)}


def test_who_may_end_it(world):
    assert world.end((1000, 0)) == MAPPING
    producer = world.init()
    assert world.end(producer) == INVALID
    assert world.end(producer, commit=False) == INVALID
    world.add(producer, 0)
    assert world.end((1001, 0)) == MAPPING
    assert world.end((1000, 1)) == FENCED
    assert world.end((1000, 1), version=1) == errors.INVALID_PRODUCER_EPOCH


# How it ends, for clients whose epoch rises -------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_the_epoch_rises_with_every_transaction(world, commit):
    producer = world.init()
    world.add(producer, 0, version=5)
    assert world.end(producer, commit, version=5) == (1000, 1)
    (ending,) = world.endings
    assert (ending.epoch, ending.version) == (1, 2)
    assert world.end(producer, commit, version=5) == CONCURRENT, "the answer was lost"
    assert world.end((1000, 1), commit, version=5) == CONCURRENT, "the next end comes too early"
    assert world.add((1000, 1), 0, version=5) == [CONCURRENT]
    world.mark()
    assert world.end(producer, commit, version=5) == (1000, 1)
    assert world.end(producer, not commit, version=5) == INVALID
    assert world.add(producer, 0, version=5) == [FENCED]
    assert world.add((1000, 1), 0, version=5) == [errors.NONE]


TABLE = {  # Kafka's: state → (abort again, abort, commit again, commit); True: the epoch rises
    "Empty": (FENCED, True, FENCED, INVALID),
    "CompleteAbort": (False, True, INVALID, INVALID),
    "CompleteCommit": (INVALID, True, False, INVALID),
}


@pytest.mark.parametrize("state", TABLE)
@pytest.mark.parametrize("column", range(4))
def test_an_end_without_a_transaction(world, state, column):
    producer = world.init()
    world.init()
    producer = (1000, 1)
    if state != "Empty":
        world.add(producer, 0, version=5)
        producer = world.end(producer, state == "CompleteCommit", version=5)
        world.mark()
    assert world.state() == state
    wanted = TABLE[state][column]
    asked = (producer[0], producer[1] - (1 if column in (0, 2) else 0))
    got = world.end(asked, commit=column > 1, version=5)
    if wanted is True:
        assert got == (producer[0], producer[1] + 1)
        assert world.state() == "CompleteAbort"
        assert world.endings == [], "there is no partition to write a marker in"
    elif wanted is False:
        assert got == producer
    else:
        assert got == wanted
        assert world.state() == state


def test_the_last_epoch_of_an_id_ends_its_last_transaction(world):
    world.init()
    producer = world.jump(EXHAUSTED)
    world.add(producer, 0, version=5)
    assert world.end(producer, version=5) == (1001, 0)
    (ending,) = world.endings
    assert (ending.producer_id, ending.epoch) == (1000, LAST_EPOCH)
    assert world.end(producer, version=5) == CONCURRENT
    assert world.add((1001, 0), 0, version=5) == [CONCURRENT]
    world.restart()
    world.mark()
    assert world.end(producer, version=5) == (1001, 0), "the answer was lost"
    assert world.add((1001, 0), 0, version=5) == [errors.NONE]
    assert world.add(producer, 0, version=5) == [MAPPING]


def fence_at_the_end(world):
    """A producer with the last epoch that is given, whose transaction its timeout has aborted."""
    world.init()
    producer = world.jump(EXHAUSTED)
    world.add(producer, 0, version=5)
    world.tick(TIMEOUT_MS)
    assert world.endings[0].epoch == LAST_EPOCH
    world.mark()
    return producer


def test_who_goes_on_behind_the_last_epoch_has_another_id(world):
    """With the epoch of the markers that fenced it, no marker could ever end what it writes."""
    producer = fence_at_the_end(world)
    assert world.init(producer=producer) == (1001, 0)
    assert world.init(producer=producer) == (1001, 0), "the answer was lost"


def test_nobody_writes_with_the_last_epoch(world):
    """Whoever says that it has it was never given it."""
    fence_at_the_end(world)
    liar = 1000, LAST_EPOCH
    assert world.add(liar, 0, version=5) == world.add(liar, 0) == [FENCED]
    assert world.end(liar, commit=False) == errors.NONE
    assert world.end(liar, version=5) == INVALID
    assert world.init(producer=liar) == (1001, 0)


def test_who_aborts_behind_the_last_epoch_has_another_id(world):
    producer = fence_at_the_end(world)
    assert world.end(producer, version=5) == INVALID
    assert world.end(producer, commit=False, version=5) == (1001, 0)
    assert world.end(producer, commit=False, version=5) == (1001, 0), "the answer was lost"
    assert world.endings == [] and world.state() == "CompleteAbort"
    assert world.add((1001, 0), 0, version=5) == [errors.NONE]


def test_an_end_that_needs_an_id_waits_for_one(world):
    world.init()
    producer = world.jump(EXHAUSTED)
    world.add(producer, 0, version=5)
    world.ids = iter(())
    assert world.end(producer, version=5) == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert world.state() == "Ongoing"
    world.ids = iter((7,))
    assert world.end(producer, version=5) == (7, 0)


def test_clients_of_both_kinds_follow_each_other(world):
    producer = world.init()
    world.add(producer, 0, version=5)
    producer = world.end(producer, version=5)
    world.mark()
    assert world.add(producer, 0) == [errors.NONE]
    assert world.end(producer) == errors.NONE
    assert world.endings[0].epoch == producer[1]
    world.mark()
    assert world.add(producer, 0, version=5) == [errors.NONE]
    assert world.end(producer, version=5) == (1000, producer[1] + 1)


# Time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_transaction_that_takes_too_long_is_aborted(version):
    world = World(version)
    producer = world.init()
    world.add(producer, 0)
    world.tick(TIMEOUT_MS - 1)
    assert world.state() == "Ongoing"
    assert world.shard.next_deadline_ms <= world.now + 1
    world.tick(1)
    assert world.state() == "PrepareAbort"
    (ending,) = world.endings
    assert (ending.epoch, ending.committed, ending.version) == (1, False, version)
    assert world.end(producer) == FENCED
    world.mark()
    assert world.add(producer, 0) == [FENCED]
    assert world.init(producer=producer) == ((1000, 1) if version == 2 else FENCED)
    assert world.init() == (1000, 2)
    assert world.init(producer=producer) == FENCED


def test_an_id_that_rests_is_forgotten(world):
    producer = world.init()
    world.add(producer, 0)
    world.end(producer)
    world.mark()
    rests = world.settings.expiration_ms
    world.tick(rests - 1)
    assert world.state() == "CompleteCommit"
    world.tick(1)
    assert world.state() == "none"
    assert world.log[-1][1] is None
    assert world.add(producer, 0) == [MAPPING]
    assert world.init() == (1001, 0)


def test_what_is_used_is_not_forgotten(world):
    world.init()
    for _ in range(5):
        world.tick(world.settings.expiration_ms - 1)
        world.init()
    assert world.state() == "Empty"


def test_a_coordinator_that_loads_goes_on_with_deadlines_and_endings(world):
    producer = world.init()
    world.add(producer, 0)
    world.init("y")
    world.add((1001, 0), 1, 2, name="y")
    world.end((1001, 0), name="y")
    old = world.endings[0]
    world.mark(("t", 1))
    world.restart()
    (ending,) = world.endings
    assert ending.partitions == (("t", 1), ("t", 2)), "a marker twice does no harm"
    assert ending.coordinator_epoch == 1
    world.carry_out(world.shard.marked(old, old.partitions, world.now))
    assert world.state("y") == "PrepareCommit", "its predecessor's markers are not counted"
    world.mark()
    assert world.state("y") == "CompleteCommit"
    world.tick(TIMEOUT_MS)
    assert world.state() == "PrepareAbort"


def test_a_late_word_of_an_earlier_ending_is_not_heard(world):
    producer = world.init()
    for index in (0, 1):
        world.add(producer, index)
        world.end(producer)
        if index == 0:
            late = world.endings[0]
            world.mark()
    world.carry_out(world.shard.marked(late, (("t", 1),), world.now))
    assert world.state() == "PrepareCommit"
    world.mark()
    assert world.state() == "CompleteCommit"


def test_a_topic_that_is_gone_needs_no_markers(world):
    producer = world.init()
    world.add(producer, 0)
    world.init("y")
    world.add((1001, 0), 1, name="y")
    world.end((1001, 0), name="y")
    world.delete_topic()
    assert world.state("y") == "CompleteCommit"
    assert world.end(producer) == errors.NONE
    assert world.state() == "CompleteCommit"
    assert len(world.endings) == 1, "what was handed out may be answered or not"


# What is told -------------------------------------------------------------------------------------


def test_transactions_are_described_and_listed(world):
    producer = world.init()
    world.init("y")
    world.now += 1000
    world.add(producer, 1, 0)
    answer = world.ask(DESCRIBE, 0, transactional_ids=("x", "z", ""))
    open_, unknown, empty = answer.transaction_states
    assert (open_.transaction_state, open_.producer_id, open_.producer_epoch) == (
        "Ongoing",
        1000,
        0,
    )
    assert [(one.topic, one.partitions) for one in open_.topics] == [("t", (0, 1))]
    assert unknown.error_code.value == errors.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code.value == errors.INVALID_REQUEST

    def listed(version=2, **filters):
        fields = {"state_filters": (), "producer_id_filters": (), "duration_filter": -1}
        fields["transactional_id_pattern"] = None
        answer = world.ask(LIST, version, **fields | filters)
        code = answer.error_code.value
        rows = [one.transactional_id for one in answer.transaction_states]
        return code or (rows, answer.unknown_state_filters)

    assert listed() == (["x", "y"], ())
    assert listed(state_filters=("Ongoing", "Nonsense")) == (["x"], ("Nonsense",))
    assert listed(producer_id_filters=(1001,)) == (["y"], ())
    world.now += 500
    assert listed(1, duration_filter=400, state_filters=("Ongoing",)) == (["x"], ())
    assert listed(1, duration_filter=500, state_filters=("Ongoing",)) == ([], ())
    assert listed(transactional_id_pattern="[x-z]") == (["x", "y"], ())
    assert listed(transactional_id_pattern="x.") == ([], ())
    assert listed(transactional_id_pattern="(") == errors.INVALID_REGULAR_EXPRESSION


def test_what_is_added_is_opened_once_for_the_epoch_that_adds_it(world):
    producer = world.init()
    world.add(producer, 2, 0)
    world.add(producer, 0)
    world.add(producer, 0, 1, verify=True, version=5)
    assert world.openings == [PartitionsAdded(*producer, frozenset((("t", 0), ("t", 2))))]


# Records and moves --------------------------------------------------------------------------------


def test_only_the_moves_of_the_table_are_made():
    rests = first(1, 1, 0).initialized(1, 0, 1, 0)
    for wrong in (
        lambda: rests.fenced(0),
        lambda: rests.completed(0),
        lambda: rests.decided(commit=True, version=0, next_id=-1, now_ms=0),
    ):
        with pytest.raises(AssertionError):
            wrong()
    assert states.MOVES[states.DEAD] == frozenset()


def test_a_state_that_is_never_recorded_is_damage():
    world = World()
    world.init()
    key, value = world.log[0]
    at = value.index(TIMEOUT_MS.to_bytes(4, "big")) + 4
    damaged = value[:at] + b"\x06" + value[at + 1 :]
    shard = world.new_shard()
    with pytest.raises(PeerError) as refused:
        shard.replay(key, damaged, 0)
    assert refused.value.code == CORRUPT_MESSAGE


def test_records_are_kafka_s_byte_for_byte(world):
    world.add(world.init(), 2, 0)
    (key, empty), (again, ongoing) = world.log
    assert key == again == b"\0\0" + b"\0\1x"
    fixed = "00000000000003e800000000ea60"  # producer id, epoch, timeout
    previous = "01000800000000000003e8"  # a tagged field: the producer id before
    now = "00000000000f4240"
    assert empty.hex() == f"0001{fixed}0000{now}ffffffffffffffff{previous}"
    partitions = "02027403000000000000000200"
    assert ongoing.hex() == f"0001{fixed}01{partitions}{now}{now}{previous}"


def test_before_and_after_it_serves_everybody_is_told_to_ask_again():
    world = World()
    shard = world.new_shard()
    fields = {"transactional_id": "x", "transaction_timeout": 1, "producer_id": -1}
    request = build(request_type(INIT, 4), fields | {"producer_epoch": -1})
    call = Call(INIT, 4, 1, world.rights)
    (answer,) = shard.handle(call, request, 0).responses
    assert answer[1]["error_code"] == errors.COORDINATOR_LOAD_IN_PROGRESS
    shard.resign()
    (answer,) = shard.handle(call, request, 0).responses
    assert answer[1]["error_code"] == errors.NOT_COORDINATOR
    with pytest.raises(AssertionError):
        shard.apply(TransactionLogKey(transactional_id="x"), None)
