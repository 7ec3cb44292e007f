"""Commands of jobs and the demo where nothing can be written: one sentence each, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from unwritable import read_only

from penstock.local import Appliance
from spark_local.cause import JobError
from spark_local.engine import jars, java

JOB = """
sql = "SELECT who FROM events"
[sources.events]
topic = "events"
schema = "who STRING"
[sink]
topic = "people"
"""
PENSTOCK = [sys.executable, "-m", "console"]


def run(tmp_path, *words):
    """The last two lines that the command says, in a folder that cannot be written."""
    done = subprocess.run(
        read_only(tmp_path / "ro", *PENSTOCK, *words), capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}, timeout=100,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-2:]


def refused(lines, folder, flag):
    said, hint = lines
    assert said.startswith(f"penstock: {folder}")
    assert "Read-only file system" in said or "Permission denied" in said
    assert hint.startswith("hint: ")
    assert flag in hint


def test_a_job_cannot_be_added(tmp_path):
    (tmp_path / "people.toml").write_text(JOB)
    refused(run(tmp_path, "job", "add", tmp_path / "people.toml"), tmp_path / "ro", "--jobs")


def test_jobs_cannot_be_served(tmp_path):
    if why := java.unavailable():
        pytest.skip(why)
    try:
        jars.fetch()
    except JobError as problem:
        pytest.skip(str(problem))
    refused(run(tmp_path, "job", "serve"), tmp_path / "ro", "--jobs")


def test_the_demo_cannot_keep_its_data(tmp_path):
    refused(run(tmp_path, "demo", "--no-jobs", "--data", "flights"), tmp_path / "ro", "--data")


def test_a_second_demo_in_the_same_folder_leaves_the_first_alone(tmp_path):
    with Appliance(tmp_path / "flights") as first:
        before = first.log_text()
        line = [*PENSTOCK, "demo", "--no-jobs", "--data", tmp_path / "flights"]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 1
        assert done.stderr.splitlines() == [
            f"penstock: {tmp_path / 'flights'} is in use by process {first.pid} [CANNOT_START]",
            "hint: choose another folder with --data",
        ]
        assert first.log_text() == before
