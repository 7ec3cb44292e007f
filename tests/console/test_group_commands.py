"""`penstock group` against a real appliance, with groups of both protocols."""

import itertools
import json
import os
import pty
import signal
import subprocess
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.console_process import PENSTOCK, rows, started
from tests.descriptors import readable

_numbers = itertools.count(1)


@pytest.fixture
def topic(appliance):
    """A topic with two partitions of ten records, an hour and a minute old."""
    name = f"read.{next(_numbers)}"
    producer = Producer({"bootstrap.servers": appliance.bootstrap})
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": appliance.bootstrap})
    admin.create_topics([NewTopic(name, 2)])[name].result(30)
    now_ms = time.time_ns() // 1_000_000
    for number in range(20):
        age_ms = 3_600_000 if number < 10 else 60_000
        producer.produce(
            name, str(number).encode(), partition=number % 2, timestamp=now_ms - age_ms
        )
    assert producer.flush(30) == 0
    return name


@pytest.fixture
def group(appliance, topic):
    """A group without members that committed 4 and 7."""
    name = f"group.{next(_numbers)}"
    commit(appliance, name, topic, {0: 4, 1: 7})
    return name


def commit(appliance, group, topic, offsets):
    consumer = Consumer({"bootstrap.servers": appliance.bootstrap, "group.id": group})
    places = [TopicPartition(topic, number, at) for number, at in offsets.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


@pytest.fixture(params=["classic", "consumer"])
def live(request, appliance, topic):
    """A group with one member that reads the topic."""
    name = f"live.{next(_numbers)}"
    consumer = Consumer(
        {
            "bootstrap.servers": appliance.bootstrap,
            "group.id": name,
            "client.id": "billing-7",
            "group.protocol": request.param,
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    end = time.monotonic() + 30
    while len(consumer.assignment()) < 2 and time.monotonic() < end:
        consumer.poll(0.05)
    consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    yield name, request.param
    consumer.close()


def committed(run, group):
    (described,) = rows(run("group", "describe", group, "-o", "json"))
    return {p["partition"]: p["committed"] for p in described["partitions"]}


def test_lag_is_told_in_records_and_in_seconds(run, topic, group):
    (described,) = rows(run("group", "describe", group, "-o", "json"))
    assert (described["state"], described["members"], described["lag"]) == ("empty", 0, 9)
    by_number = {p["partition"]: p for p in described["partitions"]}
    assert [by_number[n]["lag"] for n in (0, 1)] == [6, 3]
    assert 3600 <= by_number[0]["lag_s"] < 3600 + 300  # the fifth record is one of the old ones
    assert 60 <= by_number[1]["lag_s"] < 60 + 300
    (row,) = rows(run("group", "lag", group, "-o", "json"))
    assert (row["topic"], row["partitions"], row["lag"]) == (topic, 2, 9)
    assert row["lag_s"] >= 3600
    each = rows(run("group", "lag", group, "-p", "--no-seconds", "-o", "json"))
    assert [(r["lag"], r["lag_s"]) for r in each] == [(6, None), (3, None)]


def test_a_live_group_shows_its_members_and_lets_nobody_move_it(run, topic, live):
    name, kind = live
    listed = {row["group"]: row for row in rows(run("group", "ls", "-o", "json"))}
    assert listed[name] == {"group": name, "state": "stable", "type": kind}
    (member,) = rows(run("group", "members", name, "-o", "json"))
    assert (member["client_id"], member["host"]) == ("billing-7", "127.0.0.1")
    assert member["assignment"] == [f"{topic}:0,1"]
    refused = [
        ("seek", name, "--to", "start", "--yes"),
        ("delete", name, "--yes"),
    ]
    for command in refused:
        told = json.loads(run("group", *command, "-o", "json", code=1).stdout)["error"]
        assert told["code"] == "NON_EMPTY_GROUP"
        assert "billing-7 at 127.0.0.1" in told["message"]
    done = run("group", "delete-offsets", name, "-t", topic, "--yes", "-o", "json", code=1)
    assert rows(done)[0]["error"] == "GROUP_SUBSCRIBED_TO_TOPIC"
    assert committed(run, name) == {0: 5, 1: None}


@pytest.mark.parametrize(
    ("where", "after"),
    [
        ("start", (0, 0)),
        ("end", (10, 10)),
        ("2", (2, 2)),
        ("999", (10, 10)),
        ("+2", (6, 9)),
        ("-5", (0, 2)),
        ("start+1", (1, 1)),
        ("end-1", (9, 9)),
        ("30m", (5, 5)),
    ],
)
def test_the_plan_says_before_after_and_delta(run, topic, group, where, after):
    plan = rows(run("group", "seek", group, f"--to={where}", "--dry-run", "-o", "json"))
    assert [(r["partition"], r["before"], r["after"], r["delta"]) for r in plan] == [
        (0, 4, after[0], after[0] - 4),
        (1, 7, after[1], after[1] - 7),
    ]
    assert committed(run, group) == {0: 4, 1: 7}


def test_offsets_move_with_yes_and_only_those_that_are_named(run, topic, group):
    without = run("group", "reset-offsets", group, "--to", "start", code=2)
    assert "not moved" in without.stdout
    assert "--yes" in without.stderr
    assert committed(run, group) == {0: 4, 1: 7}
    run("group", "seek", group, "--to", "start", "-t", f"{topic}:1", "--yes")
    assert committed(run, group) == {0: 4, 1: 0}


def test_offsets_are_taken_from_another_group_and_from_a_file(run, topic, group, tmp_path):
    new = f"{group}.copy"
    run("group", "seek", new, "--to-group", group, "--yes")
    assert committed(run, new) == {0: 4, 1: 7}
    for form in ("csv", "json"):
        saved = tmp_path / f"saved.{form}"
        saved.write_text(run("group", "describe", group, "-o", form).stdout)
        run("group", "seek", new, "--to", "start", "--yes")
        run("group", "seek", new, "--to-file", str(saved), "--yes")
        assert committed(run, new) == {0: 4, 1: 7}, form
    run("group", "seek", new, "--to-file", "-", "--yes", stdin=f"{topic} 0 3\n{topic},1,2\n")
    assert committed(run, new) == {0: 3, 1: 2}
    wrong = run("group", "seek", new, "--to-file", "-", "--yes", stdin=f"{topic} 0\n", code=2)
    assert "TOPIC PARTITION OFFSET" in wrong.stderr


@pytest.mark.parametrize(
    "wrong", [("--to", "soon"), ("--to", "1", "--to-group", "x"), (), ("--to", "1", "-t", "a:x")]
)
def test_a_wrong_seek_is_a_usage_error(run, group, wrong):
    run("group", "seek", group, *wrong, code=2)


def test_a_group_that_is_not_there_is_told(run):
    for command in (
        ("describe", "nobody"),
        ("members", "nobody"),
        ("seek", "nobody", "--to", "end", "--yes"),
        ("delete", "nobody", "--yes"),
        ("delete-offsets", "nobody", "-t", "x", "--yes"),
    ):
        told = json.loads(run("group", *command, "-o", "json", code=1).stdout)["error"]
        assert (told["code"], told["kafka_code"]) == ("GROUP_ID_NOT_FOUND", 69), command


def test_offsets_and_groups_are_deleted(run, topic, group):
    plan = rows(
        run("group", "delete-offsets", group, "-t", f"{topic}:0", "--dry-run", "-o", "json")
    )
    assert [(r["partition"], r["committed"]) for r in plan] == [(0, 4)]
    run("group", "delete-offsets", group, "-t", f"{topic}:0", "--yes")
    assert committed(run, group) == {1: 7}
    run("group", "delete", group, code=2)
    run("group", "delete", group, "--yes")
    assert group not in run("group", "list", "-o", "name").stdout.split()


def test_watching_streams_rows_until_it_is_interrupted(appliance, group):
    words = ("group", "lag", group, "-w", "--interval", "0.1", "-o", "jsonl")
    with started(appliance.bootstrap, *words, stdout=subprocess.PIPE, text=True) as process:
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert [row["lag"] for row in lines] == [9, 9]


def test_at_a_terminal_the_plan_is_shown_until_it_holds_and_somebody_says_yes(
    run, appliance, topic, group
):
    ours, theirs = pty.openpty()
    words = ("group", "seek", group, "--to", "end", "-o", "json")
    with started(
        appliance.bootstrap, *words, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        shown = b""
        for times in (1, 2):
            while shown.count(b"[y/N]") < times:
                assert readable(ours, 60)
                shown += os.read(ours, 4096)
            if times == 1:  # what was shown does not hold any more
                commit(appliance, group, topic, {0: 6})
            os.write(ours, b"y\n")
        out = json.loads(process.stdout.read())
        assert process.wait(30) == 0
    os.close(theirs)
    os.close(ours)
    assert shown.count(b"BEFORE") == 2
    assert b"partition 0 was at 4 and is at 6" in shown
    assert [(row["before"], row["status"]) for row in out] == [(6, "moved"), (7, "moved")]
    assert committed(run, group) == {0: 10, 1: 10}


def test_the_shell_completes_names_of_topics_and_groups(appliance, topic, group, monkeypatch):
    """The budget of the shell is lifted: a busy machine is no reason to fail."""
    from console.flags import complete
    from console.root import root

    monkeypatch.setenv("PENSTOCK_BOOTSTRAP", appliance.bootstrap)
    monkeypatch.setattr(complete, "_LIMIT_S", 30)
    from click.shell_completion import ShellComplete

    shell = ShellComplete(root, {}, "penstock", "_PENSTOCK_COMPLETE")
    for words, begun, expected in (
        (["topic", "describe"], topic[:3], topic),
        (["group", "seek"], "", group),
        (["group", "seek", group, "-t"], "", topic),
        (["config", "get", "-t"], "", topic),
        (["topic", "describe"], "__c", "__consumer_offsets"),
    ):
        found = [one.value for one in shell.get_completions(words, begun)]
        assert expected in found, words
        assert begun or not any(name.startswith("__") for name in found)
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP", "127.0.0.1:1")
    assert shell.get_completions(["topic", "describe"], "") == []
    env = os.environ | {"_PENSTOCK_COMPLETE": "bash_source"}
    done = subprocess.run(PENSTOCK, capture_output=True, text=True, env=env, check=True)
    assert "penstock" in done.stdout
