"""The comparison's own arithmetic: what it keeps, reads off tools, and concludes."""

import json

import pytest

from benchmarks import batches
from benchmarks.compare import check, command, goals, java_loads, rdkafka, report
from benchmarks.compare.journal import Entry, Journal
from benchmarks.compare.measure import FIGURES, Effort
from benchmarks.compare.rows import ROWS, choose
from benchmarks.compare.run import Plan, Run
from benchmarks.peer import WrongAnswer

ROW = "raw-d1-1x100-5"


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "journal.jsonl")


def fill(journal, row, figure, ours, theirs):
    for number, pair in enumerate(zip(ours, theirs, strict=True)):
        for system, value in zip(("penstock", "kafka"), pair, strict=True):
            journal.add(Entry(number, row, system, {figure: value}))


def test_a_run_goes_on_behind_a_line_that_was_cut_off(journal):
    fill(journal, ROW, "requests_s", [3.0], [2.0])
    with journal.path.open("a") as file:
        file.write('{"round": 1, "row": "raw')
    again = Journal(journal.path)
    assert again.entries == journal.entries
    again.add(Entry(1, ROW, "kafka", failed="broken"))
    assert not Journal(journal.path).has(1, ROW, "kafka")


def test_a_failed_row_is_reported_until_it_was_made_up_for(journal):
    journal.add(Entry(0, ROW, "kafka", failed="closed"))
    assert journal.reasons(ROW, "kafka") == ["failed: closed"]
    journal.add(Entry(0, ROW, "kafka", {"requests_s": 1.0}))
    assert journal.reasons(ROW, "kafka") == []


def test_the_worst_row_decides_about_a_goal(journal):
    fill(journal, "w5-hot-1", "mb_s", [100, 130, 120], [100, 100, 100])
    fill(journal, "w5-hot-3", "mb_s", [100], [100])
    found = {line[0]: line[1:] for line in goals.lines(journal)}
    said = found["consumer-perf, one and three consumers"]
    assert said == ["1.20, 1.00", "≥ 1.1", "**missed**"]
    assert found["memory, idle"][-1] == "not measured"


def test_goals_name_rows_and_figures_that_exist():
    for goal in goals.GOALS:
        assert set(goal.rows) <= ROWS.keys(), goal.text
        assert goal.figure in FIGURES
        assert (goal.least > 0) != (goal.most > 0)
    assert {row.headline for row in ROWS.values()} <= FIGURES.keys()


def test_a_report_shows_where_we_lose_and_what_failed(journal, tmp_path):
    fill(journal, ROW, "requests_s", [50.0], [100.0])
    journal.add(Entry(0, "w5-hot-1", "kafka", failed="exit code 1"))
    text = report.write(tmp_path, journal, {"mode": "short", "settings": {}}).read_text()
    assert "| **0.50** |" in text
    assert "on kafka: failed: exit code 1" in text
    rows = json.loads((tmp_path / "report.json").read_text())["rows"]
    assert rows[ROW]["figures"]["requests_s"]["ratio"] == 0.5


def test_a_failing_row_does_not_end_a_run(journal, tmp_path):
    rows = choose("short", ["limit-memcpy", "limit-sync-200"])
    broken = tmp_path / "missing"
    plan = Plan(rows, ("penstock", "kafka"), 1, Effort(0.01, 0.01), 0, tmp_path, broken)
    Run(plan, journal).all()
    memcpy, sync = journal.entries
    assert memcpy.figures["mb_s"] > 0
    assert "No such file" in sync.failed
    broken.mkdir()
    Run(plan, journal).all()
    assert [entry.row for entry in journal.entries[2:]] == ["limit-sync-200"]


def test_what_was_produced_must_read_back_whole():
    two = batches.uniform(3, 10, 0) + (3).to_bytes(8, "big") + batches.uniform(2, 10, 0)[8:]
    assert check.batches(memoryview(two), 0) == 5
    assert check.batches(memoryview(two[:-1]), 0) == 3
    with pytest.raises(WrongAnswer, match="offset 1 should be next"):
        check.batches(memoryview(two), 1)
    with pytest.raises(WrongAnswer, match="damaged"):
        check.batches(memoryview(two[:-1] + b"!"), 0)


def test_figures_are_read_off_the_tools():
    said = (
        "500 records sent, 99.0 records/sec (0.1 MB/sec), 1.0 ms avg latency, 2.0 ms max latency.\n"
        "1000 records sent, 250.5 records/sec (2.00 MB/sec), 1.25 ms avg latency, 9.00 ms max "
        "latency, 1 ms 50th, 4 ms 95th, 7 ms 99th, 8 ms 99.9th.\n"
    )
    found = java_loads.produced(said)
    assert (found["records_s"], found["p99_ms"]) == (250.5, 7)
    assert found["mb_s"] == pytest.approx(2.097152)
    with pytest.raises(WrongAnswer, match="no figures"):
        java_loads.produced("nothing")
    line = "2026-01-01 00:00:00:000, 2026-01-01 00:00:01:000, 95.3, 95.3, "
    line += "900, 900.0, 5, 995, 96.0, 904"
    assert java_loads.consumed(line, 900)["records_s"] == 904
    with pytest.raises(WrongAnswer, match="consumed 900 records of 901"):
        java_loads.consumed(line, 901)
    with pytest.raises(WrongAnswer, match="not all delivered"):
        rdkafka._wrote("", 5)


def test_two_runs_never_share_a_folder(tmp_path):
    with (
        command.only_one(tmp_path),
        pytest.raises(SystemExit, match="another comparison runs"),
    ):
        command.only_one(tmp_path)
    command.only_one(tmp_path).close()
