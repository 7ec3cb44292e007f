"""Leadership comes and goes while control runs: what was committed stays, what was not is answered
as never decided, and who leads again goes on from the log alone."""

import sys
from random import Random

import pytest
from kio.index import load_request_schema
from sim.disk import SimDisk
from test_control_shell import Appliance, build, create, new
from test_control_turns import ensure

from appliance.base import errors
from appliance.base.errors import DiskFull
from appliance.base.ids import METADATA_TOPIC
from appliance.control.quorum.leadership import NotController
from appliance.control.quorum.metadata_log import open_log
from appliance.control.quorum.metadata_quorum import open_quorum
from appliance.control.quorum.snapshots import SnapshotLimits
from appliance.controller.registration import bootstrap_records
from appliance.metadata.follower import Follower
from appliance.quorum.messages import NOBODY
from appliance.ring.partition_table import PartitionTable
from appliance.wire import kraft_records as kraft
from appliance.wire.messages import decode_response, encode_request
from tests.seeds import each_seed

# Log, images and leadership under any schedule ----------------------------------------------------

LIMITS = SnapshotLimits(snapshot_bytes=2048, snapshot_ms=0, segment_bytes=2048)


class World:
    """A quorum on a simulated disk, beside what a dumb twin makes of the log: it replays the files
    from scratch."""

    def __init__(self, seed):
        self.rng = Random(seed)
        self.disk = SimDisk(self.rng)
        self.disk.mkdir("/d")
        self.disk.mkdir("/e")
        self.disk.sync_dir("/")
        self.witnessed = []  # committed records, as the twin read them first
        self.number = 0
        self.open()

    def open(self):
        log = open_log(self.disk, "/d", LIMITS.segment_bytes, 1)
        self.quorum = open_quorum(self.disk, 1, log, self.follower(), LIMITS)
        self.job = None

    def follower(self, folder="/d"):
        table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(16))), 16)
        return Follower(self.disk, folder, table)

    def replayed(self, end):
        follower = self.follower()
        follower.catch_up(end)
        return follower.image

    def lead(self):
        if not self.quorum.leadership.leads:
            self.quorum.elected(1)
        if not self.quorum.active:
            self.quorum.activate(1)
            if not self.quorum.image.metadata_version:
                self.quorum.append(bootstrap_records(), 1)

    def resign(self):
        if self.quorum.leadership.leads:
            self.quorum.replica.resign(1)
            self.quorum.replica.take_effects()
            self.quorum.resign()

    def append(self):
        if not self.quorum.active:
            with pytest.raises(NotController):
                self.quorum.append([kraft.NoOpRecord()], 1)
            return
        self.number += 1
        topics = list(self.quorum.image.topics_by_name.values())
        kind = self.rng.randrange(3)
        if kind == 0 or not topics:
            topic_id = self.number.to_bytes(16, "big")
            made = [kraft.TopicRecord(name=f"t{self.number}", topic_id=topic_id)]
            made += [partition(topic_id, index) for index in range(self.rng.randint(1, 3))]
        elif kind == 1:
            topic = self.rng.choice(topics)
            made = [kraft.RemoveTopicRecord(topic_id=topic.topic_id)]
        else:
            topic = self.rng.choice(topics)
            made = [
                kraft.PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, leader=1),
                kraft.ConfigRecord(resource_type=2, resource_name=topic.name, name="x",
                                   value=str(self.number)),
            ]  # fmt: skip
        self.quorum.append(made, 1)

    def sync(self):
        if self.job is None and self.quorum.log.unsynced:
            self.job = self.quorum.log.begin_sync()
            assert self.job is not None, "there is something to sync"

    def synced(self):
        if self.job is not None:
            job, self.job = self.job, None
            job.run()
            self.quorum.end_sync(job, None)

    def cut(self):
        """Another leader, whose log has nothing of what was left here."""
        quorum = self.quorum
        if quorum.leadership.leads or self.job is not None:
            return
        self.make_room()
        ends = [quorum.committed]
        for header, _ in quorum.log.read(quorum.committed, quorum.log.end_offset):
            ends.append(header.last_offset + 1)
        quorum.truncate(self.rng.choice(ends), 1)

    def snapshot(self):
        if self.quorum.snapshot_due(1):
            self.quorum.snapshot(1)

    def fill(self):
        self.disk.capacity = self.disk.used() + self.rng.randint(0, 1)

    def make_room(self):
        self.disk.capacity = 1 << 30

    def die(self):
        self.make_room()
        if self.rng.random() < 0.5:
            self.disk.power_cut(self.rng)
        else:
            self.disk.process_death()
        self.open()

    def check(self):
        quorum = self.quorum
        assert quorum.images.committed == self.replayed(quorum.committed)
        if quorum.active:
            assert quorum.image == self.replayed(quorum.log.end_offset)
        log = [
            (header.base_offset, bytes(batch))
            for header, batch in quorum.log.read(
                max(quorum.log._log.log_start_offset, 0), quorum.committed
            )
        ]
        first = log[0][0] if log else quorum.committed
        assert [one for one in self.witnessed if one[0] >= first] == log[
            : len([one for one in self.witnessed if one[0] >= first])
        ], "what is committed stays as it is"
        self.witnessed = [one for one in self.witnessed if one[0] < first] + log


