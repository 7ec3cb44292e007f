"""The console as somebody uses it: keys are pressed, the screen is read, over a real appliance."""

import re
import time

import pytest

from benchmarks.kafka import free_port
from console.model.asking.failure import Failure
from console.screens.actions import ACTIONS, APP, IN_GRID, IN_HEAT, KINDS, ROWS
from console.screens.app import ConsoleApp
from console.screens.heat_grid import HeatGrid
from console.screens.log import LogView
from console.screens.places import HOME, LISTS, LOG, Place
from console.screens.rows import Rows
from console.screens.views import VIEWS
from console.show import figures
from tests.console.seat import LARGE, SMALL, reading, sit, tab
from tests.console_process import typing


@pytest.fixture(scope="module")
def filled(alone):
    """An appliance with two topics, and a group that is behind."""
    run = typing(alone.bootstrap)
    run("topic", "create", "screens.orders", "-p", "3", "-c", "retention.ms=7d")
    run("topic", "create", "screens.quiet", "-p", "1")
    run("produce", "screens.orders", "-p", "0", stdin="".join(f"{n}\n" for n in range(500)))
    run("consume", "screens.orders", "-g", "screens.readers", "-n", "100")
    return alone


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_overview_tells_how_it_is(filled, size):
    async def act(seat):
        await seat.sees("Nothing needs attention", "Requests", "Disk", "netproc-0", "ready")
        await seat.sees("Metadata", "P99 MS", filled.bootstrap)
        assert "READ-ONLY" not in seat.text()
        assert len(seat.lines()) == size[1]
        assert all(len(line) <= size[0] for line in seat.lines())
        assert "penstock stats -w --data" in seat.line("$ ")

    sit(filled.bootstrap, act, size=size)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_topics_are_found_and_opened(filled, size):
    async def act(seat):
        await seat.press("2")
        await seat.sees("screens.orders", "500", "screens.quiet")
        await seat.press("/")
        await seat.type("SCREENS !quiet")
        await seat.misses("screens.quiet ")
        await seat.press("enter", "enter")
        await seat.sees("PARTITION", "retention.ms", "604800000", "cleanup.policy")
        assert re.search(r" 0 +0 +500 +500 +1", seat.text())
        await seat.press("c")
        await seat.misses("cleanup.policy ")
        await seat.press("c", "tab", "j")
        await seat.sees("Clean-up of old segments", "list  default delete")
        assert "penstock topic describe screens.orders -a" in seat.line("$ ")

    sit(filled.bootstrap, act, size=size)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_groups_and_their_lag(filled, size):
    async def act(seat):
        await seat.press("3")
        await seat.sees("screens.readers", "empty")
        await seat.until(lambda: re.search(r"screens\.readers .* 400 ", seat.text()), "its lag")
        await seat.press(":")
        await seat.type("g screens.readers")
        await seat.press("enter")
        await seat.sees("COMMITTED", "no member now", "lag 400")
        assert re.search(r"screens.orders +0 +100 +500 +400", seat.text())

    sit(filled.bootstrap, act, size=size)


def test_the_members_of_a_group_are_shown(filled):
    from confluent_kafka import Consumer

    consumer = Consumer(
        {"bootstrap.servers": filled.bootstrap, "group.id": "screens.live", "client.id": "[/red]"}
    )
    assigned = []
    consumer.subscribe(["screens.orders"], on_assign=lambda _, found: assigned.extend(found))
    while not assigned:
        consumer.poll(0.05)
    try:

        async def act(seat):
            await seat.sees("[/red]", "screens.orders 0-2", "stable", "1 member")

        sit(filled.bootstrap, act, first=Place("group", "screens.live"))
    finally:
        consumer.close()


