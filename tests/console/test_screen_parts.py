"""The console's parts that decide: places, sources, what needs attention, figures, the log."""

import shlex
import subprocess
import threading
from types import SimpleNamespace
from unittest import mock

import pytest
from textual.binding import Binding
from textual.geometry import Size
from textual.widget import Widget

from console.model.asking.failure import Failure
from console.model.cluster.cluster import Seen
from console.model.local.attention import BAD, WARN, attention
from console.model.local.local import Facts
from console.model.local.stats import ApiRate, ProcessRate, TopicRate
from console.model.storage.disk import LogFolder
from console.screens import actions, clients, lines, places, rows, topics
from console.screens.busiest import minutes
from console.screens.chart import Chart
from console.screens.group import _spans
from console.screens.help import list_keys
from console.screens.journal import MOST, Journal
from console.screens.keys import fitting
from console.screens.log import LogView
from console.screens.places import HOME, History, NoPlace, Place, jump, keeps
from console.screens.sources import Hush, Source
from console.screens.view import _line
from console.screens.views import VIEWS
from console.show import figures
from console.show.figures import right_edge

MOST_64 = (1 << 63) - 1


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("topics", Place("topics")),
        ("t", Place("topics")),
        (" topic  orders ", Place("topic", "orders")),
        ("g a group with blanks", Place("group", "a group with blanks")),
        ("group [/red]", Place("group", "[/red]")),
        ("log", Place("log")),
        ("o", HOME),
    ],
)
def test_where_a_jump_leads(typed, place):
    assert jump(typed) == place


@pytest.mark.parametrize("typed", ["", "x", "topicss", "log today", "overview x", "["])
def test_a_jump_to_nowhere_says_where_one_can_go(typed):
    with pytest.raises(NoPlace):
        jump(typed)


def test_a_history_is_that_of_a_browser():
    here = History(HOME)
    for kind in ("topics", "groups", "groups"):
        here.go_to(Place(kind))
    assert here.back() and here.here == Place("topics")
    assert here.back() and not here.back() and here.here == HOME
    assert here.forward() and here.here == Place("topics")
    here.go_to(Place("log"))
    assert not here.forward() and here.back() and here.here == Place("topics")
    for n in range(1000):
        here.go_to(Place("topic", str(n)))
    steps = 0
    while here.back():
        steps += 1
    assert steps < 200


def test_escape_leads_up_from_everywhere():
    for kind in (*places.LISTS, "topic", "group"):
        place, steps = Place(kind, "x"), 0
        while place != HOME:
            place, steps = place.above, steps + 1
        assert steps <= 2


@pytest.mark.parametrize(
    ("typed", "name", "kept"),
    [
        ("", "orders", True),
        ("ORD", "orders", True),
        ("or ers", "orders", True),
        ("or !ers", "orders", False),
        ("!", "orders", True),
        ("[/red]", "a[/red]b", True),
        ("ord\\", "orders", False),
        ("-f oDs", "orders", True),
        ("-f o ds", "orders", True),
        ("-f dor", "orders", False),
        ("-f ", "orders", True),
    ],
)
def test_what_a_filter_keeps(typed, name, kept):
    assert keeps(typed, name) is kept


def test_one_request_is_in_flight_and_wishes_for_more_are_one():
    asked = Source("x", "", lambda: 1, every_s=10.0)
    assert asked.due(0.0)
    asked.began(0.0)
    assert not asked.due(100.0), "it is asked already"
    for _ in range(5):
        asked.request_update()
    assert not asked.due(100.0)
    asked.ended(2.0, 7)
    assert asked.shown.value == 7 and asked.shown.at_s == 2.0
    assert asked.due(2.0), "somebody wanted a newer answer than that one"
    asked.began(2.0)
    asked.ended(3.0, 8)
    assert not asked.due(12.9) and asked.due(13.0)