def partition(topic_id, index):
    return kraft.PartitionRecord(
        partition_id=index, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
        partition_epoch=0,
    )  # fmt: skip


@each_seed(60)
def test_any_schedule_leaves_what_replaying_the_committed_records_gives(seed):
    world = World(seed)
    steps = [world.lead, world.resign, world.append, world.append, world.append, world.sync,
             world.synced, world.synced, world.snapshot, world.cut, world.fill,
             world.make_room]  # fmt: skip
    for number in range(120):
        step = world.die if number % 30 == 29 else world.rng.choice(steps)
        try:
            step()
        except DiskFull:
            assert step in (world.lead, world.append, world.snapshot)
        world.check()
    world.make_room()
    world.synced()
    world.lead()
    end = world.quorum.log.end_offset
    world.quorum.sync()
    world.check()
    assert world.quorum.committed == end, "whoever leads commits all that it has"


def test_what_another_leader_cut_off_is_gone_though_it_was_durable():
    world = World(3)
    world.lead()
    world.quorum.sync()
    committed, image = world.quorum.committed, world.quorum.images.committed.copy()
    world.append()
    world.sync()
    world.resign()
    world.synced()
    log = world.quorum.log
    assert log.durable == log.end_offset > committed == world.quorum.committed
    world.quorum.truncate(committed, 1)
    assert log.durable == log.end_offset == log._log.recovery_point == committed
    world.lead()
    assert world.quorum.image.topics_by_name == image.topics_by_name
    assert log.unsynced
    world.sync()
    world.synced()
    world.check()
    assert world.quorum.committed == committed + 1
    with pytest.raises(AssertionError):
        world.quorum.truncate(committed, 1)


@pytest.mark.parametrize("segment_bytes", [2048, 1 << 20])
@pytest.mark.parametrize("again", [False, True])
def test_a_power_cut_is_no_damage_where_a_segment_was_full_or_an_epoch_over(segment_bytes, again):
    """Whole pages of what no sync had covered are lost, and what came later is there."""
    for cut in range(60):
        world = World(3)
        log = open_log(world.disk, "/e", segment_bytes, 1)
        world.quorum = open_quorum(world.disk, 1, log, world.follower("/e"), LIMITS)
        world.lead()
        world.quorum.sync()
        committed = world.quorum.committed
        for _ in range(40):
            world.append()
        if again:
            world.resign()
            world.lead()
            for _ in range(40):
                world.append()
        world.disk.power_cut(Random(cut))
        log = open_log(world.disk, "/e", segment_bytes, 1)
        assert log.end_offset >= committed, cut


def test_what_a_transaction_of_a_leader_before_left_open_is_aborted():
    world = World(1)
    world.lead()
    world.quorum.append([kraft.BeginTransactionRecord(name="n")], 1)
    world.append()
    assert not world.quorum.image.topics_by_name
    world.resign()
    world.lead()
    assert world.quorum.image.pending is None and not world.quorum.image.topics_by_name
    world.append()
    assert world.quorum.image.topics_by_name
    world.quorum.sync()
    world.check()


# Control ------------------------------------------------------------------------------------------


@pytest.fixture
def appliance(tmp_path):
    one = Appliance(tmp_path)
    yield one
    one.close()


def created(appliance, name):
    """A CreateTopics on its way; its token."""
    request = {"topics": [new(name)], "timeout": 1000, "validate_only": False}
    return appliance.forward(19, 7, encode_request(build(load_request_schema(19, 7), request)))


