"""Group coordinators over a real log: when answers leave, what a restart finds, what a failure
costs."""

import itertools

import pytest
from core_world import NOW_MS, StillClock, World
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema

from appliance.authorization.rights import AllowAll, Callers
from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.base.ids import OFFSETS_TOPIC
from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig
from appliance.coordinators.groups.kind import GROUPS
from appliance.coordinators.runtime.kind import Lent
from appliance.ioproc.coordination import coordinator_host as coordinating
from appliance.ioproc.coordination.coordinator_host import CoordinatorHost
from appliance.ioproc.coordination.coordinator_partition import split
from appliance.ioproc.partitions.partition import Partition
from appliance.logstore.log import PartitionLog
from appliance.metadata.image import MetadataImage
from appliance.ring.counters import Counters
from appliance.ring.messages import COORDINATE, GUARD, TRUSTED_GUARD, UNVERIFIED, Message
from appliance.ring.ring import RingReader, RingWriter, ring_bytes
from appliance.shell.log import INFO, NOTICE
from appliance.wire import kraft_records as kraft
from appliance.wire import markers
from appliance.wire.batch import NewRecord, build_batch, iter_records, read_header
from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request
from tests.callers import caller

PAYLOAD = 4096
OFFSETS_ID, TOPIC_ID = b"o" * 16, b"t" * 16
COMMIT, FETCH, JOIN, HEARTBEAT, WITHIN = 8, 9, 11, 12, 28
UNSTABLE = [errors.UNSTABLE_OFFSET_COMMIT]
VERSIONS = {COMMIT: 8, FETCH: 7, JOIN: 3, HEARTBEAT: 3}


def image_with(*topics):
    image = MetadataImage()
    for name, topic_id in topics:
        image.apply(image.applied_offset + 1, kraft.TopicRecord(name=name, topic_id=topic_id))
        record = kraft.PartitionRecord(
            partition_id=0, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
            partition_epoch=0, directories=(b"d" * 16,),
        )  # fmt: skip
        image.apply(image.applied_offset + 1, record)
    return image


class NoEvents:
    """A log that nobody reads but the test."""

    def __init__(self):
        self.said = []

    def event(self, priority, event, **fields):
        if priority < INFO:
            self.said.append((priority, event, str(fields.get("cause"))))

    event_seldom = event

    def event_of(self, priority, event, about, **fields):
        self.noted = [*getattr(self, "noted", []), (priority, event, about, fields)]

    note_of = event_of


