"""The shipped units under a booted systemd, installed as docs/systemd.md says: the appliance, and
a job through the jobs' unit. The container has this host's files and writes to memory."""

import json
import time

import pytest

from appliance.config.acl_checks import STANDARD
from spark_local.cause import JobError
from spark_local.engine import jars, java

pytestmark = pytest.mark.timeout(300)
LOOKS = 1200
WHERE_IT_LISTENS = "awk '$2 ~ /:2384$/ && $4 == \"0A\" {print $10}' /proc/net/tcp"
"""The inode of the socket that listens at port 9092."""
PENSTOCK = "/opt/penstock/bin/penstock"
WAIT = [PENSTOCK, "wait", "--data", "/var/lib/penstock", "--timeout", "60"]
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
    assert "sandbox-incomplete" not in appliance.journal(unit)
    produce(appliance, "kept", {"n": 1}, {"n": 2})
    first = appliance.show(unit, "MainPID")
    appliance.run("kill", "-KILL", first)
    restarted(appliance, unit)
    assert appliance.show(unit, "MainPID") not in ("0", first)
    assert consume(appliance, "kept") == [{"n": 1}, {"n": 2}]
    file, more = "/etc/penstock/server.properties", "max.connections=77\\nnum.partitions=3\\n"
    appliance.run("sh", "-c", f"cp {file} {file}.good; printf '{more}' >> {file}")
    appliance.run("systemctl", "reload", unit)
    told = appliance.penstock("config", "get", "max.connections", "num.partitions", "-o", "json")
    assert [row["value"] for row in json.loads(told)] == ["77", "1"]
    assert "a restart is needed for num.partitions" in appliance.show(unit, "StatusText")
    appliance.run("sh", "-c", f"echo max.connections=many >> {file}")
    appliance.run("systemctl", "reload", unit, code=1)
    assert "Invalid value many for configuration max.connections" in appliance.journal(unit)
    assert appliance.show(unit, "SubState") == "running"
    appliance.run("mv", f"{file}.good", file)
    appliance.run("systemctl", "stop", unit)
    assert ended(appliance, unit)
    appliance.run("test", "-e", "/var/lib/penstock/.kafka_cleanshutdown")
    appliance.run("systemctl", "start", unit)
    assert consume(appliance, "kept") == [{"n": 1}, {"n": 2}]


def test_each_process_that_is_killed_is_replaced_and_the_service_goes_on(appliance):
    supervisor = appliance.show("penstock", "MainPID")
    restarts = appliance.show("penstock", "NRestarts")
    children = f"/proc/{supervisor}/task/{supervisor}/children"
    produce(appliance, "replaced", {"n": 0})
    first = appliance.run("cat", children).split()
    assert len(first) >= 3, "network, I/O and control"
    for number, child in enumerate(first, start=1):
        appliance.run("kill", "-KILL", child)
        appliance.run(*WAIT)
        produce(appliance, "replaced", {"n": number})
    assert not set(appliance.run("cat", children).split()) & set(first)
    assert consume(appliance, "replaced") == [{"n": n} for n in range(len(first) + 1)]
    assert appliance.show("penstock", "MainPID") == supervisor
    assert appliance.show("penstock", "NRestarts") == restarts


def test_the_owner_of_the_folder_is_its_administrator(appliance):
    """With ACLs in force and no plain listener: the user of the units, root, and nobody else."""
    file = "/etc/penstock/server.properties"
    listener = "SASL_PLAINTEXT://127.0.0.1:9092"
    secured = f"listeners={listener}\\nsasl.enabled.mechanisms=SCRAM-SHA-512\\n"
    secured += f"authorizer.class.name={STANDARD}\\nsuper.users=User:admin\\n"
    appliance.run("sh", "-c", f"cp {file} {file}.good; printf '{secured}' >> {file}")
    try:
        appliance.run("systemctl", "restart", "penstock")
        appliance.run(*WAIT)
        appliance.penstock("acl", "add", "loader", "--producer", "--topic", "orders")
        assert "User:loader" in appliance.penstock("acl", "list")
        assert "User:loader" in appliance.run(PENSTOCK, "acl", "list")
        appliance.run("sh", "-c", f"! runuser -u nobody -- {PENSTOCK} acl list")
    finally:
        appliance.run("mv", f"{file}.good", file)
        appliance.run("systemctl", "restart", "penstock")
        appliance.run(*WAIT)


def test_a_host_whose_power_fails_serves_again_when_it_has_booted(appliance):
    produce(appliance, "survives", {"n": 1}, {"n": 2})
    appliance.run("sh", "-c", "sync")  # the container's disk is memory: what it has is all there
    appliance.cut_the_power()
    assert appliance.run("systemctl", "is-enabled", "penstock") == "enabled\n"
    appliance.run("systemctl", "start", "penstock")  # the container boots to basic.target alone
    assert consume(appliance, "survives") == [{"n": 1}, {"n": 2}]


def restarted(booted, unit):
    """By systemd, once since somebody started it."""
    for _ in range(LOOKS):
        if booted.show(unit, "NRestarts") == "1" and booted.show(unit, "SubState") == "running":
            return
    raise AssertionError(booted.journal(unit))


