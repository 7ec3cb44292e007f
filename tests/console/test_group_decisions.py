"""What is decided about groups without asking anybody: where lag leads, what expires unread, who is
put out."""

import os
from struct import Struct

import pytest

from console.model.asking.failure import Failure
from console.model.groups import group_changes, members, trend
from console.model.groups.group_watch import KeptLags
from console.model.groups.groups import Group, Member
from console.model.groups.lag import Position
from console.model.groups.trend import Past
from console.model.local.attention import BAD, WARN, attention
from console.model.local.history import Series
from console.model.topics import expiry, segments
from console.model.topics.expiry import BY_SIZE, BY_TIME, LOST, Fate, Keep, Log, Risk
from console.model.topics.segments import Segment
from console.screens.group_forms import seek_form
from console.show.leads import leads

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def position(topic, partition, committed, end, start=0):
    lag = None if committed is None else end - max(committed, start)
    return Position(topic, partition, committed, start, end, lag, None, None, None, None)


@pytest.mark.parametrize(
    ("lags", "words"),
    [
        ([], ""),
        ([100, 90], ""),
        ([500] * 10, "stays"),
        ([1000, 1003, 998, 1001, 1000, 1002], "stays"),
        ([0, 50, 100, 150, 200], "grows 10/s: never drains"),
        ([1000, 900, 800, 700, 600], "drains in 30 s"),
        ([90_000, 89_500, 89_000, 88_500], "stays"),
        ([40, 20, 0], "up to date"),
        ([5, 5, 5, 4, 3, 2], "drains in 1"),
    ],
)
def test_where_lag_leads(lags, words):
    samples = [(1000.0 + 5 * n, lag) for n, lag in enumerate(lags)]
    told = leads(trend.trend(samples))
    assert told == words or (words and words[-1].isdigit() and told.startswith(words))


def test_a_trend_is_about_the_last_minutes_alone():
    grew = [(float(n), n * 1000) for n in range(0, 600, 10)]
    drains = [(600.0 + n, 600_000 - n * 1000) for n in range(0, 301, 10)]
    found = trend.trend(grew + drains)
    assert round(found.grows_s) == -1000
    assert round(found.drains_s) == 300


def test_columns_are_of_equal_time_and_keep_the_peaks():
    samples = [(0.0, 5), (10.0, 1), (11.0, 9), (40.0, 2)]
    assert trend.columns(samples, 4, 40.0, 40.0) == [5, 9, 9, 2]
    assert trend.columns(samples, 4, 80.0, 40.0) == [2, 2, 2, 2]
    assert trend.columns([(30.0, 3)], 4, 40.0, 40.0) == [-1, -1, -1, 3]
    assert trend.columns([(99.0, 3)], 2, 40.0, 40.0) == [-1, -1], "that is to come"


def test_the_past_has_its_bound_and_keeps_the_last_minutes_exact():
    past = Past(0.0)
    for n in range(5000):
        past.add_sample(float(n), [position("a", 0, 0, n), position("b", 0, 0, 1)])
    assert len(past.all) < 300
    assert past.all[-1] == (4999.0, 5000) and past.all[-2] == (4998.0, 4999)
    assert past.all[0][0] < 100, "the first hours are there"
    assert set(past.topics) == {"a", "b"} and past.topics["b"][-1] == (4999.0, 1)
    past.add_sample(5000.0, [position("b", 0, 0, 1), position("c", 0, None, 7)])
    assert set(past.topics) == {"b"}, "what was never committed has no lag"


def test_when_an_offset_moved_and_how_fast_it_is_read():
    past = Past(0.0)
    place = ("a", 0)
    past.add_sample(0.0, [position("a", 0, 100, 1000)])
    assert past.moved_s(place) is None
    assert past.reads_s(place, 0.0) == 0
    for n in range(1, 21):
        past.add_sample(n * 5.0, [position("a", 0, 100 + n * 50, 10_000)])
    assert past.moved_s(place) == 100.0
    assert past.reads_s(place, 100.0) == pytest.approx(10, rel=0.01)
    past.add_sample(105.0, [position("a", 0, 1100, 10_000)])
    assert past.moved_s(place) == 100.0
    past.add_sample(110.0, [position("a", 0, 3, 10_000)])
    assert past.moved_s(place) == 110.0
    assert past.reads_s(place, 112.0) == 0, "going back is not reading"


