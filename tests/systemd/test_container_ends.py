"""A container ends when the tests that booted it do, however they end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from booted import impossible, processes

LIMIT_S = 120
_BOOTS = """
import sys
from pathlib import Path
from booted import Booted, NotBooted
try:
    booted = Booted(Path(sys.argv[1]))
except NotBooted as why:
    sys.exit(f"not booted: {why}")
print("booted", flush=True)
sys.stdin.read()
"""


@pytest.mark.timeout(3 * LIMIT_S)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_a_killed_test_run(tmp_path, number):
    if why := impossible():
        pytest.skip(why)
    place = tmp_path / "container"
    run = subprocess.Popen(
        [sys.executable, "-c", _BOOTS, place],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=Path(__file__).parent, env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )  # fmt: skip
    with run:
        if run.stdout.readline() != "booted\n":
            run.stdin.close()
            pytest.skip(run.stderr.read())
        assert len(processes(place)) > 3, "its process 1, what that runs, and systemd-nspawn"
        run.send_signal(number)
        run.wait(LIMIT_S)
        end = time.monotonic() + LIMIT_S
        while (left := processes(place)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not left
