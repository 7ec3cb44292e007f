"""A netproc that asks and does not take its answers: it has to wait, and none of them is lost."""

import pytest

from appliance.ioproc.netproc_peer import BACKLOG
from appliance.ring.messages import CANCEL, FOUND, READ
from appliance.ring.process_table import IOPROC, READY
from tests.ioproc.core_world import World as Core
from tests.netproc.netproc_world import IO, LAYOUT, NET, World

NOBODYS = 5000  # a row that no partition has: each READ of it is refused at once
MANY = 70_000


def test_every_completion_of_a_slow_sync_is_delivered(tmp_path):
    """As many as connections may have in flight are answered in one turn."""
    world = Core(tmp_path, netprocs=1)
    for token in range(MANY):
        world.ask(READ, NOBODYS, token)
    got = []
    for _ in range(MANY // 1024 + 1):
        got += [one.token for one in world.turn()]
    assert got == list(range(MANY))


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    yield one
    one.close()


def test_who_does_not_take_its_answers_cannot_ask_without_end(world):
    shell = world.io_process()
    assert world.table.state(IO) == READY
    writer = world.links.writer(IOPROC, 0)
    asked = refused = 0
    while refused < 50:
        if writer.push(READ, 0, NOBODYS, asked, 0, e=100):
            asked += 1
            refused = 0
            if asked % 200:
                continue
        else:
            refused += 1
        world.links.flush()
        world.io_turn()
    kept = len(shell.core.askers[0].out)
    assert BACKLOG <= kept < BACKLOG + LAYOUT.ring_slots
    assert asked <= BACKLOG + 3 * LAYOUT.ring_slots
    assert not world.io.pending(), "what has to wait keeps nobody awake"

    got = []
    while len(got) < asked:
        arrived = [one for _, batch in world.links.poll() for one in batch]
        assert arrived or shell.core.askers[0].out or world.io.pending()
        assert all(one.op == FOUND for one in arrived)
        got += [one.token for one in arrived]
        world.links.flush()
        world.io_turn()
    assert got == list(range(asked))


def test_a_successor_is_not_held_for_what_its_predecessor_did_not_take(world):
    shell = world.io_process()
    shell.core.askers[0].out += [(FOUND, 1, 0, 1)] * (BACKLOG + LAYOUT.ring_slots)
    world.io_turn()
    writer = world.links.writer(IOPROC, 0)
    assert writer.push(CANCEL, 0, 0, 0)
    world.links.flush()
    assert not world.io.pending()
    world.table.vacate(NET)
    world.table.move_epoch()
    shell.peers_changed(world.io.changed_peers())
    world.io.confirm()
    world.memory.clear_rings_of(NET)
    world.links = world.seats.links(NET)
    world.settle()
    assert world.links.writer(IOPROC, 0).push(READ, 0, NOBODYS, 9, 0, e=100)
    world.links.flush()
    world.io_turn()
    ((_, [answer]),) = world.links.poll()
    assert answer.token == 9