def test_what_the_appliance_wrote_down_comes_before_what_was_seen():
    told = {
        ("g", "a"): Series((60.0, 120.0, 180.0), (5.0, 6.4, 9.0)),
        ("g", "b"): Series((120.0,), (1.0,)),
        ("other", "a"): Series((60.0,), (100.0,)),
    }
    asked = []
    kept = KeptLags(lambda: "here", lambda folder: asked.append(folder) or told)
    found = kept.of("g", 180.0)
    assert found.samples == ((60.0, 5), (120.0, 7))
    assert found.topics == {"a": ((60.0, 5), (120.0, 6)), "b": ((120.0, 1),)}
    assert kept.of("nobody", 180.0).samples == ()
    assert asked == ["here"], "it is written once a minute, and read no more often"
    assert KeptLags(lambda: "", asked.append).of("g", 180.0).samples == ()


def log(*newest_h, high=400, size=100):
    """Segments of 100 records each, the newest record of each so many hours old."""
    found = tuple(Segment(n * 100, size, NOW_MS) for n in range(len(newest_h)))
    return Log(high, found, {n: NOW_MS - round(h * HOUR_MS) for n, h in enumerate(newest_h)})


def test_whole_segments_expire_when_their_newest_record_does():
    keep = Keep(5 * HOUR_MS, -1, 1000)
    found = expiry.fate(120, log(9, 4, 3, 1), keep, NOW_MS)
    assert found == Fate(80, 3600.0, BY_TIME, 5 * 3600.0, exact=True)
    assert expiry.fate(100, log(9, 6, 3, 1), keep, NOW_MS).in_s == 0
    assert expiry.fate(350, log(9, 4, 3, 1, high=380), keep, NOW_MS).records == 30
    assert expiry.fate(400, log(9, 4, 3, 1), keep, NOW_MS) is None, "it is read to the end"
    assert expiry.fate(120, log(9, 4, 3, 1), Keep(-1, -1, 1000), NOW_MS) is None
    assert expiry.fate(120, Log(400, (), {}), keep, NOW_MS) is None, "nothing is known of it"


def test_the_newest_record_is_looked_for_in_two_segments_at_most():
    many = log(*range(50, 0, -1), high=5000)
    assert expiry.asked(2050, many) == [20, 40]
    assert expiry.asked(4950, many) == [40, 49]
    assert expiry.asked(0, Log(0, (), {})) == []


def test_segments_go_when_enough_comes_behind_them():
    hours = log(4, 3, 2, 1)  # 300 bytes were written in the last four hours
    found = expiry.fate(50, hours, Keep(-1, 450, 1000), NOW_MS)
    assert (found.records, found.by) == (50, BY_SIZE)
    assert found.in_s == pytest.approx((450 - 300) / 300 * 4 * 3600)
    last = expiry.fate(390, hours, Keep(-1, 450, 1000), NOW_MS)
    assert last.in_s == pytest.approx((450 + 900) / 300 * 4 * 3600), "it has to be full first"
    both = expiry.fate(50, hours, Keep(4 * HOUR_MS + 60_000, 450, 1000), NOW_MS)
    assert (both.by, both.in_s) == (BY_TIME, 60.0), "whatever comes first"
    assert expiry.fate(0, log(1), Keep(-1, 450, 1000), NOW_MS) is None, "no rate is known"


@pytest.mark.parametrize(
    ("in_s", "kept_s", "reads_s", "warns"),
    [
        (900, 3600, 0.0, True),
        (901, 3600, 0.0, False),
        (86_400, 7 * 86_400, 0.0, True),
        (3 * 86_400, 30 * 86_400, 0.0, False),  # two days at most
        (600, 3600, 1.0, False),  # 500 records are read before
        (600, 3600, 0.5, True),
        (0, 3600, 1000.0, True),
    ],
)
def test_somebody_is_told_in_time_and_not_for_nothing(in_s, kept_s, reads_s, warns):
    assert expiry.warns(Fate(500, in_s, BY_TIME, kept_s, exact=True), 500, reads_s) is warns


def test_where_segments_are_not_known_the_oldest_record_says_when_it_may_go():
    found = expiry.fate_by_age(3000, 70, Keep(HOUR_MS, 100, 100))
    assert found == Fate(70, 600.0, BY_TIME, 3600.0, exact=False)
    assert expiry.fate_by_age(9999, 70, Keep(HOUR_MS, 100, 100)).in_s == 0
    assert expiry.fate_by_age(9999, 70, Keep(-1, 100, 100)) is None


