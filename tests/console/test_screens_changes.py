"""Changes from the console: keys are pressed, then the broker is asked what is there."""

import os
import signal

import pytest

from console.model.asking import configs
from console.model.asking.configs import Target
from console.model.asking.failure import Failure
from console.model.topics import topics
from console.screens.changes.dialog import AT_WORK, READY
from console.screens.changes.form_screen import FormScreen
from console.screens.places import Place
from console.screens.rows import Rows
from tests.console.seat import LARGE, reading, sit, tab, writing
from tests.console_process import typing


@pytest.fixture(scope="module")
def filled(alone):
    run = typing(alone.bootstrap)
    run("topic", "create", "kept", "gone", "cut", "wide", "many.1", "many.2", "many.3", "-p", "3")
    for name in ("gone", "cut"):
        run("produce", name, "-p", "0", stdin="".join(f"{n}\n" for n in range(100)))
    return alone


def known(bootstrap):
    return topics.listed(reading(bootstrap))


def value(bootstrap, name, key):
    (one,) = configs.settings(reading(bootstrap), Target(configs.TOPIC, name), (key,))
    return one.value, one.source


async def under_cursor(seat, name):
    def there():
        rows = [one for one in seat.app.view.query(Rows) if one.display][-1]
        if rows.key != name and rows.count:
            keys = list(rows._keys)
            if name in keys:
                rows._to(keys.index(name))
        return rows.key == name

    await seat.until(there, f"the cursor on {name}")


def test_a_topic_is_made_as_the_broker_showed_it(filled):
    name = "made"

    async def act(seat):
        await seat.press("2")
        await seat.sees("kept")
        await seat.press("n")
        await seat.sees("New topic", "Partitions")
        assert "1Overview" in seat.text(), "the place is seen behind it"
        await seat.type("a b")
        await seat.press("enter")
        await seat.sees("letters, digits, dot")
        await seat.press("ctrl+u")
        await seat.type(name)
        await seat.press("tab")
        await seat.type("0")
        await seat.press("enter")
        await seat.sees("a whole number, 1 or more")
        await seat.press("backspace", "7", "tab", "tab", "tab")
        await seat.type("7d")
        await seat.press("enter")
        await seat.plan()
        await seat.sees("SETTING", "partitions", "retention.ms", "604800000")
        assert f"topic create {name} -p 7 -c retention.ms=604800000" in seat.text()
        assert seat.app.focused.id == "cancel"
        assert name not in known(filled.bootstrap)
        await seat.press("enter")
        await seat.sees("New topic")
        assert name in seat.text(), "what was typed is still there"
        assert name not in known(filled.bootstrap)
        await seat.press("enter")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        await seat.hears(f"Create topic {name}: created")
        assert len(known(filled.bootstrap)[name].partitions) == 7
        assert value(filled.bootstrap, name, "retention.ms") == ("604800000", "topic")
        await seat.press(tab("log"), "/")
        await seat.type("console")
        await seat.press("enter")
        await seat.sees("1 change of this console", f"Create topic {name}: created")
        await seat.press("y")
        assert f"topic create {name} -p 7" in seat.app.clipboard

    sit(filled.bootstrap, act)


def test_what_the_broker_refuses_leaves_what_was_typed_and_so_does_escape(filled):
    async def act(seat):
        await seat.press("2")
        await seat.sees("kept")
        await seat.press("n")
        await seat.type("kept")
        await seat.press("enter")
        await seat.sees("already exists")
        await seat.press("escape")
        await seat.back()
        await seat.press("n")
        await seat.until(lambda: isinstance(seat.app.screen, FormScreen))
        assert seat.app.screen.values["name"] == "kept"
        await seat.press("ctrl+u")
        await seat.type("[/red]")
        await seat.press("enter")
        await seat.sees("letters, digits, dot")

    sit(filled.bootstrap, act)


