"""What the tables must show for an appliance to be ready, or alive, and what they show when it is
not."""

import pytest
from exporter_world import World

from appliance.metadata.parts import BrokerImage
from appliance.observer.health import HealthWatch
from appliance.ring import partition_table as columns
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, STARTING, Peer


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.serve()
    return made


def test_everybody_ready_is_ready(world):
    world.topic("orders", 3)
    for _ in range(40):
        world.turn(seconds=1)
        assert world.look() == ((), (), ())


def test_before_it_serves_it_says_who_is_missing(tmp_path):
    world = World(tmp_path)
    assert world.look().missing == tuple(
        f"{name} is down" for name in ("control", "ioproc-0", "ioproc-1", "netproc-0", "netproc-1")
    )
    for peer in world.tables.processes.peers:
        world.tables.processes.occupy(peer)
    world.tables.processes.set_state(Peer(CONTROL, 0), STARTING)
    assert "ioproc-1 is starting" in world.look().missing


def down(world, *peers):
    for peer in peers:
        world.tables.processes.vacate(Peer(*peer))
    return world.look()


def test_an_ioproc_is_needed_and_so_is_one_netproc_and_control_is_not(world):
    assert down(world, (CONTROL, 0)) == ((), ("control is down",), ())
    assert down(world, (NETPROC, 1)).missing == ()
    assert down(world, (NETPROC, 0)).missing == (
        *("control is down", "netproc-0 is down", "netproc-1 is down"),
    )


def test_partitions_of_an_ioproc_that_is_down_are_missed(world):
    assert down(world, (IOPROC, 1)).missing == ("ioproc-1 is down",)


def test_who_ends_is_not_ready(world):
    world.tables.processes.set_drain(1)
    assert world.look().missing == ("it is ending",)


def test_a_loop_that_stands_still_is_missed_after_two_seconds_and_dead_after_thirty(world):
    silent = Peer(IOPROC, 0)
    world.look()
    world.turn(silent, seconds=2)
    assert world.look().missing == ()
    world.turn(silent, seconds=1)
    assert world.look() == (("ioproc-0 has stood still for 3 s",), (), ())
    world.turn(silent, seconds=28)
    assert world.look().dead == ("ioproc-0 has stood still for 31 s",)
    world.turn()
    assert world.look() == ((), (), ())


def test_who_began_to_look_just_now_is_not_sure_until_everybody_has_turned(world):
    silent = Peer(IOPROC, 0)
    watch = HealthWatch(world.tables.processes, world.tables.partitions)
    watch.check_progress(world.now_ns)
    assert watch.unsure(world.now_ns)
    world.turn(silent, seconds=1)
    watch.check_progress(world.now_ns)
    assert watch.unsure(world.now_ns) and not watch.verdict(world.now_ns).missing
    world.turn(silent, seconds=2)
    watch.check_progress(world.now_ns)
    assert watch.verdict(world.now_ns).missing and not watch.unsure(world.now_ns)
    world.turn()
    watch.check_progress(world.now_ns)
    assert not watch.unsure(world.now_ns) and not watch.verdict(world.now_ns).missing


def test_who_does_not_follow_the_metadata_is_missed_and_who_is_busy_following_is_not(world):
    processes = world.tables.processes
    peers = [peer for peer in processes.peers if peer.kind != CONTROL]
    for second in range(5):
        processes.publish_metadata(10 + second)
        for peer in peers:
            processes.set_applied(peer, 9 + second)  # always a step behind
        world.turn(seconds=1)
        assert world.look().missing == ()
    for _ in range(3):
        world.turn(seconds=1)
        found = world.look()
    assert found.missing == tuple(f"{peer} does not follow the metadata" for peer in peers)


def test_partitions_that_open_are_missed_and_offline_ones_are_told(world):
    opening, *others = world.topic("orders", 3)
    world.set(opening, STATUS=columns.NOT_OPEN)
    assert world.look().missing == ("1 of 3 partitions are not open yet",)
    world.set(opening, STATUS=columns.OFFLINE)
    assert world.look() == ((), ("1 of 3 partitions are offline",), ())
    for handle in others:
        world.set(handle, STATUS=columns.OFFLINE)
    assert world.look().missing == ("3 of 3 partitions are offline",)


def test_coordinators_that_load_are_missed(world):
    for process, loading in ((0, 2), (1, 1)):
        world.tables.processes.set_loading(Peer(IOPROC, process), loading)
    assert world.look().missing == ("3 coordinators of groups and transactions are still loading",)
    world.tables.processes.vacate(Peer(IOPROC, 0))
    world.tables.processes.occupy(Peer(IOPROC, 0))
    assert world.tables.processes.loading == 1, "a successor has begun nothing yet"


def test_a_partition_that_is_deleted_is_not_waited_for(world):
    (handle,) = world.topic("orders", 1, status=columns.NOT_OPEN)
    assert world.look().missing
    world.tables.partitions.retire(handle, 5)
    assert world.look() == ((), (), ())


def test_records_that_stay_hidden_are_told_and_those_that_come_to_light_are_not(world):
    (handle,) = world.topic("orders", 1)
    for end in range(10):  # always something under way
        world.set(handle, LOG_END=end + 1, HIGH_WATERMARK=end)
        world.turn(seconds=1)
        assert world.look().warnings == ()
    for _ in range(6):
        world.turn(seconds=1)
        found = world.look()
    assert found.warnings == ("1 partitions have records that do not become visible",)
    assert not found.missing
    world.set(handle, HIGH_WATERMARK=10)
    world.turn(seconds=1)
    assert world.look().warnings == ()


def test_a_node_to_which_the_controller_sends_nobody_is_not_ready(world):
    assert world.look().missing == (), "nothing is known of the metadata"
    world.image.applied_offset = 7
    assert world.look().missing == ("the controller does not know this node",)
    for fenced in (True, False):
        world.image.brokers[1] = BrokerImage(
            broker_id=1, incarnation_id=b"i" * 16, epoch=1, endpoints=(), fenced=fenced
        )
        told = ("the controller has fenced this node",) if fenced else ()
        assert world.look().missing == told
