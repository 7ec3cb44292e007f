"""Partitions as cells: what is counted of each, how they are laid out, and the cursor over them."""

from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from console.model.groups.group_watch import worst_lags
from console.model.topics.heat import LEVELS, HeatWatch, lay_out, level_of, limit_of
from console.screens.places import Place
from tests.console.seat import LARGE, SMALL, sit
from tests.console.test_screens_pictures import calm_world, told
from tests.console_process import typing

VALUES = st.floats(0, 1e18)
PLACES = st.sets(st.tuples(st.sampled_from("abc"), st.integers(0, 60))).map(sorted)


def test_an_appliance_is_counted_partition_by_partition(alone):
    command = typing(alone.bootstrap)
    command("topic", "create", "heated", "-p", "3")
    watch = HeatWatch()
    first = watch.read_partitions(str(alone.data_dir))
    cold = {place: size for place, size in first.sizes.items() if place[0] == "heated"}
    assert cold == {("heated", n): 0 for n in range(3)}
    assert not any(first.rates.values()), "there was no look before"
    producer = Producer({"bootstrap.servers": alone.bootstrap})
    producer.produce("heated", b"x" * 50_000, partition=1)
    assert producer.flush(30) == 0
    command("topic", "create", "later", "-p", "1")
    hot = watch.read_partitions(str(alone.data_dir))
    assert hot.sizes["heated", 1] >= 50_000 and not hot.sizes["heated", 2]
    assert [place for place, rate in hot.rates.items() if rate and place[0] == "heated"] == [
        ("heated", 1)
    ]
    assert ("later", 0) in hot.sizes and list(hot.sizes) == sorted(hot.sizes)
    command("topic", "delete", "heated", "--yes")
    assert not [
        one for one in watch.read_partitions(str(alone.data_dir)).sizes if one[0] == "heated"
    ]


@given(st.lists(VALUES, min_size=2, max_size=9))
def test_levels_rise_with_values_and_their_limits_hold(values):
    top = max(values)
    levels = [level_of(one, top) for one in sorted(values)]
    assert levels == sorted(levels)
    for value, level in zip(sorted(values), levels, strict=True):
        assert (level == 0) == (value == 0)
        assert value <= limit_of(level, top) * (1 + 1e-9)
    assert not top or level_of(top, top) == LEVELS


@given(PLACES, st.integers(1, 20))
def test_every_partition_has_one_cell_in_a_line_of_its_topic(places, width):
    lines = lay_out(places, width)
    cells = [place for one in lines for place in places[one.begin : one.begin + one.count]]
    assert cells == places
    for one in lines:
        assert 0 < one.count <= width
        assert places[one.begin] == (one.topic, one.first)
        assert {name for name, _ in places[one.begin : one.begin + one.count]} == {one.topic}


def test_a_partition_has_the_lag_of_its_last_reader():
    told = [(("a", 0), 3), (("a", 0), None), (("a", 0), 9), (("b", 1), None)]
    assert worst_lags(told) == {("a", 0): 9, ("b", 1): 0}


def test_the_cursor_names_a_partition_and_leads_to_its_topic(appliance):
    async def act(seat):
        await seat.press("h")
        await seat.sees("206 partitions by ", "events 0  0 B", "most: events 22, 192 MB")
        await seat.press("right", "right")
        await seat.sees("events 2  8.00 MB")
        await seat.press("v")
        await seat.sees("B/s")
        await seat.press("v")
        await seat.sees("most: events 70, 12.0k behind")
        await seat.press("/")
        await seat.type("orders")
        await seat.press("enter", "G")
        await seat.sees("3 partitions by ", "orders 2  0 behind")
        await seat.press("k", "g", "enter")
        await seat.until(lambda: seat.app.here == Place("topic", "orders"), "the topic")
        await seat.press("h")
        await seat.until(lambda: seat.app.here == Place("heat", "orders"), "its partitions")
        await seat.press("escape")
        await seat.until(lambda: seat.app.here == Place("topic", "orders"), "up again")

    for size in (SMALL, LARGE):
        sit(appliance.bootstrap, act, size=size, prepare=told(calm_world.answers()))
