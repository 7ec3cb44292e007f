"""What an appliance keeps and does while nobody uses it, counted: modules that no process has a
use for, and how often an I/O process wants to be woken. (What a control process and a link do is
in their rooms' tests.)"""

import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import crc32c as package
import pytest

from appliance.base.crc import crc32c
from appliance.ioproc import chores
from appliance.ioproc.chores import Chores
from appliance.shell.loop import LONGEST_WAIT_MS
from appliance.shell.version import current

MS = 1_000_000
NEVER_MS = 1 << 62
USELESS = {
    *("argparse", "asyncio", "calendar", "csv", "difflib", "dill", "email", "http", "logging"),
    *("importlib.metadata", "multiprocessing", "tempfile", "unittest", "urllib.request", "zipfile"),
    *("appliance.exporter.main", "crc32c", "confluent_kafka", "console.model.asking.link", "rich"),
}
"""Modules of others, and of ours, that cost memory in every process that is forked."""
BEFORE_THE_FORK = """
import sys
before = set(sys.modules)
sys.modules.setdefault("hypothesis", None)
import console.root, console.commands.up
from appliance.supervisor import main
main._entries()
print("\\n".join(set(sys.modules) - before))
"""


def test_nothing_is_imported_before_the_fork_that_nobody_needs():
    ran = subprocess.run(
        [sys.executable, "-c", BEFORE_THE_FORK], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stdout.split())
    assert "appliance.control.main" in loaded, "it is shared"
    assert sorted(loaded & USELESS) == []


def test_the_version_is_that_of_the_installation():
    assert current() == version("penstock")


def test_a_crc_is_that_of_the_package():
    for data in (b"", b"123456789", memoryview(bytes(range(256)) * 300)):
        assert crc32c(data) == package.crc32c(data)
        assert crc32c(data, 7) == package.crc32c(data, 7)
    assert crc32c(b"123456789") == 0xE3069283


# Chores ---------------------------------------------------------------------------------------


class Idle(SimpleNamespace):
    """Something that has nothing to do, whatever it is asked."""

    def __getattr__(self, name):
        return {"busy": False, "under_way": False, "doubts": False, "due_ms": NEVER_MS}.get(
            name, lambda *_: True
        )


def rest_ms(**parts):
    """In how many ms an I/O process does its chores again, where all is idle but these."""
    names = ("home", "following", "housekeeping", "moves", "cleaning", "behind", "left",
             "replicas", "whereabouts", "probing", "isolating")  # fmt: skip
    idle = Idle(trims=Idle())
    of = Chores(**{name: parts.get(name, idle) for name in names})
    assert of.run_slice(5_000 * MS, 5_000, draining=False)
    return of.due_ns // MS - 5_000


def test_chores_of_an_idle_process_come_with_its_own_wakes():
    assert rest_ms() == chores.QUIET_MS == LONGEST_WAIT_MS


@pytest.mark.parametrize(
    ("parts", "wait_ms"),
    [
        ({"replicas": Idle(due_ms=5_030)}, 30),
        ({"replicas": Idle(due_ms=5_000)}, chores.BUSY_MS),
        ({"moves": Idle(under_way=True)}, chores.EVERY_MS),
        ({"isolating": Idle(doubts=True)}, chores.EVERY_MS),
        ({"home": Idle(busy=True)}, chores.BUSY_MS),
        ({"behind": Idle(sample_slice=lambda _: False)}, chores.BUSY_MS),
    ],
)
def test_chores_come_sooner_where_something_is_due(parts, wait_ms):
    assert rest_ms(**parts) == wait_ms
