"""Offsets of transactions count when the marker commits them, if nothing newer counts then."""

import pytest
from consumer_world import ConsumerWorld
from hypothesis import given
from hypothesis import strategies as st

from appliance.base import errors
from appliance.coordinators.groups.pending_offsets import PendingOffsets
from appliance.coordinators.runtime.call import UNVERIFIED, Call
from appliance.wire.build import build
from appliance.wire.messages import decode_request, encode_request, request_type
from tests.callers import rights

PENDING, COMMIT, FETCH, EXPIRE_MS = 28, 8, 9, 10_080 * 60_000
PLACES = [("g", "t", 0), ("g", "t", 1), ("h", "t", 0)]


class Transactions(ConsumerWorld):
    """log: (key, value, producer id) of records, (producer id, committed) of markers."""

    def carry_out(self, outcome):
        self.unverified = outcome.unverified
        producer_id = -1 if outcome.producer is None else outcome.producer[0]
        records, outcome.records = outcome.records, []
        self.log += [(*record, producer_id) for record in records]
        return super().carry_out(outcome)

    def replayed(self):
        shard = self.new_shard()
        for offset, entry in enumerate(self.log):
            if len(entry) == 2:
                shard.ended(entry[0], committed=entry[1])
            else:
                shard.replay(entry[0], entry[1], offset, entry[2])
        return shard

    def check(self):
        super().check()
        assert self.replayed().state.pending.by_group == self.shard.state.pending.by_group

    def mark(self, producer_id, committed=True):
        self.shard.ended(producer_id, committed=committed)
        self.log.append((producer_id, committed))
        self.check()

    def within(self, producer_id, offset, place=PLACES[0], standing=0, version=5, **member):
        """The error code of a TxnOffsetCommit, None when it is to be verified first."""
        group, topic, partition = place
        row = {"partition_index": partition, "committed_offset": offset, "committed_metadata": "m"}
        named = {"transactional_id": "x", "group_id": group, "producer_id": producer_id}
        named |= {"producer_epoch": 0, "topics": [{"name": topic, "partitions": [row]}]}
        if version > 2:
            named |= {"generation_id": -1, "member_id": "", "group_instance_id": None} | member
        body = encode_request(build(request_type(PENDING, version), named))
        token = next(self.tokens)
        call = self.calls[token] = Call(PENDING, version, token, rights("app"), standing)
        request = decode_request(PENDING, version, body)
        answers = self.carry_out(self.shard.handle(call, request, self.now))
        assert self.unverified == (not answers)
        return answers[0][1].topics[0].partitions[0].error_code if answers else None

    def plain(self, offset, place=PLACES[0]):
        group, topic, partition = place
        row = {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
        answer = self.answer(
            COMMIT, 7, group_id=group, generation_id_or_member_epoch=-1, member_id="",
            group_instance_id=None, topics=[{"name": topic, "partitions": [row]}],
        )  # fmt: skip
        assert answer.topics[0].partitions[0].error_code == errors.NONE

    def committed(self, place=PLACES[0], stable=False, all_of_it=False):
        """The offset, or the error code's name."""
        group, topic, partition = place
        topics = None if all_of_it else [{"name": topic, "partition_indexes": [partition]}]
        asked = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
        answer = self.answer(FETCH, 9, groups=[asked], require_stable=stable).groups[0]
        rows = [row for topic in answer.topics for row in topic.partitions]
        return [row.committed_offset if not row.error_code else row.error_code for row in rows]


UNSTABLE = [errors.UNSTABLE_OFFSET_COMMIT]


def test_an_offset_counts_when_its_transaction_is_committed():
    world = Transactions()
    assert world.within(1, 5, standing=UNVERIFIED) is None
    assert world.within(1, 5, standing=errors.INVALID_TXN_STATE) == errors.INVALID_TXN_STATE
    assert not world.log and not world.shard.state.groups
    assert world.within(1, 5, version=0) == errors.NONE
    assert world.committed() == [-1] and world.committed(stable=True) == UNSTABLE
    assert world.committed(PLACES[1], stable=True) == [-1]
    assert world.committed(all_of_it=True, stable=True) == []
    world.mark(2)
    assert world.committed(stable=True) == UNSTABLE
    world.mark(1)
    assert world.committed(stable=True) == [5] == world.committed(all_of_it=True)
    world.within(1, 9)
    assert world.committed() == [5] and world.committed(all_of_it=True, stable=True) == UNSTABLE
    world.mark(1, committed=False)
    assert world.committed(stable=True) == [5]


def test_what_is_wrong_with_a_partition_is_told_before_the_transaction_is_asked_about():
    world = Transactions()
    wrong = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert world.within(1, 5, ("g", "none", 0), UNVERIFIED) == wrong
    assert world.within(1, 5, ("g", "t", 99), UNVERIFIED) == wrong
    assert world.within(1, 5, ("", "t", 0), UNVERIFIED) == errors.INVALID_GROUP_ID
    world.shard.resign()
    assert world.within(1, 5) == errors.NOT_COORDINATOR
    world.shard = world.new_shard()
    assert world.within(1, 5) == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert world.within(1, 5, version=1) == errors.COORDINATOR_NOT_AVAILABLE


def test_who_says_that_it_is_a_member_must_be_one():
    world = Transactions()
    assert world.within(1, 5, generation_id=3, member_id="m") == errors.ILLEGAL_GENERATION
    answer = world.answer(
        11, 3, group_id="g", session_timeout=10_000, rebalance_timeout=10_000, member_id="",
        protocol_type="consumer", protocols=[{"name": "range", "metadata": b""}],
    )  # fmt: skip
    member = {"generation_id": answer.generation_id, "member_id": answer.member_id}
    assert world.within(1, 5, **member) == errors.NONE, "the leader's assignment is awaited"
    assert world.within(1, 5, version=2) == errors.NONE == world.within(1, 5)
    assert world.within(1, 5, **member | {"member_id": "m"}) == errors.UNKNOWN_MEMBER_ID
    assert world.within(1, 5, **member | {"generation_id": 9}) == errors.ILLEGAL_GENERATION


def test_members_of_the_new_protocol_too():
    world = Transactions()
    _, ((_, joined),) = world.heartbeat(
        "m", 0, subscribed_topic_names=["t"], topic_partitions=[], rebalance_timeout=1000
    )
    epoch = joined.member_epoch
    assert world.within(1, 5) == errors.NONE
    assert world.within(1, 5, generation_id=epoch, member_id="m") == errors.NONE
    assert world.within(1, 5, generation_id=epoch + 1, member_id="m") == errors.ILLEGAL_GENERATION
    assert world.within(1, 5, generation_id=epoch, member_id="n") == errors.UNKNOWN_MEMBER_ID
    world.mark(1)
    assert world.committed(stable=True) == [5]


def test_nothing_goes_while_a_transaction_may_change_it():
    world = Transactions()
    world.plain(1)
    world.within(1, 5)
    world.within(2, 6, PLACES[2])
    world.mark(2, committed=False)
    world.pass_time(2 * EXPIRE_MS)
    assert list(world.shard.state.groups) == ["g"] and world.committed() == [1]
    world.mark(1)
    world.pass_time(2 * EXPIRE_MS)
    assert not world.shard.state.groups


@pytest.mark.parametrize("how", ["group", "offset", "topic"])
def test_what_is_deleted_is_no_longer_pending(how):
    world = Transactions()
    world.within(1, 5)
    world.within(1, 6, PLACES[2])
    if how == "group":
        answer = world.answer(42, 2, groups_names=["g"])
        assert answer.results[0].error_code == errors.NONE
    elif how == "offset":
        rows = [{"partition_index": 0}]
        answer = world.answer(47, 0, group_id="g", topics=[{"name": "t", "partitions": rows}])
        assert answer.error_code == answer.topics[0].partitions[0].error_code == errors.NONE
    else:
        topic_id = world.image.topics_by_name["t"].topic_id
        world.carry_out(world.shard.on_topic_deleted("t", topic_id, world.now))
    gone = how == "topic"
    assert world.committed(stable=True) == [-1]
    assert world.committed(PLACES[2], stable=True) == ([-1] if gone else UNSTABLE)
    world.mark(1)
    assert world.committed() == [-1]
    assert world.committed(PLACES[2]) == [-1 if gone else 6]
    assert ("g" in world.shard.state.groups) == (how != "group")


steps = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), st.sampled_from(PLACES)),
        st.tuples(st.just("gone"), st.sampled_from(PLACES)),
        st.tuples(st.just("put"), st.integers(1, 3), st.sampled_from(PLACES)),
        st.tuples(st.just("end"), st.integers(1, 3), st.booleans()),
    ),
    max_size=40,
)


@given(steps)
def test_the_newest_of_what_counts_counts(steps):
    """Against Kafka's rule told by the offsets of records."""
    pending, ours = PendingOffsets(), {}
    counting, open_ = {}, {}  # place → offset of its record; producer → the same
    for offset, step in enumerate(steps):
        if step[0] == "plain":
            pending.outdate(step[1])
            ours[step[1]] = counting[step[1]] = offset
        elif step[0] == "gone":
            for known in (ours, counting, *open_.values()):
                known.pop(step[1], None)
            pending.remove(step[1])
        elif step[0] == "put":
            pending.put_offset(step[1], step[2], offset)
            open_.setdefault(step[1], {})[step[2]] = offset
        else:
            _, producer, committed = step
            ours |= dict(pending.end_transaction(producer, committed=committed))
            held = open_.pop(producer, {})
            for place, found in held.items() if committed else ():
                counting[place] = max(counting.get(place, -1), found)
        assert ours == counting
        for place in PLACES:
            assert pending.holds(*place) == any(place in held for held in open_.values())
    for producer in (1, 2, 3):
        pending.end_transaction(producer, committed=False)
    assert not pending.by_group and not pending._places
