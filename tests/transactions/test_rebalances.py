"""Consume, transform, produce in groups whose members subscribe: they come and go, are overtaken by
others in the middle of a transaction, and the broker's processes die."""

import os
import random
import signal
from contextlib import ExitStack

import pytest

from tests.broker_process import Broker
from tests.transactions.clerks import LIBRARIES, PARTITIONS, SIDES, Office, Orders

KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", 0))
"""At random, after one of all processes."""
pytestmark = pytest.mark.timeout(180 + 20 * KILLS)
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
SETTINGS = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "data", SETTINGS) as running:
        yield running


@pytest.fixture
def offices(broker):
    make = broker.peer.create
    orders = make(PARTITIONS, {}, "orders")
    with ExitStack() as stack:
        stack.enter_context(Orders(broker.bootstrap, orders))
        yield [
            stack.enter_context(
                Office(broker.bootstrap, orders, make(SIDES, {}, f"ledger-{at}"), libraries)
            )
            for at, libraries in enumerate(LIBRARIES)
        ]


def go_on(offices):
    for one in offices:
        one.go_on()


def test_members_come_and_go(broker, offices):
    go_on(offices)
    overtaken = [one.clerks[0] for one in offices]
    for clerk in overtaken:
        clerk.stalls.set()
    for clerk in overtaken:
        clerk.is_refused()
    broker.kill()
    broker.start()
    go_on(offices)
    for one in offices:
        one.clerks[1].leaves.set()
    go_on(offices)
    at_random(broker, offices)
    for one in offices:
        one.finish()
    booked = [one.check() for one in offices]
    assert all(booked), booked


def at_random(broker, offices):
    chance = random.Random(SEED)
    for _ in range(KILLS):
        for clerk in (clerk for one in offices for clerk in one.clerks):
            if chance.random() < 0.2:
                chance.choice([clerk.stalls, clerk.leaves]).set()
        pids = broker.pids()[1:]
        for pid in chance.sample(pids, chance.randint(0, len(pids))):
            os.kill(pid, signal.SIGKILL)
        if chance.random() < 0.2:
            broker.kill()
            broker.start()
        go_on(offices)
