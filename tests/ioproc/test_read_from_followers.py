"""Consumers at a follower, and whom the leader would rather have them read from. Node 1 is here."""

import pytest
from core_world import World, batch
from test_replicas import D3, fetch, leads

from appliance.base import errors
from appliance.replication.role import PartitionRole
from appliance.ring.messages import (
    ANY_REPLICA,
    CANCEL,
    FOUND,
    LIST_OFFSET,
    LISTED,
    READ,
    READ_NEAREST,
    READ_REPLICA,
    READ_WAIT,
    Message,
)

FOLLOWS = PartitionRole(False, 2, 7, (2, 3), (2, 3))


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.cluster.epochs = {1: 11, 2: 12, 3: 13}
    return world


def read(world, p, offset, *, flags=ANY_REPLICA, epoch=-1, token=9, nodes=(-1, -1, -1, -1)):
    head = (READ, flags, p.handle, token, offset, epoch, *nodes, 0, 0)
    world.arrivals.handle(world.core.askers[0], [Message(*head, 1 << 20, 1)], world.now_ms)


def answers(world):
    """Token → (error code, length, high watermark) of each read."""
    return {m.token: (m.flags, m.e, m.a) for m in world.turn() if m.op == FOUND}


def follower(world, visible=3):
    """What was appended here while it led, of which so much is visible at its leader."""
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a", b"b", b"c"), acks=1)
    world.append(p.handle, batch(b"d"), acks=1)
    world.turn()
    world.core.follow(p, 6, FOLLOWS)
    rise(world, p, visible)
    world.turn()
    return p


def rise(world, p, to):
    """The leader tells its high watermark."""
    if p.progress.on_leader_high_watermark(to):
        p.raise_visible()
        world.core.publish(p)


def test_a_follower_serves_what_it_knows_to_be_visible(world):
    p = follower(world)
    read(world, p, 0)
    ((code, length, visible),) = answers(world).values()
    assert (code, visible) == (errors.NONE, 3) and length
    for offset, code in ((3, errors.NONE), (4, errors.NONE), (5, errors.OFFSET_OUT_OF_RANGE)):
        read(world, p, offset)
        assert answers(world) == {9: (code, 0, 3)}


def test_who_knows_another_epoch_is_told(world):
    p = follower(world)
    for epoch, code in ((5, errors.FENCED_LEADER_EPOCH), (7, errors.UNKNOWN_LEADER_EPOCH)):
        read(world, p, 0, epoch=epoch)
        assert answers(world)[9][0] == code
    read(world, p, 0, epoch=6)
    assert answers(world)[9][0] == errors.NONE


def test_who_would_have_the_leader_is_refused(world):
    p = follower(world)
    read(world, p, 0, flags=0)
    assert answers(world)[9][0] == errors.NOT_LEADER_OR_FOLLOWER
    message = Message(READ, READ_REPLICA, p.handle, 9, 0, -1, -1, 0, 12, 2, 0, 0, 1 << 20, 1)
    world.arrivals.handle(world.core.askers[0], [message], world.now_ms)
    assert answers(world)[9][0] == errors.NOT_LEADER_OR_FOLLOWER


def test_a_reader_at_its_end_waits_for_the_high_watermark_and_for_no_sync(world):
    p = follower(world)
    read(world, p, 3, flags=ANY_REPLICA | READ_WAIT)
    assert answers(world) == {} and not world.threads.outstanding()
    rise(world, p, 4)
    ((code, length, visible),) = answers(world).values()
    assert (code, visible) == (errors.NONE, 4) and length


def test_where_its_log_ends_is_told_to_who_looks_for_faults(world):
    p = follower(world)
    flags = READ_REPLICA | ANY_REPLICA
    message = Message(LIST_OFFSET, flags, p.handle, 9, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0)
    world.arrivals.handle(world.core.askers[0], [message], world.now_ms)
    assert [(m.flags, m.b) for m in world.turn() if m.op == LISTED] == [(0, 4)]


@pytest.mark.parametrize("leader", [1, 3])
def test_a_new_epoch_ends_the_wait_of_who_knows_the_old_one(world, leader):
    p = follower(world)
    waits = ANY_REPLICA | READ_WAIT
    read(world, p, 3, flags=waits, epoch=6, token=1)
    read(world, p, 3, flags=waits, token=2)
    assert answers(world) == {}
    if leader == 1:
        world.core.lead(p, 7, leads(), world.now_ms)
    else:
        world.core.follow(p, 7, FOLLOWS._replace(leader=leader))
    assert answers(world) == {1: (errors.FENCED_LEADER_EPOCH, 0, -1)}
    assert next(iter(p.parked.values())).token == 2, "who knows of none waits on"


