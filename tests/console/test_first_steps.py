"""What people typed in their first hour, and what they should have got."""

import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import closing

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import penstock
from console.commands.demo.next_steps import next_steps
from console.model.asking.failure import Failure
from console.root import root
from console.show.output import print_note
from tests.console_process import rows, started, typing

_numbers = itertools.count(1)


@pytest.fixture
def topic(run):
    """The name of a new topic with one partition."""
    name = f"first.{next(_numbers)}"
    run("topic", "create", name, "-p", "1")
    return name


def test_the_version_is_an_option_too(run):
    assert run("--version").stdout == run("version").stdout


def test_a_key_without_a_line_is_a_tombstone(run, topic):
    run("produce", topic, "-k", "gone", stdin="here\n")
    assert "1 record to" in run("produce", topic, "-k", "gone", "-Z").stderr
    assert "0 records to" in run("produce", topic, "-k", "gone").stderr
    read = [json.loads(line) for line in run("consume", topic, "-e", "-J").stdout.splitlines()]
    assert [(one["key"], one["value"]) for one in read] == [("gone", "here"), ("gone", None)]


def test_settings_are_altered_in_one_go(run, topic):
    words = ("--set", "retention.ms=7d", "-s", "segment.bytes=100MiB", "-d", "flush.policy")
    changed = rows(run("topic", "alter-config", topic, *words, "-o", "json"))
    assert [(row["key"], row["after"]) for row in changed] == [
        ("retention.ms", "604800000"),
        ("segment.bytes", "104857600"),
        ("flush.policy", "auto"),
    ]
    assert "--set KEY=VALUE" in run("topic", "alter-config", topic, code=2).stderr
    both = ("--set", "flush.ms=1", "--delete", "flush.ms")
    assert "one of the two" in run("topic", "alter-config", topic, *both, code=2).stderr


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("log.retention.ms=7d", "604800000"),
        ("log.retention.ms=1h30m", "5400000"),
        ("log.retention.ms=86400000 ", "86400000"),
        ("log.retention.bytes=1.5GB", "1500000000"),
        ("log.segment.bytes=64MiB", "67108864"),
    ],
)
def test_times_and_sizes_may_have_units_and_blanks_go(run, topic, typed, stored):
    key = typed.partition("=")[0]
    (row,) = rows(run("config", "set", typed, "-o", "json"))
    assert (row["key"], row["after"]) == (key, stored)
    run("config", "unset", key)
    of_topic = typed.removeprefix("log.")
    made = f"{topic}.unit"
    run("topic", "create", made, "-c", of_topic)
    (row,) = rows(run("topic", "config", "get", made, of_topic.partition("=")[0], "-o", "json"))
    assert row["value"] == stored


@pytest.mark.parametrize("wrong", ["7 days", "7y", "1.5ms", "10MB", "d"])
def test_what_is_no_unit_of_the_setting_is_left_to_the_broker(run, wrong):
    told = run("config", "set", f"log.retention.ms={wrong}", code=1)
    assert f"Invalid value {wrong} for configuration log.retention.ms" in told.stderr


def test_up_takes_units_too(fresh_appliance):
    one = fresh_appliance(log_retention_ms="2h")
    done = typing(one.bootstrap)("config", "get", "log.retention.ms", "-o", "json")
    assert rows(done)[0]["value"] == "7200000"


def test_the_schema_knows_settings_of_topics_and_says_what_it_does_not_know(run):
    (row,) = rows(run("config", "schema", "retention.ms", "-o", "json"))
    assert (row["key"], row["changes"]) == ("retention.ms", "per topic")
    (row,) = rows(run("config", "schema", "log.retention.ms", "-o", "json"))
    assert row["changes"] == "cluster-wide"
    told = run("config", "schema", "log.retention.mss", code=1).stderr
    assert "log.retention.mss is not a setting" in told
    assert "did you mean log.retention.ms?" in told


def test_a_dry_run_says_how_many_partitions_there_would_be(run, topic):
    names = (f"{topic}.dry", topic)
    (made, there) = rows(
        run("topic", "create", *names, "-p", "2", "--dry-run", "--if-not-exists", "-o", "json")
    )
    assert (made["status"], made["partitions"]) == ("would be created", 2)
    assert (there["status"], there["partitions"]) == ("exists", 1)
    (made,) = rows(run("topic", "create", names[0], "--dry-run", "-o", "json"))
    assert made["partitions"] == 1, "num.partitions of the broker"