def test_a_supervisor_that_stands_still_is_noticed_by_systemd(appliance):
    unit, soon = "penstock", "/run/systemd/system/penstock.service.d/soon.conf"
    assert appliance.show(unit, "WatchdogUSec") == "30s"
    appliance.run("mkdir", "-p", soon.rpartition("/")[0])
    appliance.write(soon, "[Service]\nWatchdogSec=3\n")
    appliance.run("systemctl", "daemon-reload")
    try:
        appliance.run("systemctl", "restart", unit)
        hung = appliance.show(unit, "InvocationID")
        appliance.run("kill", "-STOP", appliance.show(unit, "MainPID"))
        restarted(appliance, unit)
    finally:
        appliance.run("rm", soon)
        appliance.run("systemctl", "daemon-reload")
    said = appliance.run("journalctl", "-o", "cat", f"INVOCATION_ID={hung}")
    assert "Watchdog timeout" in said
    produce(appliance, "noticed", {"n": 1})
    assert consume(appliance, "noticed") == [{"n": 1}]
    assert "serving" in appliance.show(unit, "StatusText")


def test_it_is_restarted_in_its_process_and_the_service_runs_on(appliance):
    unit, soon = "penstock", "/run/systemd/system/penstock.service.d/soon.conf"
    appliance.run("mkdir", "-p", soon.rpartition("/")[0])
    appliance.write(soon, "[Service]\nWatchdogSec=3\n")
    appliance.run("systemctl", "daemon-reload")
    try:
        appliance.run("systemctl", "restart", unit)
        first = appliance.show(unit, "MainPID")
        queue = appliance.run("sh", "-c", WHERE_IT_LISTENS)
        produce(appliance, "outlived", {"n": 1})
        data = ["--data", "/var/lib/penstock", "-o", "json"]
        (row,) = json.loads(appliance.run("/opt/penstock/bin/penstock", "restart", *data))
        assert str(row["pid"]) == first == appliance.show(unit, "MainPID")
        assert appliance.run("sh", "-c", WHERE_IT_LISTENS) == queue
        assert consume(appliance, "outlived") == [{"n": 1}]
        said = appliance.journal(unit)
        assert "event=restarting" in said and said.count("event=ready") == 2
        time.sleep(6)  # twice the watchdog's time
        assert appliance.show(unit, "SubState") == "running"
        assert appliance.show(unit, "NRestarts") == "0"
        assert "serving" in appliance.show(unit, "StatusText")
    finally:
        appliance.run("rm", soon)
        appliance.run("systemctl", "daemon-reload")
    appliance.run("systemctl", "stop", unit)
    assert ended(appliance, unit)


def test_who_connects_while_it_does_not_run_waits_where_systemd_listens(appliance):
    appliance.run("systemctl", "stop", "penstock")
    units = "/etc/systemd/system/penstock.socket"
    appliance.run("install", "-Dm644", "/opt/checkout/systemd/penstock.socket", units)
    appliance.run("systemctl", "daemon-reload")
    appliance.run("systemctl", "enable", "--now", "penstock.socket")
    try:
        produce(appliance, "waited", {"n": 1})  # it is started by that
        first = appliance.show("penstock", "MainPID")
        assert first != "0"
        queue = appliance.run("sh", "-c", WHERE_IT_LISTENS)
        assert queue
        appliance.run("systemctl", "restart", "penstock")
        assert appliance.show("penstock", "MainPID") not in ("0", first)
        assert appliance.run("sh", "-c", WHERE_IT_LISTENS) == queue
        assert consume(appliance, "waited") == [{"n": 1}]
    finally:
        appliance.run("systemctl", "disable", "--now", "penstock.socket")
        appliance.run("systemctl", "stop", "penstock")
        appliance.run("rm", units)


def test_penstock_service_tells_how_it_is_and_takes_it_off_the_host(appliance):
    service = ["/opt/penstock/bin/penstock", "service"]
    (row, _) = json.loads(appliance.run(*service, "status", "-o", "json"))
    assert (row["state"], row["starts_with_host"]) == ("active", True)
    assert str(row["pid"]) == appliance.show("penstock", "MainPID")
    assert "ready" in appliance.run(*service, "logs", "-n", "20")
    appliance.run(*service, "uninstall")
    assert ended(appliance, "penstock") or appliance.show("penstock", "LoadState") == "not-found"
    appliance.run(*service, "status", code=4)
    appliance.run("test", "-e", "/var/lib/penstock/.kafka_cleanshutdown")
    appliance.run(*service, "install", "--jobs", "--no-start")


def test_a_backup_is_taken_by_its_unit_and_old_ones_are_forgotten(appliance):
    where, penstock = "/var/backups/penstock", "/opt/penstock/bin/penstock"
    appliance.run(penstock, "service", "install", "--backup", where, "--keep", "2", "--no-start")
    appliance.run("systemctl", "start", "penstock-backup.timer")
    assert appliance.show("penstock-backup.timer", "NextElapseUSecRealtime") != ""
    names = []
    for number in range(3):
        produce(appliance, "saved", {"n": number})
        appliance.run("systemctl", "start", "penstock-backup")
        told = json.loads(appliance.penstock("backup", "list", where, "-o", "json"))
        names.append(told[-1]["name"])
    assert [row["name"] for row in told] == names[1:], "all but the newest two are forgotten"
    appliance.penstock("backup", "verify", where)
    appliance.run("systemctl", "stop", "penstock")
    appliance.run("systemctl", "start", "penstock-backup", code=1)
    assert "no appliance is running" in appliance.journal("penstock-backup")
    assert appliance.show("penstock-backup", "ActiveState") == "failed"
    restored = "/var/lib/penstock-restored"
    appliance.run("install", "-d", "-o", "penstock", restored)
    appliance.penstock("restore", where, restored)
    log = f"saved-0/{0:020d}.log"
    appliance.run("cmp", f"{restored}/{log}", f"/var/lib/penstock/{log}")
    appliance.run("systemctl", "disable", "--now", "penstock-backup.timer")


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
        errors = appliance.run("journalctl", "-q", "-p", "err", "-u", "penstock", "-o", "cat")
        assert "num.partitions" in errors, "not only that it failed to start"
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
