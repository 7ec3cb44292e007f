"""What every kind of coordinator gets from the runtime: phases, replay, parked requests, timers."""

from itertools import count

import pytest
from coordinators.tally import ADD, PATIENCE_MS, TallyKind, TallyShard
from hypothesis import given
from hypothesis import strategies as st

from appliance.base import errors
from appliance.base.errors import CORRUPT_MESSAGE, PeerError
from appliance.config.broker import BrokerConfig
from appliance.coordinators.kinds import BY_KEY_TYPE, KINDS
from appliance.coordinators.runtime.call import NEVER, Call
from appliance.coordinators.runtime.kind import CoordinatorPartition, Lent, partition_of
from appliance.coordinators.runtime.shard import ACTIVE, LOADING, RESIGNED
from appliance.coordinators.runtime.turn import Timed, Timers
from appliance.metadata.image import MetadataImage
from appliance.wire.build import build
from appliance.wire.messages import request_type
from tests.callers import rights


def call(token):
    return Call(ADD, 3, token, rights())


CALL = call(1)
LENT = Lent(bytes, lambda: None)


def request(name="a", committed=True):
    fields = {"producer_id": 1, "producer_epoch": 0, "committed": committed}
    return build(request_type(ADD, 3), {"transactional_id": name, **fields})


def shard(partition=0, partitions=1):
    return TallyKind().shard(
        CoordinatorPartition(partition, partitions, 0), BrokerConfig.of({}), MetadataImage(), LENT
    )


def active(records=()):
    made = shard()
    for offset, (key, value) in enumerate(records):
        made.replay(key, value, offset)
    made.activate(0)
    return made


def codes(outcome):
    return [(token, values["error_code"]) for token, values in outcome.responses]


def test_a_shard_answers_by_its_phase():
    one = shard()
    assert one.phase == LOADING
    loading = errors.COORDINATOR_LOAD_IN_PROGRESS
    assert codes(one.handle(CALL, request(), 0)) == [(1, loading)]
    one.activate(0)
    assert one.phase == ACTIVE
    assert codes(one.handle(CALL, request(), 0)) == [(1, errors.NONE)]
    assert codes(one.handle(CALL, request(""), 0)) == [(1, errors.INVALID_REQUEST)]
    one.resign()
    assert one.phase == RESIGNED and one.size() == 0
    assert codes(one.handle(CALL, request(), 0)) == [(1, errors.NOT_COORDINATOR)]


def test_only_one_partition_owns_a_name():
    owners = []
    for partition in range(5):
        one = shard(partition, 5)
        one.activate(0)
        if codes(one.handle(CALL, request(), 0)) == [(1, errors.NONE)]:
            owners.append(partition)
    assert owners == [partition_of("a", 5)]


def test_who_resigned_decides_nothing_any_more():
    one = active()
    ((key, value),) = one.handle(CALL, request(), 0).records
    one.resign()
    with pytest.raises(AssertionError):
        one.replay(key, value, 0)
    with pytest.raises(AssertionError):
        one.apply(*TallyShard.RECORDS.decode(key, value))


def test_who_is_parked_is_answered_by_what_it_waits_for_or_its_deadline_or_the_end():
    one = active()
    assert one.next_deadline_ms == NEVER
    assert not one.handle(call(1), request(committed=False), 0).responses
    assert codes(one.handle(call(2), request(), 0)) == [(1, errors.NONE), (2, errors.NONE)]
    assert not one.handle(call(3), request(committed=False), 5).responses
    assert one.next_deadline_ms <= 5 + PATIENCE_MS
    assert codes(one.tick(4 + PATIENCE_MS)) == []
    assert codes(one.tick(5 + PATIENCE_MS)) == [(3, errors.CONCURRENT_TRANSACTIONS)]
    assert not one.handle(call(4), request(committed=False), 5).responses
    assert codes(one.resign()) == [(4, errors.NOT_COORDINATOR)]
    assert one.next_deadline_ms == NEVER
    assert codes(one.tick(1 << 50)) == []


def test_a_topic_that_is_gone_is_forgotten_by_a_record():
    one = active()
    records = one.handle(CALL, request(), 0).records
    records += one.on_topic_deleted("a", bytes(16), 0).records
    assert active(records).size() == one.size() == 0
    assert not shard().on_topic_deleted("a", bytes(16), 0).records  # what loads is told later


def test_bytes_that_are_no_record_say_where_they_lie():
    with pytest.raises(PeerError, match="offset 17") as refused:
        shard().replay(b"\0\0\0\5a", None, 17)
    assert refused.value.code == CORRUPT_MESSAGE
    one = shard()
    one.replay(b"\0\7unknown", b"", 0)
    assert one.size() == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 700))))
def test_replaying_its_records_gives_the_state_that_wrote_them(script):
    one, log, now, tokens = active(), [], 0, count()
    for name, committed, passed in script:
        now += passed
        for outcome in (
            one.tick(now),
            one.handle(call(next(tokens)), request(name, committed), now),
        ):
            log += outcome.records
    assert active(log).state.counts == one.state.counts
    wanted = {
        name: sum(1 for other, added, _ in script if added and other == name)
        for name, added, _ in script
        if added
    }
    assert one.state.counts == wanted


class Sleeper(Timed):
    def __init__(self):
        super().__init__()
        self.woken = []

    def wake_up(self, turn):
        self.woken.append(turn)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50))), st.integers(0, 60))
def test_everybody_is_woken_once_by_its_earliest_wish(wishes, now):
    timers, sleepers, earliest = Timers(), [Sleeper() for _ in range(3)], {}
    for who, at in wishes:
        timers.wake_at(sleepers[who], at)
        earliest[who] = min(at, earliest.get(who, NEVER))
    assert timers.next_ms == min(earliest.values(), default=NEVER)
    due = [sleepers.index(who) for who in timers.due(now)]
    assert sorted(due) == sorted(who for who, at in earliest.items() if at <= now)
    left = {at for at in earliest.values() if at > now}
    assert timers.next_ms <= min(left, default=NEVER)


def test_a_void_wake_up_wakes_nobody():
    timers, one = Timers(), Sleeper()
    timers.wake_at(one, 10)
    timers.wake_at(one, 5)
    timers.wake_at(one, 20)  # later than what is wished for already
    assert list(timers.due(5)) == [one]
    timers.wake_at(one, 30)
    assert list(timers.due(10)) == []
    assert list(timers.due(30)) == [one]


def test_every_kind_is_declared_once():
    topics = [kind.TOPIC.name for kind in KINDS]
    assert len(dict.fromkeys(topics)) == len(topics) == len(BY_KEY_TYPE)
    for kind in KINDS:
        made = kind.shard(CoordinatorPartition(0, 1, 0), BrokerConfig.of({}), MetadataImage(), LENT)
        assert kind.APIS == made.HANDLERS.keys() == made.REFUSALS.keys()
