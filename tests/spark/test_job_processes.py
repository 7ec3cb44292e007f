"""`penstock job …` as processes: the runner through an appliance's restart, and a Spark cluster."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from kills import derived

import penstock
from benchmarks.kafka import free_port
from console.model.asking.link import Link
from console.model.jobs.jobs import statuses
from penstock.local import Appliance
from spark_local.cause import JobError
from spark_local.engine import jars, java
from spark_local.folder import Folder

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("java_for_a_minute")]
LIMIT_S = 240
JOB = """
sql = "SELECT who, count(*) AS n FROM events GROUP BY who"
[sources.events]
topic = "events"
schema = "who STRING"
[sink]
topic = "counts"
key = "who"
mode = "update"
"""


@pytest.fixture(autouse=True)
def _needs_java():
    if why := java.unavailable():
        pytest.skip(why)
    try:
        jars.fetch()
    except JobError as problem:
        pytest.skip(str(problem))


@pytest.fixture
def place(tmp_path):
    with Appliance(tmp_path / "data") as appliance:
        (tmp_path / "counts.toml").write_text(JOB)
        write(appliance, "a", "b", "a")
        yield appliance, tmp_path


def write(appliance, *names):
    with penstock.connect(appliance.bootstrap).producer() as producer:
        for name in names:
            producer.produce("events", json.dumps({"who": name}).encode())


def counts(appliance):
    found = penstock.connect(appliance.bootstrap).read("counts")
    return {m.key().decode(): json.loads(m.value())["n"] for m in found}


def command(folder, appliance, *words):
    environment = os.environ | {
        "PENSTOCK_JOBS": str(folder / "jobs"),
        "PENSTOCK_BOOTSTRAP": appliance.bootstrap,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return [sys.executable, "-m", "console", "job", *words], environment


def run(folder, appliance, *words, code=0):
    line, environment = command(folder, appliance, *words)
    done = subprocess.run(
        line, env=environment, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def until(folder, appliance, ready):
    """What `penstock job status` says, once it is so. Looked at in this process meanwhile: a
    command every time would take a core from Spark."""
    end = time.monotonic() + LIMIT_S
    jobs, link = Folder(folder / "jobs"), Link(appliance.bootstrap, {}, LIMIT_S)
    while True:
        (told,) = statuses(jobs, link, ("counts",))
        if ready(told):
            break
        assert time.monotonic() < end, told
        time.sleep(0.05)
    (shown,) = json.loads(run(folder, appliance, "status", "counts", "-o", "json"))
    return shown


def child(runner, program):
    """Process id of the runner's child that was started with that word."""
    tasks = Path(f"/proc/{runner.pid}/task").glob("*/children")  # a thread has its own
    children = [pid for task in tasks for pid in task.read_text().split()]
    words = {int(pid): Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in children}
    (found,) = [pid for pid, line in words.items() if program in line]
    return found