def test_an_answer_stays_when_a_later_request_fails_and_is_tried_again_soon():
    asked = Source("x", "", lambda: 1, every_s=10.0, retry_s=1.0)
    asked.began(0.0)
    asked.ended(1.0, "old")
    asked.began(11.0)
    gone = Failure("gone")
    asked.ended(11.5, gone)
    assert asked.shown.value == "old" and asked.shown.at_s == 1.0
    assert asked.shown.failure is gone
    assert asked.due(12.5)
    asked.began(12.5)
    asked.ended(13.0, "new")
    assert asked.shown.value == "new" and asked.shown.failure is None


def test_who_answers_slowly_is_asked_seldom():
    asked = Source("x", "", lambda: 1, every_s=1.0)
    asked.began(0.0)
    asked.ended(5.0, 1)
    assert asked.due(6.0), "the first answer was slow because everything was loaded for it"
    asked.began(6.0)
    asked.ended(11.0, 1)
    assert not asked.due(30.0) and asked.due(31.0)


# What needs attention -----------------------------------------------------------------------------


def facts(processes=(), topics=(), apis=(), replaced=None):
    return Facts(
        "d", 0, False, list(apis), list(processes), {one.topic: one for one in topics}, (), {},
        replaced or {},
    )  # fmt: skip


def process(name, state="ready"):
    return ProcessRate(name, 1, state, 0.0, 0.0, 0.0, 0.0)


def topic(name, offline):
    return TopicRate(name, 3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, offline)


def test_what_is_well_needs_no_attention():
    well = facts([process("control")], [topic("a", 0)])
    disk = LogFolder("/d", 1000, 500, 0)
    assert attention(None, well, [disk], {}) == []
    assert attention(None, None, [LogFolder("/d", -1, -1, 0)], {"a": Seen("a", 1, 1, 0)}) == []


def test_each_trouble_is_told_with_a_remedy_worst_first():
    sick = facts(
        [process("control"), process("ioproc-0", "starting"), process("netproc-0")],
        [topic(name, 2) for name in "abcde"],
        [ApiRate("Produce", 9, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, {"KAFKA_STORAGE_ERROR": 4})],
        {"netproc-0": 12.0, "control": 9999.0},
    )
    folders = [
        LogFolder("/full", 1000, 10, 0),
        LogFolder("/soon", 1000, 90, 0),
        LogFolder("/gone", -1, -1, 0, "KAFKA_STORAGE_ERROR"),
    ]
    found = attention(Failure("it is lost", "start it"), sick, folders, {})
    told = [one.what for one in found]
    assert told[0] == "it is lost" and found[0].remedy == "start it"
    assert "10 partitions offline: a, b, c and 2 more" in told
    assert "ioproc-0 is starting" in told
    assert "netproc-0 was replaced 12 s ago" in told
    assert not any("control" in one for one in told), "that was long ago"
    assert any("/gone is offline: KAFKA_STORAGE_ERROR" in one for one in told)
    assert any("4 answers" in one for one in told)
    levels = {one.what.split()[3]: one.level for one in found if one.what.startswith("the disk")}
    assert levels == {"/full": BAD, "/soon": WARN}
    assert [one.level for one in found] == sorted(
        (one.level for one in found), key=[BAD, WARN].index
    )
    assert all(one.remedy for one in found)


def test_partitions_that_nobody_leads_are_told_of_any_kafka():
    (found,) = attention(None, None, [], {"a": Seen("a", 3, 1, 1), "b": Seen("b", 1, 1, 0)})
    assert found.what == "1 partition offline: a"


