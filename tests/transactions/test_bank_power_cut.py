"""The power goes while a bank works: what was answered as committed is there whole, nothing of what
was aborted is seen, and every other transfer is there whole or not at all."""

import os
import sys
from pathlib import Path

import pytest

from tests.broker_process import KAFKA, Broker
from tests.transactions.bank import Bank
from tests.transactions.writers import Confluent, KafkaPython

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from loop_disk import LoopDisk

pytestmark = pytest.mark.timeout(200)
SETTINGS = {"log.flush.interval.messages": "1"} if KAFKA else {}
CUTS = int(os.environ.get("PENSTOCK_TEST_CUTS", 1))
TELLERS = (Confluent, Confluent, KafkaPython)


def test_power_cuts(tmp_path):
    with LoopDisk(tmp_path) as disk:
        broker = Broker(disk.mount / "data", SETTINGS)
        broker.log = tmp_path / "broker.out"
        try:
            broker.start()
            for turn in range(CUTS):
                topic = broker.peer.create(Bank.partitions(TELLERS), {}, f"bank-{turn}")
                with Bank(broker.bootstrap, topic, TELLERS) as bank:
                    bank.go_on(40 * (turn + 1))
                    before = bank.settled()
                    disk.cut()
                    broker.kill()
                    disk.back()
                    broker.start()
                    bank.go_on(20)
                    bank.finish()
                    bank.check(before)
        finally:
            if broker.process is not None and broker.process.poll() is None:
                broker.kill()
