"""What a turn takes goes on the bills of those who asked in it, before they are answered."""

import pytest
from core_world import NOW_MS, STEP_NS, Steps, World, batch

from appliance.ioproc.requests.request_time import BASE, RequestTime
from appliance.ring import messages
from appliance.ring.messages import APPENDED, SPENT, Message


class Billed(World):
    """Whose network processes ask on a bill."""

    def billed(self, peer, *asked):
        self.hear(self.core.askers[peer], *asked)

    def hear(self, asker, *asked):
        self.billing.handle_messages(self.arrivals.handle, asker, [*asked], NOW_MS)


@pytest.fixture
def world(tmp_path):
    return Billed(tmp_path, netprocs=2)


def append(world, partition, token, size, peer=0):
    data = batch(b"x" * size)
    world.core.askers[peer].arena[: len(data)] = data
    length = len(data)
    numbers = (0, 0, 0, 0, 0, 0, 0, 0, length, 1)
    return Message(messages.APPEND, 0, partition.handle, token, *numbers)


def read(partition, token):
    numbers = (0, -1, 0, 0, 0, 0, 0, 0, 1 << 20, 1)
    return Message(messages.READ, messages.READ_WAIT, partition.handle, token, *numbers)


def test_a_bill_goes_before_the_answers_and_is_for_all_of_the_turn(world):
    p = world.add()
    world.billed(0, append(world, p, 7, 4 * BASE))
    told = [(m.op, m.token) for m in world.turn()]
    assert told == [(SPENT, 7), (APPENDED, 7)]
    world.billed(1, read(p, 9), append(world, p, 9, 10, peer=1))
    bill, *answers = world.turn()
    assert (bill.op, bill.token) == (SPENT, 9) and {m.op for m in answers} == {APPENDED}
    assert bill.a == STEP_NS
    assert not world.billing.waiting


def test_nothing_of_a_turn_is_billed_twice_or_to_nobody(world):
    p = world.add()
    world.billed(0, append(world, p, 1, 4 * BASE), read(p, 2))
    world.billed(1, append(world, p, 3, 4 * BASE, peer=1))
    spent = {m.token: m.a for m in world.turn() if m.op == SPENT}
    assert spent.keys() == {1, 2, 3}
    assert STEP_NS - len(spent) < sum(spent.values()) <= STEP_NS
    assert spent[1] == spent[3] > 4 * spent[2]


def test_another_io_process_pays_for_itself(world):
    """Its share is on no client's bill."""
    p = world.add()
    world.hear(world.served.siblings[0], append(world, p, 5, 10), append(world, p, 6, 10))
    world.billed(0, read(p, 7))
    spent = {m.token: m.a for m in world.turn() if m.op == SPENT}
    assert spent.keys() == {7} and 0 < spent[7] < STEP_NS // 2


def test_only_a_quota_on_requests_has_it_measured():
    billing = RequestTime(Steps(), {})
    billing.follow({(("user", "a"),): {"producer_byte_rate": 1.0}})
    assert not billing.on
    billing.follow({(("user", "a"),): {"producer_byte_rate": 1.0, "request_percentage": 5.0}})
    assert billing.on
    billing.follow({})
    assert not billing.on
