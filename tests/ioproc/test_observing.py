"""Observers of partitions are told of everything, in order, in the turn in which it happened."""

import pytest
from core_world import World, batch
from sim.disk import SimDisk

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.logstore.log import PartitionLog
from appliance.ring import partition_table as columns
from appliance.ring.messages import LIST_OFFSET
from tests.ioproc.core_world import NOW_MS


@pytest.fixture
def world():
    disk = SimDisk()
    disk.mkdir("/data")
    return World("/data", disk=disk)


def heard(world):
    found = [what for what, _ in world.observers]
    world.observers.clear()
    return found


def test_a_partition_that_comes_leads_and_goes(world):
    p = world.add(epoch=3)
    assert heard(world) == ["opened", "leads in 3"]
    world.core.lead(p, 5)
    assert heard(world) == ["leads in 5"]
    world.core.remove(p.handle, world.now_ns)
    assert heard(world) == ["closed"]


def test_one_whose_write_fails_in_a_turn_is_closed_in_that_turn(world):
    p = world.add()
    heard(world)
    world.append(p.handle, batch(b"a"), acks=1)
    world.disk.refusing = {(p.log.active.path, "write"): 5}
    assert heard(world) == []
    world.turn()
    assert heard(world) == ["closed"]


def test_one_that_fails_outside_a_turn_is_closed_at_once(world):
    p = world.add()
    heard(world)
    world.core.fail(p, StorageFailed("t-0", 5, "broken"))
    assert heard(world) == ["closed"]


def test_another_log_is_another_opening(world):
    p = world.add(epoch=2)
    heard(world)
    world.core.quiesce(p, world.now_ns)
    log = PartitionLog.create(world.disk, "/data/other-0", p.topic_id, p.rules, now_ms=NOW_MS)
    world.core.replace(p, log, 0)
    assert heard(world) == ["closed", "opened", "leads in 2"]
    assert p.log is log


def test_who_finds_no_room_is_said_in_that_turn(world):
    p = world.add()
    heard(world)
    world.append(p.handle, batch(b"a"), acks=1)
    world.disk.refusing = {(p.log.active.path, "write"): 28}
    world.turn()
    assert heard(world) == ["held"]


def test_one_that_another_node_leads_takes_nothing_and_says_where_to_ask(world):
    p = world.add(epoch=1)
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    world.turn()
    world.read(p.handle, 0, token=2)
    world.ask(LIST_OFFSET, p.handle, token=3, a=-1)
    heard(world)
    world.core.follow(p, 2)
    refused = {m.token: m.flags for m in world.turn()}
    assert refused == dict.fromkeys((1, 2, 3), errors.NOT_LEADER_OR_FOLLOWER)
    assert heard(world) == ["follows"]
    assert world.table.read_column(p.handle, columns.STATUS) == columns.FOLLOWING
    world.append(p.handle, batch(b"b"), acks=1, token=4)
    world.read(p.handle, 0, token=5)
    assert {m.flags for m in world.turn()} == {errors.NOT_LEADER_OR_FOLLOWER}
    assert p.log.end_offset == 1
    world.threads.run_all()
    world.turn()
    assert p.high_watermark == 0, "that is for its leader to say"
    world.core.lead(p, 3)
    assert heard(world) == ["leads in 3"]
    world.turn()
    assert world.table.read_column(p.handle, columns.HIGH_WATERMARK) == 1, (
        "nobody else has to have it now"
    )
    assert p.places.visible == (0, p.log.active_size)
    assert world.table.read_column(p.handle, columns.STATUS) == columns.ONLINE
    world.append(p.handle, batch(b"c"), acks=1, token=6)
    assert [m.flags for m in world.turn()] == [0]
