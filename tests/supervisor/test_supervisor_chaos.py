"""Kill processes at random while everybody talks: no message of a former life is ever seen."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILLS = 80


@pytest.mark.parametrize("seed", [1, 2])
def test_no_message_outlives_the_death_of_its_sender_or_receiver(tmp_path, seed):
    rng = random.Random(seed)
    errors = tmp_path / "stderr"
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("toy_traffic.py")), str(tmp_path)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    try:
        assert process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        left = KILLS
        while left:
            pids = [int(pid) for pid in children.read_text().split()]
            for pid in rng.sample(pids, min(len(pids), rng.choice((1, 1, 2, 3)), left)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    left -= 1
            process.poll()
            assert process.returncode is None
            time.sleep(rng.choice((0, 0.005, 0.02)))  # how long they may talk is part of the chaos
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) in (0, 1)  # 1: one of them was down at the signal
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
    log = errors.read_text()
    assert "Traceback" not in log
    assert "ring-broken" not in log
    assert 'cause="killed by SIGKILL"' in log