def test_a_setting_is_changed_at_once_and_taken_back(filled):
    async def act(seat):
        await seat.sees("retention.ms")
        await under_cursor(seat, "retention.ms")
        await seat.press("e")
        await seat.sees("Set retention.ms of kept", "604800000", "Follow the broker")
        await seat.press("ctrl+u")
        await seat.type("2d")
        await seat.sees("→  172800000")
        await seat.press("enter")
        await seat.back()
        await seat.hears("u takes it back")
        assert value(filled.bootstrap, "kept", "retention.ms") == ("172800000", "topic")
        await seat.until(lambda: "172800000" in seat.line("retention.ms"), "the new value")
        await seat.press("u")
        await seat.until(lambda: not seat.app.door._busy, "an answer")
        assert value(filled.bootstrap, "kept", "retention.ms")[1] != "topic", "the old value"
        await seat.press("u")
        await seat.until(
            lambda: value(filled.bootstrap, "kept", "retention.ms") == ("172800000", "topic"),
            "the new value again",
        )
        await seat.until(lambda: not seat.app.door._busy, "an answer")
        await under_cursor(seat, "flush.ms")
        await seat.press("e")
        await seat.sees("Set flush.ms of kept")
        await seat.press("ctrl+u")
        await seat.type("soon")
        await seat.press("enter")
        await seat.sees("flush.ms", "Invalid value")
        assert seat.app.screen.values["value"] == "soon"

    sit(filled.bootstrap, act, size=LARGE, first=Place("topic", "kept"))


def test_settings_are_edited_as_lines_and_only_what_differs_is_sent(filled):
    link = writing(filled.bootstrap)
    target = Target(configs.TOPIC, "wide")
    set_ = {"retention.ms": (configs.SET, "5000000"), "flush.ms": (configs.SET, "1000")}
    configs.change(link, target, set_, dry_run=False)

    async def act(seat):
        await seat.sees("5000000")
        await seat.press("E")
        await seat.sees("flush.ms=1000", "retention.ms=5000000")
        await seat.press("ctrl+home", "ctrl+k", "delete")
        await seat.type("segment.bytes=10MiB")
        await seat.press("enter")
        # Somebody else changes meanwhile what is not touched here.
        other = {"retention.ms": (configs.SET, "6000000")}
        configs.change(link, target, other, dry_run=False)
        await seat.press("ctrl+s")
        await seat.plan()
        await seat.sees("flush.ms", "segment.bytes", "10485760")
        assert "alter-config wide --set segment.bytes=10485760 --delete flush.ms" in seat.text()
        await seat.press("tab", "enter")
        await seat.back()
        assert value(filled.bootstrap, "wide", "segment.bytes") == ("10485760", "topic")
        assert value(filled.bootstrap, "wide", "flush.ms")[1] != "topic"
        assert value(filled.bootstrap, "wide", "retention.ms") == ("6000000", "topic")

    sit(filled.bootstrap, act, size=LARGE, first=Place("topic", "wide"))


def test_partitions_are_added_after_it_was_said_what_becomes_of_keys(filled):
    async def act(seat):
        await seat.sees("3 partitions")
        await seat.press("+")
        await seat.type("3")
        await seat.press("enter")
        await seat.sees("they can only become more")
        await seat.press("backspace", "6", "enter")
        await seat.plan()
        await seat.sees("50% go to another partition", "+3")
        await seat.press("escape", "escape")
        await seat.back()
        assert len(known(filled.bootstrap)["cut"].partitions) == 3
        await seat.press("+", "enter")
        await seat.plan()
        await seat.press("tab", "enter")
        await seat.back()
        await seat.sees("6 partitions")
        assert len(known(filled.bootstrap)["cut"].partitions) == 6

    sit(filled.bootstrap, act, first=Place("topic", "cut"))


