"""One I/O process's decisions, over bytearrays and real files."""

import errno

import pytest
from core_world import NOW_MS, World, batch

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.ioproc.partitions.partition import Partition
from appliance.ring import partition_table as columns
from appliance.ring.messages import (
    APPENDED,
    CANCEL,
    DELETE_RECORDS,
    DELETED,
    EPOCH_END,
    FOUND,
    LIST_OFFSET,
)
from appliance.wire.batch import iter_records


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def offsets(answers):
    return [(m.op, m.flags, m.token, m.a) for m in answers]


# Append -----------------------------------------------------------------------------------------


def test_acks_one_is_answered_after_the_write_and_can_be_read_back(world):
    p = world.add()
    world.append(p.handle, batch(b"a", b"b"), acks=1, token=7)
    world.append(p.handle, batch(b"c"), acks=1, token=8, position=4096)
    assert offsets(world.turn()) == [(APPENDED, 0, 7, 0), (APPENDED, 0, 8, 2)]
    world.settle()
    world.read(p.handle, 0, token=9)
    (found,) = world.turn()
    assert (found.op, found.flags, found.token, found.a, found.b) == (FOUND, 0, 9, 3, 3)
    data = world.bytes_of(found, p)
    first = list(iter_records(data[: found.f]))
    rest = list(iter_records(data[found.f :]))
    assert [(r.offset, r.value) for r in first + rest] == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_acks_zero_is_answered_too_because_the_bytes_are_free_then(world):
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=0, token=1)
    world.append(p.handle, b"garbage", acks=0, position=4096, token=2)
    world.append(99, batch(b"a"), acks=0, position=8192, token=3)
    assert {m.token: m.flags for m in world.turn()} == {
        1: errors.NONE,
        2: errors.CORRUPT_MESSAGE,
        3: errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert p.log.end_offset == 1


def test_group_commit_answers_when_a_sync_covers_the_append(world):
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    assert world.turn() == []
    assert (p.high_watermark, p.log.end_offset) == (0, 1)
    # What arrives while the sync runs waits for the next one, which covers all of it.
    for token in (2, 3, 4):
        world.append(p.handle, batch(b"b"), acks=-1, token=token, position=4096 * token)
        assert world.turn() == []
    assert len(world.threads.jobs) == 1
    world.threads.run_one()
    assert offsets(world.turn()) == [(APPENDED, 0, 1, 0)]
    assert p.high_watermark == 1
    assert len(world.threads.jobs) == 1
    world.threads.run_one()
    assert offsets(world.turn()) == [(APPENDED, 0, t, t - 1) for t in (2, 3, 4)]
    assert (p.high_watermark, world.threads.outstanding()) == (4, 0)


def test_a_lone_append_is_synced_at_once_when_nothing_else_is_to_be_done(world):
    p = world.add()
    world.quiet = True
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    assert offsets(world.turn()) == [(APPENDED, 0, 1, 0)]
    assert world.threads.outstanding() == 0
    assert (p.high_watermark, p.log.recovery_point) == (1, 1)


def test_slow_syncs_are_left_to_the_threads(world):
    p = world.add()
    world.quiet = True
    world.core.syncing.average_ns = 5_000_000
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    assert world.turn() == []
    assert len(world.threads.jobs) == 1


def test_acks_all_needs_no_sync_with_the_policy_of_the_operating_system(world):
    p = world.add(flush_policy="os")
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    assert offsets(world.turn()) == [(APPENDED, 0, 1, 0)]
    assert world.threads.outstanding() == 0


def test_flush_messages_makes_every_append_wait_for_a_sync(world):
    p = world.add(flush_messages=2, flush_policy="os")
    world.append(p.handle, batch(b"a"), acks=1, token=1)
    assert offsets(world.turn()) == [(APPENDED, 0, 1, 0)]
    world.append(p.handle, batch(b"b"), acks=1, token=2)
    assert world.turn() == []
    world.threads.run_all()
    assert offsets(world.turn()) == [(APPENDED, 0, 2, 1)]


def test_a_partition_nobody_waits_for_is_synced_in_the_background(world):
    p = world.add(flush_ms=500, flush_policy="os")
    q = world.add("q", flush_policy="os")
    world.append(p.handle, batch(b"a"))
    world.append(q.handle, batch(b"a"), position=4096)
    world.turn()
    world.turn(ms=400)
    assert world.threads.outstanding() == 0
    world.turn(ms=200)  # flush.ms of the first is over
    assert len(world.threads.jobs) == 1
    world.turn(ms=5000)
    assert len(world.threads.jobs) == 1, "one background sync at a time"
    world.threads.run_all()
    world.turn()
    world.threads.run_all()
    world.turn()
    assert (p.log.recovery_point, q.log.recovery_point) == (1, 1)
    assert not world.core.syncing.dirty


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda b: b[:-1], errors.CORRUPT_MESSAGE),
        (lambda b: b[:30] + b"\xff" + b[31:], errors.CORRUPT_MESSAGE),
        (lambda b: b"", errors.CORRUPT_MESSAGE),
        (lambda b: b + b, errors.INVALID_RECORD),
    ],
)
def test_a_bad_batch_is_refused_and_leaves_no_trace(world, spoil, code):
    p = world.add()
    world.append(p.handle, spoil(batch(b"a")), token=5)
    world.append(p.handle, batch(b"good"), token=6, position=4096)
    assert sorted(offsets(world.turn())) == [(APPENDED, 0, 6, 0), (APPENDED, code, 5, -1)]
    assert p.log.end_offset == 1


