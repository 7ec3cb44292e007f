"""`penstock stats`: what was asked of a running appliance, read beside it."""

import json
import os
import signal
import subprocess

import pytest

from console.model.local.stats import _short
from tests.console_process import rows, started


@pytest.fixture
def stats(run, appliance):
    def told(*words, **options):
        return run("stats", "--data", str(appliance.data_dir), *words, **options)

    return told


def found(done, name, value):
    return next(one for one in rows(done) if one[name] == value)


def test_requests_and_topics_are_told_as_they_were(run, stats):
    run("topic", "create", "stats.a", "-p", "2")
    before = found(stats("-o", "json"), "api", "Metadata")["requests"]
    run("produce", "stats.a", stdin="".join(f"{n}\n" for n in range(100)))
    assert run("consume", "stats.a", "-o", "start", "-e").stdout.count("\n") == 100
    apis = {one["api"]: one for one in rows(stats("-o", "json"))}
    assert apis["Metadata"]["requests"] > before
    for name in ("Produce", "Fetch", "CreateTopics", "ApiVersions"):
        one = apis[name]
        assert one["requests"] >= 1 and one["requests_s"] > 0
        assert 0 < one["p50_ms"] <= one["p99_ms"] <= one["max_ms"] < 60_000
    topic = found(stats("--topics", "-o", "json"), "topic", "stats.a")
    assert topic["partitions"] == 2
    assert topic["records_in_s"] > topic["batches_in_s"] > 0 and topic["fetches_s"] > 0
    run("topic", "delete", "stats.a", "--yes")
    assert "stats.a" not in stats("--topics").stdout


@pytest.mark.parametrize(
    ("rate", "told"),
    [
        (0.0, 0.0),
        (0.00012344, 0.000123),
        (1 / 86_400, 0.0000116),
        (99.96, 100.0),
        (123456.78, 123456.8),
    ],
)
def test_what_came_seldom_is_not_told_as_nothing(rate, told):
    assert _short(rate) == told


def test_errors_are_named(run, stats):
    def refused():
        apis = {one["api"]: one for one in rows(stats("-o", "json"))}
        return apis.get("DeleteTopics", {"errors": {}})["errors"]

    before = refused().get("UNKNOWN_TOPIC_OR_PARTITION", 0)
    run("topic", "create", "stats.b")
    run("topic", "create", "stats.b", code=1)
    told = found(stats("-o", "json"), "api", "CreateTopics")["errors"]
    assert told.get("TOPIC_ALREADY_EXISTS", 0) >= 1
    assert refused().get("UNKNOWN_TOPIC_OR_PARTITION", 0) == before
    assert "TOPIC_ALREADY_EXISTS=" in stats().stdout


def test_processes_are_told_and_over_an_interval_only_what_came_in_it(stats):
    processes = rows(stats("--processes", "-o", "json"))
    assert {one["state"] for one in processes} == {"ready"}
    assert {"control", "ioproc-0", "netproc-0"} <= {one["process"] for one in processes}
    assert all(one["pid"] > 0 and one["turns_s"] > 0 for one in processes)
    since_start = {one["api"] for one in rows(stats("-o", "json"))}
    assert "ApiVersions" in since_start
    quiet = {one["api"] for one in rows(stats("--over", "0.05", "-o", "json"))}
    assert "CreateTopics" not in quiet


def test_watching_shows_each_interval_until_it_is_interrupted(appliance):
    words = ("stats", "-w", "--interval", "0.1", "-o", "jsonl", "-p", "--data")
    folder = str(appliance.data_dir)
    with started("", *words, folder, stdout=subprocess.PIPE, text=True) as shown:
        lines = [json.loads(shown.stdout.readline()) for _ in range(12)]
        os.kill(shown.pid, signal.SIGINT)
        assert shown.wait(30) == 130
    assert len({one["process"] for one in lines}) >= 3


def test_where_nothing_runs_it_says_so(run, tmp_path):
    told = run("stats", "--data", str(tmp_path), code=3)
    assert "no folder of an appliance" in told.stderr and "--data" in told.stderr
    (tmp_path / ".lock").write_text(f"{os.getpid()}\n")
    failed = json.loads(run("stats", "--data", str(tmp_path), "-o", "json", code=3).stdout)
    assert failed["error"]["code"] == "NOT_RUNNING"
    run("stats", "-p", "-t", "--data", str(tmp_path), code=2)
