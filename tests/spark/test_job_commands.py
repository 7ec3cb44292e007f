"""`penstock job …` without Spark and without an appliance: what is said, asked and written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from console.model.asking.failure import NEGATIVE, Failure
from console.model.asking.link import Link
from console.model.jobs import jobs
from console.root import root
from spark_local import states
from spark_local.board import Board
from spark_local.cause import JobError
from spark_local.folder import Folder

JOB = """
sql = "SELECT who FROM events"
[sources.events]
topic = "events"
schema = "who STRING"
[sink]
topic = "people"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP", "127.0.0.1:1")
    (tmp_path / "people.toml").write_text(JOB)
    return Folder(tmp_path / "jobs")


def job(capsys, *words):
    """(exit code, what is on stdout, what is on stderr)."""
    code = root.main(["job", *words], prog_name="penstock", standalone_mode=False)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_job_is_added_listed_stopped_and_removed(here, capsys):
    code, out, _ = job(capsys, "add", "people.toml", "--dry-run", "-o", "json")
    assert (code, json.loads(out)[0]["status"]) == (0, "would be added")
    assert here.jobs() == []
    code, _, err = job(capsys, "add", "people.toml")
    assert code == 0
    assert "penstock job serve starts one" in err
    code, out, _ = job(capsys, "list", "-o", "json")
    (row,) = json.loads(out)
    assert (row["wanted"], row["reads"], row["writes"]) == (
        "running", ["topic events"], "topic people"
    )  # fmt: skip
    assert job(capsys, "stop", "people")[0] == 0
    assert here.find_job("people").read_wish().state == "stopped"
    number = here.find_job("people").read_wish().number
    job(capsys, "stop", "people")
    assert here.find_job("people").read_wish().number == number, "there is nothing to do"
    job(capsys, "start", "--all")
    assert here.find_job("people").read_wish().state == "running"
    _, out, _ = job(capsys, "add", "people.toml", "--dry-run", "-o", "json")
    assert json.loads(out)[0]["status"] == "would be replaced"
    with pytest.raises(Failure, match="this needs --yes"):
        job(capsys, "remove", "people")
    code, _, err = job(capsys, "remove", "people", "--yes")
    assert (code, here.jobs()) == (0, [])
    assert "Consumer group people stays: 127.0.0.1:1 cannot be reached" in err


def test_a_job_is_removed_with_its_group(here, capsys, appliance, new_topic):
    topic, there = new_topic(), {"bootstrap.servers": appliance.bootstrap}
    admin, reader = AdminClient(there), Consumer(there | {"group.id": "people"})
    job(capsys, "add", "people.toml")
    for flags, left in (("--dry-run",), 1), (("--yes", "--keep-group"), 1), (("--yes",), 0):
        reader.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        code, out, err = job(
            capsys, "remove", "people", *flags, "-b", appliance.bootstrap, "-o", "json"
        )
        (row,) = json.loads(out)
        assert (code, row["offsets"]) == (0, 0 if "--keep-group" in flags else 1)
        assert "stays" not in err
        groups = [one.group_id for one in admin.list_consumer_groups().result().valid]
        assert groups.count("people") == left, flags
        job(capsys, "add", "people.toml")
    reader.close()


