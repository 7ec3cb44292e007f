"""Questions about new partitions open them, a few in each turn, while others are served."""

import pytest
from core_world import World, batch, stays

from appliance.base import errors
from appliance.ioproc.requests.postponed import OPENINGS
from appliance.ioproc.turn.dispatch import Dispatcher
from appliance.ring import messages
from appliance.ring.messages import LIST_OFFSET

NEW = 40
SMALL = batch(b"small")


class Created(World):
    """The rows of some partitions are there, which open when they are asked for."""

    def __init__(self, folder):
        super().__init__(folder)
        self.opened = []
        self.new = {}
        for index in range(NEW):
            self.new[self.table.add(b"new".ljust(16, b"\0"), index)] = index
        self.arrivals = Dispatcher(self.core, self.open_now, stays, self.endings)

    def open_now(self, handle):
        index = self.new.get(handle)
        if index is not None and handle not in self.core.partitions:
            self.opened.append(index)
            self.add("new", index, handle=handle)
        return self.core.partitions.get(handle)


@pytest.fixture
def world(tmp_path):
    one = Created(tmp_path)
    yield one
    one.core.settle_all(one.now_ns)


def tokens(answers):
    return [one.token for one in answers]


def test_a_turn_opens_a_few_and_whoever_asks_for_an_open_one_does_not_wait(world):
    known = world.add("known")
    for handle, index in world.new.items():
        world.ask(LIST_OFFSET, handle, 1 << 32 | index, a=-1)
    world.read(known.handle, 0, token=2 << 32, wait=False)
    answered = tokens(world.turn())
    assert len(world.opened) <= 2 * OPENINGS
    assert 2 << 32 in answered
    turns = 0
    while len(answered) < NEW + 1:
        before = len(world.opened)
        answered += tokens(world.turn())
        assert len(world.opened) - before <= OPENINGS
        turns += 1
        assert turns <= NEW
    assert sorted(answered) == sorted([*(1 << 32 | index for index in range(NEW)), 2 << 32])
    assert not world.core.postponed.held


def test_what_comes_for_a_new_partition_stays_in_its_order(world):
    handles = list(world.new)
    last = handles[-1]
    for handle in handles:
        world.append(handle, SMALL, token=1 << 32 | handle & 0xFFFF)
    world.append(last, SMALL, token=2 << 32)
    world.read(last, 0, token=3 << 32, wait=False)
    answers = world.settle()
    while world.core.postponed.held:
        answers += world.settle()
    offsets = {one.token: one.a for one in answers if one.op == messages.APPENDED}
    assert (offsets[1 << 32 | last & 0xFFFF], offsets[2 << 32]) == (0, 1)
    assert [one.flags for one in answers if one.token == 3 << 32] == [errors.NONE]


def test_a_read_that_is_given_up_while_it_waits_is_answered_no_more(world):
    for handle, index in world.new.items():
        world.read(handle, 0, token=1 << 32 | index)
    world.ask(messages.CANCEL, 0, token=1 << 32)
    assert not world.core.postponed.held
    for _ in range(3):
        assert not world.turn()
    assert len(world.opened) == OPENINGS


def test_the_dead_wait_for_no_opening(world):
    for handle, index in world.new.items():
        world.ask(LIST_OFFSET, handle, 1 << 32 | index, a=-1)
    world.core.drop(world.core.askers[0])
    assert not world.core.postponed.held
    world.turn()
    assert len(world.opened) == OPENINGS
