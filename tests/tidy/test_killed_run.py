"""`.ci/run` ends what it has started, however it ends."""

import os
import select
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 60
README = "python3 -m venv .venv && .venv/bin/python -m pytest\n"
SUITE = """#!/bin/sh
[ "$1" = .ci/suite.py ] || exit 0
until read -r _ _ state _ </proc/$PPID/stat && [ "$state" = S ]; do :; done
sleep 1000 &
echo $$ $! >started
wait
"""
"""In the place of Python: the suite, and a test that never ends. It starts when `timeout` waits for
it: one whose `fork` has not returned yet ends by a signal without passing it on."""


def start_run(folder):
    """A run whose suite has started, and descriptors of the suite's two processes."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci")
    (folder / "README.md").write_text(README)
    os.mkfifo(folder / "started")
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(SUITE)
    python.chmod(0o755)
    run = subprocess.Popen(
        [folder / ".ci/run", "--tests-only", "tests/some"],
        stdout=subprocess.DEVNULL, env={**os.environ, "CI": ""}, start_new_session=True,
    )  # fmt: skip
    pids = (folder / "started").read_text().split()
    return run, [os.pidfd_open(int(pid)) for pid in pids]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_what_it_started_ends_with_it(tmp_path, number):
    if number == signal.SIGKILL and not shutil.which("setpriv"):
        pytest.skip("no setpriv, by which the kernel tells of a killed run")
    run, started = start_run(tmp_path)
    assert len(started) == 2
    run.send_signal(number)
    code = run.wait(LIMIT_S)
    assert code == (-number if number == signal.SIGKILL else 128 + number)
    for one in started:
        assert select.select([one], [], [], LIMIT_S)[0], "it is still there"
        os.close(one)
