"""A few bytes that cost much are handled over several turns, and whoever asks little is served."""

import pytest
from core_world import NOW_MS, World, batch

from appliance.ioproc import postponing
from appliance.ioproc.arrivals import API_SHIFT
from appliance.ring.messages import COORDINATE, Message
from appliance.wire import compression

pytestmark = pytest.mark.interpreted("sets constants of core.py and postponing.py")
SHARE = 1 << 16
BOMB = batch(bytes(3 * SHARE), codec=compression.ZSTD)
SMALL = batch(b"small")
ROOM = 1 << 12


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(postponing, "SHARE", SHARE)
    monkeypatch.setattr(postponing, "TURN", 8 * SHARE)
    monkeypatch.setattr("appliance.ioproc.core.SHARE", SHARE)
    one = World(tmp_path)
    one.core.postponed.until = one.core.postponed.began + SHARE
    yield one
    one.core.settle(one.now_ns)


def token(request, index=0):
    return request << 32 | index


def answered(world, turns):
    """Tokens of what was appended in each turn."""
    return [[one.token for one in world.turn() if one.flags == 0] for _ in range(turns)]


def flat(turns):
    return [one for turn in turns for one in turn]


def test_batches_that_open_to_much_take_several_turns_and_the_next_request_does_not_wait(world):
    parts = [world.add("t", index) for index in range(12)]
    before = compression.OPENED[0]
    for index, one in enumerate(parts):
        world.append(one.handle, BOMB, token=token(1, index), position=index * ROOM)
    assert compression.OPENED[0] - before < 8 * SHARE, "the others wait for the next turns"
    other = world.add("other")
    world.append(other.handle, SMALL, token=token(2), position=20 * ROOM)
    first, *rest = answered(world, 12)
    assert token(2) in first
    assert len(first) < 6
    assert sorted(first + flat(rest)) == sorted(
        [token(1, index) for index in range(12)] + [token(2)]
    )
    assert max(len(some) for some in rest) <= 2
    assert not world.core.postponed.held


def test_requests_take_turns(world):
    for request in (1, 2):
        for index in range(10):
            one = world.add(f"t{request}", index)
            at = (request * 10 + index) * ROOM
            world.append(one.handle, BOMB, token=token(request, index), position=at)
    order = flat(answered(world, 30))
    assert len(order) == 20
    late = [one >> 32 for one in order[8:]]
    assert late.count(1) and late.count(2)
    assert late[:4] in ([1, 2, 1, 2], [2, 1, 2, 1])


def test_what_comes_for_a_partition_stays_in_its_order(world):
    bombs = [world.add("t", index) for index in range(6)]
    for index, one in enumerate(bombs):
        world.append(one.handle, BOMB, token=token(1, index), position=index * ROOM)
    last = bombs[-1]
    assert world.core.postponed.held
    world.append(last.handle, SMALL, token=token(2), position=20 * ROOM)
    order = flat(answered(world, 10))
    assert order.index(token(1, 5)) < order.index(token(2))
    assert last.progress.log_end == 2


def test_the_dead_wait_for_nothing(world):
    bombs = [world.add("t", index) for index in range(6)]
    for index, one in enumerate(bombs):
        world.append(one.handle, BOMB, token=token(1, index), position=index * ROOM)
    world.core.drop(world.core.askers[0])
    assert not world.core.postponed.held
    world.append(bombs[-1].handle, SMALL, token=token(2), position=20 * ROOM)
    assert token(2) in answered(world, 1)[0]


def test_a_batch_that_is_not_compressed_is_never_late(world):
    for index in range(6):
        one = world.add("t", index)
        world.append(one.handle, BOMB, token=token(1, index), position=index * ROOM)
    plain = world.add("plain")
    for index in range(5):
        world.append(plain.handle, SMALL, token=token(1, 10 + index), position=20 * ROOM)
    first = answered(world, 1)[0]
    assert [token(1, 10 + index) in first for index in range(5)] == [True] * 5


class Coordinator:
    """What a coordinator is asked, by token."""

    def __init__(self):
        self.heard = []

    def take(self, asker, message, now_ms):
        self.heard.append(message.token)


def test_long_requests_for_coordinators_are_decided_one_in_a_turn(world):
    host = Coordinator()
    world.arrivals._hosts = {8: host}
    body = bytes(postponing.PAYLOAD + 1)
    for request in range(3):
        for piece in (body, b"end"):
            message = Message(COORDINATE, 0, 100 + request, token(request), 0, 8 << API_SHIFT,
                              0, 0, 0, 0, 0, 0, 0, 0, piece)  # fmt: skip
            world.arrivals.handle(world.core.askers[0], [message], NOW_MS)
    world.append(world.add().handle, SMALL, token=token(9))
    assert host.heard == [token(0)]
    assert token(9) in answered(world, 1)[0]
    turns = 1
    while world.core.postponed.held:
        answered(world, 1)
        turns += 1
        assert turns < 10
    assert turns > 2
    assert host.heard[:2] == [token(0), token(0)]
    assert sorted(host.heard) == [token(request) for request in (0, 0, 1, 1, 2, 2)]
