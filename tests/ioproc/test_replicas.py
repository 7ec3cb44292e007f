"""A partition that other nodes follow: what acks=all waits for, what a replica's fetch is answered,
and who is in sync. Nodes 2 and 3 are made of their fetches."""

import pytest
from core_world import World, batch

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.replication.role import ALONE, ELSEWHERE, PartitionRole
from appliance.ring.messages import (
    APPENDED,
    DELETE_RECORDS,
    FOUND,
    LIST_OFFSET,
    MARK,
    READ,
    READ_COMMITTED,
    READ_REPLICA,
    READ_WAIT,
    Message,
)

D3 = {"min_insync_replicas": 2}
LAG_MS = 30_000


def leads(isr=(2, 3), partition_epoch=7, replicas=(2, 3)):
    return PartitionRole(True, 1, partition_epoch, replicas, isr)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.cluster.epochs = {1: 11, 2: 12, 3: 13}
    return world


def fetch(world, p, replica, offset, *, epoch=-1, last=-1, start=0, life=None, wait=0, token=9):
    """What a follower asks, as a network process passes it on."""
    life = {2: 12, 3: 13}.get(replica, -1) if life is None else life
    flags = READ_REPLICA | (READ_WAIT if wait else 0)
    head = (READ, flags, p.handle, token, offset, epoch, last, start, life, replica, 0, 0)
    world.served.now_ms = world.now_ms
    message = Message(*head, 1 << 20, wait or 1)
    world.arrivals.handle(world.core.askers[0], [message], world.now_ms)


def told(answers, op=APPENDED):
    return {m.token: m.flags for m in answers if m.op == op}


def proposals(world):
    """(partition epoch, ISR) of each since the last look."""
    made = [(change.partition_epoch, sorted(change.isr)) for change in world.cluster.proposed]
    world.cluster.proposed.clear()
    return made


def tick(world, ms=1):
    got = world.turn(ms)
    replicas = world.questions.replicas
    if world.now_ms >= replicas.due_ms:
        replicas.tick(world.now_ms)
    return got + world.turn(0)


# acks=all -------------------------------------------------------------------------------------


