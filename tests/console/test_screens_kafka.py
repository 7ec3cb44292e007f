"""The console over Apache Kafka: what any Kafka can answer is shown, and a sentence says what it
cannot. Skipped without its jars."""

import re

import pytest

from benchmarks import kafka
from console.model import groups
from console.model.link import Link
from console.screens.places import Place
from tests.console.seat import LARGE, SMALL, sit
from tests.console_process import typing


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    with kafka.Kafka(tmp_path_factory.mktemp("kafka") / "data", heap="512m") as running:
        run = typing(running.bootstrap)
        run("topic", "create", "far", "-p", "2")
        run("produce", "far", "-p", "1", stdin="".join(f"{n}\n" for n in range(50)))
        run("consume", "far", "-g", "far.readers", "-n", "20")
        yield running


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_apache_kafka_is_shown_with_what_it_can_answer(node, size):
    async def act(seat):
        await seat.sees("Nothing needs attention", "1 broker", "no appliance of this host")
        await seat.sees("BROKER", node.bootstrap, "controller", "Disk")
        assert "PROCESS" not in seat.text()
        await seat.press("2")
        await seat.sees("far", "sizes and rates are known")
        await seat.press("enter")
        await seat.sees("retention policy to use on log segments", "cleanup.policy")
        await seat.until(lambda: re.search(r" 1 +0 +50 +50 +1", seat.text()), "its offsets")
        assert "<a href" not in seat.text()
        await seat.press("3", "enter")
        await seat.sees("far.readers", "lag 30")

    sit(node.bootstrap, act, size=size)


def test_what_is_not_the_consumers_is_shown_by_its_type(node):
    """A share group, made by what its members would send first."""
    link = Link(node.bootstrap, {}, 20.0)
    _share(link, "far.shared")
    (found,) = groups.listed(link, ("far.shared",))
    assert (found.kind, found.is_told) == ("share", False)

    async def act(seat):
        await seat.sees("far.shared  ", "share protocol", "a share group")
        await seat.press("3")
        await seat.until(lambda: " share " in seat.line("far.shared"), "its type")

    sit(node.bootstrap, act, size=LARGE, first=Place("group", "far.shared"))


def _share(link, name):
    from console.model.plain_request import ask

    asked = {
        "group_id": name, "member_id": "B7hyUd2qTIuUh2vzDpUcFA", "member_epoch": 0,
        "rack_id": None, "subscribed_topic_names": ["far"],
    }  # fmt: skip
    told = ask(link, 76, 1, asked)
    assert int(told.error_code) == 0, told
