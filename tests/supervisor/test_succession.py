"""Whether a successor would start is asked first; whoever would not is not made way for."""

import os
import select
import sys
import time

import pytest

from appliance.shell.log import Log
from appliance.supervisor import succession
from appliance.supervisor.activation import Passed, make_environment, passed
from appliance.supervisor.succession import Succession, Successor

UNKNOWN = "import sys; sys.exit('Error: No such option: --check')"


@pytest.fixture
def asked():
    """Ask for a successor with this check: whether it is due, and what was said."""

    def ask(*check, lasts_ns=0, ready=True):
        reader, writer = os.pipe()
        successor = Successor((), check) if check else None
        with select.epoll() as epoll, open(reader) as lines:
            found = Succession(successor, epoll, Log("supervisor", fd=writer, journal=False))
            found.begin_check(time.monotonic_ns(), ready=ready)
            if found._check is not None:
                found.begin_check(time.monotonic_ns(), ready=ready)  # a second wish is the same one
                assert lasts_ns or epoll.poll(60), "its end wakes the supervisor"
            found.finish_check(time.monotonic_ns() + lasts_ns)
            found.close()
            os.close(writer)
            return found.due, lines.read()

    return ask


def test_who_says_that_it_would_start_is_made_way_for(asked):
    due, said = asked(sys.executable, "-c", "")
    assert due and said.rstrip().endswith("restarting")


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ((), "how it was started is not known"),
        (("/nowhere/penstock", "up"), "/nowhere/penstock: No such file"),
        ((sys.executable, "-c", UNKNOWN), "cannot take over: end this one"),
        ((sys.executable, "-c", "import sys; sys.exit('no\\nport')"), "would not start: no; port"),
        ((sys.executable, "-c", "import os; os._exit(3)"), "would not start: exit code 3"),
    ],
)
def test_who_would_not_is_not(asked, check, why):
    due, said = asked(*check)
    assert not due and said.count("\n") == 1 and why in said


def test_nobody_comes_after_one_that_does_not_serve_yet(asked):
    due, said = asked(sys.executable, "-c", "", ready=False)
    assert not due and "it has not begun to serve" in said


def test_who_says_nothing_is_waited_for_a_while(asked):
    limit_ns = int(succession.CHECK_LIMIT_S * 1e9)
    due, said = asked(sys.executable, "-c", "import time; time.sleep(60)", lasts_ns=limit_ns)
    assert not due and "did not say within 60 s" in said


def test_what_a_successor_is_told_is_what_it_reads():
    names = ["PLAINTEXT", "OUTSIDE", ""]
    environment = make_environment([Passed(name, None, kept=True) for name in names], 7)
    assert environment["LISTEN_FDS"] == "3" and passed(environment, 8) == []
    assert environment["LISTEN_FDNAMES"] == "kept.PLAINTEXT:kept.OUTSIDE:kept."
