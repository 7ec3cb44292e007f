"""A bank and copiers, by confluent-kafka, kafka-python and aiokafka: every transaction is there
whole or not at all, also when processes are killed."""

import os
import random
import signal

import pytest

from tests.broker_process import Broker
from tests.transactions.bank import Bank
from tests.transactions.copiers import PARTITIONS, Copiers, fill
from tests.transactions.writers import LIBRARIES

pytestmark = pytest.mark.timeout(280)
KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", 0))
"""At random, after one of each process and one of all of them."""
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("transactions") / "data") as running:
        yield running


class Load:
    """Both at once, on topics of their own."""

    def __init__(self, broker, word, records, libraries=LIBRARIES):
        make = broker.peer.create
        sinks = [make(PARTITIONS, {}, f"{word}-copy-{at}") for at, _ in enumerate(libraries)]
        source = make(PARTITIONS, {}, f"{word}-source")
        fill(broker.bootstrap, source, records)
        topic = make(Bank.partitions(libraries), {}, f"{word}-bank")
        self.bank = Bank(broker.bootstrap, topic, libraries)
        self.copiers = Copiers(broker.bootstrap, source, sinks, libraries)

    def __enter__(self):
        self.bank.__enter__()
        self.copiers.__enter__()
        return self

    def __exit__(self, *_):
        self.copiers.__exit__()
        self.bank.__exit__()

    def go_on(self):
        self.bank.go_on()
        self.copiers.go_on()

    def finish(self):
        """Everything ends, and everything is right."""
        self.bank.finish()
        self.copiers.finish()
        outcomes, copied = self.bank.check(), self.copiers.check()
        assert all(copied), copied
        return outcomes


def test_processes_are_killed(broker):
    """None, each one, then everything, then some of them at random."""
    chance = random.Random(SEED)
    with Load(broker, "killed", 2_000 * (KILLS + 8)) as load:
        load.go_on()
        assert load.bank.auditor.views
        assert not any(load.bank.told().values()), "undisturbed clients hear no error"
        for pid in broker.pids()[1:]:
            os.kill(pid, signal.SIGKILL)
            load.go_on()
        broker.kill()
        broker.start()
        load.go_on()
        for _ in range(KILLS):
            pids = broker.pids()[1:]
            for pid in chance.sample(pids, chance.randint(1, len(pids))) if pids else ():
                os.kill(pid, signal.SIGKILL)
            load.go_on()
        outcomes = load.finish()
        assert outcomes["committed"] and outcomes["aborted"], outcomes
