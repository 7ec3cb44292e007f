"""Coordinators come and go with the leadership of their partition, each kind with its own topic."""

from collections import Counter
from dataclasses import replace
from itertools import count
from tempfile import TemporaryDirectory

import pytest
from coordinators.tally import ADD, TOPIC, TallyKind
from core_world import StillClock
from hypothesis import given, settings
from hypothesis import strategies as st
from test_coordinating import (
    COMMIT,
    FETCH,
    HEARTBEAT,
    JOIN,
    NOW_MS,
    OFFSETS_ID,
    Groups,
    code_of,
    image_with,
)

from appliance.authorization.rights import AllowAll, Callers
from appliance.base import errors
from appliance.base.ids import OFFSETS_TOPIC
from appliance.base.space import SpaceGuard
from appliance.config.broker import BrokerConfig
from appliance.coordinators.groups.records import RECORDS, OffsetCommitKey
from appliance.coordinators.groups.shard import GroupShard
from appliance.coordinators.runtime.kind import Lent
from appliance.ioproc.coordination.coordinator_host import CoordinatorHost
from appliance.ioproc.coordination.coordinator_loading import LONGEST_REST_MS, load
from appliance.ioproc.partitions.partition import Partition
from appliance.replication.role import PartitionRole
from appliance.ring.messages import COORDINATE, Message
from appliance.wire.batch_header import HEADER_SIZE, read_header
from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request, request_type
from appliance.wire.records import iter_records
from tests.callers import caller

TALLY_ID = b"y" * 16


def batches_of(log):
    """(leader epoch, records) of each batch in the log."""
    file, position, length, _ = log.locate(0, 1 << 30, log.end_offset)
    with open(f"{log.path}/{file:020d}.log", "rb") as data:
        bytes_ = memoryview(data.read()[position : position + length])
    at = 0
    while at + HEADER_SIZE <= len(bytes_):
        header = read_header(bytes_, at)
        yield header.leader_epoch, list(iter_records(bytes_[at : at + header.size]))
        at += header.size


def committed_in(log):
    """(leader epoch, offset) of every commit in the log."""
    if log.end_offset == 0:
        return []
    found = []
    for epoch, records in batches_of(log):
        for record in records:
            key, value = RECORDS.decode(record.key, record.value)
            if isinstance(key, OffsetCommitKey) and value is not None:
                found.append((epoch, value.offset))
    return found


class Led(Groups):
    """A partition whose leadership comes and goes; every answer is kept."""

    def __init__(self, folder, **rest):
        super().__init__(folder, netprocs=1, **rest)
        self.answers = []
        self.leads = True

    def turn(self, now_ms=NOW_MS):
        told = super().turn(now_ms)
        self.answers += told[0]
        return told

    def load(self):
        """Only what is synced can be loaded."""
        for _ in range(100):
            if not self.groups._loading.queue:
                return
            self.now_ns += 10**9
            self.synced()
        raise AssertionError("it loads for ever")

    def follow(self):
        self.leads = False
        self.core.follow(self.partition, self.partition.leader_epoch + 1)

    def lead(self):
        self.leads = True
        self.core.lead(self.partition, self.partition.leader_epoch + 1)


def test_a_partition_that_is_not_led_has_no_coordinator(tmp_path):
    world = Led(tmp_path)
    world.follow()
    assert world.committed() == errors.NOT_COORDINATOR
    world.send(16, 7, version=0)
    ((_, code, body),) = world.turn()[0]
    # No group is named, so nobody else can be looked for.
    assert (code, code_of(16, body, 0)) == (0, errors.COORDINATOR_NOT_AVAILABLE)
    world.lead()
    world.load()
    assert world.committed() == []


def test_who_waits_when_the_leadership_goes_is_told_to_look_for_the_coordinator(tmp_path):
    world = Led(tmp_path)
    world.join(token=1)
    world.turn()
    world.synced()
    world.join(token=2)  # parked
    world.commit(5, token=3, group="written")
    world.turn()
    world.commit(6, token=4, group="decided")
    world.follow()
    told = {token: body for token, _, body in world.turn()[0]}
    assert code_of(JOIN, told[2]) == errors.NOT_COORDINATOR
    assert [code_of(COMMIT, told[token]) for token in (3, 4)] == [errors.NOT_COORDINATOR] * 2
    world.synced()
    world.lead()
    assert world.committed("written") == errors.COORDINATOR_LOAD_IN_PROGRESS
    world.load()
    assert world.committed("written") == [5]  # it was in the log when the answer was lost
    assert world.committed("decided") == []


def test_the_same_epoch_told_again_changes_nothing(tmp_path):
    world = Led(tmp_path)
    world.commit(5, token=3)
    world.groups.leads(world.partition)
    world.turn()
    ((_, code, body),) = world.synced()[0]
    assert (code, code_of(COMMIT, body)) == (errors.NONE, errors.NONE)


