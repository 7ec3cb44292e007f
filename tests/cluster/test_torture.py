"""Everything that can go wrong with three hosts, or five, goes wrong, one or two things at a time,
while stock clients write, read, commit and move money in transactions: nothing acknowledged is
lost, doubled, out of order or left out, nothing goes back, and at the end all replicas are the
same.

For a night, as root, with nftables, iproute2 and a C compiler, on a machine that does nothing else:

    PENSTOCK_TEST_FAULTS=500 python -m pytest -s -o session_timeout=0 tests/cluster/test_torture.py

Fresh nodes after each 20 faults, or PENSTOCK_TEST_PER=5; PENSTOCK_TEST_SEED for other stories,
PENSTOCK_TEST_KINDS='kill ioproc,cut off' for some kinds only, PENSTOCK_TEST_TLS=1 for nodes that
know one another by certificates alone. After each story it prints the table
of what each kind of fault has cost so far, as in docs/cluster.md.
"""

import contextlib
import os
import time
from random import Random

import pytest

from tests.broker_process import KAFKA
from tests.cluster import by_certificate, hands, hygiene, same, torture
from tests.cluster.cluster_load import PARTITIONS
from tests.cluster.watching import Marks, Pair, Watched
from tests.transactions.bank import Bank
from tests.transactions.writers import Confluent

FAULTS = int(os.environ.get("PENSTOCK_TEST_FAULTS", 0))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", 1))
PER = int(os.environ.get("PENSTOCK_TEST_PER", 20))
KINDS = os.environ.get("PENSTOCK_TEST_KINDS", "")
TLS = bool(os.environ.get("PENSTOCK_TEST_TLS"))
MUST = os.environ.get("PENSTOCK_TEST_TORTURE") == "must"
"""Whoever has made sure that it is possible here, as .ci/run does, hears of it when it is not."""
IN_CI = (
    "cut off", "clients cut off", "power of one", "disk full", "disk fails", "kill ioproc",
    "replaced", "guest", "clock",
)  # fmt: skip
"""Without what takes long by its nature: those that are stopped wait for the supervisor."""
BY_CERTIFICATE = (
    "cut off", "cut one way", "flapping", "losing packets", "kill netproc", "kill ioproc",
    "kill control", "kill node", "power of all",
)  # fmt: skip
"""Of them those that end connections."""
IN_CI_S = 4
TELLERS = (Confluent,)
TOPIC, BANK = "load", "bank"
INTERNAL = {
    name: int(hands.SETTINGS[setting])
    for name, setting in (
        (hands.OFFSETS, "offsets.topic.num.partitions"),
        ("__transaction_state", "transaction.state.log.num.partitions"),
    )
}
TOPICS = {TOPIC: PARTITIONS, BANK: Bank.partitions(TELLERS), **INTERNAL}
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(KAFKA, reason="how a node's processes die is ours"),
]


class Stage:
    """Nodes with faults at hand, and clients that work all the time."""

    def __init__(self, hands_, load, pair, bank, marks, kept_in):
        """kept_in: a folder for what is looked at afterwards."""
        self.hands, self.load, self.pair, self.bank, self.marks = hands_, load, pair, bank, marks
        self.kept_in = kept_in
        self.kept = self._kept()

    def _kept(self):
        nodes = self.hands.nodes
        return {number: hygiene.kept(nodes[number]) for number in nodes.members}

    def step(self, faults):
        """Let them happen and end, and the clients go on. Returns the Cost."""
        victims = [self.hands.victim(one.who, TOPIC) for one in faults]
        load = os.getloadavg()[0]
        self.load.watch()
        try:
            for one, victim in zip(faults, victims, strict=True):
                print(
                    f"  {one.kind} of {victim}, {one.who}, {one.seconds} s, {one.size}", flush=True
                )
                self.hands.begin(one, victim)
            time.sleep(max(one.seconds for one in faults))  # how long it lasts is the fault itself
        finally:
            ended = time.monotonic()
            self.hands.end()
        self.wait_whole()
        healed = time.monotonic() - ended
        self.load.go_on(self.load.at_most + 100)
        self.bank.go_on(2)
        self.pair.go_on()
        self.load.check_order()
        self.marks.check()
        load = max(load, os.getloadavg()[0])
        cost = torture.Cost(self.load.produced, self.load.read, healed, load)
        assert cost.in_time, (
            f"all in sync {healed:.1f} s after the end of {faults}, and it may be"
            f" {torture.WHOLE_S} s while the load is {torture.BUSY} at most: it was {load}"
        )
        return cost

    def wait_whole(self):
        """All replicas of all topics are in sync. Where that does not come about, what was decided
        of them stays behind."""
        nodes = self.hands.nodes
        try:
            nodes.wait(lambda: all(nodes.whole(*one) for one in TOPICS.items()), "all are in sync")
        except AssertionError:
            same.keep_metadata(nodes, self.kept_in)
            raise

    def ends(self):
        """Everything is right."""
        nodes = self.hands.nodes
        self.load.finish_level()
        self.pair.finish()
        self.bank.finish()
        self.bank.check()
        self.marks.check()
        assert self.marks.asked, "nobody was asked for an end"
        same.compare(nodes, TOPICS)
        same.compare_metadata(nodes)
        self.clean()

    def clean(self):
        """What the nodes keep is what they kept before."""
        said = {}

        def nothing():
            said.clear()
            said.update({at: now.wrong(self.kept[at]) for at, now in self._kept().items()})
            return not any(said.values())

        with contextlib.suppress(AssertionError):
            self.hands.nodes.wait(nothing, "they give back what they took", hygiene.LIMIT_S)
        assert not any(said.values()), said
        for number, now in self._kept().items():
            print(f"  node {number} kept {self.kept[number]}, keeps {now}", flush=True)


