"""`penstock console` over three nodes: what it shows of them, what it moves, and that it goes on
when the node that it was told of dies."""

import pytest

from tests.cluster.nodes import Nodes
from tests.console.seat import LARGE, sit
from tests.console_process import typing

TOPIC = "orders"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with Nodes(tmp_path_factory.mktemp("console")) as nodes:
        nodes.create(TOPIC, assignment=[[1, 2, 3], [2, 3, 1]])
        nodes.create("small", assignment=[[1]])
        nodes.wait(lambda: nodes.whole(TOPIC, 2), "all are in sync")
        yield nodes


def address(nodes, number):
    return f"127.0.0.1:{nodes[number].port}"


def test_a_topic_gets_more_replicas_through_the_door(nodes):
    typing(nodes.bootstrap)("produce", "small", stdin="".join(f"{n}\n" for n in range(200)))

    async def act(seat):
        await seat.press("9")
        await seat.sees("3 voters", "broker, leader", "all in sync", "every replica is in sync")
        assert all(address(nodes, number) in seat.text() for number in (1, 2, 3))
        await seat.press(":")
        await seat.type("topic small")
        await seat.press("enter")
        await seat.sees("leads", "200")
        await seat.press("N")
        await seat.form()
        await seat.type("3")
        await seat.press("enter")
        await seat.plan()
        await seat.sees("small:0", "BEFORE", "AFTER", "topic replicas set small 3")
        await seat.press("tab", "enter")
        await seat.back()
        await seat.until(lambda: nodes.partition("small").isr == [1, 2, 3], "all three have it")
        await seat.sees("1,2,3")

    sit(address(nodes, 1), act, size=LARGE)


def test_it_goes_on_with_another_node_and_says_what_is_missing(nodes):
    async def act(seat):
        world = seat.app.world
        await seat.press("9")
        await seat.sees("every replica is in sync")
        nodes.kill(1)
        await seat.sees("fenced", "1 away: no more may fail", "under-replicated")
        await seat.until(lambda: world.nodes.shown.failure is None, "it is answered")
        await seat.press("2")
        await seat.sees("node 1 missing", "under-replicated", TOPIC)
        await seat.press("1")
        await seat.sees("node 1 missing")
        nodes.start(1)
        await seat.press("9")
        await seat.sees("every replica is in sync")
        await seat.until(lambda: world.nodes.shown.value.counts[1].left > 0, "it had left the ISR")

    sit(address(nodes, 1), act, size=LARGE)