class Groups(World):
    """One partition of the offsets topic, and netprocs with rings that carry bytes."""

    def __init__(self, folder, netprocs=2, open_log=False, disk=None, clean=True, settings=None):
        self.clean = clean
        self.settings = settings or {}
        self.rings = []
        for _ in range(netprocs):
            memory = memoryview(bytearray(ring_bytes(1024, PAYLOAD)))
            self.rings.append((RingReader(memory, 1), RingWriter(memory, 1)))
        self.events = NoEvents()
        memory = memoryview(bytearray(Counters.bytes_needed(1, netprocs)))
        self.counters = Counters(memory, ioprocs=1, netprocs=netprocs)
        super().__init__(folder, netprocs=netprocs, disk=disk)
        self.handle = self.table.add(OFFSETS_ID, 0)
        self.log = self._log(f"{folder}/{OFFSETS_TOPIC}-0", open_log)
        partition = Partition(self.handle, OFFSETS_TOPIC, 0, OFFSETS_ID, self.log, 0)
        self.core.add(partition, self.now_ns)
        self.partition = partition

    def coordinators(self, appends, failures):
        ids = itertools.count()
        self.groups = CoordinatorHost(
            GROUPS,
            appends,
            failures,
            BrokerConfig.of(self.settings),
            {index: writer for index, (_, writer) in enumerate(self.rings)},
            image_with((OFFSETS_TOPIC, OFFSETS_ID), ("t", TOPIC_ID)),
            StillClock(),
            Lent(lambda: next(ids).to_bytes(16, "big"), lambda: None),
            self.counters.errors[0],
            Callers(AllowAll()),
            self.events,
            self.endings,
        )
        return {OFFSETS_TOPIC: self.groups}

    def _log(self, path, open_log):
        config = LogConfig(flush_policy="group", compact=True, delete=False)
        if not open_log:
            return PartitionLog.create(self.disk, path, OFFSETS_ID, config, now_ms=NOW_MS)
        return PartitionLog.open_folder(
            self.disk, path, config, recovery_point=0, log_start_offset=0, clean=self.clean,
            machine_lived=False, now_ms=NOW_MS,
        )  # fmt: skip

    def send(self, key, token=0, peer=0, piece=None, version=None, **values):
        version = VERSIONS[key] if version is None else version
        body = encode_request(build(load_request_schema(key, version), values))
        self.send_bytes(key, version, body, token, peer, piece)

    def send_bytes(self, key, version, body, token=0, peer=0, piece=None, standing=None):
        """standing: of a request that comes again: error code, and the guard that it was given."""
        name = caller().encode()
        flags = 0
        if standing is not None:
            flags, body = standing[0] + 1, GUARD.pack(standing[1]) + body
        data = name + body
        size = piece or len(data)
        for at in range(0, len(data), size):
            more = int(at + size < len(data))
            message = Message(
                COORDINATE, flags, self.handle, token, more, key << 16 | version, 0, 0, 0, 0, 0, 0,
                0 if at else len(name), 0, data[at : at + size],
            )  # fmt: skip
            self.arrivals.handle(self.core.askers[peer], [message], NOW_MS)

    def commit(self, offset, token=0, group="g", **rest):
        one = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        topics = [{"name": "t", "partitions": [{**one, "committed_metadata": ""}]}]
        self.send(
            COMMIT, token, group_id=group, generation_id_or_member_epoch=-1, member_id="",
            group_instance_id=None, topics=topics, **rest,
        )  # fmt: skip

    def within(self, producer, offset, token=0, standing=None, version=5, **options):
        """TxnOffsetCommit."""
        one = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        member = {"generation_id": -1, "member_id": "", "group_instance_id": None}
        values = {
            "transactional_id": "x", "group_id": "g", "producer_id": producer[0],
            "producer_epoch": producer[1], "topics": [{"name": "t", "partitions": [one]}],
        }  # fmt: skip
        values |= member if version > 2 else {}
        body = encode_request(build(load_request_schema(WITHIN, version), values))
        self.send_bytes(WITHIN, version, body, token, standing=standing, **options)

    def mark(self, producer, *, committed=True):
        marker = bytearray(markers.build(*producer, markers.Marker(committed, 0), NOW_MS))
        self.core.appends.append_own(self.partition, memoryview(marker), NOW_MS)

    def guards(self):
        """(token, guard) of what must be verified first."""
        found = self.answers()
        assert all(one.op == UNVERIFIED for one in found)
        return [(one.token, one.a) for one in found]

    def join(self, token=0, member_id="", group="g", **rest):
        self.send(
            JOIN, token, group_id=group, session_timeout=10_000, rebalance_timeout=10_000,
            member_id=member_id, protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}], **rest,
        )  # fmt: skip

    def turn(self, now_ms=NOW_MS):
        """End the turn; (token, error code or decoded answer) of what each netproc was sent."""
        self.groups.run_once(now_ms)
        self.now_ns += 1_000_000
        self.core.finish(self.now_ns)
        return [self.answers_of(peer) for peer in range(len(self.rings))]

    def answers_of(self, peer):
        reader, writer = self.rings[peer]
        writer.publish()
        found, pieces = [], {}
        for message in reader.drain():
            pieces.setdefault(message.token, []).append(message.payload)
            if not message.a:
                found.append((message.token, message.flags - 1, b"".join(pieces[message.token])))
        return found

    def load(self):
        while self.groups._loading.queue:
            self.turn()

    def synced(self):
        self.threads.run_all()
        return self.turn()

    def committed(self, group="g", stable=False):
        self.send(FETCH, 999, group_id=group, topics=None, require_stable=stable)
        answers = []
        while not answers:  # a long one takes turns
            (answers, *_) = self.turn()
        ((_, code, body),) = answers
        assert code == errors.NONE
        answer = decode_response(FETCH, VERSIONS[FETCH], body)
        if answer.error_code:
            return int(answer.error_code)
        rows = [row for topic in answer.topics for row in topic.partitions]
        return [int(row.error_code) or row.committed_offset for row in rows]