def test_records_are_trimmed_once_the_name_is_typed(filled):
    async def act(seat):
        await seat.sees("partitions")
        await seat.press("X")
        await seat.type("30")
        await seat.press("tab", "0", "enter")
        await seat.plan()
        await seat.sees("records", "30", "size, about", "read by", "Type cut to continue")
        await seat.type("cup")
        await seat.press("enter")
        await seat.sees("nothing was done")
        await seat.press("backspace")
        await seat.type("t")
        await seat.press("enter")
        await seat.back()
        (found,) = topics.described(reading(filled.bootstrap), ["cut"])
        assert (found.partitions[0].start, found.partitions[0].end) == (30, 100)

    sit(filled.bootstrap, act, first=Place("topic", "cut"))


def test_a_topic_is_deleted_by_its_name_and_brought_back(filled):
    async def act(seat):
        await seat.sees("PARTITION", "100")
        await seat.press("D")
        await seat.plan()
        await seat.sees("Delete topic gone", "records", "100", "read by", "nobody now")
        await seat.sees("it can be brought back")
        go = seat.app.screen.query_one("#go")
        assert go.disabled
        await seat.type("gone")
        await seat.until(lambda: not go.disabled)
        await seat.click("#go")
        await seat.back()
        await seat.until(lambda: seat.app.here == Place("topics"), "what is left")
        assert "gone" not in known(filled.bootstrap)
        await seat.press("U")
        await seat.sees("can be brought back with all", "gone")
        await seat.press("enter")
        await seat.hears("Undelete topic gone: it is back")
        (found,) = topics.described(reading(filled.bootstrap), ["gone"])
        assert found.records == 100
        await seat.press("u")
        await seat.plan()
        await seat.sees("Delete topic gone", "Type gone to continue")
        await seat.press("escape")
        await seat.back()
        assert "gone" in known(filled.bootstrap)

    sit(filled.bootstrap, act, first=Place("topic", "gone"))


def test_several_topics_are_marked_and_deleted_by_their_number(filled):
    async def act(seat):
        await seat.press("2")
        await under_cursor(seat, "many.1")
        await seat.press("space")
        await under_cursor(seat, "many.3")
        await seat.press("space")
        await seat.sees("● many.1", "● many.3")
        await seat.press("D")
        await seat.plan()
        await seat.sees("Delete 2 topics", "many.1", "many.3", "topic delete many.1 many.3")
        await seat.type("many.1")
        await seat.press("enter")
        await seat.sees("nothing was done")
        await seat.press("ctrl+u", "2", "enter")
        await seat.back()
        await seat.hears("Delete 2 topics: deleted")
        assert [name for name in known(filled.bootstrap) if "many" in name] == ["many.2"]

    sit(filled.bootstrap, act)


def test_only_reading_nothing_is_asked_for_and_everything_is_refused(filled):
    async def act(seat):
        await seat.sees("READ-ONLY", "retention.ms")
        for key in ("D", "X", "+", "e", "E"):
            await seat.press(key)
            await seat.hears("nothing can be changed with --read-only")
            assert len(seat.app.screen_stack) == 1
            seat.app.clear_notifications()
        for link in (seat.app.world.link, seat.app.door._writing):
            with pytest.raises(Failure, match="nothing can be changed"):
                topics.create(link, ["sly"], settings={}, dry_run=False)
            with pytest.raises(Failure, match="nothing can be changed"):
                topics.delete(link, ["kept"])
            assert topics.create(link, ["checked"], settings={}, dry_run=True) == {"checked": None}

    sit(filled.bootstrap, act, first=Place("topic", "kept"), read_only=True)
    assert not {"sly", "checked"} & known(filled.bootstrap).keys()