# Figures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (None, "-"), (0, "0"), (0.001, "~0"), (0.02, "0.02"), (7.25, "7.25"), (42, "42"),
        (99.96, "100.0"), (940.2, "940"), (999.6, "1.00k"), (12_345, "12.3k"), (1e6, "1.00M"),
        (999_999, "1.00M"), (MOST_64, "9.22E"), (-MOST_64 - 1, "-9.22E"), (-5, "-5"),
    ],
)  # fmt: skip
def test_numbers_are_short(number, told):
    assert figures.short(number) == told


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, "0 B"), (0.2, "~0 B"), (940, "940 B"), (12_345_678, "12.3 MB"), (None, "-"),
        (1e3, "1.00 kB"),
    ],
)  # fmt: skip
def test_bytes_are_decimal(number, told):
    assert figures.in_bytes(number) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, "-"), (-1, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"),
        (12_000, "3 h 20 min"), (86_400, "1 d"), (273_600, "3 d 4 h"), (1e12, "11574074 d 1 h"),
    ],
)  # fmt: skip
def test_ages_have_two_units_at_most(seconds, told):
    assert figures.age(seconds) == told


def test_sparks_keep_what_is_newest_and_show_what_is_little():
    assert figures.spark([], 3) == "   "
    assert figures.spark([0, 0], 3) == "   "
    assert figures.spark([8, 4, 0.001, 0], 4) == "█▄▁ "
    assert figures.spark([100, 1, 1], 2) == "██"
    assert figures.spark([1], 0) == ""
    high = figures.bars([1, 2, 4], 3, 2)
    assert high == ["  █", "▄██"]


def test_a_meter_is_never_more_than_full():
    assert [figures.meter(share, 4) for share in (-1, 0.5, 9)] == ["░░░░", "██░░", "████"]


def test_partitions_are_told_as_spans():
    assert _spans([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"


# Command lines and the log ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["orders", "a b", "it's", "$(reboot)", "a\nb", "\x1b[201~rm", "tab\t'\\", "é\u202e"]
)
def test_a_name_means_itself_to_a_shell_and_has_no_control_characters(name):
    told = lines.quoted(name)
    assert told.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"printf %s {told}"], capture_output=True, check=True, timeout=30
    )
    assert done.stdout.decode() == name


def test_bytes_that_are_no_text_can_be_typed_too():
    done = subprocess.run(
        ["bash", "-c", f"printf %s {lines.quoted(chr(0xDCFF))}"],
        capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout == b"\xff"


def test_the_line_of_each_place_names_what_it_shows(monkeypatch):
    monkeypatch.delenv("PENSTOCK_BOOTSTRAP", raising=False)
    told = lines.line(Place("topic", "a b"), "localhost:9092", "")
    assert shlex.split(told)[-4:] == ["topic", "describe", "a b", "-a"]
    told = lines.line(Place("group", "g"), "far:1", "")
    assert told.endswith("group describe g -b far:1")
    assert lines.line(HOME, "far:1", "/data").endswith("stats -w --data /data")
    for kind in places.LISTS:
        assert "penstock" in lines.line(Place(kind), "far:1", "")


def test_the_log_counts_what_is_the_same_and_tells_what_changed():
    journal = Journal()
    for n in range(3):
        journal.add_entry("cluster", n, line="x", took_s=0.5)
    journal.add_entry("cluster", 3, line="x", problem="gone")
    journal.add_entry("cluster", 4, line="x", problem="gone")
    journal.add_entry("cluster", 5, line="x")
    told = [(one.problem, one.times, one.first_s, one.last_s) for one in journal.entries.values()]
    assert told == [("", 3, 0, 2), ("gone", 2, 3, 4), ("", 1, 5, 5)]
    for n in range(2 * MOST):
        journal.add_entry(f"topic {n}", n)
    journal.add_entry("cluster", 9, line="x")
    assert len(journal.entries) == MOST


def test_the_page_of_keys_is_the_registry():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "console.md").read_text()
    assert "\n".join(actions.table()) in page
    assert actions.grammar() in " ".join(page.split())