def test_where_somebody_was_is_remembered(filled):
    async def act(seat):
        app = seat.app
        await seat.press("2", tab("log"), "[")
        await seat.until(lambda: app.here == Place("topics"))
        await seat.press("]")
        await seat.until(lambda: app.here == Place("log"))
        await seat.press(":")
        await seat.type("nowhere")
        await seat.press("enter")
        await seat.sees("there is no 'nowhere'")
        await seat.press("escape")
        assert app.here == Place("log")
        await seat.press("escape")
        await seat.until(lambda: app.here == Place("overview"))

    sit(filled.bootstrap, act)


def test_the_palette_finds_actions_and_topics(filled):
    async def act(seat):
        await seat.sees("Nothing needs attention")
        await seat.press("ctrl+p")
        await seat.type("screens.qu")
        await seat.sees("topic screens.quiet")
        await seat.press("enter")
        await seat.until(lambda: seat.app.here == Place("topic", "screens.quiet"))
        await seat.press("ctrl+p")
        await seat.type("Light")
        await seat.sees("Change between a light and a dark picture.")
        await seat.press("enter")
        await seat.until(lambda: seat.app.theme == "penstock-light", "the light theme")

    sit(filled.bootstrap, act)


def test_rows_are_sorted_by_each_column_in_turn(filled):
    async def act(seat):
        def names():
            return [
                name for line in seat.lines() for name in line.split()[:1] if "screens." in name
            ]

        await seat.press("2")
        await seat.sees("screens.orders", "500")
        assert names().index("screens.orders") < names().index("screens.quiet")
        await seat.press("G", "s", "s", "s")
        await seat.sees("RECORD↓")
        await seat.until(lambda: names()[0] == "screens.orders", "the topic with most records")
        for _ in range(20):
            if "↓" not in seat.text():
                break
            await seat.press("s")
        assert "↓" not in seat.text(), "after the last column as at first"

    sit(filled.bootstrap, act)


@pytest.mark.parametrize("theme", ["penstock-dark", "penstock-light"])
def test_what_is_written_can_be_read_in_both_themes(filled, theme):
    async def act(seat):
        app = seat.app
        await seat.sees("Nothing needs attention")
        app.theme = theme
        for place in (*map(Place, LISTS), Place("topic", "screens.orders")):
            await app.go_to(place)
            await seat.until(lambda place=place: app.world.main(place).shown.value is not None)
            await seat.until(lambda: all(contrast > 2.5 for _, contrast in seat.shades()), theme)

    sit(filled.bootstrap, act, size=LARGE)


def test_the_mouse_goes_to_tabs_and_rows(filled):
    async def act(seat):
        await seat.sees("Nothing needs attention")
        await seat.sees("? Help")
        keys = seat.line("? Help")
        await seat.click(offset=(keys.index("? Help"), seat.lines().index(keys)))
        await seat.sees("Keys that work here")
        await seat.press("escape")
        await seat.click(offset=(15, 1))
        await seat.sees("screens.quiet")
        row = next(
            n for n, line in enumerate(seat.lines()) if line.strip().startswith("screens.quiet")
        )
        await seat.click(offset=(3, row))
        await seat.until(lambda: seat.app.view.query_one(Rows).key == "screens.quiet")
        await seat.click(offset=(3, row))
        await seat.until(lambda: seat.app.here == Place("topic", "screens.quiet"))

    sit(filled.bootstrap, act)


def test_what_is_copied_is_the_command_line(filled):
    async def act(seat):
        await seat.press("2", "y")
        await seat.sees("copied: ")
        assert seat.app.clipboard.endswith(f"topic list -o wide -b {filled.bootstrap}")
        await seat.press(tab("log"), "v")
        await seat.sees("counters", f"stats --data {filled.data_dir}", "topic list -o wide")
        assert "copied" in [one.what for one in seat.app.journal.entries.values()]

    sit(filled.bootstrap, act, size=LARGE)