def test_the_palette_offers_changes_and_a_key_says_where_it_works(filled):
    async def act(seat):
        await seat.sees("Nothing needs attention")
        await seat.press("X")
        await seat.hears("Trim works in a topic")
        await seat.press("ctrl+p")
        await seat.type("New topic")
        await seat.sees("what it would be is shown first")
        await seat.press("enter")
        await seat.until(lambda: isinstance(seat.app.screen, FormScreen))
        assert seat.app.here == Place("topics")
        await seat.press("escape")
        await seat.press("ctrl+p")
        await seat.type("Add part")
        await seat.sees("what that does to keys")
        await seat.press("enter")
        await seat.hears("Add partitions works in a topic: go to one first")

    sit(filled.bootstrap, act)


def test_the_refresh_rests_while_a_change_is_on_its_way(filled):
    import threading

    from console.model.asking.change import Change, Proposal, Tier

    may_go_on = threading.Event()

    def apply(link):
        assert may_go_on.wait(30)
        return "it is done"

    async def act(seat):
        app = seat.app
        await seat.sees("Nothing needs attention")
        change = Change("Do", ("version",), apply)
        app.door.open_proposal(Proposal("Wait", Tier.UNDO, lambda link: change))
        await seat.until(lambda: app.door.in_flight)
        await seat.until(lambda: not any(one.in_flight for one in app.world.asked(app.here)))
        seen = app.world.facts.shown.at_s
        await seat.until(lambda: "2 s" in seat.lines()[0], "what is seen gets old")
        assert app.world.facts.shown.at_s == seen
        app.door.open_proposal(Proposal("Another", Tier.UNDO, lambda link: change))
        await seat.hears("Wait is still on its way")
        may_go_on.set()
        await seat.hears("Wait: it is done")
        await seat.until(lambda: app.world.facts.shown.at_s > seen, "a new answer at once")
        await seat.press("u")
        await seat.hears("Wait: this cannot be taken back")

    sit(filled.bootstrap, act)


def _pid(app, process):
    facts = app.world.facts.shown.value
    return next(one.pid for one in facts.processes if one.process == process)


def test_whatever_dies_while_a_dialog_is_open_no_change_is_lost_and_none_is_doubled(
    fresh_appliance,
):
    appliance = fresh_appliance(num_partitions=1)

    async def act(seat):
        app, link = seat.app, reading(appliance.bootstrap)
        await seat.press("2")
        await seat.until(lambda: app.world.facts.shown.value is not None)
        await seat.press("n")
        await seat.type("once")
        await seat.press("tab", "2", "enter")
        await seat.plan()
        os.kill(_pid(app, "control"), signal.SIGKILL)
        await seat.press("right", "enter")
        await seat.back()
        await seat.hears("Create topic once: created")
        assert [one.partitions for one in topics.listed(link).values()] == [(0, 1)]
        assert topics.deleted(link) == []
        await seat.press("r")
        await under_cursor(seat, "once")
        await seat.press("D")
        await seat.plan()
        await seat.type("once")
        os.kill(_pid(app, "netproc-0"), signal.SIGKILL)
        await seat.press("enter")
        await seat.back()
        await seat.hears("Delete topic once: deleted")
        assert topics.listed(link) == {}
        assert len(topics.deleted(link)) == 1, "it was deleted once"
        await _is_waited_for(seat, appliance)

    sit(appliance.bootstrap, act)


async def _is_waited_for(seat, appliance):
    """All of it dies; what was typed and planned is there when it is back."""
    app = seat.app
    await seat.press("n")
    await seat.type("later")
    await seat.press("enter")
    await seat.plan()
    appliance.kill()
    await seat.press("right", "enter")
    await seat.sees("the outcome is not known yet")
    assert app.screen.state == AT_WORK
    await seat.press("escape")
    await seat.sees("the outcome is not known", "check before you retry")
    assert app.screen.state == READY
    await seat.press("escape")
    await seat.sees("New topic")
    assert app.screen.values["name"] == "later"
    await seat.press("enter")
    await seat.sees("cannot be reached")
    appliance.start()
    await seat.press("enter")
    await seat.plan()
    await seat.press("right", "enter")
    await seat.back()
    assert list(topics.listed(reading(appliance.bootstrap))) == ["later"]
