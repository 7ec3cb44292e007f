"""The first ten minutes of five people, as commands and keys over a running appliance. Each is
typed as the documentation tells it, and each has what they came for at its end."""

import json

import pytest

from console.screens.places import Place
from tests.console.seat import LARGE, SMALL, sit, tab
from tests.console_process import rows, typing

_STUDENTS = tuple(f"student{n:02}" for n in range(1, 31))


def test_a_developer_sends_reads_and_looks_at_what_was_sent(alone):
    run = typing(alone.bootstrap)
    run("topic", "create", "dev.orders", "-p", "3")
    lines = "".join(f'c{n % 2}:{{"id": {n}, "total": {n * 10}}}\n' for n in range(6))
    assert "6 records to" in run("produce", "dev.orders", "-K", ":", stdin=lines).stderr
    read = [json.loads(one) for one in run("consume", "dev.orders", "-e", "-J").stdout.splitlines()]
    assert {one["key"] for one in read} == {"c0", "c1"} and len(read) == 6
    assert run("consume", "dev.orders", "-g", "dev.billing", "-e").stdout.count("\n") == 6
    run("produce", "dev.orders", "-K", ":", stdin="c0:late\n")
    told = rows(run("group", "describe", "dev.billing", "-o", "json"))
    assert [(one["group"], one["lag"]) for one in told] == [("dev.billing", 1)]

    async def act(seat):
        await seat.press(tab("topics"))
        await seat.press("/")
        await seat.type("dev.ord")
        await seat.press("enter")
        await seat.sees("dev.orders")
        await seat.press("b")
        await seat.sees("found 7 in 7 records", "late")
        await seat.press("slash")
        await seat.type("$.total >= 40")
        await seat.press("enter")
        await seat.sees("found 2 in 7 records")

    sit(alone.bootstrap, act, size=SMALL)


def test_an_operator_at_night_finds_who_is_behind_and_why(alone):
    run = typing(alone.bootstrap)
    run("topic", "create", "night.payments")
    run("produce", "night.payments", stdin="a\nb\n")
    run("consume", "night.payments", "-g", "night.books", "-e")
    run("produce", "night.payments", stdin="c\nd\ne\n")
    run("quota", "set", "--client-id", "night.loader", "produce=1MB/s")
    state = run("status", code=None)
    assert state.returncode in (0, 1) and state.stdout
    assert "min.insync.replicas" in run("explain", "NOT_ENOUGH_REPLICAS").stdout
    assert "night.books" in run("group", "lag").stdout

    async def act(seat):
        await seat.sees("Groups by lag", "night.books")
        await seat.press(tab("groups"))
        await seat.press("/")
        await seat.type("night")
        await seat.press("enter")
        await seat.sees("night.books")
        await seat.press("enter")
        await seat.until(lambda: seat.app.here == Place("group", "night.books"))
        await seat.sees("night.payments", "Members", "no member now")
        await seat.press("y")
        await seat.press(tab("quotas"))
        await seat.sees("night.loader", "1 MB/s")
        await seat.press("8")
        await seat.sees("topic-created")

    sit(alone.bootstrap, act, size=LARGE, read_only=True)


def test_a_data_engineer_finds_out_what_a_job_would_do(alone, tmp_path):
    run = typing(alone.bootstrap)
    run("topic", "create", "lake.clicks")
    run("produce", "lake.clicks", stdin='{"page": "/", "ms": 3}\n{"page": "/x", "ms": 5}\n')
    job, folder = tmp_path / "pages.toml", str(tmp_path / "jobs")
    text = (
        'sql = "SELECT page, ms FROM clicks"\n[sources.clicks]\ntopic = "lake.clicks"\n'
        'schema = "page STRING, ms INT"\n[sink]\ntopik = "lake.pages"\n'
    )
    job.write_text(text)
    assert "did you mean topic?" in run("job", "add", str(job), "--jobs", folder, code=2).stderr
    job.write_text(text.replace("topik", "topic"))
    run("job", "add", str(job), "--jobs", folder)
    listed = run("job", "list", "--jobs", folder, "-o", "json").stdout
    assert "lake.clicks" in listed and "lake.pages" in listed
    told = run("job", "status", "pages", "--jobs", folder)
    assert "never ran" in told.stdout and "job serve starts one" in told.stderr

    async def act(seat):
        await seat.press(tab("jobs"))
        await seat.sees("pages", "no runner is running")
        await seat.press("enter")
        await seat.sees("SELECT page, ms FROM clicks")

    sit(alone.bootstrap, act, size=LARGE, jobs=folder)