@contextlib.contextmanager
def or_say_so():
    """Skip where there can be no such hosts or disks, but where there must be."""
    try:
        if reason := hands.unavailable():
            pytest.skip(reason)
        yield
    except pytest.skip.Exception as why:
        if MUST:
            pytest.fail(f"PENSTOCK_TEST_TORTURE=must, and {why}")
        raise


@contextlib.contextmanager
def stage(folder, rng, shape, secrets=None):
    """secrets: nodes know one another by these certificates, and so they do those who write and
    read the load."""
    secure = secrets and secrets.secure
    with or_say_so(), hands.Hands(folder, rng, shape, secure) as made:
        nodes, shared = made.nodes, Bank.partitions(TELLERS)
        nodes.create(TOPIC, PARTITIONS)
        nodes.create(BANK, shared)
        bank = Bank(nodes.bootstrap, BANK, TELLERS)
        how = (by_certificate.outside(nodes), secrets.of_client()) if secrets else ()
        with Watched(nodes, TOPIC, *how) as load, bank:
            pair = Pair(nodes.bootstrap, load, hands.GROUP)
            with pair, Marks(nodes.bootstrap, {TOPIC: PARTITIONS, BANK: shared}) as marks:
                load.go_on()
                bank.go_on(2)
                pair.go_on()
                yield Stage(made, load, pair, bank, marks, folder / "decided")


@pytest.fixture(scope="module")
def told():
    """Of all stories so far."""
    return []


def play(folder, seed, count, kinds, told, most_s=float("inf"), secrets=None):
    """The story of this seed: (step, Cost) of each into `told`. most_s: that a fault may last."""
    rng, shape = Random(seed), torture.shape(seed)
    with stage(folder, rng, shape, secrets) as on:
        for number, faults in enumerate(torture.story(rng, count, shape.kinds(kinds))):
            print(f"{seed}.{number}, {shape}", flush=True)
            faults = tuple(one._replace(seconds=min(one.seconds, most_s)) for one in faults)
            told.append((faults, on.step(faults)))
            print(f"  {told[-1][1]}", flush=True)
        on.ends()
        if secrets:
            by_certificate.check_doors(on.hands.nodes)


@pytest.mark.skipif(bool(FAULTS), reason="the night has begun")
def test_a_short_story(tmp_path):
    told = []
    play(tmp_path, 1, len(IN_CI), IN_CI, told, IN_CI_S)
    print(torture.table(told))


@pytest.mark.skipif(bool(FAULTS), reason="the night has begun")
def test_a_short_story_of_nodes_with_certificates(tmp_path):
    """Kills and cuts under mutual TLS: what is lost there is a handshake in the middle, too."""
    told, secrets = [], by_certificate.Secrets(tmp_path / "secrets")
    play(tmp_path, 2, len(BY_CERTIFICATE), BY_CERTIFICATE, told, IN_CI_S, secrets)
    print(torture.table(told))


@pytest.mark.skipif(not FAULTS, reason="for a night: PENSTOCK_TEST_FAULTS=500")
@pytest.mark.timeout(120 * PER)
@pytest.mark.parametrize("seed", range(SEED, SEED + -(-FAULTS // PER)))
def test_everything_goes_wrong(tmp_path, told, seed):
    kinds = tuple(KINDS.split(",")) if KINDS else tuple(torture.KINDS)
    secrets = by_certificate.Secrets(tmp_path / "secrets") if TLS else None
    try:
        play(tmp_path, seed, PER, kinds, told, secrets=secrets)
    finally:
        print(torture.table(told), flush=True)