def test_a_letter_means_one_thing_in_every_view():
    """What is done may be told in other words; who learned a letter in one view knows it in the
    next."""
    of_views = {key for one in actions.ACTIONS if one.scope in actions.KINDS for key in one.keys}
    assert of_views == actions.VERBS.keys()
    everywhere = {key for one in actions.ACTIONS if one.scope == actions.APP for key in one.keys}
    in_tables = {key for one in actions.ACTIONS if one.scope == actions.ROWS for key in one.keys}
    assert not of_views & (everywhere | in_tables)
    calls = {}
    for one in actions.ACTIONS:
        if one.scope in actions.KINDS:
            calls.setdefault(one.call, set()).update(one.keys)
    assert {call: keys for call, keys in calls.items() if len(keys) > 1} == {}


@pytest.mark.parametrize(
    ("room", "left"),
    [
        (58, "open new jump help quit"),
        (57, "open new help quit"),
        (36, "open help quit"),
        (1, "help quit"),
    ],
)
def test_keys_that_do_not_fit_are_left_out_whole(room, left):
    keys = [
        SimpleNamespace(action=name, key_display="x", description=name.title() * 2)
        for name in ("open", "new", "jump", "help", "quit")
    ]
    assert " ".join(one.action for one in fitting(keys, room)) == left


def test_a_topic_shows_its_last_two_minutes():
    quiet, busy = [0.0], [5.0]
    assert minutes([], 9) == " " * 12
    assert minutes(busy, 9) == " " * 11 + "█"
    assert minutes(busy + quiet * 15, 9) == " " * 10 + "█ ", "what was written 15 s ago is seen"
    assert minutes(busy * 10 + quiet * 110, 9) == "█" + " " * 11
    assert minutes(busy * 20 + quiet * 10, 9) == " " * 9 + "██ "


def test_a_little_chart_moves_on_by_whole_columns():
    rates = [float(n % 30) for n in range(120)]
    drawn = [minutes(rates[: 60 + n], 1_000_000_059 + n) for n in range(1, 11)]
    assert len({one[:-1] for one in drawn}) == 1, "only the newest column changes meanwhile"
    assert minutes(rates[:71], 1_000_000_070)[:-2] == drawn[0][1:-1], "then all of them move"
    edges = {right_edge(1000.0 + n, 999.0 + n, 600.0, 60) for n in range(10)}
    assert edges == {1000.0, 1010.0}, "a value of the second before is in the last column"
    assert right_edge(5000.0, 100.0, 600.0, 60) == 5010.0, "nothing was heard for long"
    assert right_edge(7.0, 7.0, 600.0, 0) == 7.0