def test_a_teacher_gives_thirty_students_a_topic_each(alone):
    run = typing(alone.bootstrap)
    made = rows(run("topic", "create", *(f"class.{one}" for one in _STUDENTS), "-o", "json"))
    assert len(made) == len(_STUDENTS)
    for one in _STUDENTS[:3]:
        run("produce", f"class.{one}", stdin=f"hello of {one}\n")
    wrong = run("quota", "set", "--client-id", "--default", "produce=1MB/s", code=2)
    assert "--default client-id" in wrong.stderr
    run("quota", "set", "--default", "client-id", "produce=1MB/s")
    listed = rows(run("topic", "list", "class.*", "-o", "json"))
    assert {one["name"] for one in listed} == {f"class.{one}" for one in _STUDENTS}

    async def act(seat):
        await seat.press(tab("topics"))
        await seat.press("/")
        await seat.type("class.")
        await seat.sees("30 of ")
        await seat.press("enter", "G")
        await seat.sees("class.student30")
        await seat.press("h")
        await seat.sees("partitions by size")

    sit(alone.bootstrap, act, size=SMALL)


def test_a_teacher_gives_thirty_students_a_login_each(secured_appliance, tmp_path):
    run = typing(secured_appliance.bootstrap)
    admin = ("--command-config", str(secured_appliance.admin.file))
    for one in _STUDENTS:
        mine = f"class.{one}"
        told = run("user", "add", one, "--can", f"write:{mine}", "--can", f"read:{mine}", *admin)
        (tmp_path / one).write_text(told.stdout)
    run("topic", "create", *(f"class.{one}" for one in _STUDENTS), *admin)
    listed = {one["user"] for one in rows(run("user", "list", "-o", "json", *admin))}
    assert set(_STUDENTS) <= listed
    for one in (_STUDENTS[0], _STUDENTS[-1]):
        login = ("--command-config", str(tmp_path / one))
        run("produce", f"class.{one}", *login, stdin=f"hello of {one}\n")
        assert f"hello of {one}" in run("consume", f"class.{one}", "-e", *login).stdout
        shown = rows(run("topic", "list", "class.*", "-o", "json", *login))
        assert [topic["name"] for topic in shown] == [f"class.{one}"], "only their own is seen"
    wrong = run("produce", "class.student02", *login, stdin="x\n", code=None)
    assert wrong.returncode and "AUTHORIZATION_FAILED" in wrong.stderr
    run("user", "remove", _STUDENTS[-1], "--yes", *admin)
    gone = run("topic", "list", *login, code=None)
    assert gone.returncode, "who left logs in no more"


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_somebody_who_knows_kafka_ui_finds_messages_produce_and_offsets(alone, size):
    run = typing(alone.bootstrap)
    name = f"ui.orders-{size[0]}"
    run("topic", "create", name)
    run("produce", name, stdin="first\nsecond\n")
    run("consume", name, "-g", f"ui.readers-{size[0]}", "-e")

    async def act(seat):
        await seat.press("colon")
        await seat.type(f"t {name}")
        await seat.press("enter")
        await seat.until(lambda: seat.app.here == Place("topic", name))
        await seat.sees("Settings")
        await seat.press("b")
        await seat.sees("second", "found 2 in 2 records")
        await seat.press("p")
        await seat.form()
        await seat.press("escape")
        await seat.back()
        await seat.press("colon")
        await seat.type(f"g ui.readers-{size[0]}")
        await seat.press("enter")
        await seat.sees(name)
        await seat.press("o")
        await seat.form()
        await seat.type("start")
        await seat.press("enter")
        await seat.plan()
        await seat.sees("Back", "Esc goes back")
        await seat.press("escape")
        await seat.form()  # with what was typed
        await seat.press("escape")
        await seat.back()
        await seat.press("question_mark")
        await seat.sees("Move offsets")

    sit(alone.bootstrap, act, size=size)
