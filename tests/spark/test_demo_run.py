"""The README's first command, as a log sees it: all derived, compared, and ended in order."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from unwritable import read_only

from console.commands.demo.jobs import unavailable

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def spark_is_possible():
    if why := unavailable():
        pytest.skip(why)


def demo(*words):
    return [sys.executable, "-m", "console", "demo", *map(str, words)]


def test_every_derived_figure_is_that_of_the_csv_files(tmp_path):
    # Where it is called nothing can be written: what it writes is beside its data.
    done = subprocess.run(
        read_only(tmp_path / "here", *demo("--data", tmp_path / "my flights" / "d", "-o", "json")),
        capture_output=True, text=True, timeout=560, check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {row["topic"]: row for row in json.loads(done.stdout)}
    assert all(row["same"] for row in rows.values())
    assert rows["carrier-totals"]["flights"] == 336_776
    assert rows["flights-enriched"]["records"] == 336_776
    assert rows["flights-weather"]["records"] == 335_220
    assert "UA 58,665 flights, 336,776 in all" in done.stderr
    assert "first derived row" in done.stderr
    assert (tmp_path / "my flights" / "d" / ".kafka_cleanshutdown").exists()
    assert {one.name for one in (tmp_path / "my flights").iterdir()} == {"d", "d-jobs", "d.log"}
    assert (tmp_path / "my flights" / "d-jobs" / "delays.toml").exists()


def test_without_java_the_appliance_runs_and_says_what_is_missing(tmp_path):
    environment = os.environ | {"JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        demo("--data", tmp_path / "d", "-o", "json"), capture_output=True, text=True, timeout=560,
        check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(row["same"] for row in json.loads(done.stdout))
    (told,) = [line for line in done.stderr.splitlines() if "left out" in line]
    assert "Java" in told
    assert "openjdk-17" in told


def test_a_replay_goes_on_until_it_is_ended_and_leaves_nothing_running(tmp_path):
    process = subprocess.Popen(
        demo("--data", tmp_path / "d", "--speed", 1e6), stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "rows are derived" in line:
                break
        else:
            raise AssertionError("it ended by itself")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert (tmp_path / "d" / ".kafka_cleanshutdown").exists()
