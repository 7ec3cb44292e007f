"""Threads of the appliance start in few places, each of which has a test of what becomes of an
exception in it."""

import ast
from pathlib import Path

import pytest

from appliance.base.idle import giving_way

ROOT = Path(__file__).parents[2]
TESTED = {
    "appliance/base/idle.py": "tests/tidy/test_threads.py",
    "appliance/exporter/certificates.py": "tests/exporter/test_exporter_barrier.py",
    "appliance/exporter/probing.py": "tests/exporter/test_exporter_barrier.py",
    "appliance/exporter/pushing.py": "tests/exporter/test_exporter_barrier.py",
    "appliance/ioproc/remote/link.py": "tests/ioproc/remote/test_remote_process.py",
    "appliance/ioproc/remote/process.py": "tests/ioproc/remote/test_remote_process.py",
    "appliance/netproc/connections/long_answers.py": "tests/netproc/test_long_answers.py",
    "appliance/netproc/sasl/credential_hashing.py": "tests/netproc/test_hashing.py",
    "appliance/shell/flusher.py": "tests/supervisor/test_supervisor_processes.py",
}
"""Where one starts → where an exception is planted in it."""


STARTS = ("Thread", "Timer", "ThreadPoolExecutor", "start_new_thread")


def starts_threads(path):
    text = path.read_text()
    if not any(name in text for name in STARTS):
        return  # parsing is what takes the time
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in STARTS:
                yield node.lineno


def test_every_place_where_a_thread_starts_is_known():
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "appliance").rglob("*.py")
        if any(starts_threads(path))
    }
    assert found == set(TESTED)
    assert all((ROOT / test).exists() for test in TESTED.values())


def test_what_gives_way_raises_what_its_thread_raised():
    def work():
        raise KeyError("planted")

    with pytest.raises(KeyError, match="planted"):
        giving_way(work)
