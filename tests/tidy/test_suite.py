"""`.ci/suite.py` tells apart what is flaky and what is broken, names what is left, and ends in the
line that counts."""

import contextlib
import os
import re
import select
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGINS = "-p xdist.plugin -p pytest_timeout -p tests.outcomes"
PYTEST = f"{sys.executable} -m pytest -c pytest.ini --rootdir . {PLUGINS} -q"
NO_OTHERS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Plugins that nobody names cost more than these tests."""


def run(folder, text, *options, **variables):
    """The suite over one file of tests in a folder: exit code and lines."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_some.py").write_text(text)
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/suite.py", "--alone", PYTEST, *options, f"tests={PYTEST} ."],
        cwd=folder, env={**os.environ, **NO_OTHERS, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()


def test_what_passes_alone_is_flaky_and_all_is_well(tmp_path):
    code, lines = run(
        tmp_path,
        "from pathlib import Path\n"
        "def test_good(): pass\n"
        "def test_once():\n"
        "    seen, there = Path('seen'), Path('seen').exists()\n"
        "    seen.touch()\n"
        "    assert there\n",
        "--whole",
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )
    assert code == 0, lines
    (kept,) = (tmp_path / "cache").rglob("*.jsonl")
    assert "test_some.py::test_good" in kept.read_text(), "for durations.txt"
    assert "flaky: test_some.py::test_once" in lines
    assert lines[-1].startswith("==== 2 passed, 1 rerun in ")
    closing = [line for line in lines if re.search(r"\d+ (passed|failed)", line)]
    assert closing == lines[-1:], "only one line counts"


def test_what_fails_twice_fails(tmp_path):
    code, lines = run(tmp_path, "def test_good(): pass\ndef test_bad(): assert 0\n")
    assert code == 1
    assert "failed: test_some.py::test_bad" in lines
    assert lines[-1].startswith("==== 1 failed, 1 passed in ")


def test_a_file_that_cannot_be_read_fails(tmp_path):
    code, lines = run(tmp_path, "import nothing_of_that_name\n")
    assert code == 1 and "1 failed" in lines[-1], lines


def test_what_takes_too_long_is_ended_and_fails(tmp_path):
    code, lines = run(
        tmp_path, "import signal\ndef test_waits(): signal.pause()\n", "--limit-s", "3"
    )
    assert code == 1
    assert any("took longer" in line for line in lines), lines
    assert "error" in lines[-1]


def test_what_hangs_when_it_runs_again_is_ended_and_fails(tmp_path):
    text = (
        "import signal\n"
        "from pathlib import Path\n"
        "def test_good(): pass\n"
        "def test_hangs():\n"
        "    seen, there = Path('seen'), Path('seen').exists()\n"
        "    seen.touch()\n"
        "    assert there and signal.pause()\n"
    )
    code, lines = run(tmp_path, text, "--again-limit-s", "3")
    assert code == 1
    assert "problem: again: it took longer than the 3 s that were left" in lines, lines
    assert "failed: test_some.py::test_hangs" in lines


def test_what_is_left_behind_is_named_ended_and_fails(tmp_path):
    code, lines = run(
        tmp_path,
        "import subprocess, tempfile\n"
        "left = []\n"
        "def test_leaves():\n"
        "    left.append(subprocess.Popen(['sleep', '1000']))\n"
        "    tempfile.mkdtemp(prefix='penstock-left-')\n",
        CI_PATIENCE_S="0.5",
    )
    assert code == 1
    told = [line for line in lines if line.startswith("problem: left behind")]
    assert len(told) == 2 and "sleep 1000" in told[0] and "penstock-left-" in told[1], lines
    pid = int(told[0].split("process ")[1].partition(":")[0])
    with contextlib.suppress(ProcessLookupError):  # it is gone, or ends by the signal it has got
        ending = os.pidfd_open(pid)
        assert select.select([ending], [], [], 60)[0]
        os.close(ending)
    assert lines[-1].startswith("==== 1 passed, 2 errors in ")


def test_a_stage_without_tests_fails(tmp_path):
    code, lines = run(tmp_path, "def helper(): pass\n")
    assert code == 1 and "problem: no test was run" in lines, lines
    code, lines = run(tmp_path, "def helper(): pass\n", "--whole", XDG_CACHE_HOME=str(tmp_path))
    assert code == 1 and "problem: tests: no test was run" in lines, lines
