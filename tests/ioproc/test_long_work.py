"""Long requests for coordinators: few of them are in memory as objects, however many wait."""

from collections.abc import Iterator

import pytest

from appliance.base import errors
from appliance.coordinators.runtime.call import UNVERIFIED, Call
from appliance.ioproc.coordination import long_work
from appliance.ioproc.coordination.long_work import LongWork
from appliance.ioproc.coordination.pending_requests import PendingRequest, PendingRequests
from appliance.wire import messages
from benchmarks import largest

SYNC_GROUP, LIST_GROUPS = 14, 16
ANSWER = {
    "throttle_time": 0, "error_code": errors.UNKNOWN_MEMBER_ID, "protocol_type": None,
    "protocol_name": None, "assignment": b"",
}  # fmt: skip


class StandingClock:
    """One step in each turn."""

    def monotonic_ns(self):
        return 0

    def wall_ms(self):
        return 0


class Counts:
    def failed(self, key, code):
        pass


class World:
    def __init__(self, count):
        self.requests = PendingRequests.__new__(PendingRequests)
        self.requests.asked = {}
        self.told = []
        self.long = LongWork(
            StandingClock(),
            self.requests,
            Counts(),
            self.put,
            lambda where: pytest.fail(where),
            LIST_GROUPS,
        )
        version = messages.request_versions(SYNC_GROUP)[-1]
        shape = next(iter(largest.shapes(SYNC_GROUP, version, 2000, 1 << 20)))
        for token in range(count):
            call = Call(SYNC_GROUP, version, token, None, UNVERIFIED)
            asked = PendingRequest(0, token, call, None, 0, shape.body)
            self.requests.asked[token] = asked
            self.long.decide(asked, None, self.decide)

    def decide(self, asked, now_ms):
        assert len(asked.request.assignments) > 1000
        self.decided(asked)

    def put(self, asked, code, body):
        self.requests.asked.pop(asked.call.token)
        self.told.append(asked.token)

    def rows(self) -> Iterator[int]:
        """Of each request that is in memory as objects."""
        for asked in self.requests.asked.values():
            if asked.request is not None:
                yield len(asked.request.assignments)


@pytest.fixture(autouse=True)
def one_step(monkeypatch):
    monkeypatch.setattr(long_work, "SLICE_NS", 0)


pytestmark = pytest.mark.interpreted("limits of compiled modules are not replaced")


def test_each_is_answered_before_the_next_is_decoded():
    world = World(50)
    world.decided = lambda asked: world.long.answer(asked, ANSWER)
    while world.long.busy:
        world.long.run_turn()
        assert sum(map(bool, world.rows())) <= 1
    assert world.told == list(range(50))


def test_one_that_waits_for_others_keeps_no_rows():
    world = World(50)
    world.decided = lambda asked: None
    while world.long.busy:
        world.long.run_turn()
        assert not any(world.rows())
    assert len(world.requests.asked) == 50
    for asked in list(world.requests.asked.values()):
        world.long.answer(asked, ANSWER)
    while world.long.busy:
        world.long.run_turn()
    assert sorted(world.told) == list(range(50))