def test_acks_all_waits_for_everybody_in_sync_and_for_no_sync(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a", b"b"), acks=-1, token=1)
    assert told(world.turn()) == {}
    fetch(world, p, 2, 2)
    assert told(world.turn()) == {}
    fetch(world, p, 3, 1)
    assert told(world.turn()) == {}
    assert p.high_watermark == 1
    fetch(world, p, 3, 2)
    assert told(world.turn()) == {1: errors.NONE}
    assert (p.high_watermark, world.threads.outstanding()) == (2, 0)


def test_the_leader_alone_acknowledges_acks_one(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=1, token=1)
    assert told(world.turn()) == {1: errors.NONE}
    assert p.high_watermark == 0


@pytest.mark.parametrize(
    ("settings", "syncs"),
    [
        ({"min_insync_replicas": 2}, False),
        ({"min_insync_replicas": 2, "flush_policy": "group"}, True),
        ({"min_insync_replicas": 1}, True),
        ({"min_insync_replicas": 1, "flush_policy": "os"}, False),
    ],
)
def test_the_policy_says_whether_the_disk_is_a_replica_too(world, settings, syncs):
    p = world.add(role=leads(), **settings)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    fetch(world, p, 2, 1)
    fetch(world, p, 3, 1)
    got = told(world.turn())
    assert (got == {}) == syncs
    assert bool(world.threads.outstanding()) == syncs
    world.threads.run_all()
    assert got | told(world.turn()) == {1: errors.NONE}


@pytest.mark.parametrize("synced_first", [True, False])
def test_flush_messages_asks_for_the_disk_besides(world, synced_first):
    p = world.add(role=leads(), flush_messages=1, **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()

    def replicate():
        fetch(world, p, 2, 1)
        fetch(world, p, 3, 1)

    first, second = (world.threads.run_all, replicate)[:: 1 if synced_first else -1]
    first()
    assert told(world.turn()) == {}
    second()
    assert told(world.turn()) == {1: errors.NONE}


def test_one_replica_waits_for_the_disk_whatever_is_asked_of_more(world):
    p = world.add(role=ALONE, **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    assert told(world.turn()) == {}
    world.threads.run_all()
    assert told(world.turn()) == {1: errors.NONE}


def test_a_duplicate_waits_as_long_as_the_first_one(world):
    p = world.add(role=leads(), **D3)
    for token in (1, 2):
        world.append(p.handle, batch(b"a", producer=(5, 0, 0)), acks=-1, token=token)
        assert told(world.turn()) == {}
    fetch(world, p, 2, 1)
    fetch(world, p, 3, 1)
    answers = [m for m in world.turn() if m.op == APPENDED]
    assert [(m.token, m.flags, m.a) for m in answers] == [(1, 0, 0), (2, 0, 0)]


def test_too_few_in_sync_refuse_acks_all_and_show_nothing_new(world):
    p = world.add(role=leads(isr=()), **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.append(p.handle, batch(b"b"), acks=1, token=2)
    assert told(world.turn()) == {1: errors.NOT_ENOUGH_REPLICAS, 2: errors.NONE}
    assert (p.log.end_offset, p.high_watermark) == (1, 0)
    world.ask(MARK, p.handle, 3, a=5, b=0, e=0, f=2)
    assert told(world.turn()) == {3: errors.NOT_ENOUGH_REPLICAS}
    world.core.lead(p, 0, leads(isr=(2,), partition_epoch=8), world.now_ms)
    assert p.high_watermark == 0, "who came in has not said what it has"
    fetch(world, p, 2, 1)
    world.turn()
    assert p.high_watermark == 1


def test_more_is_asked_than_there_are_replicas(world):
    p = world.add(role=leads(isr=(2,), replicas=(2,)), min_insync_replicas=3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    fetch(world, p, 2, 1)
    assert told(world.turn()) == {1: errors.NONE}


def test_who_waits_when_the_isr_becomes_too_small_is_told_when_it_is_whole_again(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    world.core.lead(p, 0, leads(isr=(), partition_epoch=8), world.now_ms)
    assert told(world.turn()) == {}
    assert p.high_watermark == 0
    fetch(world, p, 2, 1)
    world.core.lead(p, 0, leads(isr=(2,), partition_epoch=9), world.now_ms)
    assert told(world.turn()) == {1: errors.NONE}


def test_a_setting_that_asks_for_more_holds_at_once(world):
    p = world.add(role=leads(isr=()), flush_policy="os")
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    assert told(world.turn()) == {1: errors.NONE}
    world.append(p.handle, batch(b"a"), acks=1)
    p.set_rules(type(p.rules)(flush_policy="os", **D3))
    world.turn()
    assert p.high_watermark == 1
    p.set_rules(type(p.rules)(flush_policy="os"))
    assert p.high_watermark == 2


def test_a_smaller_isr_makes_visible_what_the_others_have(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    fetch(world, p, 2, 1)
    world.read(p.handle, 0, token=5)
    assert told(world.turn(), FOUND) == {9: errors.NONE}
    world.core.lead(p, 0, leads(isr=(2,), partition_epoch=8), world.now_ms)
    answers = world.turn()
    assert told(answers) == {1: errors.NONE}
    assert told(answers, FOUND) == {5: errors.NONE}


def test_who_waits_here_is_told_when_another_leads(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    world.read(p.handle, 0, token=2)
    fetch(world, p, 2, 1, wait=1, token=3)
    world.turn()
    world.core.follow(p, 1, ELSEWHERE)
    answers = world.turn()
    assert told(answers) == {1: errors.NOT_LEADER_OR_FOLLOWER}
    assert told(answers, FOUND) == dict.fromkeys((2, 3), errors.NOT_LEADER_OR_FOLLOWER)
    fetch(world, p, 2, 1)
    assert told(world.turn(), FOUND) == {9: errors.NOT_LEADER_OR_FOLLOWER}


def test_what_the_appliance_itself_has_to_say_waits_for_enough_nodes_too(world):
    p = world.add(role=leads(isr=()), **D3)
    assert not world.core.appends.append_own(p, memoryview(bytearray(batch(b"a"))), world.now_ms)
    world.turn()
    assert ("lost", "t-0") in world.observers
    assert p.log.end_offset == 0


def test_a_move_to_another_folder_forgets_nobody_who_counts(world):
    p = world.add(role=leads(isr=(2,)), flush_policy="os")
    fetch(world, p, 3, 0)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    assert proposals(world) == [(7, [1, 2, 3])]
    world.core.syncing.request_sync(p)
    while p.log.recovery_point < 1:
        world.turn()
        world.threads.run_all()
    world.core.replace(p, p.log, 0)
    assert p.high_watermark == 0
    fetch(world, p, 2, 1)
    assert told(world.turn()) == {}, "3 may be in sync by now"
    fetch(world, p, 3, 1)
    assert told(world.turn()) == {1: errors.NONE}


# Fetches of replicas --------------------------------------------------------------------------


def test_a_replica_reads_to_the_log_end_and_a_consumer_to_the_high_watermark(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn()
    fetch(world, p, 2, 0)
    world.read(p.handle, 0, token=5, wait=False)
    replica, consumer = sorted(world.turn(), key=lambda m: -m.token)
    assert world.bytes_of(replica, p)[8:] and replica.e > 0
    assert (replica.a, replica.h) == (0, p.leader_epoch)
    assert consumer.e == 0


def test_a_waiting_replica_wakes_with_the_append_and_a_consumer_with_the_high_watermark(world):
    p = world.add(role=leads(), **D3)
    fetch(world, p, 2, 0, wait=1)
    fetch(world, p, 3, 0, wait=1, token=8)
    world.read(p.handle, 0, token=5)
    assert world.turn() == []
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    answers = world.turn()
    assert told(answers, FOUND) == {9: errors.NONE, 8: errors.NONE}
    assert all(m.e for m in answers)
    fetch(world, p, 2, 1, wait=1)
    fetch(world, p, 3, 1, wait=1, token=8)
    answers = world.turn()
    assert told(answers, FOUND) == {5: errors.NONE}
    assert told(answers) == {1: errors.NONE}


def test_a_replica_is_told_the_high_watermark_that_its_fetch_made(world):
    p = world.add(role=leads(isr=(2,), replicas=(2,)), **D3)
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn()
    fetch(world, p, 2, 1)
    (answer,) = world.turn()
    assert (answer.a, answer.e) == (1, 0)


def test_strangers_and_the_dead_are_not_heard(world):
    p = world.add(role=leads(), epoch=5, **D3)
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn()
    for wanted, arguments in [
        (errors.NOT_LEADER_OR_FOLLOWER, {"replica": 7}),
        (errors.UNKNOWN_LEADER_EPOCH, {"replica": 7, "epoch": 5}),
        (errors.FENCED_LEADER_EPOCH, {"replica": 2, "epoch": 4}),
        (errors.UNKNOWN_LEADER_EPOCH, {"replica": 2, "epoch": 6}),
        (errors.NOT_LEADER_OR_FOLLOWER, {"replica": 2, "epoch": 5, "life": 3}),
    ]:
        fetch(world, p, offset=1, **arguments)
        (answer,) = world.turn()
        assert (answer.op, answer.flags) == (FOUND, wanted), arguments
    for offset in (2, -1):
        fetch(world, p, 2, offset)
        (answer,) = world.turn()
        assert answer.flags == errors.OFFSET_OUT_OF_RANGE
    assert p.progress.followers[2].end == -1, "none of it counts"


def test_a_replica_with_something_else_is_told_where_its_log_parts(world):
    p = world.add(role=leads(), epoch=3, **D3)
    world.append(p.handle, batch(b"a", b"b"), acks=1)
    world.turn()
    world.core.lead(p, 6, leads(partition_epoch=8), world.now_ms)
    world.append(p.handle, batch(b"c"), acks=1)
    world.turn()
    for offset, last, wanted in [
        (4, 3, (3, 2)),  # it went on in epoch 3 behind where that ended
        (9, 3, (3, 2)),  # also when our log ends before
        (3, 5, (3, 2)),  # of an epoch that we never had
        (1, 1, (1, 0)),  # of one before all that we know
        (2, 3, None),
        (3, 6, None),
    ]:
        fetch(world, p, 2, offset, epoch=6, last=last)
        (answer,) = world.turn()
        assert (answer.flags, answer.j) == (0, 1 if wanted else 0), (offset, last)
        if wanted:
            assert (answer.d, answer.g, answer.e) == (*wanted, 0)
            assert p.progress.followers[2].end == -1, "what it has is not what is here"
    assert p.progress.followers[2].end == 3
    fetch(world, p, 2, 3, epoch=6, last=7)
    (answer,) = world.turn()
    assert answer.flags == errors.OFFSET_OUT_OF_RANGE, "nothing is known of that epoch"


def test_the_latest_offset_of_a_replica_is_the_log_end(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn()
    for flags, offset in [(0, 0), (READ_COMMITTED, 0), (READ_REPLICA, 1)]:
        world.ask(LIST_OFFSET, p.handle, 1, a=-1, flags=flags)
        (answer,) = world.turn()
        assert (answer.flags, answer.b) == (0, offset)


def test_a_new_leader_does_not_say_where_the_end_is_before_it_knows(world):
    p = world.add(role=ELSEWHERE, flush_policy="os")
    led = batch(b"a", b"b")
    p.log.follow(memoryview(led[:12] + bytes(4) + led[16:]), world.now_ms, 0)
    p.log.commit()
    p.progress.appended(2, 2)
    world.core.lead(p, 1, leads(), world.now_ms)
    for flags, wanted in [(0, errors.OFFSET_NOT_AVAILABLE), (READ_REPLICA, 0)]:
        world.ask(LIST_OFFSET, p.handle, 1, a=-1, flags=flags)
        (answer,) = world.turn()
        assert answer.flags == wanted
    for replica in (2, 3):
        fetch(world, p, replica, 2)
    world.turn()
    world.ask(LIST_OFFSET, p.handle, 1, a=-1)
    (answer,) = world.turn()
    assert (answer.flags, answer.b) == (0, 2)


# Who is in sync -------------------------------------------------------------------------------


def test_who_is_late_is_proposed_to_leave_and_counts_until_it_has(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    tick(world)
    fetch(world, p, 2, 1)
    tick(world, LAG_MS // 2)
    assert proposals(world) == []
    tick(world, LAG_MS // 2)
    assert proposals(world) == [(7, [1, 2])]
    assert p.high_watermark == 0, "not before the metadata says so"
    world.core.lead(p, 0, leads(isr=(2,), partition_epoch=8), world.now_ms)
    assert told(tick(world)) == {1: errors.NONE}
    assert proposals(world) == []


def test_who_has_everything_is_never_late_however_idle(world):
    p = world.add(role=leads(), **D3)
    for replica in (2, 3):
        fetch(world, p, replica, 0)
    tick(world)
    for _ in range(4):
        tick(world, LAG_MS)
    assert proposals(world) == []
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    tick(world, LAG_MS // 2)
    assert proposals(world) == [], "it had everything until just now"
    tick(world, LAG_MS)
    tick(world, LAG_MS)
    assert proposals(world)[0] == (7, [1])


def test_who_has_what_is_visible_is_proposed_at_once_and_counts_from_then_on(world):
    p = world.add(role=leads(isr=(2,)), **D3)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    fetch(world, p, 2, 1)
    assert told(world.turn()) == {1: errors.NONE}
    fetch(world, p, 3, 0)
    world.turn()
    assert proposals(world) == []
    fetch(world, p, 3, 1)
    world.turn()
    assert proposals(world) == [(7, [1, 2, 3])]
    world.append(p.handle, batch(b"b"), acks=-1, token=2)
    world.turn()
    fetch(world, p, 2, 2)
    assert told(world.turn()) == {}
    fetch(world, p, 3, 2)
    assert told(world.turn()) == {2: errors.NONE}
    assert proposals(world) == [], "once is enough"


def test_brokers_are_named_with_the_epoch_they_fetch_in(world):
    p = world.add(role=leads(isr=(2,)), **D3)
    fetch(world, p, 2, 0, life=-1)
    fetch(world, p, 3, 0)
    world.turn()
    (change,) = world.cluster.proposed
    assert change.isr == {1: 11, 2: -1, 3: 13}
    assert (change.topic_id, change.partition, change.leader_epoch) == (p.topic_id, 0, 0)


def test_who_comes_back_under_steady_load_comes_in(world):
    """The leader alone in sync would show each record at once, and be ahead for ever."""
    p = world.add(role=leads(isr=(), replicas=(2,)), flush_policy="os")
    for turn in range(4):
        world.append(p.handle, batch(b"a"), acks=1)
        world.turn()
        fetch(world, p, 2, turn)  # always one behind
        world.turn()
    assert proposals(world) == [(7, [1, 2])]


@pytest.mark.parametrize("fenced", [True, False])
def test_who_was_about_to_come_in_and_died_is_not_waited_for(world, fenced):
    p = world.add(role=leads(isr=(), replicas=(2,)), flush_policy="os")
    for turn in range(2):
        world.append(p.handle, batch(b"a", b"b"), acks=1)
        world.turn()
        fetch(world, p, 2, 2 * turn)
    world.cluster.hears = False
    world.append(p.handle, batch(b"c"), acks=1)
    world.turn()
    assert p.high_watermark == 4
    if fenced:
        del world.cluster.epochs[2]
        world.core.brokers_changed()
    tick(world, 1 if fenced else LAG_MS + 1000)
    assert p.high_watermark == 5


def test_who_is_shut_out_is_not_proposed(world):
    p = world.add(role=leads(isr=(2,)), **D3)
    del world.cluster.epochs[3]
    fetch(world, p, 2, 0)
    fetch(world, p, 3, 0)
    tick(world)
    assert proposals(world) == []
    world.cluster.epochs[3] = 14  # registered anew, and has not fetched since
    tick(world, LAG_MS)
    assert proposals(world) == []
    fetch(world, p, 3, 0, life=14)
    world.turn()
    assert proposals(world) == [(7, [1, 2, 3])]


def test_who_is_lost_is_neither_proposed_nor_waited_for(world):
    """Its disk is full: it asks for what comes, and does not write it."""
    p = world.add(role=leads(isr=(2,)), **D3)
    world.cluster.lost = (3,)
    fetch(world, p, 3, 0)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    fetch(world, p, 2, 1)
    assert told(world.turn()) == {1: errors.NONE}
    fetch(world, p, 3, 1)
    tick(world)
    assert proposals(world) == []
    world.cluster.lost = ()  # there is room again
    fetch(world, p, 3, 1)
    world.turn()
    assert proposals(world) == [(7, [1, 2, 3])]


def test_what_the_metadata_does_not_follow_is_proposed_again(world):
    p = world.add(role=leads(isr=(2,)), **D3)
    fetch(world, p, 3, 0)
    tick(world)
    assert proposals(world) == [(7, [1, 2, 3])]
    tick(world, 100)
    assert proposals(world) == []
    tick(world, 600)
    assert proposals(world) == [(7, [1, 2, 3])]
    world.questions.replicas.control_died()
    tick(world)
    assert proposals(world) == [(7, [1, 2, 3])]
    world.core.lead(p, 0, leads(partition_epoch=8), world.now_ms)
    tick(world, 1000)
    assert proposals(world) == []


def test_a_refusal_lets_go_of_who_was_to_come_in(world):
    p = world.add(role=leads(isr=(2,)), **D3)
    fetch(world, p, 3, 0)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    fetch(world, p, 2, 1)
    assert told(world.turn()) == {}
    replicas = world.questions.replicas
    replicas.refused(p, 6, world.now_ms)
    assert told(world.turn()) == {}, "that was of an older proposal"
    replicas.refused(p, 7, world.now_ms)
    assert told(world.turn()) == {1: errors.NONE}
    proposals(world)
    tick(world, 600)
    assert proposals(world) == [], "it lags now"
    replicas.refused(None, 7, world.now_ms)


def test_who_was_to_come_in_and_is_shut_out_counts_no_more(world):
    p = world.add(role=leads(isr=(2,)), **D3)
    fetch(world, p, 3, 0)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    fetch(world, p, 2, 1)
    assert told(world.turn()) == {}
    del world.cluster.epochs[3]
    assert told(tick(world, 600)) == {1: errors.NONE}


def test_a_failed_partition_proposes_nothing(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=1)
    tick(world)
    world.core.fail(p, StorageFailed("t-0", 5, "Input/output error"))
    world.core.lead(p, 0, leads(isr=(2,), partition_epoch=8), world.now_ms)
    tick(world, 3 * LAG_MS)
    assert proposals(world) == []


def test_who_leads_no_more_proposes_nothing(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=1)
    tick(world)
    world.core.follow(p, 1, ELSEWHERE)
    tick(world, 3 * LAG_MS)
    assert proposals(world) == []
    assert not world.questions.replicas.led
    alone = world.add("alone")
    assert alone not in world.questions.replicas.led


# DeleteRecords --------------------------------------------------------------------------------


def deleted(world, p, offset, token=1):
    world.ask(DELETE_RECORDS, p.handle, token, a=offset)
    return world.turn()


def ready_to_delete(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a", b"b"), acks=1)
    world.turn()
    for replica in (2, 3):
        fetch(world, p, replica, 2)
    world.turn()
    return p


def test_records_are_deleted_when_every_replica_has(world):
    p = ready_to_delete(world)
    assert deleted(world, p, 1) == []
    assert p.log.log_start_offset == 1
    fetch(world, p, 2, 2, start=1)
    assert len(world.turn()) == 1  # its own
    fetch(world, p, 3, 2, start=2)
    answer, _ = world.turn()
    assert (answer.token, answer.flags, answer.a) == (1, 0, 1)


def test_a_replica_that_is_shut_out_is_not_waited_for_by_deletions(world):
    p = ready_to_delete(world)
    del world.cluster.epochs[3]
    assert deleted(world, p, 1) == []
    fetch(world, p, 2, 2, start=1)
    assert len(world.turn()) == 2
    del world.cluster.epochs[2]
    (answer,) = deleted(world, p, 2)
    assert (answer.flags, answer.a) == (0, 2)


def test_a_deletion_that_waits_is_told_when_another_leads(world):
    p = ready_to_delete(world)
    deleted(world, p, 1)
    world.core.follow(p, 1, ELSEWHERE)
    (answer,) = world.turn()
    assert (answer.token, answer.flags) == (1, errors.NOT_LEADER_OR_FOLLOWER)


# Very many partitions -------------------------------------------------------------------------


def test_roles_that_change_one_after_the_other_are_looked_at_once_each(world, monkeypatch):
    """Or the start of a node with thousands of partitions is spent on looking at all of them."""
    replicas, looked = world.questions.replicas, []
    consider = type(replicas)._consider

    def counted(self, partition, led, now_ms):
        looked.append(partition)
        consider(self, partition, led, now_ms)

    monkeypatch.setattr(type(replicas), "_consider", counted)
    led = []
    for _ in range(20):
        led.append(world.add(role=leads(), **D3))
        replicas.tick(world.now_ms)
    assert len(looked) <= 2 * len(led)
    world.cluster.epochs[3] = -1
    replicas.brokers_changed()
    looked.clear()
    replicas.tick(world.now_ms)
    assert sorted(p.handle for p in looked) == sorted(p.handle for p in led)


def test_of_thousands_some_are_looked_at_in_a_turn_and_nobody_is_forgotten(world, monkeypatch):
    """Even when all are to be looked at again before the last ones were."""
    monkeypatch.setattr("appliance.ioproc.replication.replicas.A_LOOK", 2)
    several = [world.add(name, role=leads(isr=(2,)), **D3) for name in "abcde"]
    replicas = world.questions.replicas
    for partition in several:
        fetch(world, partition, 3, 0)
    proposals(world)
    replicas.control_died()
    for looked in (2, 4):
        replicas.tick(world.now_ms)
        assert replicas.due_ms == world.now_ms
        assert len(world.cluster.proposed) == looked
    replicas.brokers_changed()
    replicas.tick(world.now_ms)
    asked = [change.topic_id for change in world.cluster.proposed]
    assert len(set(asked)) == len(several)


# Replicas that are LOST ---------------------------------------------------------------------------


def loses(world, p):
    """Replica 2 is damaged: LOST, out of the ISR, and back in its folder a little later."""
    world.cluster.lost = (2,)
    world.core.lead(p, 0, leads(isr=(3,), partition_epoch=8), world.now_ms)
    tick(world)


def comes_back(world, p):
    world.cluster.lost = ()
    world.core.lead(p, 0, leads(isr=(3,), partition_epoch=9), world.now_ms)
    for _ in range(3):
        tick(world, ms=LAG_MS // 2)


def test_what_a_lost_replica_had_counts_no_more(world):
    """It may begin anew, empty: nothing is known of it before it fetches."""
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a", b"b"), acks=1)
    world.turn()
    for replica in (2, 3):
        fetch(world, p, replica, 2)
    tick(world)
    assert p.high_watermark == 2
    loses(world, p)
    comes_back(world, p)
    assert [isr for _, isr in proposals(world) if 2 in isr] == []
    fetch(world, p, 2, 0)
    tick(world)
    assert proposals(world) == []
    fetch(world, p, 2, 2)
    tick(world)
    assert proposals(world) == [(9, [1, 2, 3])]


def test_what_a_lost_replica_says_late_is_of_the_log_before(world):
    """Its fetch was under way when it was found damaged."""
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a", b"b"), acks=1)
    world.turn()
    for replica in (2, 3):
        fetch(world, p, replica, 2)
    loses(world, p)
    fetch(world, p, 2, 2)
    tick(world)
    comes_back(world, p)
    assert [isr for _, isr in proposals(world) if 2 in isr] == []