def code_of(key, body, version=None):
    answer = decode_response(key, VERSIONS[key] if version is None else version, body)
    if key in (COMMIT, WITHIN):
        return int(answer.topics[0].partitions[0].error_code)
    return int(answer.error_code)


def test_a_commit_that_takes_too_long_is_refused_and_may_yet_hold(tmp_path):
    """As Kafka's coordinator: COORDINATOR_NOT_AVAILABLE, on which every client tries again."""
    world = Groups(tmp_path, settings={"offsets.commit.timeout.ms": "5000"})
    world.turn()
    world.commit(5, token=7)
    assert world.turn() == [[], []] and world.groups.due_ms == NOW_MS + 5000
    assert world.turn(NOW_MS + 4999) == [[], []]
    ((token, code, body),) = world.turn(NOW_MS + 5000)[0]
    assert (token, code) == (7, errors.NONE)
    assert code_of(COMMIT, body) == errors.COORDINATOR_NOT_AVAILABLE
    world.commit(6, token=8)
    world.threads.run_all()
    world.turn(NOW_MS + 5001)
    world.threads.run_all()
    answers = [one for _ in range(3) for one in world.turn(NOW_MS + 5001)[0]]
    assert [token for token, *_ in answers] == [8], "what was refused is answered once"
    assert world.committed() == [6]


def test_a_commit_is_answered_when_a_sync_covers_it(tmp_path):
    world = Groups(tmp_path)
    world.turn()
    world.commit(5, token=7)
    assert world.turn() == [[], []]
    world.threads.run_all()
    ((answer,), others) = world.turn()
    assert (answer[0], answer[1], code_of(COMMIT, answer[2])) == (7, 0, 0)
    assert not others
    assert world.log.recovery_point == world.log.end_offset == 1


def test_errors_that_are_answered_are_counted(tmp_path):
    world = Groups(tmp_path)
    world.turn()
    world.send(
        HEARTBEAT, 1, group_id="g", generation_id=3, member_id="who", group_instance_id=None
    )  # fmt: skip
    world.commit(5, token=2)
    world.turn()
    world.synced()
    counted = world.counters.errors[0]
    assert counted.of(HEARTBEAT) == {errors.UNKNOWN_MEMBER_ID: 1}
    assert counted.of(COMMIT) == {}


def test_nobody_reads_what_is_not_synced_yet(tmp_path):
    world = Groups(tmp_path)
    world.commit(5, token=7)
    world.turn()
    world.send(FETCH, 8, peer=1, group_id="g", topics=None, require_stable=False)
    assert world.turn() == [[], []]
    assert [len(answers) for answers in world.synced()] == [1, 1]


def test_commits_of_a_turn_are_one_batch(tmp_path):
    world = Groups(tmp_path)
    for number in range(10):
        world.commit(number, token=number)
    world.turn()
    assert world.log.end_offset == 10
    assert len(world.threads.jobs) == 1
    assert [token for token, _, _ in world.synced()[0]] == list(range(10))


@pytest.mark.parametrize("piece", [1, 7, 100])
def test_a_request_in_pieces(tmp_path, piece):
    world = Groups(tmp_path)
    world.commit(5, token=7, piece=piece)
    world.turn()
    ((answer,), _) = world.synced()
    assert code_of(COMMIT, answer[2]) == 0
    assert world.committed() == [5]


def test_a_restart_finds_what_was_committed(tmp_path):
    world = Groups(tmp_path)
    for number in range(300):
        world.commit(number, group=f"g{number % 3}")
        world.turn()
        world.synced()
    world.log.close()
    again = Groups(tmp_path, open_log=True)
    again.load()
    assert [again.committed(f"g{n}") for n in range(3)] == [[297], [298], [299]]