def test_what_is_decided_in_one_epoch_is_not_written_in_the_next(tmp_path):
    world = Led(tmp_path)
    world.commit(5, token=3)
    world.lead()
    ((_, _, body),) = world.turn()[0]
    assert code_of(COMMIT, body) == errors.NOT_COORDINATOR
    world.load()
    assert world.log.end_offset == 0
    assert world.committed() == []


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from("ab")),
    st.sampled_from([("turn",), ("sync",), ("follow",), ("lead",), ("load",), ("join",)]),
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_no_change_of_leaders_loses_or_doubles_an_offset(steps):
    with TemporaryDirectory() as folder:
        world, tokens, groups, epochs = Led(folder), count(1), {}, {}
        for step, *rest in steps:
            if step == "commit":
                token = next(tokens)
                groups[token], epochs[token] = rest[0], world.partition.leader_epoch
                world.commit(token, token=token, group=rest[0])
            elif step == "join":
                token = next(tokens)
                groups[token] = ""
                world.join(token=token, group="j")
            elif step == "turn":
                world.turn()
            elif step == "sync":
                world.synced()
            elif step == "load":
                world.load()
            elif world.leads or step == "lead":
                world.follow() if step == "follow" else world.lead()
        world.synced()
        world.lead()
        world.load()
        world.synced()
        world.groups.drain()
        world.turn()
        answers = Counter(token for token, _, _ in world.answers)
        assert answers == Counter(groups.keys())  # everybody is answered, once
        written = committed_in(world.log)
        assert len({offset for _, offset in written}) == len(written)
        assert all(epochs[offset] == epoch for epoch, offset in written)
        kept = {offset for _, offset in written}
        shard = shard_of(world)
        newest = {}
        for token, group in groups.items():
            body = next(body for other, _, body in world.answers if other == token)
            if group and code_of(COMMIT, body) == errors.NONE:
                assert token in kept
            if token in kept:
                newest[group] = token
        for group, offset in newest.items():
            assert shard.state.offsets.find_offset(group, "t", 0).offset == offset


def shard_of(world):
    """What a new coordinator would load."""
    kind_shard = GroupShard(0, world.groups._shard(world.partition).state.settings, None, bytes)
    for _ in load(world.partition, kind_shard):
        pass
    return kind_shard


# A second kind ------------------------------------------------------------------------------------


class Both(Groups):
    """Groups, and beside them a kind with a topic, a request and records of its own."""

    def coordinators(self, appends, failures):
        hosts = super().coordinators(appends, failures)
        self.tallies = CoordinatorHost(
            TallyKind(),
            appends,
            failures,
            BrokerConfig.of({}),
            {index: writer for index, (_, writer) in enumerate(self.rings)},
            image_with((OFFSETS_TOPIC, OFFSETS_ID), (TOPIC.name, TALLY_ID), ("t", b"t" * 16)),
            StillClock(),
            Lent(bytes, lambda: None),
            self.counters.errors[0],
            Callers(AllowAll()),
            self.events,
            self.endings,
        )
        return {**hosts, TOPIC.name: self.tallies}

    def __init__(self, folder):
        super().__init__(folder)
        self.tally_handle = self.table.add(TALLY_ID, 0)
        self.tally_log = self._log(f"{folder}/{TOPIC.name}-0", False)
        self.tally = Partition(self.tally_handle, TOPIC.name, 0, TALLY_ID, self.tally_log, 0)
        self.core.add(self.tally, self.now_ns)

    def turn(self, now_ms=NOW_MS):
        self.tallies.run_once(now_ms)
        return super().turn(now_ms)

    def add(self, name, token, committed=True):
        fields = {"producer_id": 1, "producer_epoch": 0, "committed": committed}
        body = encode_request(build(request_type(ADD, 3), {"transactional_id": name, **fields}))
        who = caller().encode()
        message = Message(
            COORDINATE, 0, self.tally_handle, token, 0, ADD << 16 | 3, 0, 0, 0, 0, 0, 0,
            len(who), 0, who + body,
        )  # fmt: skip
        self.arrivals.handle(self.core.askers[0], [message], NOW_MS)


def error_of(answers):
    ((_, code, body),) = answers
    return code or decode_response(ADD, 3, body).error_code


def test_kinds_live_side_by_side_each_in_its_own_topic(tmp_path):
    world = Both(tmp_path)
    world.commit(5, token=1)
    world.add("a", 2)
    world.turn()
    answers = world.synced()[0]
    assert sorted(token for token, _, _ in answers) == [1, 2]
    assert (world.log.end_offset, world.tally_log.end_offset) == (1, 1)
    world.core.follow(world.partition, 1)
    world.add("a", 3)
    world.turn()
    assert error_of(world.synced()[0]) == errors.NONE  # the other kind is still led here
    assert world.committed() == errors.NOT_COORDINATOR
    world.tallies.closed(world.tally)
    world.add("a", 4)
    assert error_of(world.turn()[0]) == errors.NOT_COORDINATOR


def test_what_waits_in_one_kind_is_woken_by_its_own_clock(tmp_path):
    world = Both(tmp_path)
    world.add("a", 2, committed=False)
    assert world.turn()[0] == []
    assert NOW_MS < world.tallies.due_ms <= NOW_MS + 1000
    assert error_of(world.turn(NOW_MS + 1000)[0]) == errors.CONCURRENT_TRANSACTIONS


