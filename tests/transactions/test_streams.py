"""Kafka Streams with exactly_once_v2: its JVMs and the broker's processes are killed, and each
order is in the sums once."""

import os
import random
import shutil
import signal

import pytest

from benchmarks import kafka
from tests.broker_process import Broker
from tests.transactions.streams import PARTITIONS, Sums

KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", 0))
"""At random, after one of all the broker's processes and one of a JVM."""
missing = kafka.unavailable(kafka.STREAMS) or (
    None if shutil.which("javac") else "a JDK is not installed"
)
pytestmark = [
    pytest.mark.skipif(bool(missing), reason=str(missing)),
    pytest.mark.timeout(180 + 20 * KILLS),
]
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
SETTINGS = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "data", SETTINGS) as running:
        yield running


def test_what_is_killed_leaves_no_trace_in_the_sums(broker, tmp_path):
    topics = [broker.peer.create(PARTITIONS, {}, word) for word in ("orders", "rows")]
    with Sums(broker.bootstrap, topics, "sums", tmp_path) as sums:
        sums.start()
        sums.go_on()
        broker.kill()
        broker.start()
        sums.go_on()
        sums.kill()
        sums.start()
        sums.go_on()
        at_random(broker, sums)
        sums.finish()
        sums.check()


def at_random(broker, sums):
    """Two JVMs; each time some of the broker's processes, or all, or a JVM, or of both."""
    chance = random.Random(SEED)
    if KILLS:
        sums.start()
    for _ in range(KILLS):
        if chance.random() < 0.5:
            sums.kill()
            sums.start()
        if chance.random() < 0.2:
            broker.kill()
            broker.start()
        else:
            pids = broker.pids()[1:]
            for pid in chance.sample(pids, chance.randint(0, len(pids))):
                os.kill(pid, signal.SIGKILL)
        sums.go_on()