def test_too_large_a_batch_is_refused_by_the_topics_own_limit(world):
    p = world.add(max_message_bytes=100)
    world.append(p.handle, batch(b"x" * 100))
    assert world.turn()[0].flags == errors.MESSAGE_TOO_LARGE


def test_a_topic_with_its_own_codec_stores_that_codec(world):
    p = world.add(compression_type="gzip")
    world.append(p.handle, batch(b"v" * 500, b"w" * 500))
    assert world.settle()[0].flags == 0
    world.read(p.handle, 0)
    (found,) = world.turn()
    data = world.bytes_of(found, p)
    assert data[22] & 7 == 1
    assert [r.value for r in iter_records(data)] == [b"v" * 500, b"w" * 500]


def test_log_append_time_is_stamped_and_told(world):
    p = world.add(message_timestamp_type="LogAppendTime")
    world.append(p.handle, batch(b"a", timestamp=5))
    (answer,) = world.settle()
    assert answer.b == NOW_MS
    world.ask(LIST_OFFSET, p.handle, a=-3)
    assert world.turn()[0].a == NOW_MS


def test_a_refused_batch_is_told_where_the_log_starts(world):
    p = world.add()
    world.append(p.handle, batch(b"a", b"b"), token=1)
    world.settle()
    p.log.advance_log_start(1)
    world.append(p.handle, batch(b"a") * 2, token=2)
    (answer,) = world.turn()
    assert (answer.op, answer.flags, answer.a, answer.c) == (APPENDED, errors.INVALID_RECORD, -1, 1)


def test_unknown_handles_are_refused(world):
    world.append(50, batch(b"a"), token=1)
    world.read(50, 0, token=2)
    world.ask(LIST_OFFSET, 50, token=3, a=-1)
    assert [m.flags for m in world.turn()] == [errors.UNKNOWN_TOPIC_OR_PARTITION] * 3


# Idempotent producers ---------------------------------------------------------------------------


def test_a_duplicate_gets_the_original_offset_and_is_stored_once(world):
    p = world.add()
    for token, sequence in enumerate((0, 2, 4)):
        world.append(p.handle, batch(b"a", b"b", producer=(9, 0, sequence)), token=token)
        world.turn()
    world.append(p.handle, batch(b"a", b"b", producer=(9, 0, 2)), token=10)
    assert offsets(world.turn()) == [(APPENDED, 0, 10, 2)]
    assert p.log.end_offset == 6


def test_a_duplicate_of_an_unsynced_batch_waits_as_the_batch_does(world):
    p = world.add()
    world.append(p.handle, batch(b"a", producer=(9, 0, 0)), acks=-1, token=1)
    world.turn()
    world.append(p.handle, batch(b"a", producer=(9, 0, 0)), acks=-1, token=2)
    assert world.turn() == []
    world.threads.run_all()
    answers = world.turn()
    world.threads.run_all()
    assert offsets(answers + world.turn()) == [(APPENDED, 0, 1, 0), (APPENDED, 0, 2, 0)]
    assert p.log.end_offset == 1


def test_gaps_and_replaced_epochs_are_refused(world):
    p = world.add()
    world.append(p.handle, batch(b"a", producer=(9, 1, 0)), token=1)
    world.append(p.handle, batch(b"a", producer=(9, 1, 5)), token=2, position=4096)
    world.append(p.handle, batch(b"a", producer=(9, 0, 0)), token=3, position=8192)
    assert {m.token: m.flags for m in world.turn()} == {
        1: 0,
        2: errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
        3: errors.INVALID_PRODUCER_EPOCH,
    }


# Read -------------------------------------------------------------------------------------------