@pytest.mark.parametrize(
    "args",
    [
        ("topic", "create", "huge", "-p", "100000000"),
        ("topic", "add-partitions", "huge", "--to", "100000000"),
        ("topic", "add-partitions", "huge", "-n", "100000000"),
    ],
)
def test_more_partitions_than_can_be_asked_for_are_refused_with_the_limit(run, args):
    assert "1<=x<=100000" in run(*args, code=2).stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-b", "localhost:1", "topic", "list"], "follow its name"),
        (["config", "lint", "no-such"], "no-such cannot be read: No such file or directory"),
        (["quota", "set", "--client-id", "c", "produce=fast"], "produce=fast is not a rate"),
        (["backup", "create", "data/mine", "data"], "data/mine lies inside the data folder"),
        (["profile", "add", "x", "bad address"], "'bad address' is not HOST:PORT"),
        (["restore", "no-such", "empty"], "penstock backup create WHERE makes one"),
    ],
)
def test_what_is_typed_wrong_is_said_with_what_would_be_right(args, said):
    done = CliRunner().invoke(root, args)
    wrong = done.exception
    told = f"{wrong.message} {wrong.hint}" if isinstance(wrong, Failure) else done.output
    assert said in told


def test_who_takes_connections_and_does_not_answer_is_told_as_that(run):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        told = run("topic", "list", "-b", f"127.0.0.1:{port}", "--timeout", "1", code=3).stderr
    assert f"127.0.0.1:{port} " in told and "answer" in told


def test_a_folder_that_cannot_be_written_is_one_sentence(run, tmp_path):
    (tmp_path / "in-the-way").write_text("")
    jobs = str(tmp_path / "in-the-way" / "jobs")
    (tmp_path / "people.toml").write_text(
        'sql = "SELECT who FROM events"\n[sources.events]\ntopic = "events"\n'
        'schema = "who STRING"\n[sink]\ntopic = "people"\n'
    )
    for words in (("add", "people.toml", "--jobs", jobs), ("serve", "--jobs", jobs)):
        told = run("job", *words, code=1, cwd=tmp_path).stderr.splitlines()
        (cause,) = [line for line in told if line.startswith("penstock: ")]
        assert cause.startswith(f"penstock: {jobs}")
        assert cause.endswith(": Not a directory [JOB]")


@pytest.mark.parametrize(
    ("program", "typed"),
    [
        ("/somewhere/console/__main__.py", f"{sys.executable} -m console"),
        (".venv/bin/penstock", ".venv/bin/penstock"),
        ("my folder/penstock", "'my folder/penstock'"),
        ("/usr/lib/python3/pytest", "penstock"),
    ],
)
def test_what_is_said_to_type_is_the_command_as_it_was_called(monkeypatch, capsys, program, typed):
    monkeypatch.setattr(sys, "argv", [program])
    print_note(next_steps(None, None, None, running=False))
    told = capsys.readouterr().err
    assert f"  {typed} demo --speed 3600 " in told
    assert f"  {typed} up " in told
    assert f"  {typed} --help" in told
    print_note("see /var/lib/penstock jobs, penstock.conf and penstock-data")
    assert (
        capsys.readouterr().err == "see /var/lib/penstock jobs, penstock.conf and penstock-data\n"
    )


@pytest.mark.parametrize(
    ("words", "begun", "expected"),
    [
        (["config", "get"], "log.retention.m", ["log.retention.minutes", "log.retention.ms"]),
        (["config", "set"], "log.flush.pol", ["log.flush.policy"]),
        (["config", "unset", "-t", "orders"], "retention.m", ["retention.ms"]),
        (["config", "describe", "-g", "readers"], "consumer.ses", ["consumer.session.timeout.ms"]),
        (["config", "schema"], "num.part", ["num.partitions"]),
        (["topic", "config", "get", "orders"], "flush.p", ["flush.policy"]),
        (["topic", "config", "set", "orders"], "flush.p", ["flush.policy"]),
        (["topic", "config", "unset", "orders"], "flush.p", ["flush.policy"]),
        (["topic", "alter-config", "orders", "--set"], "flush.p", ["flush.policy"]),
        (["topic", "create", "orders", "-c"], "flush.p", ["flush.policy"]),
    ],
)
def test_names_of_settings_are_completed(words, begun, expected):
    shell = ShellComplete(root, {}, "penstock", "_PENSTOCK_COMPLETE")
    assert [one.value for one in shell.get_completions(words, begun)] == expected


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("quota", "usage", "--throttled"), "no client is throttled"),
        (("quota", "list"), "no quota is set"),
        (("topic", "list", "nothing.is.called.so"), "no topic matches"),
        (("group", "list", "nobody.is.called.so"), "no matching group"),
        (("topic", "list", "--deleted", "nothing"), "no deleted topic can be brought back"),
    ],
)
def test_nothing_is_said_to_be_nothing(run, args, said):
    done = run(*args)
    assert (done.stdout, done.stderr) == ("", f"{said}\n")
    assert run(*args, "-o", "json").stderr == ""


