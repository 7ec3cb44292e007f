"""Which nodes get replicas, decided without a broker."""

import pytest

from console.model.asking.failure import Failure
from console.model.cluster.nodes import FENCED, RUNNING, Node
from console.model.topics import placing
from console.model.topics.partitions import Partition


def brokers(**racks):
    """n1="a": node 1 in rack a; "-" in front: it is fenced."""
    return {
        int(name[1:]): Node(
            int(name[1:]), f"h:{name}", rack.lstrip("-") or None, ("broker",),
            FENCED if rack.startswith("-") else RUNNING, 0, 0, 0,
        )
        for name, rack in racks.items()
    }  # fmt: skip


def partition(*replicas, number=0, isr=None):
    return Partition("t", number, replicas[0], replicas, replicas if isr is None else isr, (), ())


def resized(found, factor, nodes):
    return placing.resized([found], factor, nodes, placing.load_of([found])).get(("t", 0))


ALL = {"n1": "a", "n2": "a", "n3": "b", "n4": "b", "n5": "c"}


@pytest.mark.parametrize(
    ("replicas", "factor", "wanted"),
    [
        ((1,), 1, None),
        ((1,), 2, (1, 3)),
        ((1,), 3, (1, 3, 5)),
        ((1, 2), 3, (1, 2, 3)),
        ((1, 2), 5, (1, 2, 3, 5, 4)),
        ((1, 2, 3), 2, (1, 3)),
        ((2, 1, 3), 2, (2, 3)),
        ((4, 1, 5), 1, (4,)),
    ],
)
def test_racks_are_kept_apart_and_who_leads_stays(replicas, factor, wanted):
    assert resized(partition(*replicas), factor, brokers(**ALL)) == wanted


def test_who_has_least_gets_more():
    nodes = brokers(n1="", n2="", n3="")
    many = [partition(1, number=number) for number in range(6)]
    found = placing.resized(many, 2, nodes, placing.load_of([*many, partition(2)]))
    assert [to[1] for to in found.values()] == [3, 2, 3, 2, 3, 2]


def test_who_led_all_leads_a_part_of_what_grew():
    nodes = brokers(n1="", n2="", n3="")
    every = [*(partition(1, number=number) for number in range(5)), partition(2, 1, 3, number=9)]
    grown = placing.resized(every, 3, nodes, placing.load_of(every))
    found = placing.spread(grown, every)
    assert [set(to) for to in found.values()] == [{1, 2, 3}] * 5 and found.keys() == grown.keys()
    assert sorted(to[0] for to in found.values()) == [1, 1, 2, 3, 3], "2 led one"


def test_who_is_dead_gets_nothing_and_goes_first():
    nodes = brokers(n1="-a", n2="a", n3="-b", n4="a")
    assert resized(partition(2), 2, nodes) == (2, 4)
    assert resized(partition(1, 2, 4, isr=(2, 4)), 2, nodes) == (2, 4), "although it was to lead"
    assert resized(partition(2, 9, 4, isr=(2, 4)), 2, nodes) == (2, 4), "nor who is not there"
    assert resized(partition(2, 4, 3), 1, nodes) == (2,)


def test_who_is_not_in_sync_goes_before_who_is():
    nodes = brokers(n1="", n2="", n3="")
    assert resized(partition(1, 2, 3, isr=(2, 3)), 2, nodes) == (2, 3)
    assert resized(partition(1, 2, 3, isr=(1, 3)), 2, nodes) == (1, 3)


def test_too_few_nodes_are_told():
    with pytest.raises(Failure, match="3 replicas wanted, only nodes 1, 2 can hold one"):
        resized(partition(1), 3, brokers(n1="", n2="", n3="-"))


def without(found, node, nodes, fewer=False):
    return placing.without(found, node, nodes, placing.load_of(found), fewer=fewer)


def test_a_node_that_goes_is_replaced_by_others():
    nodes = brokers(n1="a", n2="b", n3="c", n4="c")
    found = [partition(3, 1, 2), partition(1, 2, number=1), partition(1, 3, number=2)]
    assert without(found, 3, nodes) == {("t", 0): (4, 1, 2), ("t", 2): (1, 4)}, "who has least"


def test_a_node_that_nobody_can_replace():
    nodes = brokers(n1="", n2="")
    found = [partition(1, 2), partition(2, number=1)]
    with pytest.raises(Failure, match="topic t, partition 0: 2 replicas wanted"):
        without(found, 2, nodes)
    assert without(found, 2, nodes, fewer=True) == {("t", 0): (1,), ("t", 1): (1,)}
    with pytest.raises(Failure, match="no node can hold one"):
        without([partition(2)], 2, brokers(n2=""), fewer=True)