def test_a_parked_read_is_answered_when_the_watermark_passes_it(world):
    p = world.add()
    world.read(p.handle, 0, token=1)
    assert world.turn() == []
    world.append(p.handle, batch(b"a"), acks=-1, token=2)
    assert world.turn() == [], "appended, not yet synced"
    world.threads.run_all()
    answers = {m.op: m for m in world.turn()}
    assert answers[FOUND].e == answers[FOUND].f > 0
    assert len(world.core.purgatory) == 0


def test_a_parked_read_waits_for_as_many_bytes_as_it_asked_for(world):
    p = world.add()
    one = batch(b"a")
    world.read(p.handle, 0, token=1, enough=len(one) + 1)
    world.append(p.handle, one)
    assert [m.op for m in world.settle()] == [APPENDED]
    world.append(p.handle, one)
    found = [m for m in world.settle() if m.op == FOUND]
    assert [m.e for m in found] == [2 * len(one)]


def test_a_read_that_does_not_wait_is_answered_with_nothing(world):
    p = world.add()
    world.read(p.handle, 0, wait=False)
    (found,) = world.turn()
    assert (found.flags, found.e, found.a) == (0, 0, 0)


def test_cancel_forgets_all_reads_of_one_request(world):
    p, q = world.add(), world.add("q")
    world.read(p.handle, 0, token=5 << 32)
    world.read(q.handle, 0, token=5 << 32 | 1)
    world.read(q.handle, 0, token=6 << 32)
    world.ask(CANCEL, 0, token=5 << 32)
    assert len(world.core.purgatory) == 1
    world.append(p.handle, batch(b"a"), acks=0)
    world.append(q.handle, batch(b"a"), acks=0, position=4096)
    assert [m.token for m in world.settle() if m.op == FOUND] == [6 << 32]


def test_out_of_range_reads_are_told_the_range(world):
    p = world.add()
    world.append(p.handle, batch(b"a", b"b", b"c"), acks=0)
    world.settle()
    world.ask(DELETE_RECORDS, p.handle, a=2)
    world.turn()
    for offset in (-1, 1, 4):
        world.read(p.handle, offset)
        (answer,) = world.turn()
        assert answer.flags == errors.OFFSET_OUT_OF_RANGE
        assert (answer.a, answer.b, answer.c, answer.e) == (3, 3, 2, 0)


def test_leader_epochs_fence_reads_and_questions(world):
    p = world.add(epoch=5)
    for epoch, code in ((4, errors.FENCED_LEADER_EPOCH), (6, errors.UNKNOWN_LEADER_EPOCH), (5, 0)):
        world.read(p.handle, 0, b=epoch, wait=False)
        world.ask(LIST_OFFSET, p.handle, a=-1, b=epoch)
        world.ask(EPOCH_END, p.handle, a=5, b=epoch)
        assert [m.flags for m in world.turn()] == [code] * 3


def test_parked_reads_beyond_the_limit_are_answered_at_once(world):
    p = world.add()
    world.core.purgatory.limit = 2
    for token in range(3):
        world.read(p.handle, 0, token=token << 32)
    assert [(m.token >> 32, m.flags, m.e) for m in world.turn()] == [(2, 0, 0)]


# Questions --------------------------------------------------------------------------------------


def test_list_offset_answers_special_and_real_timestamps(world):
    p = world.add(epoch=3, message_timestamp_after_max_ms=1 << 50)
    for number, time in enumerate((100, 300, 200)):
        world.append(p.handle, batch(b"a", timestamp=time), position=4096 * number)
    world.settle()
    expected = {
        -1: (-1, 3, 3),
        -2: (-1, 0, 3),
        -3: (300, 1, 3),
        -4: (-1, 0, 3),
        -5: (-1, -1, -1),
        150: (300, 1, 3),
        301: (-1, -1, -1),
        0: (100, 0, 3),
    }
    for timestamp, answer in expected.items():
        world.ask(LIST_OFFSET, p.handle, a=timestamp)
        (m,) = world.turn()
        assert (m.flags, (m.a, m.b, m.c)) == (0, answer), timestamp


def test_epoch_ends_are_where_the_next_epoch_began(world):
    p = world.add(epoch=2)
    world.ask(EPOCH_END, p.handle, a=2)
    assert [(m.flags, m.a, m.b) for m in world.turn()] == [(0, 0, 2)], (
        "an empty log knows its epoch"
    )
    world.append(p.handle, batch(b"a", b"b"), acks=0)
    world.turn()
    p.lead(7)
    world.append(p.handle, batch(b"c"), acks=0)
    world.turn()
    for epoch, answer in {2: (2, 2), 5: (2, 2), 7: (3, 7), 8: (-1, -1)}.items():
        world.ask(EPOCH_END, p.handle, a=epoch)
        (m,) = world.turn()
        assert (m.a, m.b) == answer, epoch


