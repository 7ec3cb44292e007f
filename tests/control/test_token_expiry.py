"""Expired tokens are removed by the controller, at the interval that is set."""

from controller.test_controller_scenarios import Cluster

from appliance.base.errors import DiskFull
from appliance.config.broker import BrokerConfig
from appliance.control import token_expiry as expiring
from appliance.control.fencing import Fencing
from appliance.control.token_expiry import TokenExpiry
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft

EVERY_MS = 5000


def token_record(ends, number):
    return kraft.DelegationTokenRecord(
        owner="User:a", requester="User:a", renewers=(), issue_timestamp=0,
        max_timestamp=1 << 40, expiration_timestamp=ends, token_id=f"{ends}-{number}",
    )  # fmt: skip


class Log:
    def __init__(self):
        self.told = []

    def event(self, level, name, **fields):
        self.told.append((name, fields))


class World:
    def __init__(self):
        self.image, self.log, self.full = MetadataImage(), Log(), False
        words = {"delegation.token.expiry.check.interval.ms": str(EVERY_MS)}
        self.expiry = TokenExpiry(BrokerConfig.of(words), self.log)
        self.offset = 0

    def append(self, records):
        if self.full:
            raise DiskFull("/nowhere", 28, "no room")
        for one in records:
            self.image.apply(self.offset, one)
            self.offset += 1

    def add(self, count, ends):
        self.append(token_record(ends, n) for n in range(count))

    def remove(self, now_ms, wall_ms):
        self.expiry.remove_expired(self.image, self.append, now_ms, wall_ms)

    def left(self):
        return len(self.image.kept)


def test_what_has_expired_goes_and_the_rest_stays():
    world = World()
    world.add(2, ends=100)
    world.add(1, ends=200)
    world.expiry.start_interval(7)
    assert world.expiry.deadline == 7 + EVERY_MS
    world.remove(10, wall_ms=100)
    assert world.left() == 3, "a token holds in the ms of its end, too"
    assert not world.log.told
    world.remove(20, wall_ms=101)
    assert world.left() == 1 and world.expiry.deadline == 20 + EVERY_MS
    assert world.log.told == [("delegation-tokens-expired", {"tokens": 2})]


def test_many_go_in_several_turns():
    world = World()
    world.add(expiring.MOST + 1, ends=100)
    world.remove(0, wall_ms=200)
    assert world.left() == 1 and 0 < world.expiry.deadline < EVERY_MS
    world.remove(1, wall_ms=200)
    assert world.left() == 0 and world.expiry.deadline == 1 + EVERY_MS


def test_a_full_disk_is_asked_again_soon():
    world = World()
    world.add(1, ends=100)
    world.full = True
    world.remove(0, wall_ms=200)
    assert world.left() == 1 and 0 < world.expiry.deadline < EVERY_MS and not world.log.told
    world.full = False
    world.remove(1, wall_ms=200)
    assert world.left() == 0


def test_the_controller_does_it_while_it_leads():
    """By the wall clock for tokens, and by the one that never goes back for the interval."""
    node, log = Cluster(), Log()
    words = {"node.id": "1", "delegation.token.expiry.check.interval.ms": str(EVERY_MS)}
    wall_ms = [0]

    def append(records):
        node.replay(one for one in records if isinstance(one, kraft.RemoveDelegationTokenRecord))

    fencing = Fencing(
        1, BrokerConfig.of(words), lambda broker: None, append, lambda: node.situation, log,
        lambda: wall_ms[0],
    )  # fmt: skip
    node.replay([token_record(100, 0)])

    def left():
        return any(isinstance(one, kraft.DelegationTokenRecord) for one in node.image.kept.values())

    wall_ms[0] = 200
    fencing.fence_expired(10**6)
    fencing.lead(node.image, 0, -1)
    fencing.fence_expired(EVERY_MS - 1)
    assert left(), "neither is it time, nor was it before this node led"
    assert fencing.fence_expired(EVERY_MS - 1) <= EVERY_MS
    fencing.fence_expired(EVERY_MS)
    assert not left()
