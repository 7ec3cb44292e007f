"""Everything that can go wrong with three hosts goes wrong, one or two at a time, while stock
clients write, read and move money in transactions: nothing acknowledged is lost, doubled or out of
order, and at the end all replicas are the same.

For a night, as root, with nftables and a C compiler: PENSTOCK_TEST_FAULTS=500, on fresh nodes after
each 20; PENSTOCK_TEST_SEED for other stories, PENSTOCK_TEST_KINDS='kill ioproc,cut off' for some
kinds only, PENSTOCK_TEST_PER=5 for shorter stories. It ends with a table of what each fault cost:
median and worst.
"""

import contextlib
import os
import time
from random import Random

import pytest

from tests.broker_process import KAFKA
from tests.cluster import hands, torture
from tests.cluster.test_nodes_die import PARTITIONS, ClusterLoad, ends
from tests.transactions.bank import Bank
from tests.transactions.writers import Confluent

FAULTS = int(os.environ.get("PENSTOCK_TEST_FAULTS", 0))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
PER = int(os.environ.get("PENSTOCK_TEST_PER", 20))
KINDS = os.environ.get("PENSTOCK_TEST_KINDS", "")
IN_CI = ("kill ioproc", "clock")
TELLERS = (Confluent,)
TOPIC, BANK = "load", "bank"
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(KAFKA, reason="how a node's processes die is ours"),
]


class Watched(ClusterLoad):
    """Slow enough that what waits waits for the cluster. `costs` since `watch`."""

    at_most = 500
    pause_s = 0.02

    def __init__(self, nodes, topic):
        super().__init__(nodes, topic)
        self.watch()

    def watch(self):
        now = time.monotonic()
        self.produced = self.read = 0.0
        self.last = dict.fromkeys(range(self.partitions), now)

    def _delivered(self, error, message):
        super()._delivered(error, message)
        self.produced = max(self.produced, message.latency() or 0.0)

    def _took(self, message):
        super()._took(message)
        now, at = time.monotonic(), message.partition()
        self.read = max(self.read, now - self.last[at])
        self.last[at] = now


class Stage:
    """Nodes with faults at hand, and clients that work all the time."""

    def __init__(self, hands_, load, bank):
        self.hands, self.load, self.bank = hands_, load, bank

    def step(self, faults):
        """Let them happen and end, and the clients go on. Returns the Cost."""
        victims = [self.hands.victim(one.who, TOPIC) for one in faults]
        self.load.watch()
        for one, victim in zip(faults, victims, strict=True):
            print(f"  {one.kind} of {victim}, {one.who}, {one.seconds} s, {one.size}", flush=True)
            self.hands.begin(one, victim)
        time.sleep(max(one.seconds for one in faults))  # how long it lasts is the fault itself
        self.hands.end()
        ended = time.monotonic()
        self.load.wait_served()
        healed = time.monotonic() - ended
        self.load.go_on(self.load.at_most + 100)
        self.bank.go_on(2)
        return torture.Cost(self.load.produced, self.load.read, healed)

    def ends(self):
        """Everything is right."""
        nodes = self.hands.nodes
        ends(nodes, self.load)
        self.bank.finish()
        self.bank.check()
        nodes.wait(lambda: nodes.level(BANK, Bank.partitions(TELLERS)), "the bank is level")
        nodes.compare_replicas(BANK, Bank.partitions(TELLERS))


@contextlib.contextmanager
def stage(folder, rng):
    if reason := hands.unavailable():
        pytest.skip(reason)
    with hands.Hands(folder, rng) as made:
        made.nodes.create(TOPIC, PARTITIONS)
        made.nodes.create(BANK, Bank.partitions(TELLERS))
        bank = Bank(made.nodes.bootstrap, BANK, TELLERS)
        with Watched(made.nodes, TOPIC) as load, bank:
            load.go_on()
            bank.go_on(2)
            yield Stage(made, load, bank)


@pytest.fixture(scope="module")
def told():
    """Of all stories so far."""
    return []


def play(folder, seed, count, kinds=tuple(torture.KINDS)):
    """The story of this seed: (step, Cost) of each."""
    rng = Random(seed)
    told = []
    with stage(folder, rng) as on:
        for number, faults in enumerate(torture.story(rng, count, kinds)):
            print(f"{seed}.{number}", flush=True)
            told.append((faults, on.step(faults)))
            print(f"  {told[-1][1]}", flush=True)
        on.ends()
    return told


@pytest.mark.skipif(bool(FAULTS), reason="the night has begun")
def test_a_short_story(tmp_path):
    play(tmp_path, 1, len(IN_CI), IN_CI)


@pytest.mark.skipif(not FAULTS, reason="for a night: PENSTOCK_TEST_FAULTS=500")
@pytest.mark.timeout(120 * PER)
@pytest.mark.parametrize("seed", range(SEED, SEED + -(-FAULTS // PER)))
def test_everything_goes_wrong(tmp_path, told, seed):
    kinds = tuple(KINDS.split(",")) if KINDS else tuple(torture.KINDS)
    told += play(tmp_path, seed, PER, kinds)
    print(torture.table(told), flush=True)