def codes(appliance):
    """token → code of the first topic, of what has been answered."""
    found = {}
    for token, (code, body) in appliance.answers().items():
        found[token] = decode_response(19, 7, body).topics[0].error_code if body[3:] else code
    return found


def test_who_leads_is_told(appliance):
    assert appliance.table.leader == (1, 1)
    appliance.control.resign()
    assert appliance.table.leader == (NOBODY, 1)
    appliance.control.lead()
    assert appliance.table.leader == (1, 2)
    appliance.kill_control()
    assert appliance.table.leader == (1, 3)


def described(appliance):
    topics = [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]
    return appliance.ask(55, 2, topics=topics).topics[0].partitions[0]


def test_the_quorum_is_described_by_who_leads_it(appliance):
    row = described(appliance)
    assert (row.error_code, row.leader_id, row.leader_epoch) == (0, 1, 1)
    assert row.high_watermark == appliance.table.metadata_offset
    appliance.control.resign()
    row = described(appliance)
    assert (row.error_code, row.leader_id) == (errors.NOT_LEADER_OR_FOLLOWER, NOBODY)
    assert row.leader_epoch == 1 and not row.current_voters
    appliance.control.lead()
    row = described(appliance)
    assert (row.error_code, row.leader_id, row.leader_epoch) == (0, 1, 2)


def test_a_voter_that_tells_of_itself_elsewhere_is_told_that_nobody_leads_here(appliance):
    appliance.control.resign()
    answer = appliance.ask(
        82, 0, cluster_id=None, current_leader_epoch=1, voter_id=1, voter_directory_id=bytes(16),
        listeners=[],
        k_raft_version_feature={"min_supported_version": 0, "max_supported_version": 1},
    )  # fmt: skip
    assert int(answer.error_code) == errors.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == NOBODY


def test_what_is_not_committed_when_leadership_is_lost_was_never_decided(appliance):
    create(appliance, new("kept"))
    appliance.threads.held = True
    first, second = created(appliance, "a"), created(appliance, "b")
    appliance.turn()
    third = ensure(appliance, b"c")
    appliance.turn()
    appliance.control.resign()
    assert appliance.control._quorum.image.topics_by_name.keys() == {"kept"}
    assert codes(appliance) == {
        first: errors.NOT_CONTROLLER,
        second: errors.NOT_CONTROLLER,
        third: errors.LEADER_NOT_AVAILABLE,
    }
    appliance.threads.run()
    assert codes(appliance) == {}, "nobody is answered twice"
    assert appliance.followed().image.topics_by_name.keys() == {"kept"}


def test_without_leadership_changes_are_refused_and_questions_answered(appliance):
    create(appliance, new("kept"))
    before = appliance.table.metadata_offset
    appliance.control.resign()
    assert create(appliance, new("a")).topics[0].error_code == errors.NOT_CONTROLLER
    [again] = create(appliance, new("kept")).topics
    assert again.error_code == errors.NOT_CONTROLLER, "who does not lead may not judge it either"
    assert appliance.ensure("kept") == errors.NONE
    assert appliance.ensure("a") == errors.LEADER_NOT_AVAILABLE
    entry = {"name": "retention.ms", "config_operation": 0, "value": "5"}
    resource = {"resource_type": 2, "resource_name": "kept", "configs": [entry]}
    [row] = appliance.ask(44, 1, resources=[resource], validate_only=False).responses
    assert row.error_code == errors.NOT_CONTROLLER
    asked = {"resource_type": 2, "resource_name": "kept", "configuration_keys": None}
    fields = {"include_synonyms": False, "include_documentation": False}
    [row] = appliance.ask(32, 4, resources=[asked], **fields).results
    assert row.error_code == 0 and row.configs
    assert appliance.ask(46, 0, timeout=1, topics=None).error_code == errors.NOT_CONTROLLER
    assert appliance.table.metadata_offset == before


def producer_id(appliance):
    fields = {"transactional_id": None, "transaction_timeout": 1}
    answer = appliance.ask(22, 4, **fields, producer_id=-1, producer_epoch=-1)
    return answer.error_code, answer.producer_id