def test_the_runner_goes_through_a_restart_of_the_appliance_and_of_spark(place):
    appliance, folder = place
    (folder / "counts.toml").write_text(f'{JOB}delivery = "exactly-once"\n')
    run(folder, appliance, "add", "counts.toml")
    line, environment = command(folder, appliance, "serve", "--master", "local[2]")
    with (folder / "serve.log").open("wb") as log:
        runner = subprocess.Popen(line, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        until(folder, appliance, lambda told: told.rows_in == 3)
        appliance.stop()
        told = until(folder, appliance, lambda told: told.state == "waiting")
        assert (told["cause"], told["lag_records"]) == ("the appliance cannot be reached", None)
        run(folder, appliance, "status", "--check", code=4)
        # librdkafka aborts: that costs the process that has it, not the runner.
        os.kill(child(runner, "spark_local.engine.client_process"), signal.SIGABRT)
        appliance.start()
        write(appliance, "a")
        until(folder, appliance, lambda told: (told.state, told.rows_in) == ("running", 4))
        assert runner.poll() is None
        os.kill(child(runner, "org.apache.spark.deploy.SparkSubmit"), signal.SIGKILL)
        write(appliance, "c")
        until(folder, appliance, lambda told: (told.state, told.rows_in) == ("running", 5))
        assert "Spark's JVM died" in run(folder, appliance, "logs", "counts")
        assert "Errno" not in run(folder, appliance, "logs", "counts")
        assert "stopped" in run(folder, appliance, "stop", "counts", "-o", "json")
        assert sorted(one.name for one in folder.iterdir()) == [
            "counts.toml", "data", "data.log", "jobs", "serve.log"
        ]  # fmt: skip
        rows = [(row["who"], row["n"]) for _, row in derived(appliance.bootstrap, "counts")]
        assert (sorted(rows[:2]), rows[2:]) == ([("a", 2), ("b", 1)], [("a", 3), ("c", 1)])
        # Without the folder the appliance itself tells.
        line, environment = command(folder, appliance, "status", "-o", "json")
        told = subprocess.run(
            line, env=environment | {"PENSTOCK_JOBS": str(folder / "none")}, capture_output=True,
            check=True, timeout=LIMIT_S,
        )  # fmt: skip
        assert json.loads(told.stdout)[0]["state"] == "stopped"
    finally:
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(LIMIT_S) == 0, (folder / "serve.log").read_text()


def test_a_killed_runner_takes_its_jvm_and_its_clients_along(place):
    appliance, folder = place
    run(folder, appliance, "add", "counts.toml")
    line, environment = command(folder, appliance, "serve", "--master", "local[1]")
    with (folder / "serve.log").open("wb") as log:
        runner = subprocess.Popen(line, env=environment, cwd=folder, stdout=log, stderr=log)
    fds = {}
    try:
        until(folder, appliance, lambda told: told.rows_in == 3)
        for word in ("spark_local.engine.client_process", "org.apache.spark.deploy.SparkSubmit"):
            fds[word] = os.pidfd_open(child(runner, word))
        runner.kill()
        for word, fd in fds.items():
            assert select.select([fd], [], [], LIMIT_S)[0], word
    finally:
        runner.kill()
        runner.wait()
        for fd in fds.values():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            os.close(fd)


def test_the_same_job_file_runs_on_a_cluster(place):
    """A standalone master and a worker: `--master` is all that differs."""
    import pyspark

    appliance, folder = place
    home = Path(pyspark.__file__).parent
    port = free_port()
    program = ["java", "-Xmx256m", "-cp", f"{home}/jars/*"]
    kind = "org.apache.spark.deploy"
    listen = ["--host", "127.0.0.1", "--webui-port", "0"]
    logs = [(folder / f"{name}.log").open("wb") for name in ("master", "worker")]
    environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"SPARK_SCALA_VERSION": "2.13"}  # Spark's start scripts say so, too
    address = f"spark://127.0.0.1:{port}"
    lines = [
        [*program, f"{kind}.master.Master", *listen, "--port", str(port)],
        [*program, f"{kind}.worker.Worker", *listen, "--cores", "1", "--memory", "1g",
         "--work-dir", str(folder / "work"), address],
    ]  # fmt: skip
    nodes = [
        subprocess.Popen(line, env=environment, stdout=log, stderr=log)
        for line, log in zip(lines, logs, strict=True)
    ]
    try:
        end = time.monotonic() + LIMIT_S
        while "Successfully registered" not in (folder / "worker.log").read_text():
            assert time.monotonic() < end, (folder / "worker.log").read_text()
            time.sleep(0.1)
        told = run(
            folder, appliance, "run", "counts.toml", "--once", "--master", address,
            "--memory", "512m", "-o", "json",
        )  # fmt: skip
        assert json.loads(told)[0]["state"] == "finished"
        assert counts(appliance) == {"a": 2, "b": 1}
        assert "Registered app penstock" in (folder / "master.log").read_text()
    finally:
        for node, log in zip(nodes, logs, strict=True):
            node.terminate()
            node.wait(60)
            log.close()
