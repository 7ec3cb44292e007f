"""A request that made many records: each process replays them in slices, and meanwhile nobody is
served with what is older, or half of it. Slices are counted, not timed."""

import pytest

from appliance.base import errors
from appliance.handlers import registry
from appliance.metadata import follower
from appliance.ring.messages import APPEND, APPENDED
from tests.netproc.netproc_world import CTL, IO, NET, World
from tests.netproc.test_server import metadata, produce_body

SLICE = 10
PARTITIONS = 60


@pytest.fixture
def world(tmp_path, monkeypatch):
    one = World(tmp_path)
    monkeypatch.setattr(follower, "A_SLICE", SLICE)
    yield one
    one.close()


def create(client, name="many"):
    topic = {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}
    topic |= {"assignments": [], "configs": []}
    client.send(19, 7, topics=[topic], timeout=1000, validate_only=False)


def is_behind(world):
    return world.server.shared.applied != world.table.metadata_offset


def partitions(world, name="many"):
    topic = world.server.host.image.topics_by_name.get(name)
    return len(topic.partitions) if topic else 0


def slices(monkeypatch):
    """How many records each slice replays, from now on."""
    counts = []
    go_on, decode = follower.Follower.replay_slice, follower.decode_record

    def decoded(value):
        if counts:
            counts[-1] += 1
        return decode(value)

    def going_on(one, committed):
        counts.append(0)
        return go_on(one, committed)

    monkeypatch.setattr(follower.Follower, "replay_slice", going_on)
    monkeypatch.setattr(follower, "decode_record", decoded)
    return counts


def test_a_network_process_replays_a_slice_in_a_turn_and_takes_no_request_meanwhile(
    world, monkeypatch
):
    maker, waits, late = world.client(), world.client(), world.client()
    waits.send_body(0, 9, produce_body())
    world.turn()
    (asked,) = world.asked()
    create(maker)
    world.turn()
    assert is_behind(world), "control has committed it, and answered"
    late.send_body(0, 9, produce_body())
    waits.send_body(0, 9, produce_body())
    counts = slices(monkeypatch)
    world.tell(APPENDED, asked.token, a=7)
    while is_behind(world):
        assert maker.answer() is None and partitions(world) == 0, "whole, or not at all"
        assert not world.asked()
        world.turn()
    assert len(counts) > PARTITIONS // SLICE and max(counts) <= SLICE
    assert partitions(world) == PARTITIONS
    assert waits.answer()[0] == 0, "who had asked before is answered meanwhile"
    assert maker.answer()[1].topics[0].error_code == 0
    world.turn()
    again = world.asked()
    assert [one.op for one in again] == [APPEND, APPEND]
    for one in again:
        world.tell(APPENDED, one.token, a=8)
    world.turn()
    assert waits.answer()[0] == 1 and late.answer()[0] == 0
    world.end()


def test_what_another_node_asks_of_control_does_not_wait_for_the_replay(world):
    """Control of that node learns from such an answer what is committed: all of its processes would
    begin behind this one."""
    (handlers,) = world.server._handlers
    handlers[63] = registry.controllers_handlers()[63]
    maker, node, mixed = world.client(), world.client(), world.client()
    create(maker)
    world.turn()
    beat = {"broker_id": 1, "broker_epoch": 0, "current_metadata_offset": 0}
    beat |= {"want_fence": False, "want_shut_down": False}
    for client in (node, mixed):
        client.send(63, 0, **beat)
    mixed.send_body(0, 9, produce_body())
    world.turn()
    world.turn()
    assert is_behind(world)
    assert node.answer()[0] == mixed.answer()[0] == 0
    assert not world.asked() and maker.answer() is None, "all others wait"
    while is_behind(world):
        world.turn()
    world.turn()
    (asked,) = world.asked()
    world.tell(APPENDED, asked.token, a=7)
    world.turn()
    assert mixed.answer()[0] == 1 and maker.answer()[0] == 0
    world.end()


def test_no_turn_ends_with_a_wait_while_there_is_more_to_replay(world):
    create(world.client())
    world.turn()
    while is_behind(world):
        wait_ms = world.server.run_once(world.now_ns)
        assert wait_ms == 0 or not is_behind(world)
    world.turn()
    world.end()


def test_metadata_asked_for_behind_a_change_that_was_answered_has_it(world):
    """A second netproc would have to: only the word in shared memory tells it."""
    create(world.client())
    world.turn()
    assert is_behind(world)
    assert metadata(world.client(), "many") == errors.NONE
    world.end()


def test_a_little_is_replayed_at_once(world):
    create(world.client(), "other")
    while is_behind(world) or not partitions(world, "other"):
        world.turn()
    maker = world.client()
    topic = {"name": "small", "num_partitions": 2, "replication_factor": 1}
    topic |= {"assignments": [], "configs": []}
    maker.send(19, 7, topics=[topic], timeout=1000, validate_only=False)
    world.turn()
    assert is_behind(world)
    world.turn()
    assert maker.answer()[1].topics[0].error_code == 0
    world.end()


def test_what_control_had_answered_is_told_though_it_died_meanwhile(world):
    maker = world.client()
    create(maker)
    world.turn()
    world.turn()
    assert is_behind(world) and maker.answer() is None
    world.table.vacate(CTL)
    world.table.move_epoch()
    world.server.peers_changed(world.links.changed_peers())
    world.links.confirm()
    while is_behind(world):
        assert maker.answer() is None
        world.server.run_once(world.now_ns)
    world.server.run_once(world.now_ns)
    assert maker.answer()[1].topics[0].error_code == 0
    assert partitions(world) == PARTITIONS
    assert not world.server.exchanges.living


def io_turn(world):
    """One turn of the I/O process; how many partitions it can serve then."""
    world.io_turn()
    return len(world.shell._parts.home._follower.image.topics_by_name)


def test_an_io_process_holds_requests_until_it_has_replayed_what_they_may_be_about(
    world, monkeypatch
):
    world.io_process()
    maker, old, new = world.client(), world.client(), world.client()
    create(maker)
    world.turn()
    while is_behind(world):
        world.turn()
    old.send_body(0, 9, produce_body())
    new.send_body(0, 9, produce_body(topic="many"))
    world.turn()
    counts = slices(monkeypatch)
    while io_turn(world) == 1:
        world.turn()
        assert old.answer() is None and new.answer() is None
        assert world.table.applied(IO) < world.table.metadata_offset
    assert len(counts) > PARTITIONS // SLICE and max(counts) <= SLICE
    for client in (old, new):
        while (found := client.answer()) is None:  # a thread syncs in between
            io_turn(world)
            world.turn()
        assert found[1].responses[0].partition_responses[0].error_code == 0


def test_what_an_io_process_holds_goes_with_who_asked(world):
    shell = world.io_process()
    maker, client = world.client(), world.client()
    create(maker)
    world.turn()
    while is_behind(world):
        world.turn()
    client.send_body(0, 9, produce_body())
    world.turn()
    io_turn(world)
    assert len(shell._held) == 1
    world.table.vacate(NET)
    world.table.move_epoch()
    shell.peers_changed(world.io.changed_peers())
    world.io.confirm()
    assert not shell._held
    while io_turn(world) == 1:
        pass
    assert shell.core.partitions[0].log.end_offset == 0