def test_help_shows_the_keys_that_work_where_it_is_asked(filled):
    async def act(seat):
        await seat.sees("Nothing needs attention")
        await seat.press("?")
        await seat.sees("Keys that work here", "Ask again now.", "One row down.")
        assert "Only settings with a value" not in seat.text()
        assert "Go into the row" not in seat.text(), "no row of the overview can be gone into"
        await seat.press("escape", "2")
        await seat.sees("screens.quiet")
        await seat.press("enter")
        await seat.until(lambda: seat.app.here.kind == "topic")
        await seat.press("?")
        await seat.sees("Only settings with a value")

    sit(filled.bootstrap, act, size=(100, 50))


def test_paused_nothing_is_asked_but_what_is_wanted(filled):
    async def act(seat):
        app = seat.app
        await seat.sees("Nothing needs attention")
        await seat.press("P")
        await seat.sees("paused")
        await seat.until(lambda: not app.world.facts.in_flight)
        seen = app.world.facts.shown.at_s
        await seat.until(lambda: "1 s" in seat.lines()[0] or "2 s" in seat.lines()[0], "its age")
        assert app.world.facts.shown.at_s == seen
        await seat.press("r")
        await seat.until(lambda: app.world.facts.shown.at_s > seen)

    sit(filled.bootstrap, act)


def test_an_appliance_that_is_lost_is_shown_again_when_it_is_back(fresh_appliance):
    appliance = fresh_appliance(num_partitions=1)

    async def act(seat):
        await seat.sees("Nothing needs attention")
        await seat.press("2")
        await seat.until(lambda: "●" in seat.lines()[0])
        appliance.kill()
        await seat.sees("✗ lost, this is", "cannot be reached", "penstock up starts")
        await seat.press("1")
        await seat.sees("! 127.0.0.1:")
        appliance.start()
        await seat.sees("Nothing needs attention", "netproc-0")
        await seat.until(lambda: "●" in seat.lines()[0])
        await seat.press(tab("log"))
        await seat.sees(f"{appliance.bootstrap} cannot be reac", "has ended")

    sit(appliance.bootstrap, act)


def test_a_process_that_is_replaced_needs_attention(fresh_appliance):
    import os
    import signal

    appliance = fresh_appliance()

    async def act(seat):
        await seat.sees("Nothing needs attention", "ioproc-0")
        facts = seat.app.world.facts.shown.value
        pid = next(one.pid for one in facts.processes if one.process == "ioproc-0")
        os.kill(pid, signal.SIGKILL)
        await seat.sees("ioproc-0 was replaced", f"{tab('log')}: its last events say why")
        await seat.press(tab("log"))
        await seat.sees("child-died", "killed by SIG")

    sit(appliance.bootstrap, act)


def test_without_an_appliance_it_says_how_to_start_one():
    address = f"127.0.0.1:{free_port()}"

    async def act(seat):
        await seat.sees("cannot be reached", "penstock up", "no answer")
        await seat.press("3")
        await seat.sees("cannot be reached")

    sit(address, act)


def test_nothing_can_be_changed_through_its_link(filled):
    from console.model.asking import configs
    from console.model.groups import groups
    from console.model.topics import topics

    link = reading(filled.bootstrap)
    target = configs.Target(configs.TOPIC, "screens.quiet")
    for change in (
        lambda: topics.add_partitions(link, "screens.quiet", 2, dry_run=False),
        lambda: topics.trim(link, "screens.orders", {0: 1}),
        lambda: groups.delete(link, ["screens.readers"]),
        lambda: groups.delete_offsets(link, "screens.readers", [("screens.orders", 0)]),
        lambda: configs.change(link, target, {"flush.ms": (configs.SET, "1")}, dry_run=False),
        link.producer,
    ):
        with pytest.raises(Failure, match="nothing can be changed"):
            change()
    (found,) = topics.described(link, ["screens.quiet"])
    assert found.partition_count == 1


