"""Clients over TLS when what serves them ends and is there again: they connect anew by themselves,
nothing that was acknowledged is lost, nothing comes twice."""

import os
import signal
import time

import pytest

from console.model.local.succession import restart
from tests.broker_process import KAFKA
from tests.console_process import rows, typing
from tests.faults.load import Load
from tests.tls.secured import LIMIT_S, Secured
from tests.tls.stock import librdkafka

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="an appliance is restarted, and its processes are killed"),
]


@pytest.fixture
def broker(tmp_path, pki):
    with Secured(tmp_path / "data", pki, ["SSL", "MUTUAL"]) as one:
        one.topic = one.peer.create(2, {}, "load")
        yield one


class Steady(Load):
    pause_s = 0.01


@pytest.fixture
def load(broker, pki):
    settings = librdkafka(pki, broker.at("MUTUAL"), certificate="client")
    with Steady(broker.at("MUTUAL"), broker.topic, 2, settings=settings) as running:
        yield running


def reckoned(load):
    load.go_on()
    load.finish()
    load.check_errors()
    load.check_content()


def netprocs(broker):
    """Pids of its network processes."""
    told = typing(broker.bootstrap)(
        "stats", "--processes", "--data", str(broker.data), "-o", "json"
    )
    return {one["pid"] for one in rows(told) if one["process"].startswith("netproc")}


def test_it_is_restarted_under_them(broker, load):
    for _ in range(2):
        load.go_on()
        restart(str(broker.data))
        load.go_on()
    reckoned(load)


def test_its_network_processes_are_killed(broker, load):
    for _ in range(2):
        load.go_on()
        before = netprocs(broker)
        assert before
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        load.go_on()
        end = time.monotonic() + LIMIT_S
        while not (netprocs(broker) and before.isdisjoint(netprocs(broker))):
            assert time.monotonic() < end, broker.output()[-2000:]
            time.sleep(0.01)
    reckoned(load)


def test_its_network_processes_are_renewed(broker, load):
    """`penstock debug restart`."""
    for _ in range(2):
        load.go_on()
        typing(broker.bootstrap)("debug", "restart", "--data", str(broker.data))
        load.go_on()
    reckoned(load)


def test_all_of_it_is_killed(broker, load):
    load.go_on()
    broker.kill()
    broker.start()
    load.go_on()
    reckoned(load)
