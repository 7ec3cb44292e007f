"""What a cluster of three says at one fixed moment, one node of which is away and one behind."""

from console.model.cluster.cluster_watch import ClusterSeen, Count, Disks, Pace
from console.model.cluster.nodes import BROKER, FENCED, RUNNING, VOTER, Node, Nodes, Quorum
from console.model.cluster.versions import Told
from console.model.topics.copies import Copy, Placed
from console.model.topics.moves import Move
from console.model.topics.partitions import Partition
from console.model.topics.replicas import BEHIND, Behind, Health, Missing

_ID = "u8dH3vKpQyW1nZc0sT7xBg"


def node(number, state=RUNNING, heard_s=0.2, behind=0, rack=None):
    seconds = 182.0 if behind else 0.0
    return Node(number, f"10.0.0.{number}:9092", rack, (BROKER, VOTER), state, heard_s, behind,
                seconds)  # fmt: skip


def alone():
    """A broker that is the only one."""
    one = Node(1, "127.0.0.1:9092", None, (BROKER, VOTER), RUNNING, 0.0, 0, 0.0)
    return ClusterSeen(Nodes(_ID, Quorum(1, 4, 1210, (1,), ()), {1: one}), False, (1,))


def cluster():
    """Node 3 is gone for three minutes, node 1 catches up in two partitions."""
    every = {
        1: node(1, rack="hall-a"), 2: node(2, rack="hall-b"),
        3: node(3, FENCED, 182.0, 96, rack="hall-c"),
    }  # fmt: skip
    behind = (
        Behind("orders", 0, 2, (1, 2, 3), (2,),
               (Missing(1, BEHIND, 120_400, 61_000_000), Missing(3, FENCED))),
        Behind("orders", 1, 2, (2, 3, 1), (2, 1), (Missing(3, FENCED),)),
        Behind("payments", 0, 2, (2, 1, 3), (2,),
               (Missing(1, BEHIND, 900, 450_000), Missing(3, FENCED))),
    )  # fmt: skip
    return ClusterSeen(
        Nodes(_ID, Quorum(2, 17, 4410, (1, 2, 3), ()), every), True, (1, 2, 3),
        Health(6, 3, 2, 0, 2, behind),
        {1: Count(2, 6, 3), 2: Count(4, 6), 3: Count(0, 5, 5)},
        {("orders", 0, 1): Pace(2400.0, 50.2), ("payments", 0, 1): Pace(-10.0, None)},
        (Move("returns", 0, (1, 2), (2,), (), 210_000_000, 310_000_000),
         Move("returns", 1, (1, 2), (2,), (1,), None, None)),
        {("returns", 0): Pace(24_000_000.0, 4.2)},
    )  # fmt: skip


def disks():
    return {
        1: Disks(7_400_000_000, 6 * 10**11, ()),
        2: Disks(7_420_000_000, 5 * 10**11, ()),
    }  # fmt: skip


def versions():
    """Node 2 is the last one of before, and about to be restarted."""
    return Told({1: "1.4.0", 2: "1.3.2.dev7+g0a1b2c3d"}, frozenset((2,)))


def placed():
    """Of the topic orders."""
    first = Partition("orders", 0, 2, (1, 2, 3), (2,), (1,), (3,))
    copies = (
        Copy(1, False, False, True, False, True, 89_880, 120, 4 * 10**8),
        Copy(2, True, True, False, False, True, 90_000, 0, 4 * 10**8 + 61_000),
        Copy(3, False, False, False, True, False, None, None, None),
    )
    return {0: Placed(first, copies)}
