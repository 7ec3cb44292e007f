"""The shipped units under a booted systemd, installed as systemd/README.md says: the appliance, and
a job through the jobs' unit. The container has this host's files and writes to memory."""

import json
import time

import pytest

from spark_local.cause import JobError
from spark_local.engine import jars, java

pytestmark = pytest.mark.timeout(300)
LOOKS = 1200
JOBS = ["--jobs", "/var/lib/penstock/jobs"]
STATE = "/var/lib/penstock/jobs/counts/state.json"
CACHE = "/var/lib/penstock/cache/penstock"
JOB = """
sql = "SELECT who, name, count(*) AS n FROM events JOIN people USING (who) GROUP BY who, name"
[sources.events]
topic = "events"
schema = "who STRING"
[tables.people]
topic = "people"
key = "who"
schema = "who STRING, name STRING"
[sink]
topic = "counts"
key = "who"
mode = "update"
"""


@pytest.fixture
def appliance(booted):
    booted.run("systemctl", "enable", "--now", "penstock")
    yield booted
    booted.run("systemctl", "stop", "penstock", "penstock-jobs")


def produce(booted, topic, *rows):
    lines = "\n".join(json.dumps(row) for row in rows)
    booted.penstock("produce", topic, stdin=f"{lines}\n")


def consume(booted, topic):
    said = booted.penstock("consume", topic, "-o", "start", "-e")
    return [json.loads(line) for line in said.splitlines()]


def test_the_appliance_is_started_killed_started_again_and_stopped(appliance):
    unit = "penstock"
    assert appliance.run("systemctl", "is-active", unit) == "active\n"
    produce(appliance, "kept", {"n": 1}, {"n": 2})
    first = appliance.show(unit, "MainPID")
    appliance.run("kill", "-KILL", first)
    for _ in range(LOOKS):
        if (
            appliance.show(unit, "NRestarts") == "1"
            and appliance.show(unit, "SubState") == "running"
        ):
            break
    assert appliance.show(unit, "MainPID") not in ("0", first)
    assert consume(appliance, "kept") == [{"n": 1}, {"n": 2}]
    appliance.run("systemctl", "stop", unit)
    assert ended(appliance, unit)
    appliance.run("test", "-e", "/var/lib/penstock/.kafka_cleanshutdown")
    appliance.run("systemctl", "start", unit)
    assert consume(appliance, "kept") == [{"n": 1}, {"n": 2}]


def test_a_wrong_setting_is_not_tried_again(appliance):
    appliance.run("systemctl", "stop", "penstock")
    file = "/etc/penstock/server.properties"
    appliance.run("cp", file, f"{file}.good")
    appliance.write(file, "num.partitions=many\n")
    try:
        appliance.run("systemctl", "start", "penstock", code=1)
        restarts = appliance.show("penstock", "NRestarts")
        assert appliance.show("penstock", "ActiveState") == "failed"
        assert appliance.show("penstock", "ExecMainStatus") == "2"
        assert appliance.show("penstock", "NRestarts") == restarts
        assert "num.partitions" in appliance.journal("penstock")
    finally:
        appliance.run("mv", f"{file}.good", file)


@pytest.fixture
def spark(appliance):
    """What `penstock job setup` would have fetched, where the unit looks for it."""
    if why := java.unavailable():
        pytest.skip(why)
    try:
        there = jars.fetch()
    except JobError as problem:
        pytest.skip(str(problem))
    folder = f"{CACHE}/{jars.folder().name}"
    appliance.run("install", "-d", "-o", "penstock", "-g", "penstock", folder)
    for jar in there:
        appliance.copy(jar, f"{folder}/{jar.name}")
    appliance.run("chown", "-R", "penstock:penstock", "/var/lib/penstock/cache")
    return appliance


def test_a_job_runs_in_the_jobs_unit_as_shipped(spark):
    unit = "penstock-jobs"
    produce(spark, "people", {"who": "a", "name": "Ann"})
    produce(spark, "events", {"who": "a"}, {"who": "a"}, {"who": "b"})
    before = spark.run("ls", "/")
    spark.run("systemctl", "enable", "--now", unit)
    spark.write("/tmp/counts.toml", JOB)
    spark.penstock("job", "add", "/tmp/counts.toml", *JOBS)
    for _ in range(LOOKS):
        told = json.loads(spark.run("cat", STATE, code=None) or "{}")
        if told.get("progress", {}).get("rows_in") == 3 or told.get("cause"):
            break
        time.sleep(0.1)
    (told,) = json.loads(spark.penstock("job", "status", *JOBS, "-o", "json"))
    assert (told["state"], told["rows_in"], told["cause"]) == ("running", 3, None), spark.journal(
        unit
    )
    assert consume(spark, "counts") == [{"who": "a", "name": "Ann", "n": 2}]
    spark.penstock("job", "status", *JOBS, "--check")
    assert spark.run("systemctl", "is-active", unit) == "active\n"
    spark.run("systemctl", "stop", unit)
    assert ended(spark, unit)
    assert spark.run("ls", "/") == before
    spark.run("test", "!", "-e", "/var/lib/penstock/artifacts")


def ended(booted, unit):
    """Whether it ended by itself: systemd had to kill nothing, and nothing is left of it."""
    properties = [booted.show(unit, name) for name in ("ActiveState", "Result", "ExecMainStatus")]
    return properties == ["inactive", "success", "0"] and "SIGKILL" not in booted.journal(unit)
