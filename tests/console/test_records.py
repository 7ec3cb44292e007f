"""Records on the screen and under it, over a real appliance: browse, tail, one record, export."""

import json
import re
import threading
import time

import pytest
from confluent_kafka import Producer

from console.model.asking.failure import Failure
from console.model.records import fetching
from console.model.records.export import Export
from console.model.records.fetching import fetch, planned
from console.model.records.filters import Filter
from console.model.records.found import found
from console.model.records.one import one
from console.model.records.running import AT_A_LOOK, DONE, FULL, PAGE, RUNNING, STOPPED, Running
from console.model.records.scan import Scan
from console.screens.places import Place
from console.screens.rows import Rows
from console.show import record_json
from tests.console.seat import LARGE, SMALL, reading, sit
from tests.console.test_screens_hostile import HOSTILE
from tests.console_process import typing

MOST = (1 << 63) - 1
BIG = b"big[/red]\x1b\0" + b"x" * 1_000_000 + b" end"


def produced(bootstrap, topic, records, **settings):
    """records: keyword arguments of `produce`."""
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 2_000_000} | settings)
    for record in records:
        producer.produce(topic, **record)
    assert not producer.flush(30)


@pytest.fixture(scope="module")
def filled(alone):
    run = typing(alone.bootstrap)
    for name, count in (("rec.orders", 3), ("rec.many", 2), ("rec.hostile", 1), ("rec.live", 1),
                        ("rec.avro", 1)):  # fmt: skip
        run("topic", "create", name, "-p", str(count), "-c", "max.message.bytes=2000000")
    produced(alone.bootstrap, "rec.orders", [
        {"key": f"eu-{n}", "value": json.dumps({"n": n, "big": MOST - n}), "partition": n % 3,
         "headers": [("trace", b"t%d" % n)], "timestamp": 1_357_635_600_000 + n}
        for n in range(300)
    ], **{"compression.type": "zstd"})  # fmt: skip
    produced(alone.bootstrap, "rec.many", [
        {"value": b"%d" % n, "partition": n % 2} for n in range(2 * PAGE + 100)
    ])  # fmt: skip
    hostile = [name.encode(errors="surrogateescape") for name in HOSTILE]
    produced(alone.bootstrap, "rec.hostile", [
        *({"key": one, "value": one, "headers": [("[/red]", one)]} for one in hostile),
        {"key": b"big", "value": BIG}, {"key": b"tombstone"}, {"value": b"\xff\xfe\0"},
        {"value": json.dumps({"least": -MOST - 1, "most": MOST, "deep": [[[]]]})},
    ])  # fmt: skip
    return alone


# Under the screen ---------------------------------------------------------------------------------