def test_what_stays_the_same_is_asked_less_often_until_somebody_looks():
    asked = Source("x", "", lambda: 1, every_s=1.0, still=lambda one: one["a"])
    now, rests = 0.0, []
    for answer in ({"a": 1, "b": n} for n in range(6)):
        asked.began(now)
        asked.compare_answer(answer)
        asked.ended(now, answer)
        rests.append(next(s / 10 for s in range(1000) if asked.due(now + s / 10)))
        now += rests[-1]
    assert rests == [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    asked.began(now)
    asked.compare_answer({"a": 1})
    asked.ended(now, {"a": 1})
    asked.hasten()
    assert not asked.due(now + 0.9) and asked.due(now + 1.0), "a key was pressed"
    for answer in ({"a": 2}, Failure("gone")):
        asked.began(now)
        asked.compare_answer(answer)
        asked.ended(now, answer)
        assert asked.due(now + 1.0), "something happened"


def test_a_key_does_not_ask_twice_while_a_request_is_in_flight():
    asked = Source("x", "", lambda: 1, every_s=1.0)
    asked.began(0.0)
    asked.hasten()
    assert not asked.due(100.0)


def test_of_a_line_only_what_can_be_seen_is_laid_out():
    assert _line("x" * 100_000) == "x" * 2000 + "…"
    assert _line("\x1b[2J") == r"\x1b[2J"


def test_threads_stand_back_while_a_key_is_answered():
    hush, went = Hush(), []

    def work():
        for number in range(3):
            hush.breathe()
            went.append(number)

    hush.breathe()  # nobody waits
    hush.begin_hush()
    thread = threading.Thread(target=work)
    thread.start()
    hush.end_hush()
    thread.join(30)
    assert went == [0, 1, 2]
    hush.begin_hush()
    hush.breathe()  # not for ever, whatever became of the key


VIEWS = VIEWS | {places.LOG: LogView}


@pytest.mark.parametrize("kind", VIEWS)
def test_help_tells_every_key_of_a_view(kind):
    keys = [one for base in VIEWS[kind].__mro__ for one in vars(base).get("BINDINGS", ())]
    live = [(one.key, one.action) for one in keys if isinstance(one, Binding)]
    assert len(list_keys(live, kind)) == len({call for _, call in live})


def test_no_two_widgets_are_called_the_same():
    """Textual takes a style by the name of a class: one would be drawn as the other."""

    def below(kind):
        for one in kind.__subclasses__():
            yield one
            yield from below(one)

    ours = [one.__name__ for one in {*below(Widget)} if one.__module__.startswith("console.")]
    assert sorted(ours) == sorted(set(ours))


def test_help_says_what_a_key_means_where_somebody_is():
    of_topics, of_groups = (
        dict(list_keys([("D", "delete")], kind)) for kind in ("topics", "groups")
    )
    assert of_topics == {"D": "With its records; its name is typed."}
    assert of_groups == {"D": "With its offsets; its name is typed."}


@pytest.mark.parametrize("columns", [topics._COLUMNS, clients._COLUMNS])
def test_names_are_not_cut_to_a_few_letters_for_figures(columns):
    for width in range(70, 240):
        shown = [columns[n] for n in rows.fitting(columns, width)]
        assert not shown[0].width and shown[-1] is columns[-1], "names, and what is wrong"
        assert width - sum(one.width + 2 for one in shown[1:]) >= 12, width


@pytest.mark.parametrize(
    ("value", "top"),
    [(0, 0), (-3, 0), (1, 1), (1.01, 2), (2.1, 4), (7e6, 8e6), (9, 10), (0.3, 0.4)],
)
def test_the_top_of_an_axis_is_round_and_not_below(value, top):
    assert figures.round_above(value) == pytest.approx(top)


def test_a_percentile_is_one_of_the_values():
    assert figures.percentile([], 0.95) == 0.0
    assert figures.percentile([3, 1, 2], 0.5) == 2
    assert figures.percentile(range(1, 101), 0.95) == 95
    assert figures.percentile([7], 0.0) == figures.percentile([7], 1.0) == 7


def framed(values, size):
    drawn = Chart("Written", is_bytes=True, name="in")
    drawn.add_class("framed")
    with mock.patch.object(Chart, "size", Size(*size)):
        drawn.show_values(values)
        return drawn.render().plain.split("\n"), str(drawn.border_subtitle)


def test_a_spike_is_cut_off_and_told():
    values = [1e6] * 60 + [90e6] + [1e6] * 59
    lines, told = framed(values, (80, 9))
    assert told == "now 1.00 MB/s  p95 1.00 MB/s  peak 90.0 MB/s"
    assert lines[0].startswith("2.00 MB/s ┤") and lines[0].count("▲") == 1
    assert lines[4].startswith("1.00 MB/s ┤") and lines[4].count("█") > 60, "the rest is seen"
    assert lines[-1].endswith(" now") and all(len(line) <= 80 for line in lines)


def test_a_chart_of_nothing_has_a_frame():
    lines, told = framed([], (40, 9))
    assert told == "nothing known yet" and lines[-1].strip().startswith("0 └")
    assert framed([0.0] * 50, (40, 9))[1] == "now 0 B/s  p95 0 B/s  peak 0 B/s"
    for size in ((40, 1), (3, 9), (1, 1), (0, 0)):
        framed([5.0] * 50, size)
