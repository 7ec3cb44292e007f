"""`--outcomes FILE` records what became of each test, one JSON object a line.

`.ci/run` reads the file: for the tests that failed, those that never ran, and what took long.
Each line has `id`, `when` (setup, call, teardown, collect), `outcome` and `s` (seconds); a line
with `collected` lists the ids that were to run. The line of a teardown also has `cpu`, the seconds
of processor time of the whole test: the worker's own and those of children that have ended.
"""

import json
import os

import pytest

BEGAN = pytest.StashKey[float]()


def pytest_addoption(parser):
    parser.addoption("--outcomes", metavar="FILE", help="record each outcome there, as JSON lines")


def pytest_configure(config):
    path = config.getoption("--outcomes")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(path), "outcomes")


def processor_seconds():
    """Seconds of processor time of this process and of its children that were waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.stash[BEGAN] = processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    try:
        return (yield)
    finally:
        used = processor_seconds() - item.stash[BEGAN]
        item.user_properties.append(("cpu", round(used, 2)))


class Recorder:
    """Writes a line as soon as it is known, so that a killed run leaves what it has found out."""

    def __init__(self, path):
        self._file = open(path, "w", buffering=1)  # noqa: SIM115 it is closed with the session
        self._collected = None

    def _write(self, **line):
        print(json.dumps(line), file=self._file)

    def pytest_runtest_logreport(self, report):
        self._write(
            id=report.nodeid, when=report.when, outcome=report.outcome,
            s=round(report.duration, 3), **dict(report.user_properties),
        )  # fmt: skip

    def pytest_collectreport(self, report):
        if report.failed:
            self._write(id=report.nodeid, when="collect", outcome="failed", s=0)

    def pytest_collection_finish(self, session):
        self._note_collected([item.nodeid for item in session.items])

    def pytest_xdist_node_collection_finished(self, node, ids):
        self._note_collected(ids)

    def _note_collected(self, ids):
        """Each worker of pytest-xdist collects the same tests."""
        if ids and self._collected is None:
            self._collected = list(ids)
            self._write(collected=self._collected)

    def pytest_unconfigure(self):
        self._file.close()