def searched(link, topic, seek, text="", limit=None):
    it = Scan(planned(link, topic, seek, time.time_ns() // 10**6), Filter(text), found, limit)
    got = []
    fetch(link, it, threading.Event(), got.extend)
    return it, got


def until(holds):
    for _ in range(1500):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("never so")


@pytest.mark.parametrize(
    ("seek", "text", "numbers"),
    [
        ("start", "", range(300)),
        ("-2", "", range(294, 300)),
        ("1:-2 2:..1", "", (2, 295, 298)),
        ("10..12", "partition:0-1", (30, 31, 33, 34)),
        ("@1357635600290", "", range(290, 300)),
        ("@1357635600100..@1357635600103", "", (100, 101, 102)),
        ("start", f"$.big = {MOST - 17}", (17,)),
        ("start", "header.trace:/^t29\\d$/ !$.n > 294", range(290, 295)),
        ("start", "key:EU-12", (12, *range(120, 130))),
        ("end", "", ()),
    ],
)
def test_a_search_finds_what_is_there(filled, seek, text, numbers):
    it, got = searched(reading(filled.bootstrap), "rec.orders", seek, text)
    assert sorted(json.loads(record.value)["n"] for record in got) == sorted(numbers)
    assert it.is_done and not it.progress(0.0).left


def test_a_search_goes_on_where_it_was_full_or_stopped(filled):
    link = reading(filled.bootstrap)
    running = Running(link, "rec.many", "start")
    got = []
    for _ in range(3):
        running.start_scan()
        until(lambda: not running.is_running)
        got += running.take_found()
        running.stop()  # nothing is running: it changes nothing
    assert running.state == DONE and running.progress.records == 2 * PAGE + 100
    assert sorted(int(record.value) for record in got) == list(range(2 * PAGE + 100))
    assert len({record.partition for record in got[:PAGE]}) == 2, "both share the first page"
    again = Running(link, "rec.many", "start")
    again.start_scan()
    again.stop()
    until(lambda: not again.is_running)
    assert again.state in (STOPPED, FULL)


def test_what_has_expired_is_told(filled):
    run = typing(filled.bootstrap)
    run("topic", "create", "rec.cut", "-p", "1")
    run("produce", "rec.cut", stdin="".join(f"{n}\n" for n in range(10)))
    run("topic", "trim", "rec.cut", "-o", "3", "--yes")
    it, got = searched(reading(filled.bootstrap), "rec.cut", "0")
    assert [int(one.value) for one in got] == list(range(3, 10))
    assert it.is_done and it.progress(0.0).expired == 3


def test_one_record_is_whole(filled):
    link = reading(filled.bootstrap)
    it = one(link, "rec.hostile", 0, len(HOSTILE))
    assert it.record.value == BIG and it.timestamp_type == "CreateTime"
    (_, cut), *_ = [(r.offset, r) for r in searched(link, "rec.hostile", f"{len(HOSTILE)}")[1]]
    assert len(cut.value) < 5000 and cut.value_size == len(BIG)
    small = one(link, "rec.orders", 1, 5)
    assert small.record.headers == [("trace", b"t16")]
    assert small.record.timestamp == 1_357_635_600_016 and small.leader_epoch == 0
    assert small.batch.compression == "zstd" and small.batch.first == 0
    with pytest.raises(Failure, match="has no record at offset 100"):
        one(link, "rec.orders", 1, 100)


def test_an_export_is_whole_or_is_called_a_part(filled, tmp_path):
    link = reading(filled.bootstrap)
    spans = planned(link, "rec.hostile", "start", 0)
    path = tmp_path / "hostile.jsonl"
    export = Export(link, spans, Filter(), record_json.whole, str(path))
    export.run()
    assert export.problem is None and not export.part.exists()
    assert path.stat().st_mode & 0o077 == 0
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(lines) == len(HOSTILE) + 4
    assert lines[-1]["value"] == json.dumps({"least": -MOST - 1, "most": MOST, "deep": [[[]]]})
    with pytest.raises(Failure, match="is there already"):
        Export(link, spans, Filter(), record_json.whole, str(path))
    raw = Export(link, spans, Filter("key:big"), lambda record: record.value, str(path), over=True)
    raw.run()
    assert path.read_bytes() == BIG
    cancelled = Export(link, spans, Filter(), record_json.whole, str(tmp_path / "no.jsonl"))
    cancelled.cancel()
    cancelled.run()
    assert cancelled.cancelled and cancelled.part.exists() and not cancelled.path.exists()
    nowhere = Export(link, spans, Filter(), record_json.whole, str(tmp_path / "no" / "x"))
    nowhere.run()
    assert "No such file" in nowhere.problem.message


def test_a_tail_that_is_far_behind_goes_on_at_the_end(filled, monkeypatch):
    monkeypatch.setattr(fetching, "BEHIND", 100)
    produced(filled.bootstrap, "rec.live", [{"value": b"%d" % n} for n in range(2000)])
    tail = Running(reading(filled.bootstrap), "rec.live", "-2000", follows=True)
    tail.start_scan()
    until(lambda: tail.passed and tail.progress.records + tail.passed == 2000)
    assert tail.progress.found == tail.progress.records
    tail.stop()


def test_a_tail_tells_what_it_skips_and_goes_on_where_it_was(filled):
    tail = Running(reading(filled.bootstrap), "rec.live", "end", follows=True)
    tail.start_scan()
    until(lambda: tail.state == RUNNING)  # it knows where the end was
    produced(filled.bootstrap, "rec.live", [{"value": b"%d" % n} for n in range(1000)])
    until(lambda: tail.skipped == 1000 - AT_A_LOOK)
    assert [int(record.value) for record in tail.take_found()] == list(
        range(1000 - AT_A_LOOK, 1000)
    )
    tail.stop()
    until(lambda: not tail.is_running)
    produced(filled.bootstrap, "rec.live", [{"value": b"meanwhile"}])
    tail.start_scan()
    until(lambda: [record.value for record in tail.take_found()] == [b"meanwhile"])
    tail.stop()
    until(lambda: not tail.is_running)
    produced(filled.bootstrap, "rec.live", [{"value": b"passed"}] * 7)
    tail.go_to_the_end()
    tail.start_scan()
    until(lambda: tail.passed == 7)
    tail.stop()


# On the screen ------------------------------------------------------------------------------------


def test_records_are_browsed_filtered_and_opened(filled):
    async def act(seat):
        await seat.press("2")
        await seat.until(lambda: seat.line("rec.orders").split()[2:3] == ["300"])
        while seat.app.view.query_one(Rows).key != "rec.orders":
            await seat.press("j")
        await seat.press("b")
        await seat.sees("OFFSET", "all looked at", "found 150 in 150 records", "2013-01-08", "eu-")
        assert "penstock consume rec.orders -o -50 -e" in seat.line("$ ")
        await seat.press("?", *["pagedown"] * 3)
        await seat.sees("FROM..TO ends before TO", "value:null: a tombstone")
        await seat.press("escape", "o", "ctrl+u")
        await seat.type("start")
        await seat.press("enter")
        await seat.sees("found 300")
        await seat.press("/")
        await seat.type(f"$.big = {MOST - 17}")
        await seat.press("enter")
        await seat.sees("found 1 in 300 records", "eu-17")
        await seat.sees("--filter '$.big =")
        await seat.press("enter")
        await seat.sees(
            "rec.orders 2:5", "CreateTime", "compression zstd", "Header trace", str(MOST - 17)
        )
        assert "penstock consume rec.orders -o 2:5..6 -J" in seat.line("$ ")
        await seat.press("v")
        await seat.sees("7b 22 6e 22")
        await seat.press("V")
        await seat.sees("37 bytes  text")
        await seat.press(*"VVVV")
        await seat.sees("37 bytes  json")
        await seat.press("escape")
        await seat.sees("found 1 in 300")
        await seat.press("/", "ctrl+u")
        await seat.type("/(/")
        await seat.press("enter")
        await seat.sees("the filter, character")
        await seat.press("escape", "escape")
        await seat.until(lambda: seat.app.here == Place("topic", "rec.orders"))
        await seat.press("b")
        await seat.sees("/(/")

    sit(filled.bootstrap, act)


def test_a_long_search_goes_on_when_it_is_told_to(filled):
    async def act(seat):
        await seat.press("o", "ctrl+u", "enter")
        await seat.sees("enough for one list", f"found {PAGE} in", "m continues")
        await seat.press("m")
        await seat.sees(f"found {2 * PAGE:,} in")
        await seat.press("m")
        await seat.sees("all looked at", f"found {2 * PAGE + 100:,} in")
        await seat.press("G", "g")
        await seat.sees(str(2 * PAGE + 99))

    sit(filled.bootstrap, act, first=Place("records", "rec.many"))


def test_a_tail_is_followed_paused_and_gone_on_with(filled):
    async def act(seat):
        async def sends(*values):
            for value in values:
                produced(filled.bootstrap, "rec.live", [{"value": value}])

        await seat.sees("● tail", "P pauses")
        await sends(b"[/red]", b"second")
        await seat.sees("[/red]", "second")
        await seat.press("P")
        await seat.sees("paused", "P continues there, t at the end")
        await sends(b"third")
        await seat.press("P")
        await seat.sees("third", "P pauses")
        await seat.press("P")
        await seat.sees("paused")
        await sends(b"fourth", b"fifth")
        await seat.press("t")
        await seat.sees("2 offsets were not looked at")
        await sends(b"sixth")
        await seat.sees("sixth")
        assert "fifth" not in seat.text()
        await seat.press("1")
        tail = seat.app._shown[Place("tail", "rec.live")]._at_work
        await seat.until(lambda: not tail.is_running, "a tail that rests")
        await sends(b"seventh")
        await seat.press("[")
        await seat.sees("seventh", "P pauses")
        assert "penstock consume rec.live -o end" in seat.line("$ ")

    sit(filled.bootstrap, act, first=Place("tail", "rec.live"))


def test_what_is_found_is_exported(filled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def act(seat):
        await seat.sees("found 150")
        await seat.press("/")
        await seat.type("key:eu-29")
        await seat.press("enter")
        await seat.sees("found 10 in 150")
        await seat.press("x")
        await seat.sees("what the filter finds in what was looked at: 10", "a line of JSON")
        await seat.press("enter")
        await seat.sees("exported 10 records", "rec.orders.jsonl")
        await seat.press("x", "enter")
        await seat.sees("rec.orders.jsonl is there already", "^o")
        await seat.press("ctrl+u")
        await seat.type("all.csv")
        await seat.press("ctrl+r")
        await seat.sees("titles and a row", "every record of the whole range", "> all.csv")
        await seat.press("enter")
        await seat.sees("exported 150 records", "all.csv")

    sit(filled.bootstrap, act, size=LARGE, first=Place("records", "rec.orders"))
    lines = [json.loads(line) for line in (tmp_path / "rec.orders.jsonl").read_bytes().splitlines()]
    assert sorted(json.loads(line["value"])["n"] for line in lines) == list(range(290, 300))
    rows = (tmp_path / "all.csv").read_text().splitlines()
    assert len(rows) == 151 and rows[0].startswith("topic,partition,offset")


def test_a_schema_file_is_chosen_where_records_are_seen(filled, tmp_path):
    pytest.importorskip("fastavro")
    path = tmp_path / "pair.avsc"
    field = {"name": "a", "type": "long"}
    path.write_text(json.dumps({"type": "record", "name": "Pair", "fields": [field]}))
    produced(filled.bootstrap, "rec.avro", [{"value": b"\xfe" + b"\xff" * 8 + b"\x01"}])

    async def act(seat):
        app = seat.app
        await seat.sees("found 1 in", "0xfeffff")
        await seat.press("A")
        await seat.form()
        await seat.type(str(tmp_path / "none.avsc"))
        await seat.press("enter")
        await seat.reads("cannot be read: No such file")
        await seat.press("ctrl+u")
        await seat.type(str(path)[:-7])
        await seat.until(lambda: app.focused._suggestion == str(path), "its whole name")
        await seat.press("right", "enter")
        await seat.back()
        await seat.sees(f'{{"a": {MOST}}}')
        assert f"--decode avro --schema {path}" in app._line()
        await seat.press("enter")
        await seat.sees("CreateTime", "10 bytes  avro", str(MOST))
        await seat.press("A")
        await seat.form()
        assert app.focused.value == str(path)
        await seat.press("ctrl+o")
        await seat.sees("Schema of the keys of rec.avro")
        await seat.press("ctrl+o", "ctrl+u", "enter")
        await seat.back()
        await seat.sees("10 bytes  hex")

    sit(filled.bootstrap, act, size=LARGE, first=Place("records", "rec.avro"))


def test_whatever_a_record_holds_is_shown_as_text(filled):
    async def act(seat):
        app = seat.app

        def fits():
            lines = seat.lines()
            assert len(lines) == SMALL[1] and app.is_running
            assert all(char.isprintable() for line in lines for char in line)

        await seat.sees("all looked at")
        await seat.press("i")
        await seat.sees("[/red]")
        await seat.press("G")
        await seat.sees("null")
        for key in "sssss":
            await seat.press(key)
            fits()
        last = len(HOSTILE) + 3
        for offset in (0, 6, 8, 10, 14, last - 3, last):
            await app.go_to(Place("record", f"rec.hostile 0:{offset}"))
            await seat.sees("CreateTime")
            fits()
            for key in "GvGw":
                await seat.press(key)
                fits()
        await seat.press("v")
        await seat.sees(str(MOST), str(-MOST - 1))

    sit(filled.bootstrap, act, first=Place("records", "rec.hostile"))


def test_the_newest_records_come_first_until_the_order_is_turned(filled):
    async def act(seat):
        def numbers():
            return [int(one) for one in re.findall(r'"n": (\d+)', seat.text())]

        await seat.sees("found 150 in")
        await seat.until(lambda: numbers()[:3] == [299, 298, 297], "the newest first")
        await seat.press("j")
        await seat.until(lambda: seat.app.view.under_cursor() == (1, 99), "the second")
        await seat.press("i")
        await seat.until(lambda: numbers()[:2] == [150, 151], "the oldest first")
        await seat.press("escape", "b")
        await seat.sees("found 150 in")
        await seat.until(lambda: numbers()[:2] == [150, 151], "it stays so")

    sit(filled.bootstrap, act, first=Place("records", "rec.orders"))


def test_a_wide_window_has_the_record_under_the_cursor_beside_the_list(filled):
    async def act(seat):
        await seat.sees("found 150 in", "rec.orders 2:99", "CreateTime", "Header trace", "t299")
        await seat.press("j", "j")
        await seat.sees("rec.orders 0:99", "t297")
        await seat.resize(*SMALL)
        await seat.misses("CreateTime")
        await seat.until(lambda: seat.app.world.beside is None, "nothing beside")

    sit(filled.bootstrap, act, size=LARGE, first=Place("records", "rec.orders"))
