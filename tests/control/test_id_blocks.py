"""Blocks of producer ids for I/O processes: said once, when it is durable that they are taken."""

import pytest
from test_control_shell import INIT, Appliance
from test_control_turns import answered, ensure

from appliance.base import errors
from appliance.controller.producer_ids import BLOCK
from appliance.ring.messages import PRODUCER_ID_BLOCK, PRODUCER_IDS
from appliance.ring.process_table import CONTROL, IOPROC, Peer


class WithIoProcess(Appliance):
    """Beside the netproc an I/O process that wants ids."""

    def start_control(self):
        if not hasattr(self, "io"):
            self.io = self.seats.links(Peer(IOPROC, 0))
        super().start_control()

    def settle(self):
        super().settle()
        self.io.changed_peers()
        self.io.confirm()

    def ask_ids(self):
        assert self.io.writer(CONTROL, 0).push(PRODUCER_IDS, 0, 0, 0)
        self.io.flush()
        self.turn()

    def blocks(self):
        """(error code, first, count) of each that has come since the last call."""
        self.turn()
        told = [one for _, batch in self.io.poll() for one in batch]
        assert all(one.op == PRODUCER_ID_BLOCK for one in told)
        return [(one.flags - 1, one.a, one.e) for one in told]


@pytest.fixture
def appliance(tmp_path):
    one = WithIoProcess(tmp_path)
    yield one
    one.close()


def test_a_block_is_said_when_it_is_durable_that_it_is_taken(appliance):
    appliance.threads.held = True
    appliance.ask_ids()
    assert appliance.blocks() == []
    appliance.threads.run()
    assert appliance.blocks() == [(errors.NONE, 0, BLOCK)]
    appliance.threads.held = False
    appliance.ask_ids()
    assert appliance.blocks() == [(errors.NONE, BLOCK, BLOCK)]


def test_control_and_who_asks_it_never_give_the_same_id(appliance):
    taken = [appliance.ask(22, 5, **INIT).producer_id]
    appliance.ask_ids()
    [(_, first, size)] = appliance.blocks()
    taken += [appliance.ask(22, 5, **INIT).producer_id for _ in range(BLOCK)]
    assert len({*taken, *range(first, first + size)}) == len(taken) + size
    appliance.kill_control()
    appliance.ask_ids()
    assert appliance.blocks()[0][1] > max(taken)


def test_what_is_lost_with_the_leadership_is_asked_for_again(appliance):
    appliance.threads.held = True
    appliance.ask_ids()
    appliance.control.resign()
    appliance.ask_ids()
    again = (errors.COORDINATOR_LOAD_IN_PROGRESS, 0, 0)
    assert appliance.blocks() == [again, again]
    appliance.threads.run()
    appliance.threads.held = False
    appliance.control.lead()
    appliance.ask_ids()
    [(code, _, size)] = appliance.blocks()
    assert (code, size) == (errors.NONE, BLOCK)


def test_a_dead_io_process_is_told_nothing(appliance):
    appliance.threads.held = True
    appliance.ask_ids()
    appliance.control.peers_changed([Peer(IOPROC, 0)])
    other = ensure(appliance, b"a")
    appliance.turn()
    appliance.threads.run()
    appliance.threads.held = False
    assert answered(appliance) == {other: errors.NONE}
    assert appliance.blocks() == []
