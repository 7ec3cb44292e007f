"""Full passes of the garbage collector come when a process has nothing else to do."""

import gc
import os
from types import SimpleNamespace

import pytest

from appliance.ring.process_table import CONTROL, Peer
from appliance.shell import garbage_collection
from appliance.shell.garbage_collection import EVERY_NS, GROWN, NEVER, WORTH, FullPasses
from appliance.shell.links import Links
from appliance.shell.loop import STOP, Loop
from appliance.supervisor.layout import MIB, Layout
from tests.seats import Seats, log_file

CONTROL_0 = Peer(CONTROL, 0)
LONG_AFTER = 100 * EVERY_NS


@pytest.fixture
def passes():
    made = []
    state = SimpleNamespace(made=made, count=0)
    state.one = FullPasses(lambda: made.append(state.count) or 0, lambda: state.count)
    return state


@pytest.mark.parametrize(("count", "idle", "busy"), [
    (WORTH - 1, 0, 0), (WORTH, 1, 0), (GROWN - 1, 1, 0), (GROWN, 1, 1),
])  # fmt: skip
def test_an_idle_process_makes_one_for_less_than_a_busy_one(passes, count, idle, busy):
    passes.count = count
    passes.one.collect_busy(LONG_AFTER)
    assert len(passes.made) == busy
    passes.made.clear()
    passes.one.collect_idle(2 * LONG_AFTER)
    assert len(passes.made) == idle


def test_one_follows_another_no_sooner_than_after_the_pause(passes):
    passes.count = GROWN
    for now_ns in (LONG_AFTER, LONG_AFTER + 1, LONG_AFTER + EVERY_NS - 1):
        passes.one.collect_busy(now_ns)
        passes.one.collect_idle(now_ns)
    assert len(passes.made) == 1
    passes.one.collect_idle(LONG_AFTER + EVERY_NS)
    assert len(passes.made) == 2


def test_a_child_puts_them_off_and_other_processes_do_not():
    before = gc.get_threshold()
    assert not FullPasses().is_on
    try:
        garbage_collection.put_off_full_passes()
        assert gc.get_threshold() == (*before[:2], NEVER)
        assert FullPasses().is_on
    finally:
        gc.set_threshold(*before)


class Sleeper:
    """Turns so often, and would sleep for a second each time."""

    def __init__(self, turns):
        self.left = turns

    def run_once(self, now_ns):
        self.left -= 1
        return 1000 if self.left else STOP


@pytest.mark.parametrize("woken", [False, True])
def test_the_loop_makes_one_when_nothing_woke_it(tmp_path, passes, woken):
    fd, log = log_file(tmp_path, "test")
    seats = Seats(Layout(arena_bytes=MIB, partition_rows=16), log)
    seat = seats.seat(CONTROL_0)
    loop = Loop(seat, Links(seat))
    loop._full_passes = passes.one
    passes.count = WORTH
    if woken:
        os.eventfd_write(seat.doorbell, 1)
    loop.run(Sleeper(2))  # it sleeps once
    assert len(passes.made) == (not woken)
    loop.close()
    seats.close()
    os.close(fd)