def test_a_change_of_the_isr_ends_no_wait(world):
    p = follower(world)
    read(world, p, 3, flags=ANY_REPLICA | READ_WAIT, epoch=6)
    world.core.follow(p, 6, FOLLOWS._replace(partition_epoch=8, isr=(2,)))
    assert answers(world) == {} and p.parked
    world.core.remove(p.handle, 0)
    assert answers(world)[9][0] == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_who_leads_no_more_refuses_old_clients_that_wait(world):
    p = world.add(role=leads(), **D3)
    read(world, p, 0, flags=READ_WAIT)
    world.core.follow(p, 6, FOLLOWS)
    assert answers(world)[9][0] == errors.NOT_LEADER_OR_FOLLOWER


# Whom the leader would rather have them read from -------------------------------------------------


def nearest(world, p, offset, *nodes, epoch=-1, flags=0):
    """The node that it is sent to, or None; the length of what it is given."""
    named = (*nodes, -1, -1, -1, -1)[:4]
    flags |= ANY_REPLICA | READ_NEAREST
    read(world, p, offset, flags=flags, nodes=named, epoch=epoch)
    (told,) = [m for m in world.turn() if m.op == FOUND]
    return (told.j - 1 if told.j else None), told.e


def test_of_those_in_sync_that_have_it_the_farthest_is_near_enough(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a", b"b", b"c"), acks=1)
    world.turn()
    node, _ = nearest(world, p, 0, 2, 3)
    assert node is None, "nobody has told where it is"
    fetch(world, p, 2, 3)
    fetch(world, p, 3, 2, start=1)
    world.turn()
    assert nearest(world, p, 1, 2, 3) == (2, 0)
    assert nearest(world, p, 1, 3) == (3, 0)
    assert nearest(world, p, 0, 3)[0] is None, "it begins behind"
    assert nearest(world, p, 3, 3)[0] is None, "it ends before"
    assert nearest(world, p, 1, 4) == nearest(world, p, 1), "who is no replica is nobody"
    fetch(world, p, 3, 3, start=1)
    world.turn(5)
    assert nearest(world, p, 1, 2, 3) == (3, 0), "of two that have all, who was there last"


def test_who_is_not_in_sync_is_not_near(world):
    p = world.add(role=leads(isr=(3,)), **D3)
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn()
    fetch(world, p, 2, 1)
    fetch(world, p, 3, 1)
    world.turn()
    assert nearest(world, p, 0, 2)[0] is None
    assert nearest(world, p, 0, 3)[0] == 3


def test_another_epoch_is_told_before(world):
    p = world.add(role=leads(), **D3)
    fetch(world, p, 2, 0)
    world.turn()
    read(world, p, 0, flags=ANY_REPLICA | READ_NEAREST, nodes=(2, -1, -1, -1), epoch=99)
    assert answers(world)[9][0] == errors.UNKNOWN_LEADER_EPOCH


# The high watermark goes to followers -------------------------------------------------------------


def waits(world, p, replica, offset, visible, token):
    life = {2: 12, 3: 13}[replica]
    flags = READ_REPLICA | READ_WAIT
    head = (READ, flags, p.handle, token, offset, -1, -1, 0, life, replica, visible, 0)
    world.arrivals.handle(world.core.askers[0], [Message(*head, 1 << 20, 1)], world.now_ms)


def test_a_follower_that_waits_hears_of_the_high_watermark_at_once(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn()
    waits(world, p, 2, 1, visible=1, token=2)
    assert answers(world) == {}
    waits(world, p, 3, 1, visible=1, token=3)
    assert answers(world) == {2: (0, 0, 1), 3: (0, 0, 1)}, "the last of them let it rise"
    waits(world, p, 2, 1, visible=2, token=4)
    waits(world, p, 3, 1, visible=1, token=5)
    assert answers(world) == {5: (0, 0, 1)}, "who has not heard of it yet, when it asks"
    world.append(p.handle, batch(b"b"), acks=1)
    assert answers(world)[4][1], "records wake it as ever"


def test_where_nobody_reads_there_it_hears_of_it_with_the_next_records(world):
    p = world.add(role=leads(), **D3)
    world.append(p.handle, batch(b"a"), acks=1)
    world.turn()
    waits(world, p, 2, 1, visible=0, token=2)
    waits(world, p, 3, 1, visible=0, token=3)
    assert answers(world) == {} and p.high_watermark == 1
    cancel = Message(CANCEL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    world.arrivals.handle(world.core.askers[0], [cancel], world.now_ms)
    assert not p.parked
