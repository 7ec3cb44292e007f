"""What every test may use: `appliance` and `fresh_appliance` of penstock's own plugin, and the mark
`interpreted`.

The suites run interpreted, and `compat/test_compiled.py` passes those of the hot modules once more
over compiled ones. What a test puts in the place of a part is not seen there: a compiled module has
its constants and its functions within itself, and takes the classes that its types name. Such a
test says so, with its reason, and is passed over.
"""

import faulthandler
import gc
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import hypothesis
import hypothesis.configuration
import pytest

from appliance.base import os_disk
from appliance.base.os_disk import OsFile

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.startup import byte_compile
from tests import seeds, tiers

pytest_plugins = ["penstock.pytest_plugin", "tests.outcomes", "tests.java_tools", "tests.forked"]

# What is kept from one run to the next is beside the compiled copies: examples that failed, and the
# constants of our modules, which hypothesis else looks for in each worker.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock-tests"
hypothesis.configuration.set_hypothesis_home_dir(CACHE / "hypothesis")
# No test asserts how long something takes: on a busy machine an example may take a second.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def is_compiled(module):
    found = sys.modules.get(module) or find_spec(module)
    origin = getattr(found, "__file__", None) or getattr(found, "origin", None)
    return (origin or "").endswith(".so")


COMPILED = is_compiled("appliance.ring.ring")

MOST_LEFT_OPEN = 300
"""Descriptors. Past 1,023 of them, `select` refuses, and what the clients and Spark do by it."""


class Kept(OsFile):
    """A file that a test opened by the Disk door."""

    opened: ClassVar[list[OsFile]] = []

    def __init__(self, path, fd):
        super().__init__(path, fd)
        self.opened.append(self)


@pytest.fixture(autouse=True)
def files_end_with_the_test():
    """Close what a test left open by the Disk door: many end as a killed process does."""
    os_disk.OsFile = Kept
    yield
    os_disk.OsFile = OsFile
    for file in Kept.opened:
        file.close()
    Kept.opened.clear()


GRACE_S = 60
"""Seconds that a test has, after its timeout was raised in it, before that is raised once more."""
RUNNER, TOLD = os.getpid(), os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """A timeout raises once in a test, and who waits again while that passes through would stand
    for ever: it is raised again and again, and who waits in C ends with the process, with the
    stacks of its threads told."""
    left_s, _ = signal.getitimer(signal.ITIMER_REAL)
    if left_s and os.getpid() == RUNNER:
        signal.setitimer(signal.ITIMER_REAL, left_s, GRACE_S)
        faulthandler.dump_traceback_later(left_s + 4 * GRACE_S, exit=True, file=TOLD)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_sessionfinish():
    gc.collect()  # worlds of compiled parts are cycles
    left = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
    if len(left) > MOST_LEFT_OPEN:
        some = "\n".join(left[-20:])
        pytest.exit(f"the tests left {len(left)} descriptors open, among them\n{some}", 1)


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "interpreted(reason): puts something in the place of a part that is compiled"
    )
    tiers.add_marks(config)
    seeds.make_chosen(config.getoption("markexpr"))
    if sys.dont_write_bytecode and not hasattr(config, "workerinput"):
        byte_compile()  # once, not by each of the hundreds of appliances that are started
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell that starts this in the background ignores Ctrl-C, and what the tests start would
        # inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if COMPILED:
        pytest.MonkeyPatch.setattr = only_where_it_has_effect(pytest.MonkeyPatch.setattr)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """What is collected stays until the end: no pass of the garbage collector looks through it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by the marks
def pytest_collection_modifyitems(config, items):
    tiers.mark_and_order(items, worker=hasattr(config, "workerinput"))
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: each worker has another address: give an id")
        mark = item.get_closest_marker("interpreted")
        if mark is not None:
            (reason,) = mark.args
            if COMPILED:
                item.add_marker(pytest.mark.skip(reason=f"interpreted only: {reason}"))


def only_where_it_has_effect(plain):
    """`setattr` that refuses compiled modules, so that no test passes without testing."""

    def checked(self, target, *rest, **options):
        named = target.rpartition(".")[0] if isinstance(target, str) else target
        module = getattr(named, "__module__", None) or getattr(named, "__name__", named)
        ours = module.startswith("appliance.")  # C extensions of others take what is put there
        assert not (ours and is_compiled(module)), f"{module} is compiled: mark `interpreted`"
        plain(self, target, *rest, **options)

    return checked