def test_producer_ids_are_never_given_twice_and_need_a_leader_only_for_a_new_block(appliance):
    given = [producer_id(appliance)]
    appliance.control.resign()
    given.append(producer_id(appliance))
    assert [code for code, _ in given] == [0, 0]
    appliance.kill_control()
    appliance.control.resign()
    assert producer_id(appliance) == (errors.COORDINATOR_LOAD_IN_PROGRESS, -1)
    appliance.control.lead()
    given.append(producer_id(appliance))
    assert len({one for _, one in given}) == 3


def test_who_leads_again_goes_on_from_its_log_in_a_higher_epoch(appliance):
    create(appliance, new("kept"))
    brokers = dict(appliance.followed().image.brokers)
    appliance.threads.held = True
    lost = created(appliance, "a")
    appliance.turn()
    appliance.control.resign()
    assert codes(appliance) == {lost: errors.NOT_CONTROLLER}
    appliance.control.lead()
    appliance.threads.run()  # the sync of the epoch before: it covers nothing of this one
    appliance.turn()
    assert appliance.followed().image.topics_by_name.keys() == {"kept"}
    again = created(appliance, "a")
    appliance.turn()
    appliance.threads.held = False
    appliance.threads.run()
    appliance.turn()
    assert codes(appliance) == {again: errors.TOPIC_ALREADY_EXISTS}
    image = appliance.followed().image
    assert image.topics_by_name.keys() == {"kept", "a"} and image.epoch == 2
    assert image.brokers == brokers, "a node that is registered need not say it again"
    assert len(appliance.followed().handles) == 2
    before = image
    appliance.kill_control()
    assert appliance.followed().image.topics_by_name == before.topics_by_name


@each_seed(20)
def test_every_request_is_answered_once_and_nothing_acknowledged_is_lost(tmp_path, seed):
    appliance = Appliance(tmp_path)
    rng = Random(seed)
    asked, answered, there = {}, {}, set()
    leads = True
    for number in range(80):
        appliance.threads.held = rng.random() < 0.7
        what = rng.randrange(6)
        if what < 3:
            token = created(appliance, f"t{number}")
            asked[token] = f"t{number}"
            appliance.turn()
        elif what == 3:
            appliance.threads.run()
        elif what == 4:
            (appliance.control.resign if leads else appliance.control.lead)()
            leads = not leads
        for token, code in codes(appliance).items():
            assert token not in answered, "answered twice"
            answered[token] = code
            assert code in (errors.NONE, errors.NOT_CONTROLLER)
            if code == errors.NONE:
                there.add(asked[token])
        assert there <= appliance.followed().image.topics_by_name.keys()
    if not leads:
        appliance.control.lead()
    appliance.threads.held = False
    appliance.threads.run()
    answered |= codes(appliance)
    assert answered.keys() == asked.keys()
    appliance.kill_control()
    assert there <= appliance.followed().image.topics_by_name.keys()
    assert appliance.followed().image == appliance.control._quorum.images.committed
    appliance.close()


# Cost ---------------------------------------------------------------------------------------------


def steps(function):
    """Calls of anything that `function` makes, C functions included."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def with_topics(topics, partitions):
    world = World(0)
    world.lead()
    records = []
    for number in range(topics):
        topic_id = number.to_bytes(16, "big")
        records.append(kraft.TopicRecord(name=f"t{number}", topic_id=topic_id))
        records += [partition(topic_id, index) for index in range(partitions)]
    for at in range(0, len(records), 1000):
        world.quorum.append(records[at : at + 1000], 1)
    world.quorum.sync()
    return world.quorum


def test_what_control_does_with_a_whole_image_takes_no_step_for_each_part_of_it():
    def costs(quorum):
        setting = kraft.ConfigRecord(resource_type=4, resource_name="", name="x", value="1")
        moved = kraft.PartitionChangeRecord(partition_id=0, topic_id=bytes(16), leader=1)
        return (
            steps(lambda: quorum.begin_snapshot(1)),
            steps(lambda: quorum.images.decide(
                quorum.replayed_end, quorum.replayed_end + 2, [setting, moved], epoch=1, size=100
            )),
            steps(lambda: quorum.images.commit(quorum.replayed_end)),
            steps(lambda: quorum.images.drop()),
            steps(lambda: quorum.images.begin_image()),
        )  # fmt: skip

    costs(with_topics(1, 1))  # some methods are compiled at their first use
    assert costs(with_topics(2, 2)) == costs(with_topics(1000, 10))