def test_delete_records_moves_the_log_start_durably(world):
    p = world.add()
    world.append(p.handle, batch(*[b"a"] * 10), acks=0)
    world.settle()
    answers = []
    for offset in (4, 2, -1, 11, -2):
        world.ask(DELETE_RECORDS, p.handle, a=offset)
        (m,) = world.turn()
        answers.append((m.op, m.flags, m.a))
    out_of_range = (DELETED, errors.OFFSET_OUT_OF_RANGE, -1)
    assert answers == [(DELETED, 0, 4), (DELETED, 0, 4), (DELETED, 0, 10)] + [out_of_range] * 2
    assert world.checkpointed == [("t-0", 4), ("t-0", 10)]
    assert world.table.read_column(p.handle, columns.LOG_START) == 10


def test_delete_records_is_refused_where_the_policy_only_compacts(world):
    p = world.add(compact=True, delete=False)
    world.ask(DELETE_RECORDS, p.handle, a=-1)
    assert world.turn()[0].flags == errors.POLICY_VIOLATION


# What is published ------------------------------------------------------------------------------


def test_rows_show_what_an_answer_implies(world):
    p = world.add(epoch=4)
    row = world.table.read_row(p.handle)
    assert (row[columns.STATUS], row[columns.LEADER_EPOCH]) == (columns.ONLINE, 4)
    data = batch(b"a", b"b")
    world.append(p.handle, data, acks=-1)
    world.turn()
    row = world.table.read_row(p.handle)
    assert (row[columns.HIGH_WATERMARK], row[columns.LOG_END]) == (0, 2)
    assert (row[columns.VISIBLE_POSITION], row[columns.SIZE_BYTES]) == (0, len(data))
    world.threads.run_all()
    world.turn()
    row = world.table.read_row(p.handle)
    assert (row[columns.HIGH_WATERMARK], row[columns.LAST_STABLE]) == (2, 2)
    assert row[columns.VISIBLE_POSITION] == len(data)
    assert (row[columns.RECOVERY_POINT], row[columns.BYTES_IN]) == (2, len(data))
    assert (row[columns.RECORDS_IN], row[columns.BATCHES_IN]) == (2, 1)
    assert row[columns.VERSION] % 2 == 0
    partition = world.core.remove(p.handle, world.now_ns)
    world.core.add(
        Partition(p.handle, p.topic, 0, p.topic_id, partition.log, 4), world.now_ns
    )  # as a successor does
    world.append(p.handle, data, acks=-1)
    world.turn()
    row = world.table.read_row(p.handle)
    counted = (columns.BATCHES_IN, columns.RECORDS_IN, columns.BYTES_IN)
    assert [row[one] for one in counted] == [2, 4, 2 * len(data)]


# Failure ----------------------------------------------------------------------------------------


class Refusing:
    """A file that refuses one kind of call."""

    def __init__(self, file, method):
        self._file = file
        self._method = method

    def __getattr__(self, name):
        if name == self._method:
            raise StorageFailed(self._file.path, errno.EIO, "Input/output error")
        return getattr(self._file, name)


def break_file(partition, method):
    partition.log.active.file = Refusing(partition.log.active.file, method)


def test_a_failed_write_takes_one_partition_offline_and_no_other(world):
    p, q = world.add(), world.add("q")
    world.append(p.handle, batch(b"before"), token=1)
    world.settle()
    break_file(p, "pwritev")
    world.read(p.handle, 1, token=2)
    world.append(p.handle, batch(b"a"), acks=1, token=3, position=4096)
    world.append(p.handle, batch(b"b"), acks=-1, token=4, position=8192)
    world.append(q.handle, batch(b"c"), acks=1, token=5, position=12288)
    failed = errors.KAFKA_STORAGE_ERROR
    assert {m.token: m.flags for m in world.turn()} == {2: failed, 3: failed, 4: failed, 5: 0}
    assert world.table.read_column(p.handle, columns.STATUS) == columns.OFFLINE
    assert world.table.read_column(p.handle, columns.HIGH_WATERMARK) == 1
    assert [name for name, _ in world.failures] == ["t-0"]
    world.append(p.handle, batch(b"a"), token=6)
    world.read(p.handle, 0, token=7)
    assert {m.token: m.flags for m in world.turn()} == {6: failed, 7: failed}
    assert len(world.failures) == 1, "said once"