def test_each_kind_asks_the_folder_of_its_own_partition_for_room(tmp_path):
    world = Both(tmp_path)
    elsewhere = SpaceGuard(0, 0)
    world.tally.space = elsewhere
    elsewhere.tight = True
    world.commit(5, token=1)
    world.add("a", 2)
    assert error_of(world.turn()[0]) == errors.COORDINATOR_NOT_AVAILABLE
    ((answer,), _) = world.synced()
    assert code_of(COMMIT, answer[2]) == errors.NONE
    elsewhere.tight, world.space.tight = False, True
    world.add("a", 3)
    world.commit(6, token=4)
    ((refused,), _) = world.turn()
    assert code_of(COMMIT, refused[2]) == errors.COORDINATOR_NOT_AVAILABLE
    assert error_of(world.synced()[0]) == errors.NONE


@pytest.mark.parametrize(("epoch", "refused"), [(0, True), (1, False), (-1, False)])
def test_of_members_only_those_who_join_need_room(tmp_path, epoch, refused):
    """Who is in a group stays in it, and whoever leaves may leave."""
    world = Groups(tmp_path)
    world.space.tight = True
    world.send(
        68, 3, version=1, group_id="g", member_id="m", member_epoch=epoch, instance_id=None,
        rack_id=None, rebalance_timeout=1000 if epoch == 0 else -1, subscribed_topic_names=["t"],
        subscribed_topic_regex=None, server_assignor=None, topic_partitions=[],
    )  # fmt: skip
    ((answer,), _) = world.turn()
    assert (code_of(68, answer[2], 1) == errors.COORDINATOR_NOT_AVAILABLE) == refused


def test_the_reads_of_groups_are_as_durable_as_their_writes(tmp_path):
    world = Led(tmp_path)
    world.commit(5, token=1)
    world.turn()
    world.send(FETCH, 2, group_id="g", topics=None, require_stable=False)
    assert world.turn()[0] == []
    assert [token for token, _, _ in world.synced()[0]] == [1, 2]
    world.send(HEARTBEAT, 3, group_id="g", generation_id=1, member_id="m", group_instance_id=None)
    assert len(world.turn()[0]) == 1


# Other replicas -----------------------------------------------------------------------------------

SHARED = PartitionRole(leads=True, leader=1, replicas=(2, 3), isr=(2,))


def lead_with_others(world, role=SHARED):
    world.core.lead(world.partition, world.partition.leader_epoch + 1, role, NOW_MS)


def test_what_the_followers_do_not_have_is_waited_for_without_spinning(tmp_path):
    world = Led(tmp_path)
    world.commit(5)
    world.turn()
    world.synced()
    lead_with_others(world)
    world.load()
    world.commit(6, token=6)
    world.turn()
    world.synced()
    lead_with_others(world)
    assert [(token, code_of(COMMIT, body)) for token, _, body in world.turn()[0]] == [
        (6, errors.NOT_COORDINATOR)
    ]
    assert world.committed() == errors.COORDINATOR_LOAD_IN_PROGRESS
    rests = []
    for _ in range(10):
        world.groups.run_once(NOW_MS)
        rests.append(world.groups.due_ms - NOW_MS)
    assert rests[0] > 0 and rests == sorted(rests) and rests[-1] == LONGEST_REST_MS
    world.partition.progress.replica_at(2, world.log.end_offset, NOW_MS)
    world.load()
    assert world.committed() == [6]


def test_a_coordinator_that_is_cut_off_sends_everybody_elsewhere(tmp_path):
    world = Led(tmp_path)
    world.commit(5)
    world.turn()
    world.synced()
    lead_with_others(world)
    world.partition.progress.replica_at(2, world.log.end_offset, NOW_MS)
    world.load()
    world.commit(6, token=6)
    world.turn()
    assert world.core.isolate(isolated=True) == 1
    world.commit(7, token=7)
    codes = {token: code_of(COMMIT, body) for token, _, body in world.turn()[0]}
    assert codes == {6: errors.NOT_COORDINATOR, 7: errors.NOT_COORDINATOR}
    assert world.core.isolate(isolated=False) == 0
    world.commit(8, token=8)
    assert world.turn()[0] == [], "it is served again, and waits for its follower"


def test_with_too_few_in_sync_nothing_is_begun_and_reads_are_answered(tmp_path):
    world = Led(tmp_path)
    world.commit(5)
    world.turn()
    world.synced()
    world.partition.rules = replace(world.partition.rules, min_insync_replicas=2)
    lead_with_others(world, SHARED._replace(isr=()))
    world.load()
    (shard,) = world.groups.shards()
    end = world.log.end_offset
    world.commit(6, token=6)
    ((_, _, body),) = world.turn()[0]
    assert code_of(COMMIT, body) == errors.COORDINATOR_NOT_AVAILABLE
    assert world.committed() == [5]
    assert world.groups.shards() == [shard] and world.log.end_offset == end
