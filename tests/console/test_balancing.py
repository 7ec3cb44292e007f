"""Even loads, decided without a broker."""

import random

import pytest

from console.model.topics.balancing import balance_of, balanced
from tests.console.test_placing import brokers, partition


def after(every, wanted):
    return [wanted.get(one.place, one.replicas) for one in every]


def loads(every, wanted, nodes):
    return balance_of(after(every, wanted), nodes)


def test_a_new_node_gets_its_part_of_replicas_and_leaders():
    nodes = brokers(n1="", n2="", n3="")
    every = [partition(1, 2, number=number) for number in range(9)]
    found = loads(every, balanced(every, nodes, only_leaders=False), nodes)
    assert found.replicas == {1: 6, 2: 6, 3: 6}
    assert found.leaders == {1: 3, 2: 3, 3: 3}


def test_leaders_alone_change_the_order_and_move_nothing():
    nodes = brokers(n1="", n2="", n3="")
    every = [partition(1, 2, 3, number=number) for number in range(6)]
    wanted = balanced(every, nodes, only_leaders=True)
    assert all({*to} == {1, 2, 3} for to in wanted.values())
    assert loads(every, wanted, nodes).leaders == {1: 2, 2: 2, 3: 2}


def test_leaders_go_along_chains_where_no_single_exchange_helps():
    """1 has nothing in common with 3: 2 takes one of 1 and gives one to 3."""
    nodes = brokers(n1="", n2="", n3="")
    pairs = [(1, 2), (1, 2), (1, 2), (2, 3), (2, 3)]
    every = [partition(*pair, number=number) for number, pair in enumerate(pairs)]
    found = loads(every, balanced(every, nodes, only_leaders=True), nodes)
    assert sorted(found.leaders.values()) == [1, 2, 2]


def test_no_replica_goes_into_a_rack_that_has_one_already():
    nodes = brokers(n1="a", n2="b", n3="a")
    every = [partition(1, 2, number=number) for number in range(4)]
    wanted = balanced(every, nodes, only_leaders=False)
    assert all(2 in to and len({*to} & {1, 3}) == 1 for to in after(every, wanted))
    assert loads(every, wanted, nodes).replicas == {1: 2, 2: 4, 3: 2}


def test_what_lies_on_a_node_that_is_down_stays_and_a_full_node_gets_nothing():
    nodes = brokers(n1="", n2="-", n3="", n4="")
    every = [partition(1, 2, number=number) for number in range(4)]
    every += [partition(1, number=number) for number in range(4, 10)]
    wanted = balanced(every, nodes, only_leaders=False, full=frozenset({4}))
    assert all(place[1] >= 4 for place in wanted)
    assert loads(every, wanted, nodes).replicas == {1: 5, 2: 4, 3: 5, 4: 0}


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_world_loads_end_even_and_replicas_whole(seed):
    chance = random.Random(seed)
    nodes = brokers(**{f"n{number}": "" for number in range(1, chance.randint(2, 7))})
    factor = chance.randint(1, len(nodes))
    every = [
        partition(*chance.sample(sorted(nodes), factor), number=number)
        for number in range(chance.randint(1, 60))
    ]
    wanted = balanced(every, nodes, only_leaders=False)
    for to in after(every, wanted):
        assert len(to) == len({*to}) == factor and {*to} <= nodes.keys()
    found = loads(every, wanted, nodes)
    assert max(found.replicas.values()) - min(found.replicas.values()) <= 1
    assert max(found.leaders.values()) - min(found.leaders.values()) <= 1
    again = [partition(*to, number=number) for number, to in enumerate(after(every, wanted))]
    assert not balanced(again, nodes, only_leaders=False), "what is even stays"
