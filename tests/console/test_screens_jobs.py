"""Jobs in the console, over a jobs folder in which a runner would have written; no Spark."""

import json

import pytest

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.groups import groups
from console.model.jobs import job_changes
from console.model.jobs.job_preview import Preview, read
from console.model.jobs.jobs import Status
from console.model.topics import topics
from console.screens.jobs import worst_first
from console.screens.places import Place
from console.screens.rows import Rows
from console.screens.view import Words
from spark_local.board import Board
from spark_local.cause import JobError
from spark_local.folder import RUNNING, Folder
from spark_local.jobfile import load
from tests.console.seat import LARGE, SMALL, reading, sit, tab

JOB = """
description = "Who comes"
sql = "SELECT who FROM events"
[sources.events]
topic = "events"
schema = "who STRING"
[sink]
topic = "people"
"""
PROGRESS = {
    "batch": 12, "rows_in": 5000, "rows_out": 40, "rows_per_s": 120.5, "rows_out_per_s": 7.5,
    "batch_ms": 300, "phases_ms": {"addBatch": 200, "walCommit": 50, "newInSpark": 20},
    "lag_records": 30, "lag_s": 4.0, "late_rows": 1, "dead_letters": 2, "state_rows": 9,
    "state_bytes": 1000, "watermark": "2026-01-01T00:00:00.000Z",
}  # fmt: skip
TRACE = "Traceback (most recent call last):\n  File x\nValueError: no such hour"


@pytest.fixture
def folder(tmp_path):
    """Three jobs: one that runs, one that failed, one that was never begun."""
    folder = Folder(tmp_path / "jobs")
    for name in ("busy", "broken", "fresh"):
        file = tmp_path / f"{name}.toml"
        file.write_text(JOB)
        place = folder.add(load(file))
        board = Board(place, None, place.read_wish().number)
        board.describe(place.job(), "local[2]")
        if name == "busy":
            board.set("failing", JobError("it stumbled", "wait", final=False))
            board.set("running")
            board.progress(PROGRESS)
            board.publish_state()
        if name == "broken":
            cause = JobError("ValueError: no such hour", "mend it")
            board.broke(cause, TRACE)
            board.set("failed", cause)
    return folder


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_jobs_are_seen_with_what_is_wrong_with_them(alone, folder, size):
    async def act(seat):
        await seat.sees("3 jobs", "1 failed", "! job broken is failed: ValueError: no such")
        await seat.press(tab("jobs"))
        await seat.sees("busy", "running", "120", "7.5", "4 s", "failed", "never ran")
        await seat.press("/")
        await seat.type("bro")
        await seat.misses("busy ")
        await seat.press("enter")
        await seat.sees("! ValueError: no such hour", "→ mend it", "reads topic events")
        assert f"job status --jobs {str(folder.path)[:40]}" in seat.line("$ ")
        await seat.press("enter")
        await seat.sees("broken  failed for", "checkpoint", "failed: ValueError")
        await seat.press("v")
        await seat.sees("Last failure", "the cause first", "File x")
        lines = seat.lines()
        head = next(n for n, line in enumerate(lines) if "the cause first" in line)
        told = [line.split("│")[line.startswith("│")].strip() for line in lines[head + 1 :]]
        assert told[0] == "ValueError: no such hour", "the cause comes first"
        assert told[1].startswith("Traceback")

    with folder.locked():
        sit(alone.bootstrap, act, size=size, jobs=str(folder.path))


def test_one_job_with_its_phases_and_a_log_that_is_followed(alone, folder):
    async def act(seat):
        def add(*lines):
            with folder.find_job("busy").log_file.open("a") as log:
                log.write("".join(f"{line}\n" for line in lines))

        await seat.sees("busy  running for", "1 restart after failures", "4 s behind", "lag 30")
        await seat.sees("Batch 12  300 ms", "addBatch", "newInSpark")
        await seat.sees("9 rows, 1.00 kB", "following   (v: other logs)")
        add("one more", "and another")
        await seat.sees("and another")
        await seat.press("shift+tab", "tab")
        seat.app.view.query_one(Rows).focus()
        await seat.press("k")
        await seat.sees("paused, 0 new")
        add("unread")
        await seat.sees("paused, 1 new")
        await seat.press("G")
        await seat.sees("following   (v: other logs)")
        await seat.press("k")
        await seat.sees("paused")
        await seat.press("v", "t")
        await seat.sees("following   (v: other logs)")

    with folder.locked():
        sit(alone.bootstrap, act, first=Place("job", "busy"), jobs=str(folder.path))