def test_risks_are_one_for_each_topic_and_told_in_a_sentence():
    soon, later = (Fate(1200, s, BY_TIME, 36_000, exact=True) for s in (2400, 7300))
    gone = Fate(5, 0, LOST, 0, exact=True)
    found = expiry.by_topic("x", 2, [(("a", 1), later), (("a", 0), soon), (("b", 3), gone)])
    assert [(one.topic, one.partitions, one.records) for one in found] == [
        ("b", (3,), 5), ("a", (0, 1), 2400),
    ]  # fmt: skip
    assert [expiry.describe_risk(one) for one in found] == [
        "group x has not read 5 records of b-3 that are deleted",
        "group x loses 2,400 records of a (2 partitions, first 0) in about 40 min: retention.ms",
    ]
    (far,) = expiry.by_topic("x", 0, [(("a", 0), Fate(1, 200_000, BY_TIME, 1e6, exact=False))])
    assert expiry.describe_risk(far) == (
        "group x can lose 1 record of a-0 in 2 d at the earliest: retention.ms"
    )


def test_what_expires_needs_attention_once_for_each_group():
    def risk(group, by, members, in_s=60.0):
        return Risk(group, "t", (0,), 10, in_s, by, exact=True, members=members)

    found = attention(
        None, None, [], {},
        [risk("x", BY_TIME, 0), risk("x", BY_SIZE, 0), risk("live", LOST, 1), risk("old", LOST, 0)],
    )  # fmt: skip
    assert [(one.level, one.remedy, one.place) for one in found] == [
        (BAD, "or :group live", "groups"),
        (WARN, "or :group x", "groups"),
    ]


def test_segments_are_read_from_a_folder(tmp_path):
    entry = Struct(">qi")
    for base, size, stamps in ((0, 10, (5, 7)), (100, 20, ()), (200, 30, (NOW_MS * 2,))):
        stem = tmp_path / f"{base:020d}"
        stem.with_suffix(".log").write_bytes(b"x" * size)
        os.utime(stem.with_suffix(".log"), (1234, 1234))
        index = b"".join(entry.pack(stamp, n) for n, stamp in enumerate(stamps))
        stem.with_suffix(".timeindex").write_bytes(index + b"half")
    for other in ("00000000000000000300.index", "x.log", "00000000000000000000.log.deleted"):
        (tmp_path / other).write_bytes(b"")
    found = segments.segments(str(tmp_path))
    assert [(one.base, one.size) for one in found] == [(0, 10), (100, 20), (200, 30)]
    newest = [segments.newest_ms(str(tmp_path), one, NOW_MS) for one in found]
    assert newest == [7, 1_234_000, 1_234_000], "without a timestamp, or one to come, the file's"
    assert segments.segments(str(tmp_path / "gone")) == []


def test_no_name_of_a_topic_leads_out_of_the_log_folder(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "other-0").mkdir()
    (tmp_path / "logs" / "t-0").mkdir()
    folders = [str(tmp_path / "logs")]
    assert segments.folder_of(folders, ("t", 0)) == str(tmp_path / "logs" / "t-0")
    for name in ("../other", "nul\0", "\udcff", "t"):
        assert segments.folder_of(folders, (name, 1 if name == "t" else 0)) is None


def test_members_are_found_by_any_of_their_names():
    group = Group(
        "g", "stable", "classic", "", 1,
        (Member("m-1", "static", "c", "/h", ()), Member("m-2", None, "c", "/h", ()),
         Member("m-3", None, "alone", "/h", ())),
    )  # fmt: skip
    assert [one.member_id for one in members.named(group, ["static", "m-2", "alone"])] == [
        "m-1", "m-2", "m-3",
    ]  # fmt: skip
    for name in ("c", "nobody"):
        with pytest.raises(Failure, match=r"has (several members|no member) called"):
            members.named(group, [name])


def test_where_to_is_checked_while_it_is_typed():
    form = seek_form("g", [position("t", 0, 1, 2)])
    values = dict.fromkeys((one.key for one in form.fields), "")
    for right in ("start", "+5", "-5", "47", "end-5", "@2013-01-31", "2h", ""):
        assert form.wrong(values | {"to": right}) == {}
    for wrong in ("later", "+", "[/red]", "e@2h", "\x1b[2J"):
        assert set(form.wrong(values | {"to": wrong})) == {"to"}
    for several in ({}, {"to": "start", "group": "x"}, {"group": "x", "file": "y"}):
        with pytest.raises(Failure, match="one of the three"):
            form.propose(values | several)
    with pytest.raises(Failure, match="nothing is read from the terminal"):
        form.propose(values | {"file": "-"})
    assert (
        group_changes.propose_move("g", to="-5", topics=("a", "b:0")).title == "Reset offsets of g"
    )
