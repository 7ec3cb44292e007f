"""The console over Apache Kafka: what any Kafka can answer is shown, and a sentence says what it
cannot. Skipped without its jars."""

import re

import pytest

from benchmarks import kafka
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
