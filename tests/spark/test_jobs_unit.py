"""The systemd unit of the jobs: what it starts exists, Java can run in it, it stays locked down."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from console.commands.job.serve import command

FILE = Path(__file__).parents[2] / "systemd" / "penstock-jobs.service"
UNIT = FILE.read_text()
NEEDS_SYSTEMD = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here"
)


def test_the_unit_calls_a_command_that_there_is():
    line = re.search(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)
    program, *words = shlex.split(line[1])
    assert (Path(program).name, *words[:2]) == ("penstock", "job", "serve")
    command.make_context("serve", words[2:])  # refuses what it does not know


def test_java_can_run_in_it():
    assert not re.search(r"^MemoryDenyWriteExecute=", UNIT, re.MULTILINE)


@NEEDS_SYSTEMD
def test_systemd_takes_the_unit(tmp_path):
    there = tmp_path / "penstock"
    there.write_text("#!/bin/sh\n")
    there.chmod(0o755)
    unit = tmp_path / "penstock-jobs.service"
    unit.write_text(UNIT.replace("/opt/penstock/bin/penstock", str(there)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert unit.name not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


@NEEDS_SYSTEMD
def test_the_unit_stays_locked_down():
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(FILE)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze is older than 250")
    level = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert level is not None
    assert float(level[1]) <= 1.5