def test_every_mistake_has_a_line(here):
    (here.path.parent / "wrong.toml").write_text(JOB.replace("topic", "topik"))
    line = [sys.executable, "-m", "console", "job", "add", "wrong.toml"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        line, env=environment, cwd=here.path.parent, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert [line for line in lines if "topik" in line and "topik" not in line[:30]]
    assert len([line for line in lines if "wrong.toml: " in line]) == len(lines) - 1
    assert "\\n" not in done.stderr


def test_without_jobs_status_says_so(here, capsys):
    here.path.mkdir()
    code, out, err = job(capsys, "status")
    assert (code, out) == (0, "")
    assert "There is no job in" in err
    assert "penstock job add" in err


def test_a_wrong_file_adds_nothing_and_tells_all(here, capsys):
    (here.path.parent / "wrong.toml").write_text(JOB.replace("topic", "topik"))
    with pytest.raises(Failure) as told:
        job(capsys, "add", "people.toml", "wrong.toml")
    assert told.value.code == 2
    assert told.value.message.count("topik") == 2
    assert here.jobs() == []


def test_reset_says_what_it_forgets_first(here, capsys):
    job(capsys, "add", "people.toml")
    place = here.find_job("people")
    assert "has nothing to forget" in job(capsys, "reset", "people")[2]
    place.checkpoint.mkdir()
    (place.checkpoint / "offsets").write_text("0123456789")
    code, out, _ = job(capsys, "reset", "people", "--dry-run", "-o", "json")
    assert json.loads(out)[0]["bytes"] == 10
    assert place.checkpoint.exists()
    with pytest.raises(Failure, match="this needs --yes"):
        job(capsys, "reset", "people")
    code, _, err = job(capsys, "reset", "people", "--yes")
    assert code == 0
    assert "its position" in err
    assert not place.checkpoint.exists()


def test_status_tells_causes_and_checks(here, capsys):
    job(capsys, "add", "people.toml")
    place = here.find_job("people")
    board = Board(place, None, place.read_wish().number)
    board.set("failed", JobError("it broke", "mend it"))
    code, out, _ = job(capsys, "status", "people")
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert lines[:4] == [
        ["JOB", "people"], ["STATE", "failed"], ["CAUSE", "it broke"], ["REMEDY", "mend it"],
    ]  # fmt: skip
    assert code == 0
    assert job(capsys, "status", "--check")[0] == NEGATIVE
    board.set("failing", JobError("it broke", "mend it", final=False), next_attempt=1)
    with here.locked():
        code, out, _ = job(capsys, "status", "--check")
        assert code == NEGATIVE
        assert out.splitlines()[0].split()[-2:] == ["RESTARTS", "CAUSE"]
        assert job(capsys, "status", "people")[1].splitlines()[2].split() == [
            "NEXT", "ATTEMPT", "in", "0", "s",
        ]  # fmt: skip
        board.attempt(2)
        assert job(capsys, "status", "--check")[0] == NEGATIVE
        board.delivered()
        assert job(capsys, "status", "--check")[0] == 0
    _, out, _ = job(capsys, "status", "-o", "json")
    (row,) = json.loads(out)
    assert (row["state"], row["cause"]) == ("down", "no runner is running")
    _, out, _ = job(capsys, "logs", "people", "-n", "2")
    assert [line.split()[1] for line in out.splitlines()] == ["attempt", "running"]


def test_nobody_of_that_name(here, capsys):
    job(capsys, "add", "people.toml")
    for words in (["start", "peple"], ["status", "peple"], ["logs", "peple"], ["reset", "peple"]):
        with pytest.raises(Failure, match="there is no job 'peple'") as told:
            job(capsys, *words)
        assert "people" in told.value.hint
    with pytest.raises(Failure, match="name jobs, or say --all"):
        job(capsys, "stop")


def test_looking_at_jobs_loads_no_spark(here):
    code = (
        "import sys\nfrom console.root import root\n"
        "root.main(['job', 'add', 'people.toml'], standalone_mode=False)\n"
        "root.main(['job', 'status'], standalone_mode=False)\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_an_appliance_elsewhere_is_waited_for_as_long_as_the_link_says(monkeypatch, tmp_path):
    waited = []
    monkeypatch.setattr(states, "read", lambda _, timeout_s: waited.append(timeout_s) or {})
    monkeypatch.setattr(jobs, "reached", lambda kafka: kafka)
    link = Link("127.0.0.1:9", {}, 0.3)
    assert jobs.statuses(Folder(tmp_path / "absent"), link) == []
    assert waited == [0.3]


def test_a_preview_is_asked_of_the_runner_unless_a_spark_is_chosen(here, capsys, monkeypatch):
    from console.commands.job import look

    asked = []

    def answer(folder, question):
        asked.append(question)
        return found

    monkeypatch.setattr(look, "ask_runner", answer)
    found = {
        "columns": ["who"],
        "rows": [{"who": "Ada"}],
        "schemas": {},
        "kinds": {"who": "string"},
        "parts": {"events": [5, 9]},
        "unreadable": {"events": [1, 5, ["it is not JSON"]]},
    }
    code, out, err = job(capsys, "preview", "people.toml", "-o", "json")
    assert (code, json.loads(out)) == (0, [{"who": "Ada"}])
    assert "the last 5 of 9 records" in err and "it is not JSON" in err
    base = str(here.path.parent)
    assert asked == [{"file": f"{base}/people.toml", "base": base, "rows": 20, "last": 10_000,
                      "bootstrap": "127.0.0.1:1"}]  # fmt: skip
    found = {"problem": "there is no topic events", "remedy": "make it"}
    with pytest.raises(Failure, match="there is no topic events"):
        job(capsys, "preview", "people.toml")
    with pytest.raises(Failure, match=r"127\.0\.0\.1:1"):
        job(capsys, "preview", "people.toml", "--master", "local[1]")
    found = {"unable": True}
    with pytest.raises(Failure, match=r"127\.0\.0\.1:1"):
        job(capsys, "preview", "people.toml")
    assert len(asked) == 3, "none with a Spark of its own"