def test_offsets_of_a_transaction_count_when_it_is_committed(tmp_path):
    """As a folder has them that Apache Kafka wrote."""
    world = Groups(tmp_path)
    world.commit(7, group="a")
    world.turn()
    key, value = next(iter_records(stored_of(world)))[2:4]

    def put(producer, group, offset):
        moved = value.replace((7).to_bytes(8, "big"), offset.to_bytes(8, "big"), 1)
        named = key.replace(b"\0\1a", b"\0\1" + group.encode(), 1)
        own(world, [NewRecord(0, named, moved)], producer)

    def end(producer, *, committed):
        append(world, markers.build(producer, 0, markers.Marker(committed, 0), 0))

    put(1, "a", 8)
    put(2, "b", 9)
    end(2, committed=True)
    end(1, committed=False)
    put(1, "b", 10)  # its marker has not come yet
    put(2, "c", 11)
    put(3, "c", 12)
    end(3, committed=True)
    end(2, committed=True)
    world.log.sync_now()
    world.log.close()
    again = Groups(tmp_path, open_log=True)
    again.load()
    assert [again.committed(group) for group in "abc"] == [[7], [9], [12]]
    assert [again.committed(group, stable=True) for group in "abc"] == [[7], UNSTABLE, [12]]
    for committed in (True, False):  # the second one ends nothing
        again.mark((1, 0), committed=committed)
    again.turn()
    again.synced()
    assert again.committed("b", stable=True) == [10]


def test_what_is_written_within_a_transaction_is_verified_first(tmp_path):
    world = Groups(tmp_path)
    world.turn()
    one = (5, 1)
    world.within(one, 7, token=1)
    assert world.turn() == [[], []]
    ((token, guard),) = world.guards()
    assert token == 1
    world.within(one, 7, token=2)
    world.turn()
    assert world.guards() == [(2, guard)]
    world.within(one, 7, token=3, standing=(errors.INVALID_TXN_STATE, 0))
    (((_, _, body),), _) = world.turn()
    assert code_of(WITHIN, body, 5) == errors.INVALID_TXN_STATE
    assert world.log.end_offset == 0
    world.commit(3)
    world.within(one, 7, token=4, standing=(errors.NONE, guard), piece=40)
    world.within(one, 8, token=5)  # now it is open
    answers = [*world.turn()[0], *world.synced()[0], *world.synced()[0]]
    told = {token: code_of(WITHIN, body, 5) for token, _, body in answers if token}
    assert told == {4: 0, 5: 0}
    first, *others = headers_of(world)
    assert first.producer_id == -1 and not first.is_transactional
    assert all(one.is_transactional and one.base_sequence == -1 for one in others)
    assert [(one.producer_id, one.producer_epoch) for one in others] == [one, one]
    assert (world.committed(), world.committed(stable=True)) == ([3], UNSTABLE)


def test_a_guard_does_not_outlive_the_transaction(tmp_path):
    world = Groups(tmp_path)
    world.turn()
    world.within((5, 1), 7)
    world.turn()
    ((_, guard),) = world.guards()
    world.mark((5, 2), committed=False)
    world.within((5, 2), 7, standing=(errors.NONE, guard))
    world.turn()
    ((_, other),) = world.guards()
    assert other != guard
    world.within((5, 1), 7, token=3, standing=(errors.NONE, other))
    world.turn()
    (((_, _, body),), _) = world.synced()
    assert code_of(WITHIN, body, 5) == errors.INVALID_PRODUCER_EPOCH
    world.within((5, 2), 7, standing=(errors.NONE, TRUSTED_GUARD))
    world.within((6, 0), 8, standing=(errors.NONE, TRUSTED_GUARD))
    world.mark((5, 2))
    world.turn()
    world.synced()
    assert (world.committed(), world.committed(stable=True)) == ([7], UNSTABLE)


def headers_of(world):
    data, at, found = stored_of(world), 0, []
    while at < len(data):
        found.append(read_header(data, at))
        at += found[-1].size
    return found