def test_the_palette_means_the_job_where_somebody_is(alone, folder):
    async def act(seat):
        await seat.sees("busy  running for")
        await seat.press("ctrl+p")
        await seat.type("Start or")
        await seat.sees("Stop it after its batch")
        await seat.press("enter")
        await seat.plan()
        assert seat.app.here == Place("job", "busy")
        assert seat.app.screen.query_one("#heading", Words).told.startswith("Stop")
        await seat.press("escape")
        await seat.back()

    with folder.locked():
        sit(alone.bootstrap, act, first=Place("job", "busy"), jobs=str(folder.path))


def test_without_a_runner_it_says_so(alone, folder):
    async def act(seat):
        await seat.sees("no runner is running: ", "job serve --jobs", "down")

    sit(alone.bootstrap, act, size=LARGE, first=Place("jobs"), jobs=str(folder.path))


def test_jobs_of_another_host_are_told_by_their_topic(alone):
    import penstock

    link = penstock.connect(alone.bootstrap)
    with link.producer() as producer:
        for name, state in (("away", "running"), ("rests", "stopped")):
            told = {"job": name, "state": state, "cause": "x", "rows_in": "[/red]"}
            producer.produce("__penstock_jobs", json.dumps(told | {"progress": PROGRESS}), key=name)
        producer.produce("__penstock_jobs", b"{nonsense", key="away")

    async def act(seat):
        await seat.sees("away", "rests", "stopped", "states come from their topic")
        assert [one.job for one in seat.app.world.jobs.shown.value.sick] == []
        await seat.press("enter")
        await seat.sees("its log and its last failure are on the host")

    sit(alone.bootstrap, act, size=LARGE, first=Place("jobs"))


def test_a_preview_is_a_command_beside_the_console(alone, folder):
    wrong = folder.path.parent / "wrong.toml"
    wrong.write_text(JOB.replace("topic", "topik"))

    async def act(seat):
        app = seat.app
        await seat.sees("busy")
        await seat.press(":")
        await seat.type(f"preview {wrong}")
        await seat.press("enter")
        await seat.sees("topik", "docs/jobs.md describes job files")
        assert f"job preview {wrong} --jobs" in seat.line("$ ")
        rows = [{"who": "a", "n": n, "none": None} for n in (1, 20, 3)]
        app.world._previews.preview_job = lambda *_: Preview(rows, ["who STRING, n BIGINT"])
        await seat.press("r")
        await seat.sees("would derive 3 rows", "who STRING, n BIGINT")
        await seat.press("s", "s")
        await seat.sees("n↓")
        lines = [line.strip("│ ") for line in seat.lines()]
        assert [line.split()[1] for line in lines if line.startswith("a ")] == [
            "20",
            "3",
            "1",
        ]

    sit(alone.bootstrap, act, size=LARGE, first=Place("jobs"), jobs=str(folder.path))


def test_what_the_preview_command_says_is_understood():
    told = read('[{"a": 1}]', "WARNING: of the JVM\na BIGINT\n", 0)
    assert told == Preview([{"a": 1}], ["a BIGINT"])
    refused = {"error": {"message": "no Java", "hint": "install it"}}
    for out, err, said in (
        (json.dumps(refused), "", "no Java"),
        ("", "boom\n", "the preview failed: boom"),
        ("{nonsense", "", "it ended with 1"),
    ):
        with pytest.raises(Failure, match=said):
            read(out, err, 1)


def wish(folder, name):
    return folder.find_job(name).read_wish()


