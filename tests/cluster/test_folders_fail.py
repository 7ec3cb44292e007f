"""A disk of one node fails, is full, or loses its power while stock clients write and read: others
lead, nothing acknowledged is lost, and the node is level again when its disk is.

The nodes' folders are on this machine's disk, but for those that a test puts elsewhere. Needs root.
"""

import os
from contextlib import ExitStack

import pytest

from appliance.base.reserve import RESERVE
from tests.broker_process import KAFKA
from tests.cluster.cluster_load import ClusterLoad
from tests.cluster.nodes import CREATE_TOPICS, Nodes
from tests.faults.loop_disk import LoopDisk
from tests.faults.small_disk import SmallDisk

NIGHT = bool(os.environ.get("PENSTOCK_TEST_FOLDERS"))
at_night = pytest.mark.skipif(not NIGHT, reason="for a night: PENSTOCK_TEST_FOLDERS=1")
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="how a node's folders fail is ours"),
]
SETTINGS = {"offsets.topic.num.partitions": "1", "penstock.io.processes": "2"}
SMALL = SETTINGS | {"penstock.disk.free.min.bytes": str(4 << 20)}
VICTIM = 3
ALL = (1, 2, 3)


def cluster(folder, second=None):
    """Three nodes; `second` is one more log folder of the last one."""
    nodes = Nodes(folder, settings=SETTINGS)
    if second is not None:
        victim = nodes[VICTIM]
        victim.settings = SETTINGS | {"log.dirs": f"{victim.data},{second}"}
    return nodes


def led_elsewhere(nodes, topic):
    found = nodes.partitions(topic, 1).values()
    return all(one.leader in (1, 2) and VICTIM not in one.isr for one in found)


ORDER = [[VICTIM, 1, 2], [VICTIM, 2, 1], [1, VICTIM, 2]]


def test_a_folder_that_fails_is_led_elsewhere_until_the_next_start(tmp_path):
    with LoopDisk(tmp_path) as disk, cluster(tmp_path, disk.mount / "logs") as nodes:
        nodes.create("load", assignment=ORDER)
        with ClusterLoad(nodes, "load") as load:
            load.go_on()
            there = [path.name for path in (disk.mount / "logs").glob("load-*")]
            assert there, "some of it is in that folder"
            disk.cut()  # every write fails from now on
            nodes.wait(lambda: "log-dir-failed" in nodes[VICTIM].output(), "the folder has failed")

            def gone():
                found = nodes.partitions("load", 1)
                return all(VICTIM not in found[int(name[5:])].isr for name in there)

            nodes.wait(gone, "its partitions are led elsewhere")
            load.go_on()
            assert nodes[VICTIM].runs
            nodes.stop(VICTIM)
            disk.back()
            nodes.start(VICTIM)
            load.wait_served()
            load.finish_level()
        nodes.stop(VICTIM)


@at_night
def test_a_node_without_its_metadata_folder_ends_and_others_lead(tmp_path):
    with LoopDisk(tmp_path) as disk:
        nodes = cluster(tmp_path)
        victim = nodes[VICTIM]
        victim.data = disk.mount / "data"
        with nodes:
            nodes.create("load", assignment=ORDER)
            with ClusterLoad(nodes, "load") as load:
                load.go_on()
                disk.cut()
                nodes.wait(lambda: led_elsewhere(nodes, "load"), "others lead")
                load.go_on()
                nodes.wait(lambda: not victim.runs, "it has ended")
                disk.back()
                nodes.start(VICTIM)
                load.wait_served()
                load.finish_level()
            nodes.stop(VICTIM)


@at_night
def test_a_full_folder_is_led_elsewhere_until_there_is_room(tmp_path):
    with SmallDisk(tmp_path / "disk", "tmpfs") as disk:
        nodes = cluster(tmp_path)
        victim = nodes[VICTIM]
        victim.settings = SMALL
        victim.data = disk.mount / "data"
        with nodes:
            nodes.create("load", assignment=ORDER)
            with ClusterLoad(nodes, "load") as load:
                load.go_on()
                disk.fill()
                nodes.wait(lambda: led_elsewhere(nodes, "load"), "others lead")
                load.go_on()
                disk.make_room()
                load.wait_served()
                load.finish_level()
            assert victim.runs
            nodes.stop(VICTIM)


@at_night
def test_a_controller_whose_disk_is_full_makes_way(tmp_path):
    """With nothing left of its reserve, as another program leaves it."""
    with ExitStack() as stack:
        disks = {n: stack.enter_context(SmallDisk(tmp_path / f"disk-{n}", "tmpfs")) for n in ALL}
        nodes = cluster(tmp_path)
        for number, disk in disks.items():
            nodes[number].data = disk.mount / "data"
            nodes[number].settings = SMALL
        with nodes:
            nodes.create("before")
            full = nodes.quorum_leader()
            disk, reserve = disks[full], nodes[full].data / RESERVE
            disk.fill()
            reserve.unlink(missing_ok=True)
            disk.fill()
            other = next(number for number in ALL if number != full)
            nodes.wait(lambda: nodes.quorum_leader(other) not in (full, -1), "another leads")
            topic = {"name": "during", "num_partitions": 1, "replication_factor": 2}
            topic |= {"assignments": [], "configs": []}
            nodes.ask(CREATE_TOPICS, 5, {"timeout": 10_000, "topics": [topic]}, other)
            nodes.wait(lambda: nodes.partition("during", number=other).leader >= 0, "it decides")
            assert nodes[full].runs
            disk.make_room()
            nodes.create("after")
            nodes.wait(lambda: nodes.whole("during") and nodes.whole("after"), "all are back")
            for number in ALL:
                nodes.stop(number)


@at_night
@pytest.mark.parametrize("kind", ["one", "all"])
def test_nothing_acknowledged_is_lost_with_the_power(tmp_path, kind):
    """Of one node, with min.insync.replicas=2; of all of them where each sync counts
    (flush.policy=group)."""
    (tmp_path / "disks").mkdir()
    with LoopDisk(tmp_path / "disks") as disk:
        nodes = cluster(tmp_path)
        numbers = [VICTIM] if kind == "one" else list(nodes.all)
        for number in numbers:
            nodes[number].data = disk.mount / f"data-{number}"
        with nodes:
            configs = {"flush.policy": "group"} if kind == "all" else None
            nodes.create("load", assignment=ORDER, configs=configs)
            with ClusterLoad(nodes, "load") as load:
                load.go_on(1000)
                before = load.settled()
                disk.cut()
                for number in numbers:
                    nodes.kill(number)
                if kind == "all":
                    load.give_up()
                else:
                    load.go_on(1000)
                disk.back()
                nodes.start(*numbers)
                load.wait_served()
                if kind == "all":
                    load.check_content(before)
                else:
                    load.finish_level()
            for number in numbers:
                nodes.stop(number)
