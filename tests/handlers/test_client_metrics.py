"""Who is to push which metrics, beyond what the comparison with Apache Kafka asks
(`tests/differential/scripts/client_metrics.py`)."""

import pytest

from appliance.base import errors
from appliance.config import bounds
from appliance.handlers import client_metrics
from appliance.handlers.client_metrics import ALL, NOBODY, ClientMetricsPushes
from appliance.metadata.image import CLIENT_METRICS, MetadataImage
from appliance.ring.push_table import PAYLOAD, PushTable
from appliance.wire.compression import ZSTD

ONE = bytes(range(16))
WHO = {"client_id": "loader-1", "client_software_name": "a-client"}


class World:
    def __init__(self, max_bytes=PAYLOAD, most=4):
        self.table = PushTable(memoryview(bytearray(PushTable.bytes_needed(1, most))), 1, most)
        self.reached = []
        self.machine = ClientMetricsPushes(
            self.table.rows[0],
            max_bytes,
            lambda size: b"i" * size,
            lambda bound, why: self.reached.append((bound, why)),
        )
        self.image = MetadataImage()
        self.now_ms = 1_000_000

    def subscribe(self, name, **settings):
        own = {key.replace("_", "."): value for key, value in settings.items()}
        self.image.configs[CLIENT_METRICS, name] = own
        self.image.applied_offset += 1

    def ask(self, instance=ONE, who=WHO):
        return self.machine.subscribe_instance(self.image, instance, who, self.now_ms)

    def push(self, payload=b"", instance=ONE, ending=False, codec=ZSTD, number=None):
        known = self.machine._instances.get(instance)
        if number is None:
            number = known.subscription.id if known else 0
        return self.machine.push(
            self.image, instance, WHO, "alice", number, ending, codec, payload, self.now_ms
        )

    def kept(self):
        return list(self.table.read(self.now_ms))


@pytest.fixture
def world():
    found = World()
    found.subscribe("all", metrics=ALL, interval_ms="1000")
    return found


def test_what_is_pushed_is_kept_as_it_came_and_nothing_that_was_refused(world):
    assert world.ask()[0] == errors.NONE
    assert world.push(b"first") == errors.NONE
    world.now_ms += 999
    assert world.push(b"second") == errors.THROTTLING_QUOTA_EXCEEDED
    (kept,) = world.kept()
    assert (kept.instance, kept.payload, kept.codec) == (ONE, b"first", ZSTD)
    assert (kept.who.principal, kept.who.client_id, kept.interval_ms) == ("alice", "loader-1", 1000)
    world.now_ms += 1
    assert world.push(b"third") == errors.NONE
    assert [one.payload for one in world.kept()] == [b"third"]
    assert world.push(ending=True) == errors.NONE
    assert world.kept() == [] and world.push() == errors.INVALID_REQUEST


def test_no_more_is_taken_than_there_is_room_for_whatever_the_setting_says():
    one = World(max_bytes=1 << 20)
    assert one.machine.max_bytes == PAYLOAD
    one.ask()
    assert one.push(bytes(PAYLOAD)) == errors.NONE
    one.now_ms += 300_000
    assert one.push(bytes(PAYLOAD + 1)) == errors.TELEMETRY_TOO_LARGE
    small = World(max_bytes=10)
    small.ask()
    assert small.push(bytes(11)) == errors.TELEMETRY_TOO_LARGE


def test_a_client_without_an_id_gets_one(world):
    code, instance, told = world.ask(NOBODY)
    assert code == errors.NONE and instance != NOBODY and len(instance) == 16
    assert told.metrics == (ALL,) and told.interval_ms == 1000


def test_another_setting_elsewhere_lets_nobody_ask_before_its_time(world):
    world.ask()
    world.image.applied_offset += 1
    assert world.ask()[0] == errors.THROTTLING_QUOTA_EXCEEDED
    world.subscribe("all", metrics=ALL, interval_ms="2000")
    assert world.ask()[0] == errors.NONE


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_id=loader-.*", True),
        ("client_id=loader", False),
        ("client_id=loader-1,client_software_name=another", False),
        ("client_instance_id=AAECAwQFBgcICQoLDA0ODw", True),
        ("client_source_port=.*", False),  # not known of it here
        ("client_id=(", False),  # as another kind of node may have taken it
    ],
)
def test_a_subscription_is_of_who_matches_it_wholly(match, matches):
    one = World()
    one.subscribe("some", metrics="a.", match=match)
    assert one.ask()[2].metrics == (("a.",) if matches else ())


def test_only_so_many_clients_are_remembered(world, monkeypatch):
    monkeypatch.setattr(client_metrics, "_REMEMBERED", 3)
    for n in range(5):
        assert world.ask(n.to_bytes(16, "big") if n else ONE)[0] == errors.NONE
    assert len(world.machine._instances) == 3
    assert world.ask()[0] == errors.NONE, "forgotten: as one that never asked"


def test_clients_are_told_that_they_can_push_while_somebody_is_subscribed(world):
    assert client_metrics.offered(world.image)
    assert not client_metrics.offered(MetadataImage())


def test_instances_beyond_the_bound_take_the_place_of_the_most_silent(world):
    for number in range(6):
        instance = bytes([number]) * 15 + b"x"
        assert world.ask(instance)[0] == errors.NONE
        assert world.push(b"one", instance) == errors.NONE
        world.now_ms += 1
    assert [bound for bound, _ in world.reached] == [bounds.CLIENT_METRICS] * 2
    assert bounds.setting_of(bounds.CLIENT_METRICS) in world.reached[0][1]
    assert sorted(one.instance[0] for one in world.kept()) == [2, 3, 4, 5]
    world.now_ms += 100_000
    assert world.ask(ONE)[0] == errors.NONE and world.push(b"late", ONE) == errors.NONE
    assert len(world.reached) == 2, "who says nothing any more loses nothing"