def test_a_failed_sync_fails_who_waits_and_is_final(world):
    p = world.add()
    break_file(p, "sync")
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    world.append(p.handle, batch(b"b"), acks=-1, token=2)
    world.turn()
    world.threads.run_all()
    failed = errors.KAFKA_STORAGE_ERROR
    assert {m.token: m.flags for m in world.turn()} == {1: failed, 2: failed}
    assert p.high_watermark == 0
    assert world.turn(ms=10_000) == []
    assert world.threads.outstanding() == 0, "a sync that failed is not tried again"


def test_low_space_refuses_appends_before_the_disk_is_full(world):
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=0)
    world.settle()
    world.space.low = True
    world.append(p.handle, batch(b"b"), token=1)
    world.read(p.handle, 0, token=2)
    assert {m.token: m.flags for m in world.turn()} == {1: errors.KAFKA_STORAGE_ERROR, 2: 0}
    world.space.low = False
    world.append(p.handle, batch(b"b"), token=3)
    assert offsets(world.turn()) == [(APPENDED, 0, 3, 1)]


# Coming and going -------------------------------------------------------------------------------


def test_a_dead_netproc_is_forgotten_and_the_others_are_served(world):
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=-1, token=1, peer=0)
    world.append(p.handle, batch(b"b"), acks=-1, token=2, peer=1)
    world.read(p.handle, 0, token=3 << 32, peer=0)
    world.read(p.handle, 0, token=4 << 32, peer=1)
    world.turn()
    world.core.drop(world.core.askers[0])
    world.threads.run_all()
    world.turn()
    world.threads.run_all()
    world.now_ns += 1
    assert len(world.core.purgatory) == 0
    assert p.log.end_offset == p.high_watermark == 2


def test_answers_to_a_dead_netproc_are_not_sent_to_its_successor(world):
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.read(p.handle, 0, token=2 << 32)
    world.turn()
    world.core.drop(world.core.askers[0])
    world.threads.run_all()
    assert world.turn() == []


def test_a_partition_that_waits_for_a_second_sync_can_be_removed(world):
    """What came while the first one was under way wants another one: it has to be begun."""
    p = world.add()
    for token in (1, 2):
        world.append(p.handle, batch(b"a"), acks=-1, token=token)
        world.turn()
    assert len(world.threads.jobs) == 1
    world.core.remove(p.handle, world.now_ns)
    assert {m.token: m.flags for m in world.turn()} == {1: 0, 2: 0}


def test_removing_a_partition_ends_its_sync_and_tells_who_waits(world):
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    world.append(p.handle, batch(b"b"), acks=-1, token=2)
    world.read(p.handle, 0, token=3 << 32)
    removed = world.core.remove(p.handle, world.now_ns)
    removed.log.close()
    gone = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert {m.token: m.flags for m in world.turn()} == {1: 0, 2: gone, 3 << 32: gone}
    assert world.table.read_column(p.handle, columns.STATUS) == columns.NOT_OPEN
    assert not world.core.syncing.dirty


def test_completions_wait_for_room_in_the_ring(tmp_path):
    world = World(tmp_path, capacity=2)
    p = world.add()
    for token in range(5):
        world.append(p.handle, batch(b"a"), token=token, position=4096 * token)
    assert not world.core.finish(1)
    got = world.answers()
    while not world.core.finish(1):
        got += world.answers()
    got += world.answers()
    assert [m.token for m in got] == [0, 1, 2, 3, 4]


def test_nothing_holds_the_arena_after_a_turn(world):
    p = world.add()
    arena = bytearray(8192)
    world.core.askers[0].arena = memoryview(arena)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.append(p.handle, b"bad", acks=-1, token=2, position=4096)
    world.read(p.handle, 0, token=3)
    world.turn()
    world.core.askers[0].arena.release()
    arena.clear()  # BufferError while a view lives


@pytest.mark.parametrize("timestamp", [1 << 61, (1 << 61) + 1, (1 << 63) - 1])
def test_a_batch_of_any_time_goes_into_an_empty_segment(tmp_path, timestamp):
    """Where a topic lets timestamps be as late as they like."""
    world = World(tmp_path)
    partition = world.add(message_timestamp_after_max_ms=(1 << 63) - 1)
    for _ in range(3):
        world.append(partition.handle, batch(b"v", timestamp=timestamp))
        assert world.settle()[0].flags == errors.NONE
    assert partition.broken is None and partition.log.end_offset == 3
    world.append(partition.handle, batch(b"v"))
    assert world.settle()[0].flags == errors.NONE
