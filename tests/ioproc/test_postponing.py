"""A few bytes that cost much are handled over several turns, and whoever asks little is served."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from core_world import NOW_MS, World, batch

from appliance.base import errors
from appliance.base.crc import crc32c
from appliance.ioproc.requests import postponed
from appliance.ioproc.turn.dispatch import API_SHIFT
from appliance.ring.messages import COORDINATE, LIST_OFFSET, LISTED, Message
from appliance.wire import compression
from appliance.wire.batch_header import ATTRIBUTES_AT, CRC_AT, HEADER, UINT32, read_header

pytestmark = pytest.mark.interpreted("sets constants of core.py and postponed.py")
SHARE = 1 << 16
BOMB = batch(bytes(3 * SHARE), codec=compression.ZSTD)
SMALL = batch(b"small")
ROOM = 1 << 12


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(postponed, "SHARE", SHARE)
    monkeypatch.setattr(postponed, "TURN", 8 * SHARE)
    monkeypatch.setattr("appliance.ioproc.turn.core.SHARE", SHARE)
    one = World(tmp_path)
    one.core.postponed.until = one.core.postponed.began + SHARE
    yield one
    one.core.settle_all(one.now_ns)


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


@pytest.fixture
def in_steps(monkeypatch):
    monkeypatch.setattr("appliance.wire.batch.STEP", SHARE)
    monkeypatch.setattr(compression, "PIECE", SHARE)


def restated(one, **fields):
    """The same batch with another head."""
    changed = bytearray(one)
    header = read_header(one)._replace(**fields)
    HEADER.pack_into(changed, 0, *header)
    UINT32.pack_into(changed, CRC_AT, crc32c(memoryview(changed)[ATTRIBUTES_AT:]))
    return bytes(changed)


LARGE = batch(*[bytes(1000)] * 1500, codec=compression.ZSTD)  # 23 shares
WRONG = restated(LARGE, record_count=1501, last_offset_delta=1500)
LATE = restated(LARGE, max_timestamp=NOW_MS - 5)


def test_a_batch_that_opens_to_much_is_walked_over_in_several_turns(world, in_steps):
    large, other = world.add("t", 0), world.add("other")
    before = compression.OPENED[0]
    world.append(large.handle, LARGE, token=token(1), position=0)
    world.append(large.handle, SMALL, token=token(2), position=20 * ROOM)
    turns = []
    for number in range(40):
        world.append(other.handle, SMALL, token=token(100 + number), position=21 * ROOM)
        assert compression.OPENED[0] - before <= 3 * SHARE
        before = compression.OPENED[0]
        turns += answered(world, 1)
        assert token(100 + number) in turns[-1], "others are served in every turn"
    order = flat(turns)
    assert order.index(token(1)) < order.index(token(2)), "a partition keeps its order"
    assert sum(token(1) in some for some in turns[:3]) == 0
    assert large.progress.log_end == 1501
    assert not world.core.postponed.held and not world.core.postponed.walks


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_batch_is_compressed_anew_in_several_turns(world, in_steps, monkeypatch, codec):
    monkeypatch.setattr("appliance.wire.recompression.STEP", SHARE)
    large, other = world.add("t", 0, compression_type=codec), world.add("other")
    source = compression.GZIP if codec == "zstd" else compression.ZSTD
    long = batch(*[bytes(1000)] * 1500, codec=source)
    world.append(large.handle, long, token=token(1), position=0)
    world.append(large.handle, SMALL, token=token(2), position=20 * ROOM)
    before, turns = compression.OPENED[0], []
    for number in range(120):
        world.append(other.handle, SMALL, token=token(100 + number), position=21 * ROOM)
        assert compression.OPENED[0] - before <= 6 * SHARE
        before = compression.OPENED[0]
        turns += answered(world, 1)
        assert token(100 + number) in turns[-1], "others are served in every turn"
    order = flat(turns)
    assert order.index(token(1)) < order.index(token(2)), "a partition keeps its order"
    assert sum(token(1) in some for some in turns[:20]) == 0
    assert large.progress.log_end == 1501
    assert not world.core.postponed.held and not world.core.postponed.walks


def test_what_is_wrong_at_the_end_of_a_long_batch_is_refused(world, in_steps):
    one = world.add("t", 0)
    world.append(one.handle, WRONG, token=token(1), position=0)
    codes = [answer.flags for _ in range(40) for answer in world.turn()]
    assert codes == [errors.INVALID_RECORD]
    assert one.progress.log_end == 0 and not world.core.postponed.walks


def test_every_field_of_a_long_batch_is_read_where_its_head_is_wrong(world, in_steps):
    one = world.add("t", 0)
    world.append(one.handle, LATE, token=token(1), position=0)
    assert flat(answered(world, 60)) == [token(1)]
    assert one.progress.log_end == 1500


def test_nobody_refers_to_the_memory_of_the_dead(world, in_steps):
    one = world.add("t", 0)
    world.append(one.handle, LARGE, token=token(1), position=0)
    world.turn()
    assert world.core.postponed.walks
    world.core.drop(world.core.askers[0])
    assert not world.core.postponed.walks and not world.core.postponed.held
    world.append(one.handle, SMALL, token=token(1), position=0)
    assert flat(answered(world, 2)) == [token(1)]
    assert one.progress.log_end == 1


def test_a_long_batch_of_a_partition_that_fails_meanwhile_is_refused(world, in_steps):
    one = world.add("t", 0)
    world.append(one.handle, LARGE, token=token(1), position=0)
    world.turn()
    one.follow(7)
    codes = [answer.flags for _ in range(3) for answer in world.turn()]
    assert codes == [errors.NOT_LEADER_OR_FOLLOWER]
    assert not world.core.postponed.walks


class Coordinator:
    """What a coordinator is asked, by token."""

    def __init__(self, answer=0):
        self.heard = []
        self.answer = answer  # its bytes
        self.long = SimpleNamespace(answered=0)

    def take_piece(self, asker, message, now_ms):
        self.heard.append(message.token)
        self.long.answered += self.answer


def test_short_requests_with_long_answers_are_decided_one_in_a_turn(world):
    host = Coordinator(answer=postponed.PAYLOAD + 1)
    world.arrivals._hosts = {8: host}
    for request in range(3):
        message = Message(COORDINATE, 0, 100 + request, token(request), 0, 8 << API_SHIFT,
                          0, 0, 0, 0, 0, 0, 0, 0, b"short")  # fmt: skip
        world.arrivals.handle(world.core.askers[0], [message], NOW_MS)
    found = [len(host.heard)]
    while world.core.postponed.held:
        answered(world, 1)
        found.append(len(host.heard))
        assert len(found) < 10
    assert found[0] == 1 and found[-1] == 3
    assert all(after - before <= 1 for before, after in pairwise(found))


def test_long_requests_for_coordinators_are_decided_one_in_a_turn(world):
    host = Coordinator()
    world.arrivals._hosts = {8: host}
    body = bytes(postponed.PAYLOAD + 1)
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


def test_searches_by_time_take_several_turns(world):
    """Each may walk over a batch of a million records."""
    one, count = world.add("t", 0), 4000
    many = batch(*[b""] * count)
    world.append(one.handle, many, token=token(1), position=0)
    world.settle()
    for index in range(20):
        world.ask(LIST_OFFSET, one.handle, token=token(2, index), a=NOW_MS)
    world.ask(LIST_OFFSET, one.handle, token=token(2, 30), a=-1)
    turns = [[found for found in world.turn() if found.op == LISTED] for _ in range(30)]
    found = flat(turns)
    assert max(len(some) for some in turns) < 12
    assert [answer.token for answer in found[:20]] == [token(2, index) for index in range(20)]
    assert {(answer.a, answer.b) for answer in found[:20]} == {(NOW_MS, 0)}
    assert found[20].b == count
