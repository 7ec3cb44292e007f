"""Levels of loggers by Kafka's tool as it is, and lines of JSON: what every process writes."""

import json
import subprocess
import sys
import time

import pytest

from benchmarks import kafka
from tests import java_tools
from tests.broker_process import KAFKA, Broker

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.skipif(KAFKA, reason="Apache Kafka's loggers have other names"),
    pytest.mark.timeout(180),
]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    settings = {"penstock.log.format": "json", "penstock.metrics.listener": "127.0.0.1:0"}
    with Broker(tmp_path_factory.mktemp("levels") / "data", settings) as running:
        yield running


def lines(broker):
    """Every line of its log: each is an object."""
    return [json.loads(line) for line in broker.log.read_text().splitlines()]


def said_at_the_start(broker, events):
    """Waits for these events; the exporter's comes some time after "ready"."""
    end = time.monotonic() + 60
    while not events <= (seen := {one["event"] for one in lines(broker)}):
        assert time.monotonic() < end, seen
        time.sleep(0.05)


def configs(broker, *words):
    where = ("--entity-type", "broker-loggers", "--entity-name", "1")
    tool = "kafka.admin.ConfigCommand"
    done = java_tools.tool(
        tool, "--bootstrap-server", broker.bootstrap, *words, *where,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def created(broker, name, *events):
    """True if these events, and no others, are written when a topic is made. The answer may come
    before the lines, and an event of a kind is told once a second: so several are made."""
    end = time.monotonic() + 60
    while True:
        topic = f"{name}-{time.monotonic_ns()}"
        broker.peer.create(1, {}, topic)
        time.sleep(0.05)
        seen = {one["event"] for one in lines(broker) if topic in one["fields"].values()}
        if seen >= {*events} or time.monotonic() > end:
            return seen == {*events}


def test_levels_are_shown_and_changed_while_it_runs(quiet):
    said_at_the_start(quiet, {"ready", "metrics"})
    assert created(quiet, "usual", "topic-created")
    configs(quiet, "--alter", "--add-config", "penstock.control=DEBUG,penstock.netproc=ERROR")
    told = configs(quiet, "--describe")
    assert "penstock.control=DEBUG" in told and "penstock.ioproc=INFO" in told
    assert created(quiet, "closely", "topic-created", "metadata-changed")
    ours = [sys.executable, "-m", "console", "config"]
    where = ["--loggers", "1", "--bootstrap-server", quiet.bootstrap]
    for words in (["unset", "penstock.control"], ["set", "root=FATAL"]):
        subprocess.run([*ours, *words, *where], check=True, timeout=60, capture_output=True)
    assert created(quiet, "unsaid")
