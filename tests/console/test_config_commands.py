"""`penstock config` against a real appliance, and its look at files."""

import itertools
import json

import pytest

from tests.console_process import rows, typing

_numbers = itertools.count(1)


def one(run, key, *target):
    return rows(run("config", "get", key, *target, "-o", "json"))[0]


@pytest.mark.parametrize(
    ("target", "key", "value", "source"),
    [
        ((), "log.retention.ms", "86400000", "cluster, set at run time"),
        (("--cluster",), "log.segment.bytes", "104857600", "cluster, set at run time"),
        (("--broker", "1"), "log.roll.ms", "86400000", "broker, set at run time"),
        (("-g", "readers"), "consumer.session.timeout.ms", "50000", "group"),
        (("-t",), "retention.ms", "86400001", "topic"),
    ],
)
def test_a_change_is_shown_before_made_and_undone(run, target, key, value, source):
    if target == ("-t",):
        target = ("-t", f"settings.{next(_numbers)}")
        run("topic", "create", target[1])
    read = () if target == ("--cluster",) else target
    before = one(run, key, *read)
    assert before["source"] == "default"
    assert before["doc"]
    (plan,) = rows(run("config", "set", f"{key}={value}", *target, "--dry-run", "-o", "json"))
    assert (plan["before"], plan["after"], plan["status"]) == (
        before["value"],
        value,
        "would be changed",
    )
    assert one(run, key, *read) == before
    (done,) = rows(run("config", "set", f"{key}={value}", *target, "-o", "json"))
    assert (done["after"], done["source"], done["status"]) == (value, source, "changed")
    listed = {row["key"]: row for row in rows(run("config", "list", *read, "-o", "json"))}
    assert listed[key]["value"] == value
    (undone,) = rows(run("config", "unset", key, *target, "-o", "json"))
    assert undone["status"] == "changed"
    assert one(run, key, *read) == before


def test_only_what_is_named_changes_and_lists_can_grow(run):
    name = f"settings.{next(_numbers)}"
    run("topic", "create", name, "-c", "retention.ms=5000000")
    run("config", "set", "cleanup.policy+=compact", "-t", name)
    listed = {r["key"]: r["value"] for r in rows(run("config", "ls", "-t", name, "-o", "json"))}
    assert listed == {"retention.ms": "5000000", "cleanup.policy": "delete,compact"}
    run("config", "set", "cleanup.policy-=delete", "-t", name)
    assert one(run, "cleanup.policy", "-t", name)["value"] == "compact"


@pytest.mark.parametrize(
    ("args", "code", "name"),
    [
        (("get", "-t", "no.such"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (("get", "no.such.key"), 1, "INVALID_CONFIG"),
        (("set", "log.retention.ms=soon"), 1, "INVALID_REQUEST"),
        (("set", "log.retention.ms"), 2, "USAGE"),
        (("unset", "log.retention.ms=1"), 2, "USAGE"),
        (("get", "-t", "a", "-g", "b"), 2, "USAGE"),
    ],
)
def test_what_is_wrong_is_told(run, args, code, name):
    done = run("config", *args, "-o", "json", code=code)
    assert json.loads(done.stdout)["error"]["code"] == name


def test_a_setting_is_explained_with_every_place_that_has_a_value(run):
    shown = run("config", "describe", "log.retention.ms").stdout
    assert "Age of a segment" in shown
    assert "log.retention.hours = 168 (default)" in shown


PRODUCTION = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
controller.listener.names=CONTROLLER
controller.quorum.voters=1@localhost:9093
num.io.threads=8
authorizer.class.name=com.example.Authorizer
default.replication.factor=3
num.partition=12
log.retention.ms=soon
max.connections.per.ip.overrides=10.0.0.1
"""


def test_everything_that_is_wrong_with_a_file_is_told_at_once_with_its_line(run, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(PRODUCTION)
    found = rows(run("config", "lint", str(file), "-o", "json", code=4))
    told = {(row["line"], row["level"]): row["message"] for row in found}
    *lines, of_no_line = [row["line"] for row in found]
    assert lines == sorted(lines) and of_no_line is None
    assert "penstock secure init" in told[3, "error"]
    assert "com.example.Authorizer is not supported" in told[7, "error"]
    assert "Invalid value soon" in told[10, "error"]
    assert "ADDRESS:NUMBER" in told[11, "error"]
    assert "did you mean num.partitions?" in told[9, "warning"]
    assert "min.insync.replicas=1: with acks=all" in told[None, "warning"]
    levels = [row["level"] for row in found]
    counted = f"{levels.count('error')} errors, {levels.count('warning')} warnings"
    assert f"server.properties: {counted}" in run("config", "lint", str(file), code=4).stderr


def test_one_copy_is_what_is_advised_when_more_are_the_default(fresh_appliance):
    one = fresh_appliance(default_replication_factor=3)
    assert "warning: the command line: default.replication.factor=3: one broker" in one.log_text()
    done = typing(one.bootstrap)("topic", "create", "orders", code=1)
    assert "-1 for" not in done.stderr
    assert "file or command line has to say default.replication.factor=1" in done.stderr
    one.restart(default_replication_factor=1)
    typing(one.bootstrap)("topic", "create", "orders")


def test_a_file_that_leaves_open_who_votes_first_is_good_with_a_note(run, tmp_path):
    named = tmp_path / "named.properties"
    named.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        "penstock.listeners.without.authentication=allow\n"
        "default.replication.factor=3\nmin.insync.replicas=2\n"
        "controller.quorum.bootstrap.servers=a:9093,b:9093,c:9093\n"
    )
    (told,) = rows(run("config", "lint", str(named), "--strict", "-o", "json"))
    assert told["level"] == "note" and "--initial-controllers" in told["message"]


def test_files_are_checked_and_shown(run, tmp_path):
    good, wrong = tmp_path / "good.properties", tmp_path / "wrong.properties"
    good.write_text("log.retention.ms=60000\nnum.io.threads=3\nunheard.of=1\n")
    wrong.write_text("log.retention.ms=soon\n")
    remarks = rows(run("config", "lint", str(good), "-o", "json"))
    assert [r["level"] for r in remarks] == ["warning", "warning"]
    run("config", "lint", str(good), "--strict", code=4)
    (error,) = rows(run("config", "lint", str(wrong), "-o", "json", code=4))
    assert error["level"] == "error"
    assert error["line"] == 1
    run("config", "lint", str(tmp_path / "absent"), code=2)
    shown = {r["key"]: r["value"] for r in rows(run("config", "show", str(good), "-o", "json"))}
    assert shown == {"log.retention.ms": "60000", "num.io.threads": "3"}
    (schema,) = rows(run("config", "schema", "flush.policy", "--topic", "-o", "json"))
    assert schema["choices"] == ["auto", "group", "os"]