def test_every_action_is_there_once_and_has_its_method():
    views = {scope: (VIEWS | {LOG: LogView})[kind] for scope, kind in KINDS.items()}
    owners = {APP: ConsoleApp, ROWS: Rows, IN_GRID: HeatGrid} | views
    for one in ACTIONS:
        method = f"action_{one.call.partition('(')[0]}"
        assert callable(getattr(owners[one.scope], method, None)), one
        assert one.title and one.about.endswith("."), one
        assert len(one.about) <= 58, f"help has no room for: {one.about}"
    for scope in KINDS:
        keys = [key for one in ACTIONS if one.scope in (APP, ROWS, scope) for key in one.keys]
        assert len(keys) == len(set(keys)), "a key does one thing"
    keys = [key for one in ACTIONS if one.scope in (APP, IN_HEAT, IN_GRID) for key in one.keys]
    assert len(keys) == len(set(keys)), "a key does one thing"


def test_the_overview_of_a_large_window_leads_to_topics_and_groups(filled):
    async def act(seat):
        await seat.sees("Busiest topics", "Groups by lag", "Requests by API")
        await seat.until(lambda: "screens.readers" in seat.text() and "400" in seat.text())
        rows = seat.app.view.query_one("#topics")
        await seat.until(lambda: rows.key == "screens.orders", "the largest topic first")
        await seat.press("enter")
        await seat.until(lambda: seat.app.here == Place("topic", "screens.orders"))
        await seat.press("escape", "escape")
        await seat.until(lambda: seat.app.here == HOME)
        await seat.press("tab", "enter")
        await seat.until(lambda: seat.app.here == Place("group", "screens.readers"))

    sit(filled.bootstrap, act, size=LARGE)


def test_the_overview_follows_the_size_of_its_window(filled):
    async def act(seat):
        await seat.sees("Nothing needs attention")
        assert "Busiest topics" not in seat.text()
        await seat.resize(*LARGE)
        await seat.sees("Busiest topics")
        await seat.until(lambda: seat.app.focused is seat.app.view.query_one("#topics"))
        await seat.resize(*SMALL)
        await seat.misses("Busiest topics")
        await seat.press("enter")
        assert seat.app.here == HOME, "what is not seen is not gone into"

    sit(filled.bootstrap, act, size=SMALL)


def test_a_filter_begins_empty(filled):
    async def act(seat):
        await seat.press("2")
        await seat.sees("screens.orders", "screens.quiet")
        await seat.press("/", *"quiet", "enter")
        await seat.misses("screens.orders ")
        await seat.press("/")
        await seat.sees("screens.orders")
        await seat.press(*"orders", "enter")
        await seat.misses("screens.quiet ")
        assert "screens.orders" in seat.text()

    sit(filled.bootstrap, act)


def test_times_are_shown_in_the_zone_of_the_host_or_in_utc(filled, monkeypatch):
    monkeypatch.setenv("TZ", "XYZ-5")
    time.tzset()

    async def act(seat):
        app = seat.app
        await seat.sees("XYZ")
        assert figures.moment(0) == "1970-01-01 05:00:00"
        await seat.press("Z")
        await seat.hears("times are in UTC")
        await seat.misses("XYZ")
        assert figures.moment(0) == "1970-01-01 00:00:00"
        assert figures.moment_in_zone(0) == "1970-01-01T00:00:00+0000"
        await seat.press("Z", "Z")
        await seat.until(lambda: app.zone.zone_name == "UTC")

    try:
        sit(filled.bootstrap, act, size=LARGE)
        assert figures.moment(0) == "1970-01-01 05:00:00", "the process has its zone back"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("size", [LARGE, (120, 40)], ids=["beside", "below"])
def test_a_large_window_has_what_is_under_the_cursor_with_a_list(filled, size):
    async def act(seat):
        await seat.press("2")
        await seat.sees("Partitions  3", "█████████")
        await seat.press("j")
        await seat.sees("Partitions  1")
        await seat.press("3")
        await seat.sees("Lag by partition  ", "400")
        await seat.press("1")
        await seat.until(lambda: seat.app.here == HOME)
        asked = [one.name for one in seat.app.world.asked(HOME)]
        assert not any("screens." in name for name in asked), "what is not seen is not asked"

    sit(filled.bootstrap, act, size=size)