def test_jobs_are_started_stopped_reset_and_removed_after_a_plan(alone, folder):
    busy = folder.find_job("busy")
    busy.checkpoint.mkdir()
    (busy.checkpoint / "offsets").write_text("0123456789")
    before = wish(folder, "busy").number
    link = Link(alone.bootstrap, {}, 30.0)
    topics.create(link, ["events"], partitions=1, settings={}, dry_run=False)
    groups.commit(link, "busy", {("events", 0): 7})

    async def act(seat):
        await seat.sees("busy")
        await seat.press("S")
        await seat.plan()
        await seat.sees("Stop job busy", "stopped", "The current batch is finished")
        assert "job stop busy --jobs" in seat.text()
        await seat.press("enter")
        await seat.back()
        assert wish(folder, "busy").number == before, "Cancel is the default"
        await seat.press("S")
        await seat.plan()
        await seat.press("right", "enter")
        await seat.back()
        await seat.until(lambda: wish(folder, "busy").state == "stopped")
        await seat.until(lambda: seat.app.world.jobs.shown.value.jobs["busy"].wanted == "stopped")
        await seat.press("S")
        await seat.plan()
        await seat.sees("Start job busy", "It continues where it stopped")
        await seat.press("right", "enter")
        await seat.back()
        assert wish(folder, "busy").state == "running"
        await seat.press("o")
        await seat.plan()
        await seat.sees("Reset job busy", "its position", "10 B", "Topics do not change")
        await seat.type("bus")
        await seat.press("enter")
        assert busy.checkpoint.exists(), "the whole name is typed"
        await seat.type("y")
        await seat.press("enter")
        await seat.back()
        assert not busy.checkpoint.exists()
        assert wish(folder, "busy").state == "running", "it ran, so it is to run again"
        await seat.press("D")
        await seat.plan()
        await seat.sees("committed offsets", "The records it wrote stay")
        await seat.type("busy")
        await seat.press("enter")
        await seat.back()
        await seat.until(lambda: "busy" not in {one.name for one in groups.listed(link)})
        assert [one.name for one in folder.jobs()] == ["broken", "fresh"]

    sit(alone.bootstrap, act, size=LARGE, first=Place("jobs"), jobs=str(folder.path))


def test_with_read_only_no_job_is_changed(alone, folder):
    numbers = [one.read_wish().number for one in folder.jobs()]

    async def act(seat):
        await seat.sees("busy", "READ-ONLY")
        for key in ("S", "R", "o", "D"):
            await seat.press(key)
            await seat.hears("nothing can be changed")
        proposal = job_changes.stop(str(folder.path), "busy")
        link = reading(alone.bootstrap)
        with pytest.raises(Failure, match="nothing can be changed"):
            proposal.plan(link).apply(link)

    sit(
        alone.bootstrap, act, size=LARGE, first=Place("jobs"), jobs=str(folder.path), read_only=True
    )
    assert [one.read_wish().number for one in folder.jobs()] == numbers


def test_what_a_job_derives_stands_beside_its_log_or_in_its_place(alone, folder):
    async def act(seat):
        await seat.sees("following   (v: other logs)", "SELECT who FROM events")
        await seat.resize(*SMALL)
        await seat.misses("SELECT who")
        await seat.press(*"vvv")
        await seat.sees("as its file has it", "SELECT who FROM events")
        await seat.press("t")
        await seat.sees("following   (v: other logs)")

    sit(alone.bootstrap, act, size=LARGE, first=Place("job", "busy"), jobs=str(folder.path))


def test_a_job_whose_rows_are_all_late_is_warned_about(alone, folder):
    place = folder.find_job("busy")
    board = Board(place, None, place.read_wish().number)
    board.describe(place.job(), "local[2]")
    board.set("running")
    board.progress(PROGRESS | {"late_rows": 4900})
    board.publish_state()

    async def act(seat):
        await seat.sees("4.90k of 5.00k rows came later than the watermark")
        await seat.press("escape")
        await seat.sees("busy", "broken", "fresh")
        lines = [n for n, line in enumerate(seat.lines()) for one in ("broken", "busy", "fresh")
                 if line.strip("│ ").startswith(f"{one} ")]  # fmt: skip
        assert lines == sorted(lines), "what failed comes first, then the farthest behind"

    with folder.locked():
        sit(alone.bootstrap, act, size=LARGE, first=Place("job", "busy"), jobs=str(folder.path))


def test_the_worst_jobs_come_first():
    def one(state, lag):
        fields = dict.fromkeys(Status.__dataclass_fields__)
        return Status(**fields | {"wanted": RUNNING, "state": state, "lag_records": lag})

    jobs = {
        "a": one("running", 0), "b": one("running", 700), "c": one("failed", 0),
        "d": one("running", 90_000), "e": one("running", 999), "f": one("waiting", None),
    }  # fmt: skip
    assert worst_first(jobs) == ["c", "f", "d", "b", "e", "a"]