def test_nobody_is_asked_before_a_quota_is_set_as_before_a_setting(run):
    run("quota", "set", "--client-id", "asked", "produce=10MB/s")
    run("config", "set", "log.retention.ms=7d", "--yes")
    run("config", "unset", "log.retention.ms", "-y")
    assert rows(run("quota", "unset", "--client-id", "asked", "--all", "--yes", "-o", "json"))


def test_a_folder_is_dumped_with_all_that_is_in_it(run, appliance, fresh_appliance, topic):
    run("produce", topic, stdin="a\n")
    folder = appliance.data_dir / f"{topic}-0"
    found = rows(run("log", "dump", str(folder), "-o", "json"))
    assert {(one["kind"], os.path.basename(one["file"])) for one in found} >= {
        ("segment", f"{0:020}.log"),
        ("text", "partition.metadata"),
    }
    one = fresh_appliance()  # in the other one a test has damaged something
    here = penstock.connect(one.bootstrap)
    here.create_topic("hello", 1)
    with here.producer() as producer:
        producer.produce("hello", b"x")  # acknowledged: its partition is open
    whole = run("log", "dump", str(one.data_dir), "-o", "name").stdout.splitlines()
    assert f"{one.data_dir}/hello-0/{0:020}.log" in whole
    assert any("__cluster_metadata-0" in one for one in whole)
    empty = appliance.data_dir.parent / "empty"
    empty.mkdir()
    assert "no file of an appliance" in run("log", "dump", str(empty)).stderr


def test_who_watches_or_writes_is_told_why_nothing_is_heard(fresh_appliance):
    one = fresh_appliance()
    link = penstock.connect(one.bootstrap)
    link.create_topic("hello", 1)
    words = ("config", "list", "-w", "--interval", "0.1", "--timeout", "5", "-o", "name")
    writing = ("produce", "hello", "--timeout", "5")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with (
        started(one.bootstrap, *words, **pipes) as watcher,
        started(one.bootstrap, *writing, stdin=subprocess.PIPE, **pipes) as writer,
        closing(link.consumer("hello")) as reader,
    ):
        writer.stdin.write("before\n")
        writer.stdin.flush()
        while (record := reader.poll(0.1)) is None:
            assert writer.poll() is None, writer.stderr.read()
        assert record.value() == b"before"
        assert watcher.stdout.readline()
        one.stop()
        _, told = writer.communicate("after\n", timeout=60)
        _, seen = watcher.communicate(timeout=60)
    assert (writer.returncode, watcher.returncode) == (3, 3)
    assert f"penstock: {one.bootstrap} cannot be reached: Connection refused" in told
    assert f"penstock: {one.bootstrap} c" in seen, "cannot be reached, or closed the connection"
    for said in (told, seen):
        assert len(said.splitlines()) == 2, "cause and hint"


def test_an_offline_partition_is_shown_beside_the_others(fresh_appliance):
    one = fresh_appliance()
    link = penstock.connect(one.bootstrap)
    link.create_topic("orders", 2)
    with link.producer() as producer:
        for number in (0, 1, 1):
            producer.produce("orders", b"x", partition=number)
    one.stop()
    for segment in (one.data_dir / "orders-0").glob("*.log"):
        segment.unlink()
    one.start()

    ask = typing(one.bootstrap)
    lost, well = rows(ask("topic", "describe", "orders", "-o", "json"))[0]["partitions"]
    assert (lost["end"], lost["records"], well["end"], well["problem"]) == (None, None, 2, None)
    assert lost["problem"].startswith("offline: storage error; the appliance's log names the file")
    shown = ask("topic", "describe", "orders").stdout
    assert "PROBLEM" in shown
    assert lost["problem"] in shown
    (event,) = re.findall(r"\((.*)\)", lost["problem"])
    (said,) = [line for line in one.log_text().splitlines() if event in line]
    assert f'partition=orders-0 cause="{one.data_dir}/orders-0: ' in said
    listed = ask("topic", "list", "orders", "-o", "wide")
    assert listed.stdout.splitlines()[1].split()[:5] == ["orders", "2", "1", "0", "2"]
    assert "orders partition 0 is not counted" in listed.stderr