def stored_of(world):
    world.threads.run_all()
    world.turn()
    segment, position, length, _ = world.log.locate(0, 1 << 20, 1 << 20)
    file = world.disk.open_file(f"{world.log.path}/{segment:020d}.log")
    data = file.pread(length, position)
    file.close()
    return data


def own(world, records, producer):
    append(
        world,
        build_batch(
            records, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
        ),
    )


def append(world, batch):
    data = bytearray(batch)
    world.log.stage(memoryview(data), read_header(data), 0, NOW_MS)
    world.log.commit()


@pytest.mark.interpreted("sets a constant of coordinator_host.py")
def test_while_it_loads_it_says_so(tmp_path, monkeypatch):
    world = Groups(tmp_path)
    for number in range(5):
        world.commit(number)
        world.turn()
        world.synced()
    world.log.close()
    monkeypatch.setattr(coordinating, "SLICE_NS", 0)
    again = Groups(tmp_path, open_log=True)
    assert again.committed() == errors.COORDINATOR_LOAD_IN_PROGRESS
    monkeypatch.undo()
    again.load()
    assert again.committed() == [4]


def test_a_hole_at_the_end_of_the_log_is_passed_over(tmp_path):
    """Power was cut when the next segment had begun and the end of this one was not on the disk: of
    a compacted log it may be missing, so the log goes on behind it."""
    world = Groups(tmp_path)
    for number in range(3):
        size = world.log.active_size
        world.commit(number)
        world.turn()
        world.synced()
    (path,) = tmp_path.glob(f"{OFFSETS_TOPIC}-0/*.log")
    world.log.roll(NOW_MS)
    world.log.close()
    with path.open("r+b") as file:
        file.truncate(size)
    again = Groups(tmp_path, open_log=True, clean=False)
    assert again.log.end_offset == 3
    for _ in range(5):
        again.turn()
    assert again.committed() == [1]


def test_a_failed_log_tells_everybody(tmp_path):
    world = Groups(tmp_path)
    world.join(token=1)
    world.turn()
    ((joined,), _) = world.synced()
    assert joined[0] == 1
    world.join(token=2)  # waits for the first member to join again
    world.turn()
    world.commit(5, token=3, group="h")
    world.turn()
    world.core.fail(world.partition, StorageFailed("f", 5, "input/output error"))
    (answers, _) = world.turn()
    told = {token: body for token, _, body in answers}
    assert code_of(JOIN, told[2]) == errors.NOT_COORDINATOR
    assert code_of(COMMIT, told[3]) == errors.NOT_COORDINATOR
    assert world.committed() == errors.NOT_COORDINATOR


def test_a_dead_netproc_is_answered_nothing(tmp_path):
    world = Groups(tmp_path)
    world.commit(5, token=7)
    world.commit(6, token=8, group="h", piece=10_000)
    world.turn()
    world.core.drop(world.core.askers[0])
    assert world.synced() == [[], []]
    assert world.committed() == [5]


@pytest.mark.interpreted("replaces a method of GroupShard")
def test_a_bug_costs_one_answer_and_no_offset(tmp_path, monkeypatch):
    world = Groups(tmp_path)
    world.commit(5)
    world.turn()
    world.synced()
    shard = world.groups._led[world.handle].shard

    def broken(call, request, now_ms):
        shard.state.groups.clear()
        shard.state.offsets.by_group.clear()
        raise ZeroDivisionError

    monkeypatch.setattr(shard, "handle", broken)
    world.commit(6, token=9)
    assert world.turn()[0] == [(9, errors.UNKNOWN_SERVER_ERROR, b"")]
    world.load()
    assert world.committed() == [5]
    ((_, event, cause),) = world.events.said
    assert event == "bug"
    assert "ZeroDivisionError" in cause


def test_bytes_that_are_no_request(tmp_path):
    world = Groups(tmp_path)
    world.send_bytes(COMMIT, 8, b"\xff\xff\xff\xff\xff", token=4)
    world.send_bytes(3, 1, b"", token=5)
    assert [answer[:2] for answer in world.turn()[0]] == [
        (4, errors.INVALID_REQUEST),
        (5, errors.INVALID_REQUEST),
    ]


