"""What a console shows of an appliance's past and of who is connected: of a real one, with keys."""

import re
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.history.samples import FolderSample, Whole
from console.model.local.attention import NOTE, attention
from console.model.local.history import Past, Series
from console.model.local.remembered import Remembered
from console.model.storage.disk import LogFolder
from console.model.storage.forecast import forecast
from console.model.topics.oldest import MOST, oldest_ms
from console.screens.places import CLIENTS, OVERVIEW, Place, key_of
from console.show.figures import buckets
from tests.console.seat import LARGE, sit

HOUR, DAY, GB = 3600, 86_400, 10**9


@pytest.fixture
def wrote(alone):
    """Somebody wrote some MB, and stays."""
    admin = AdminClient({"bootstrap.servers": alone.bootstrap})  # gone, it answers nobody
    for future in admin.create_topics([NewTopic("orders", 1)]).values():
        if not future.exception():
            future.result()
    producer = Producer({"bootstrap.servers": alone.bootstrap, "client.id": "loader [/]"})
    for _ in range(200):
        producer.produce("orders", b"x" * 10_000)
    assert not producer.flush(30)
    yield producer
    producer.flush()


def test_the_past_is_charted_and_z_makes_it_longer(alone, wrote):
    async def act(seat):
        await seat.until(
            lambda: (
                (past := seat.app.world.past.shown.value) is not None
                and any(past.rates("bytes_in", 600).values)
            ),
            "what was written before the console was opened",
        )
        await seat.sees("Written", "Read", "Requests", "too early to say when full")
        await seat.sees("10 min", "Clients", "confluent-kafka-python", "control")
        for told in ("1 h", "1 d", "1 min", "10 min"):
            await seat.press("z")
            await seat.sees(f"{told} ago")
        await seat.press("<", "<")
        await seat.until(lambda: re.search(r"[0-9:]{8}  [0-9.]+ k?B/s", seat.text()), "a value")
        assert "p95" not in seat.text()
        await seat.press("escape")
        await seat.sees("p95")
        key = key_of(CLIENTS)
        await seat.sees(f"Clients → {key}")
        await seat.press(key)
        await seat.sees("loader [/]", "throttled", "penstock client list -w --data")
        await seat.press("/", *"nobody", "enter")
        await seat.sees("0 of ", "no client matches")
        await seat.press("escape")
        await seat.sees("loader [/]")
        await seat.press("2")
        await seat.sees("orders")
        await seat.until(lambda: "▁" in seat.line("orders") or "█" in seat.line("orders"),
                         "the topic's past")  # fmt: skip

    sit(alone.bootstrap, act, size=LARGE)


# Forecasts ------------------------------------------------------------------------------------


def disk(*points):
    times = tuple(float(at) for at, _ in points)
    told = tuple(FolderSample(0, 100 * GB, 100 * GB - used, used) for _, used in points)
    return Past(times, (60.0,) * len(points), told)


def filling(hours, per_hour, begin=50 * GB):
    return disk(*((m * 60, begin + m * per_hour // 60) for m in range(hours * 60)))


def test_a_disk_is_full_when_its_slope_says_so():
    found = forecast(filling(10, GB), 10 * HOUR - 60)
    assert abs(found.full_s - 40 * HOUR) < HOUR / 10
    assert abs(found.slope - GB / HOUR) < 1e4
    assert forecast(filling(10, GB), 12 * HOUR).full_s < 39 * HOUR, "time has passed since"


@pytest.mark.parametrize("per_hour", [0, -GB])
def test_a_disk_that_does_not_fill_is_never_full(per_hour):
    found = forecast(filling(3, per_hour), 3 * HOUR)
    assert found.full_s is None and found.known_s > 2 * HOUR


def test_of_minutes_nobody_tells_a_future():
    assert forecast(disk((0, 0), (300, 50 * GB)), 300).known_s == 0
    assert forecast(disk(), 0).full_s is None
    assert forecast(disk((0, GB), (700, GB + 1)), 700).full_s is None, "in years"


def test_retention_in_steps_is_no_rise():
    saw = disk(*((m * 60, 50 * GB + (m % 60) * GB // 10) for m in range(24 * 60)))
    found = forecast(saw, DAY)
    assert found.full_s is None or found.full_s > 30 * DAY


def test_who_has_less_than_a_day_is_told_and_where_to_look():
    folder = LogFolder("/d", 100 * GB, 50 * GB, 0)
    soon = forecast(filling(10, 5 * GB, 0), 10 * HOUR)
    (notice,) = attention(None, None, [folder], {}, forecasts={0: soon})
    assert (notice.level, notice.place) == (NOTE, "topics"), "a guess is no fault"
    assert "full in 9 h 5" in notice.what or "full in 10 h" in notice.what
    assert "of the last 9 h 59 min: 83 MB/min of all programs" in notice.what
    sooner = forecast(filling(10, 9 * GB + GB // 2, 0), 10 * HOUR)
    assert attention(None, None, [folder], {}, forecasts={0: sooner, 7: soon})[0].level == NOTE
    assert attention(None, None, [folder], {}, forecasts={0: forecast(filling(10, GB), 0)}) == []


# Rates over time ------------------------------------------------------------------------------


def test_seconds_go_on_where_minutes_end():
    minutes = Past(
        (60.0, 120.0, 180.0), (60.0,) * 3, tuple(Whole(bytes_in=60 * n) for n in (1, 2, 3))
    )
    seconds = Past((170.0, 181.0), (1.0, 1.0), (Whole(bytes_in=9), Whole(bytes_in=8)))
    past = Remembered(181.0, seconds, minutes)
    assert past.rates("bytes_in", HOUR) == Series((60.0, 120.0, 170.0, 181.0), (1.0, 2.0, 9.0, 8.0))
    assert past.rates("bytes_in", 30) == Series((170.0, 181.0), (9.0, 8.0))
    assert past.p99("Fetch", HOUR) == Series()


def test_a_column_is_the_mean_of_its_time():
    assert buckets((1, 2, 3, 4), (10, 20, 30, 40), 4, 4, 2) == [10.0, 30.0]
    assert buckets((5, 9), (1, 1), 10, 10, 10)[5:] == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert buckets((2, 4, 6), (1, 2, 3), 6, 6, 6) == [0.0, 0.0, 1.0, 2.0, 2.0, 3.0]
    assert buckets((), (), 6, 6, 3) == [0.0, 0.0, 0.0]
    assert buckets((1,), (1,), 6, 0, 3) == [] == buckets((1,), (1,), 6, 6, 0)


def test_places_of_the_past_are_known():
    assert Place(CLIENTS).above == Place(OVERVIEW)


def test_the_age_of_a_topic_is_that_of_its_oldest_record(alone, wrote, tmp_path):
    folders = [str(tmp_path), str(alone.data_dir)]
    began_ms = (time.time() - 600) * 1000
    found = oldest_ms(folders, {"orders": 1, "nobody": 3})
    assert found.keys() == {"orders"} and began_ms < found["orders"] <= time.time() * 1000
    (tmp_path / "old-1").mkdir()
    assert oldest_ms(folders, {"old": 2}) == {}
    (tmp_path / "old-1" / "00000000000000000000.log").write_bytes(b"")
    head = bytes(16) + b"\2" + bytes(10) + (123).to_bytes(8, "big")
    (tmp_path / "old-1" / "00000000000000000007.log").write_bytes(head + b"rest")
    assert oldest_ms(folders, {"old": 2, "orders": 1})["old"] == 123
    assert oldest_ms(folders, {"orders": 1, "old": MOST}).keys() == {"orders"}
