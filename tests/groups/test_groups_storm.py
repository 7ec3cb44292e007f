"""Fifty members that come, leave and crash while records are written, in either protocol; and the
coordinator killed meanwhile. What must hold is asserted by `benchmarks.members.Ledger`."""

import random

import confluent_kafka as ck
import pytest
from group_members import fill
from test_groups_killed import kill

from benchmarks.commits import ready
from benchmarks.members import Crowd
from benchmarks.peer import Peer
from benchmarks.protocols import ClassicMember, ConsumerMember

pytestmark = pytest.mark.timeout(240)
PARTITIONS = 64
MEMBERS = 50
SESSION_S = 6
KINDS = pytest.mark.parametrize("kind", [ClassicMember, ConsumerMember])


@pytest.fixture
def one(fresh_appliance):
    return fresh_appliance(
        penstock_io_processes=1, penstock_net_processes=1,
        group_consumer_session_timeout_ms=SESSION_S * 1000,
    )  # fmt: skip


class Writer:
    """Writes a record into each partition at a call; `crowd` may read what is acknowledged."""

    def __init__(self, bootstrap, crowd):
        self.crowd = crowd
        self.client = ck.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})

    def write(self):
        for partition in range(self.crowd.partitions):
            self.client.produce(
                self.crowd.topic, b"x", partition=partition, on_delivery=self._acknowledged
            )
        self.client.poll(0)

    def _acknowledged(self, error, message):
        assert error is None
        end = self.crowd.ledger.end
        end[message.partition()] = max(message.offset() + 1, end.get(message.partition(), 0))


@pytest.fixture
def crowd(one, group):
    made = []

    def make(kind):
        host, _, port = one.bootstrap.rpartition(":")
        peer = Peer("penstock", (host, int(port)), None)
        fill(one.bootstrap, "t", PARTITIONS, 1)
        ready(peer, group)
        made.append(Crowd(peer.address, group, "t", PARTITIONS, kind, SESSION_S))
        made[-1].ledger.end = dict.fromkeys(range(PARTITIONS), 1)
        return made[-1]

    yield make
    for each in made:
        each.close()


def all_read(crowd, writer):
    """Everything that was written is committed, and the coordinator says the same."""
    assert writer.client.flush(30) == 0
    ledger = crowd.ledger
    crowd.until(lambda: crowd.settled() and ledger.acknowledged == ledger.end, 60)


@KINDS
def test_fifty_members_come_leave_and_crash_while_records_are_written(one, crowd, kind):
    crowd, dice = crowd(kind), random.Random(4)
    writer = Writer(one.bootstrap, crowd)
    crowd.add(MEMBERS)
    crowd.until(crowd.settled, each=writer.write)
    for _ in range(8):
        for member in dice.sample([m for m in crowd.members if not m.leaving], 6):
            if dice.random() < 0.3:
                member.crash()
            else:
                member.leaving = True
        crowd.add(6)
        turns = iter(range(dice.randrange(3, 40)))
        crowd.until(lambda turns=turns: next(turns, None) is None, each=writer.write)
    all_read(crowd, writer)
    assert len(crowd.members) == MEMBERS


@KINDS
def test_the_coordinator_dies_while_fifty_members_rebalance(one, crowd, kind):
    crowd, dice = crowd(kind), random.Random(5)
    writer = Writer(one.bootstrap, crowd)
    crowd.add(MEMBERS - 5)
    crowd.until(crowd.settled, each=writer.write)
    for _ in range(2):
        for member in dice.sample([m for m in crowd.members if not m.leaving], 5):
            member.leaving = True
        crowd.add(10)
        turns = iter(range(dice.randrange(3, 20)))
        crowd.until(lambda turns=turns: next(turns, None) is None, each=writer.write)
        kill(one, "ioproc")
        crowd.until(crowd.settled, each=writer.write)
    all_read(crowd, writer)


def test_members_of_both_protocols_come_and_go_in_one_group(one, crowd):
    """The group changes over to the new protocol while it works, and back again."""
    crowd, dice = crowd(ClassicMember), random.Random(6)
    writer = Writer(one.bootstrap, crowd)
    crowd.add(MEMBERS // 2)
    crowd.until(crowd.settled, each=writer.write)
    crowd.add(MEMBERS // 2, ConsumerMember)
    crowd.until(crowd.settled, each=writer.write)
    for _ in range(5):
        for member in dice.sample([m for m in crowd.members if not m.leaving], 6):
            member.leaving = True
        crowd.add(3, ClassicMember)
        crowd.add(3, ConsumerMember)
        turns = iter(range(dice.randrange(3, 40)))
        crowd.until(lambda turns=turns: next(turns, None) is None, each=writer.write)
    for member in crowd.members:
        member.leaving = member.leaving or isinstance(member, ConsumerMember)
    all_read(crowd, writer)
    assert crowd.members