def test_a_disk_nearly_full_takes_no_commits(tmp_path):
    world = Groups(tmp_path)
    world.space.low = True
    world.commit(4, token=9)
    world.turn()
    world.synced()  # no room for records, still some for offsets
    assert world.committed() == [4]
    world.space.tight = True
    world.commit(5, token=1)
    world.send(HEARTBEAT, 2, group_id="g", generation_id=1, member_id="m", group_instance_id=None)
    (first, second) = world.turn()[0]
    assert code_of(COMMIT, first[2]) == errors.COORDINATOR_NOT_AVAILABLE
    assert code_of(HEARTBEAT, second[2]) == errors.UNKNOWN_MEMBER_ID


def test_the_end_of_the_appliance_lets_nobody_wait(tmp_path):
    world = Groups(tmp_path)
    world.join(token=1)
    world.turn()
    world.synced()
    world.join(token=2)
    assert world.turn() == [[], []]
    world.groups.drain()
    ((answer,), _) = world.turn()
    assert (answer[0], code_of(JOIN, answer[2])) == (2, errors.NOT_COORDINATOR)
    assert world.committed() == errors.NOT_COORDINATOR


def test_a_session_that_ends_is_written_down(tmp_path):
    world = Groups(tmp_path)
    world.join(token=1)
    world.turn()
    world.synced()
    end = world.log.end_offset
    assert NOW_MS < world.groups.due_ms <= NOW_MS + 10_000
    world.turn(NOW_MS + 20_000)
    assert world.log.end_offset > end
    lost, empty = world.events.noted[-2:]
    assert (lost[:3], empty[:3]) == (
        (NOTICE, "member-lost", "g"), (INFO, "group-rebalanced", "g")
    )  # fmt: skip
    assert lost[3]["group"] == "g" and lost[3]["cause"] == "no heartbeat for 10000 ms"
    assert {"client", "peer", "member"} < set(lost[3])
    assert (empty[3]["members"], empty[3]["group"]) == (0, "g")


def test_offsets_of_a_deleted_topic_are_forgotten(tmp_path):
    world = Groups(tmp_path)
    world.commit(5)
    world.turn()
    world.synced()
    world.groups.topic_deleted("t", TOPIC_ID, NOW_MS)
    world.turn()
    world.synced()
    assert world.committed() == []


def test_answers_longer_than_the_ring_come_in_pieces(tmp_path):
    world = Groups(tmp_path)
    group = "g" * 3000
    for number in range(4):
        world.commit(number, token=number, group=f"{group}{number}")
    world.turn()
    world.synced()
    world.send(16, 50, version=0)
    answer, left = b"", True
    while left:
        world.now_ns += 1_000_000
        world.core.finish(world.now_ns)
        reader, writer = world.rings[0]
        writer.publish()
        for message in reader.drain():
            answer += message.payload
            left = bool(message.a)
    groups = decode_response(16, 0, answer).groups
    assert sorted(one.group_id for one in groups) == [f"{group}{n}" for n in range(4)]


RECORDS = st.lists(st.tuples(st.binary(max_size=50), st.none() | st.binary(max_size=300)))


@given(RECORDS, st.integers(100, 1000))
def test_records_are_split_without_loss(records, limit):
    parts = list(split(records, limit))
    assert [record for part in parts for record in part] == records
    assert all(parts)
    for part in parts:
        size = sum(len(key) + len(value or b"") for key, value in part)
        assert len(part) == 1 or size <= limit


def test_a_bound_that_is_reached_is_told_of_all_partitions_here_together(tmp_path):
    world = Groups(tmp_path, settings={"penstock.groups.max": "2"})
    world.turn()
    for number in range(3):
        world.commit(5, token=number, group=f"g{number}")
    found = world.turn()[0] + world.synced()[0]
    codes = {token: code_of(COMMIT, body) for token, _, body in found}
    assert codes == {0: 0, 1: 0, 2: errors.GROUP_MAX_SIZE_REACHED}
    ((_, _, about, fields),) = [one for one in world.events.noted if one[1] == "bound-reached"]
    assert (about, fields["bound"], fields["group"]) == ("groups", "groups", "g2")
