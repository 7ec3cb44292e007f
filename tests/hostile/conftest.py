"""One live broker for all hostile tests, and what must hold after every one of them.

After each test: no process has died (pids unchanged), memory has stayed below a bound, and a new
connection is served. PENSTOCK_TEST_BROKER=kafka runs the same against Apache Kafka.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.broker_process import KAFKA, Broker, answers

GROWTH_BYTES = 200 << 20
KAFKA_BYTES = 1100 << 20  # its heap of 512 MB, its code and its direct buffers


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("hostile") / "data") as running:
        running.peer.create(1, {}, "target")
        running.peer.create(1, {}, "tailed")
        running.peer.create(1, {"cleanup.policy": "compact"}, "compacted")
        running.peer.create(1, {"message.timestamp.type": "LogAppendTime"}, "stamped")
        running.limit = KAFKA_BYTES if KAFKA else running.memory() + GROWTH_BYTES
        yield running


@pytest.fixture(scope="session")
def port(broker):
    return broker.port


@pytest.fixture(autouse=True)
def unharmed(broker):
    """What must be as it was, whatever the test did."""
    before = broker.pids()
    yield
    assert answers(broker.port), broker.output()[-3000:]
    assert broker.pids() == before, f"a process died:\n{broker.output()[-3000:]}"
    used = broker.memory()
    assert used < broker.limit, f"{used >> 20} MB, allowed are {broker.limit >> 20}"