def test_what_was_removed_while_nothing_ran_is_said_at_the_start(fresh_appliance):
    one = fresh_appliance()
    link = penstock.connect(one.bootstrap)
    for name in ("orders", "people"):
        link.create_topic(name, 1, segment_bytes=1 << 20)
        with link.producer() as producer:
            for _ in range(3):
                producer.produce(name, bytes(900_000))
                producer.flush()
    one.stop()
    for file in (one.data_dir / "orders-0").glob(f"{1:020d}.*"):
        file.unlink()
    shutil.rmtree(one.data_dir / "people-0")
    one.start()
    missed = [line for line in one.log_text().splitlines() if "offsets-missing" in line]
    assert len(missed) == 2, missed
    assert [line for line in missed if " partition=orders-0 offsets=1-1 " in line]
    assert [line for line in missed if " partition=people-0 offsets=0-2 " in line]
    one.stop()
    one.start()
    missed = [line for line in one.log_text().splitlines() if "partition=people-0" in line]
    assert len(missed) == 1, "what began anew misses nothing"


def damage(appliance, topic, what):
    (segment,) = (appliance.data_dir / f"{topic}-0").glob("*.log")
    with segment.open("r+b") as file:
        at = file.read().index(what)
        file.seek(at)
        file.write(b"#")


def test_a_damaged_batch_is_not_given_away(run, appliance, topic):
    run("produce", topic, stdin="good\n")
    run("produce", topic, stdin="precious\n")
    run("produce", topic, stdin="last\n")
    damage(appliance, topic, b"precious")
    done = run("consume", topic, "-e", code=1)
    assert done.stdout == "good\n"
    cause, hint = done.stderr.splitlines()
    assert f"{topic} partition 0: " in cause
    assert "at offset 1" in cause
    assert "CRC32C" in cause
    assert "log dump" in hint
    assert run("consume", topic, "-e", "-o", "2").stdout == "last\n"
    as_it_is = run("consume", topic, "-e", "-X", "check.crcs=false").stdout
    assert as_it_is == "good\n#recious\nlast\n"


def test_a_group_goes_on_where_it_was(run, topic):
    run("produce", topic, stdin="a\nb\nc\n")
    group = f"{topic}.readers"
    assert run("consume", topic, "-g", group, "-n", "2").stdout == "a\nb\n"
    (told,) = rows(run("group", "describe", group, "-o", "json"))
    (place,) = told["partitions"]
    assert (place["topic"], place["committed"]) == (topic, 2)
    assert run("consume", topic, "-g", group, "-e", "-f", "%o %v\\n").stdout == "2 c\n"
    assert run("consume", topic, "-g", group, "-e", "-o", "stored").stdout == ""
    late = (f"{topic}.late", "-o", "end", "-e")
    assert run("consume", topic, "-g", *late).stdout == ""
    run("produce", topic, stdin="d\n")
    (told,) = rows(run("group", "describe", late[0], "-o", "json"))
    assert told["lag"] == 1, "it was at the end of what it found empty"
    for wrong in (("-p", "0"), ("-o", "47"), ("-o", "e@1000")):
        assert "group" in run("consume", topic, "-g", group, "-e", *wrong, code=2).stderr
    assert "not.there" in run("consume", "not.there", "-g", group, "-e", code=1).stderr


def test_topics_are_read_by_expression(run, topic):
    for number in (1, 2):
        run("produce", f"{topic}.{number}", stdin=f"{number}\n")
    pattern = rf"^{topic}\.\d$"
    assert sorted(run("consume", "-r", pattern, "-e").stdout.split()) == ["1", "2"]
    both = run("consume", "-r", pattern, "-g", f"{topic}.all", "-e").stdout
    assert sorted(both.split()) == ["1", "2"]
    assert "no topic is found" in run("consume", "-r", "^nothing$", "-e").stderr
    assert "one of the two" in run("consume", topic, "-r", pattern, "-e", code=2).stderr
    run("consume", "-e", code=2)


def test_each_mistake_of_a_job_file_is_a_line_of_its_own(run, tmp_path):
    (tmp_path / "a.toml").write_text('sql = "SELECT 1"\nsqll = 1\n[sink]\ntopik = "x"\n')
    told = run("job", "add", "a.toml", code=2, cwd=tmp_path).stderr.splitlines()
    assert len([line for line in told if "a.toml" in line]) >= 3, told
    assert not [line for line in told if "\\n" in line]
