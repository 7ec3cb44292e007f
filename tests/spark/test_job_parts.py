"""The parts of the runner that decide, without Spark."""

import json
import os
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_local.board import HEARTBEAT_S, Board
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine import causes, jars, jobthread, progress, runner, sinks
from spark_local.engine.attempt import Attempt
from spark_local.engine.jobthread import Patience
from spark_local.engine.listener import ENDED
from spark_local.engine.reach import Reach
from spark_local.folder import Folder
from spark_local.job import Restart
from spark_local.jobfile import load, parse
from tests.tls_front import Authority, fronted, server_context

TEXT = """
sql = "SELECT a FROM events"
[sources.events]
topic = "events"
schema = "a STRING"
[sink]
topic = "out"
"""

# What Spark prints below a sentence: the plan, with the options of its sources.
PLANNED = """{};
~Aggregate [page#49], [page#49, count(distinct user#50) AS n#52L]
+- ~SubqueryAlias events
   +- ~StreamingRelationV2 KafkaTable, kafka, [failOnDataLoss=true, subscribe=events]
"""
PROXY = """[STREAM_FAILED] Query [id = 5, runId = d] terminated with exception: \
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function. Reason: \
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "x.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
pyspark.errors.exceptions.captured.SparkRuntimeException: [USER_RAISED_EXCEPTION] too big \
SQLSTATE: P0001
Caused by: py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: \
Traceback (most recent call last):
  File "x.py", line 644, in _call_proxy
pyspark.errors.exceptions.captured.SparkRuntimeException: [USER_RAISED_EXCEPTION] too big \
SQLSTATE: P0001
"""


# What a function raises that runs in a Python worker, below two causes of the JVM.
WORKER = """Query [id = 5] terminated with exception: Job aborted due to stage failure
Caused by: org.apache.spark.SparkException: Task failed
\tat org.apache.spark.X
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "hours.py", line 7, in hour
    return row["hour"]
KeyError: 'hour'

\tat org.apache.spark.api.python.BasePythonRunner
"""


def test_what_the_jobs_own_python_raises_has_its_kind_and_place():
    def derive():
        return {}["hour"]

    try:
        derive()
    except KeyError as problem:
        found, whole = causes.translate(problem, "j"), causes.trace(problem)
    assert found.problem.startswith("KeyError: 'hour' (test_job_parts.py, line ")
    assert "job logs j --error" in found.remedy
    assert 'return {}["hour"]' in whole


def test_a_failure_is_kept_and_restarts_are_counted_until_a_reset(tmp_path):
    (tmp_path / "events.toml").write_text(TEXT)
    place = Folder(tmp_path / "jobs").add(load(tmp_path / "events.toml"))
    assert place.error() == {}
    board = Board(place, None, 1)
    board.broke(JobError("it broke", "mend it"), "x" * 30_000)
    for _ in range(2):
        board.set("failing", JobError("it broke", final=False))
    board.progress({"rows_in": 3})
    again = Board(place, None, 2)
    again.set("running")
    assert (place.state()["restarts"], place.state()["cause"]) == (2, None)
    kept = place.error()
    assert (kept["cause"], kept["remedy"], len(kept["trace"])) == ("it broke", "mend it", 20_000)
    place.delete_positions()
    assert Board(place, None, 3).content["restarts"] == 0


def test_a_job_that_failed_is_failing_until_a_batch_is_delivered(tmp_path):
    (tmp_path / "events.toml").write_text(TEXT)
    place = Folder(tmp_path / "jobs").add(load(tmp_path / "events.toml"))
    board = Board(place, None, 1)
    board.attempt(1)
    assert board.state == "starting"
    board.set("failing", JobError("it broke", final=False), next_attempt=5)
    board.attempt(2)
    told = place.state()
    assert (told["state"], told["cause"], told["attempt"]) == ("failing", "it broke", 2)
    assert (told["restarts"], told["next_attempt"]) == (1, None)
    # Another runner takes over, for the same wish: nothing was delivered yet.
    again = Board(place, None, 1)
    again.attempt(1)
    assert (place.state()["state"], place.state()["cause"]) == ("failing", "it broke")
    again.delivered()
    told = place.state()
    assert (told["state"], told["cause"], told["restarts"]) == ("running", None, 1)
    # Somebody starts it anew.
    again.set("failing", JobError("it broke", final=False))
    assert Board(place, None, 2).state == "starting"


def test_a_stopped_job_keeps_what_is_known_of_it(tmp_path):
    (tmp_path / "events.toml").write_text(TEXT)
    folder = Folder(tmp_path / "jobs")
    place = folder.add(load(tmp_path / "events.toml"))
    board = Board(place, None, place.read_wish().number)
    board.describe(place.job(), "local[2]")
    board.progress({"rows_in": 3})
    board.set("running")
    place.wish_for("stopped")
    runner.Runner(folder, ClientSettings("nobody:1"), "local[2]", "1g").apply_wishes()
    told = place.state()
    assert told["state"] == "stopped"
    assert (told["reads"], told["writes"]) == (["topic events"], "topic out")
    assert (told["delivery"], told["kind"]) == ("at-least-once", "stream")
    assert told["progress"]["rows_in"] == 3


@pytest.mark.parametrize("message", ["Waiting for data to arrive", "Waiting for next trigger"])
def test_a_job_runs_when_a_batch_is_delivered_or_there_is_nothing_to_read(tmp_path, message):
    (tmp_path / "events.toml").write_text(TEXT)
    job = load(tmp_path / "events.toml")
    place = Folder(tmp_path / "jobs").add(job)
    board = Board(place, None, 1)
    attempt = Attempt(None, job, place, ClientSettings("nobody:1"), board)
    attempt._letters = SimpleNamespace(count=0, saw=lambda *_: 0, keep_positions=lambda: None)
    attempt._topics = SimpleNamespace(publish_losses=lambda: None)
    attempt._reach = SimpleNamespace(is_reachable=lambda: True, there=True)
    seen = []

    class Query:
        """Says one thing after the other, and has ended at last."""

        def __init__(self):
            self.said = ["Initializing sources", "Processing new data", message]

        @property
        def isActive(self):
            seen.append(board.state)
            return bool(self.said)

        @property
        def status(self):
            return {"message": self.said.pop(0)}

        def exception(self):
            return None

    board.attempt(1)
    board.set("failing", JobError("it broke", final=False))
    for _ in range(4):
        attempt._inbox.put("nothing")  # no wait
    attempt._take_in = lambda told: None
    attempt._told_all = True
    attempt._follow(Query())
    assert seen == ["failing", "failing", "failing", "running"]


def test_a_folder_that_is_only_looked_at_refuses_changes(tmp_path):
    (tmp_path / "events.toml").write_text(TEXT)
    Folder(tmp_path / "jobs").add(load(tmp_path / "events.toml"))
    seen = Folder(tmp_path / "jobs", read_only=True)
    place = seen.find_job("events")
    number = place.read_wish().number
    for change in (
        lambda: place.wish_for("stopped"),
        place.delete_positions,
        lambda: seen.add(load(tmp_path / "events.toml")),
        lambda: seen.drop("events"),
        lambda: seen.jobs()[0].wish_for("running"),
    ):
        with pytest.raises(JobError, match="nothing can be changed"):
            change()
    assert place.read_wish().number == number


def test_the_last_batch_of_a_job_that_ends_is_told_however_late_the_listener_is(tmp_path):
    (tmp_path / "events.toml").write_text(TEXT)
    job = load(tmp_path / "events.toml")
    place = Folder(tmp_path / "jobs").add(job)
    attempt = Attempt(None, job, place, ClientSettings("nobody:1"), Board(place, None, 1))
    attempt._letters = SimpleNamespace(count=0, saw=lambda *_: 0)
    attempt._topics = SimpleNamespace(publish_losses=lambda: None)
    told = json.dumps({"batchId": 3, "numInputRows": 7})

    def listener():
        time.sleep(0.5)  # a bus that is behind
        attempt._inbox.put(told)
        attempt._inbox.put(ENDED)

    thread = threading.Thread(target=listener)
    thread.start()
    attempt._drain()
    assert place.state()["progress"]["rows_in"] == 7
    thread.join()


def test_waits_double_and_have_an_end():
    patience = Patience(Restart(first_ms=100, longest_ms=500, attempts=4, healthy_ms=1000))
    waits = [patience.failed(10, counted=True) for _ in range(5)]
    assert waits == [100, 200, 400, 500, None]
    patience = Patience(Restart(first_ms=100, longest_ms=500, attempts=2, healthy_ms=1000))
    assert [patience.failed(10, counted=False) for _ in range(5)][-1] == 500
    assert patience.failed(1000, counted=True) == 100  # it had been well


@pytest.mark.parametrize(
    ("text", "said", "final"),
    [
        (
            "Partition events-0's offset was changed from 10 to 25, some data may have been missed",
            "records 10 to 24 of topic events, partition 0, were deleted before the job read them",
            True,
        ),
        (
            "x\nCaused by: org.apache.kafka.common.errors.TimeoutException: Call(callName=x)",
            "the appliance cannot be reached",
            False,
        ),
        ("org.x.UnknownTopicOrPartitionException: y", "a topic that the job needs is not", False),
        ("a\n\tat b\nCaused by: java.lang.ArithmeticException: / by zero", "ArithmeticEx", True),
        (
            "x\nCaused by: org.apache.spark.SparkArithmeticException: [ARITHMETIC_OVERFLOW] long "
            "overflow. Use 'try_add' instead. SQLSTATE: 22003\n\tat org.apache.spark.X",
            "whenever it is tried: SparkArithmeticException: [ARITHMETIC_OVERFLOW] long overflow",
            True,
        ),
        (
            "x\nCaused by: java.lang.ArithmeticException: long overflow\n\tat java.lang.Math\n\tat "
            "org.apache.spark.sql.kafka010.KafkaRecordToRowConverter.$anonfun$toInternalRow",
            "a record's timestamp is not in milliseconds",
            True,
        ),
        (
            "x\nCaused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is "
            "2000043 bytes when serialized which is larger than 1048576, which is the value of the "
            "max.request.size configuration.",
            "a row of 2,000,043 bytes is larger than the sink's topic takes",
            True,
        ),
        ("x\nCaused by: org.x.KryoException: [KRYO_BUFFER_OVERFLOW] x", "KryoException", False),
        (PLANNED.format("Distinct aggregations are not"), "Distinct aggregations", False),
        (
            "An error occurred while calling o807.persist.\n: java.io.IOException: Failed to "
            "create a temp directory\n\tat org.apache.spark.network.util.JavaUtils.createDirectory",
            "IOException: Failed to create a temp directory",
            False,
        ),
        (PROXY, "SparkRuntimeException: [USER_RAISED_EXCEPTION] too big", False),
        (WORKER, "KeyError: 'hour'", False),
        (
            "x\nCaused by: org.x.KafkaIllegalStateException: [KAFKA_DATA_LOSS.START_OFFSET_RESET] "
            "Some data may have been lost because they are not available in Kafka any more. If you "
            "don't want your streaming query to fail on such cases, set the source option "
            "failOnDataLoss to false.",
            "records were deleted before the job read them",
            True,
        ),
        ("[MALFORMED_RECORD_IN_PARSING] Malformed records are detected", "a file has a", True),
    ],
)
def test_a_failure_is_one_sentence(text, said, final):
    found = causes.translate(RuntimeError(text), "j")
    assert said in found.problem
    assert found.remedy
    assert found.final == final
    assert "\n" not in found.problem


def test_a_mistake_in_the_query_is_sparks_own_sentence():
    class AnalysisException(Exception):
        """As PySpark names it."""

    said = "[UNRESOLVED_COLUMN] A column `pagee` cannot be resolved. SQLSTATE: 42703; line 1 pos 45"
    found = causes.translate(AnalysisException(PLANNED.format(said)), "j")
    assert found.problem == "[UNRESOLVED_COLUMN] A column `pagee` cannot be resolved, line 1 pos 45"
    assert "query" in found.remedy
    assert found.final


def test_a_group_that_is_never_final_names_the_keys_that_help():
    class AnalysisException(Exception):
        """As PySpark names it."""

    said = (
        "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append. This "
        "output mode is not supported for streaming aggregations without watermark on streaming "
        "DataFrames/DataSets. SQLSTATE: 42KDE"
    )
    found = causes.translate(AnalysisException(PLANNED.format(said)), "j")
    assert "without a watermark no group" in found.problem and found.final
    assert 'mode = "update"' in found.remedy and "event_time and watermark" in found.remedy


def test_lag_is_counted_and_aged():
    job = parse(TEXT, Path("/x/events.toml"))
    told = {
        "batchId": 3,
        "numInputRows": 10,
        "inputRowsPerSecond": 5.0,
        "processedRowsPerSecond": float("nan"),
        "durationMs": {"triggerExecution": 90, "addBatch": 50},
        "observedMetrics": {
            "source:events": {"bad": 2, "tombstones": 1, "newest": 1000},
            "output": {"rows": 7},
        },
        "sources": [
            {
                "description": "KafkaV2[Subscribe[events]]",
                "startOffset": {"events": {"0": 5, "1": 0}},
                "endOffset": {"events": {"0": 10, "1": 5}},
                "latestOffset": {"events": {"0": 30, "1": 5}},
            }
        ],
        "stateOperators": [
            {"numRowsTotal": 4, "memoryUsedBytes": 9, "numRowsDroppedByWatermark": 2}
        ],
    }
    totals = progress.Totals()
    found = progress.account(job, told, totals, now_ms=3500)
    assert (found["lag_records"], found["lag_s"]) == (20, 2.5)
    assert (found["rows_in"], found["rows_out"], found["late_rows"]) == (10, 7, 2)
    assert (found["batch_ms"], found["phases_ms"]) == (90, {"addBatch": 50})
    assert (found["rows_per_s"], found["processed_per_s"]) == (5.0, None)
    assert found["rows_out_per_s"] == 3.5, "7 of 10 rows, at 5 a second"
    told |= {"numInputRows": 0, "inputRowsPerSecond": 0.0}
    alone = progress.account(job, told, totals, now_ms=3500)
    assert alone["rows_out_per_s"] == 77.8, "7 rows in 90 ms, of a batch that read nothing"
    (span,) = progress.spans(job, told)
    assert (span.begin, span.end, span.bad) == ({"0": 5, "1": 0}, {"0": 10, "1": 5}, 2)
    assert json.dumps(found)


def test_the_folder_keeps_wishes_states_and_the_file(tmp_path):
    (tmp_path / "events.toml").write_text(TEXT)
    folder = Folder(tmp_path / "jobs")
    assert folder.jobs() == []
    with pytest.raises(JobError, match="there is no job 'events'"):
        folder.find_job("events")
    place = folder.add(load(tmp_path / "events.toml"))
    (tmp_path / "events.toml").unlink()
    assert [one.name for one in folder.jobs()] == ["events"]
    assert place.job().sources[0].place.topic == "events"
    first = place.read_wish()
    second = place.wish_for("stopped")
    assert (first.state, second.state) == ("running", "stopped")
    assert second.number > first.number
    board = Board(place, None, second.number)
    board.set("failed", JobError("no", "do"))
    assert place.state()["cause"] == "no"
    assert "failed: no; do" in place.log_file.read_text()
    place.checkpoint.mkdir()
    (place.checkpoint / "x").write_text("abc")
    assert place.remembers() == {"checkpoint": 3}
    place.delete_positions()
    assert place.remembers() == {}
    folder.drop("events")
    assert folder.jobs() == []


def test_a_state_may_be_told_by_two_threads_at_once(tmp_path):
    """By a job's own, and by the one that sees that the JVM is gone."""
    (tmp_path / "events.toml").write_text(TEXT)
    place = Folder(tmp_path / "jobs").add(load(tmp_path / "events.toml"))
    pace, failed = threading.Barrier(2), []

    def tell(which):
        for _ in range(300):
            pace.wait()
            try:
                place.write_state({"state": which * 1000})
            except OSError as problem:
                failed.append(problem)

    threads = [threading.Thread(target=tell, args=(which,)) for which in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert place.state()["state"] in ("a" * 1000, "b" * 1000)
    assert not list(place.path.glob(".state.json*"))


def test_what_does_not_change_is_not_told_again(tmp_path):
    folder = Folder(tmp_path / "jobs")
    (tmp_path / "events.toml").write_text(TEXT)
    board = Board(folder.add(load(tmp_path / "events.toml")), None, 1)
    assert not time_passes(board, 2).pending()
    assert time_passes(board, HEARTBEAT_S + 1).pending()
    board._told_at = time.monotonic()
    board.progress({"rows_in": 1})
    assert not board.pending(), "within a second of the last"
    assert time_passes(board, 2).pending()


def time_passes(board, seconds):
    board._told_at = time.monotonic() - seconds
    return board


def test_one_runner_for_a_folder(tmp_path):
    folder = Folder(tmp_path)
    assert folder.runner_pid() is None
    with folder.locked():
        assert folder.runner_pid() == os.getpid()
        with pytest.raises(JobError, match="a runner works in"), Folder(tmp_path).locked():
            pass
    assert folder.runner_pid() is None


def test_mirrors_come_from_the_hosts_own_settings(tmp_path, monkeypatch):
    for name in ("PENSTOCK_IVY_SETTINGS", "PENSTOCK_MAVEN_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jars._repositories() == {}
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(
        "<settings xmlns='http://maven.apache.org/SETTINGS/1.0.0'><mirrors><mirror>"
        "<mirrorOf>central</mirrorOf><url>https://mirror.example/maven</url></mirror>"
        "<mirror><mirrorOf>other</mirrorOf><url>https://no.example</url></mirror>"
        "</mirrors></settings>"
    )
    assert jars._repositories() == {"spark.jars.repositories": "https://mirror.example/maven"}
    monkeypatch.setenv("PENSTOCK_MAVEN_REPOSITORY", "https://own.example")
    assert jars._repositories() == {"spark.jars.repositories": "https://own.example"}
    monkeypatch.setenv("PENSTOCK_IVY_SETTINGS", "/etc/ivy.xml")
    assert jars._repositories() == {"spark.jars.ivySettings": "/etc/ivy.xml"}


def test_missing_java_is_one_sentence(tmp_path, monkeypatch):
    from spark_local.engine import java

    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JobError, match=r"Java is not installed.*apt install") as told:
        java.need_java()
    assert "\n" not in str(told.value)
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    assert "is Java 11, not 17 or newer" in java.unavailable()


def test_a_job_that_finds_tls_at_its_servers_fails_and_says_what_it_needs(tmp_path):
    cert, key, _ = Authority(tmp_path).certificate("broker", "127.0.0.1")
    job, place = parse(TEXT, tmp_path / "one.toml"), Folder(tmp_path / "jobs").at("one")
    for trusts in (None, cert):
        with fronted(server_context(cert, key, trusts)) as front:
            where = f"127.0.0.1:{front.port}"
            kafka = ClientSettings(f"127.0.0.1:1,{where}")
            attempt = Attempt(None, job, place, kafka, Board(place, None, 1))
            with pytest.raises(JobError, match=f"{where} is a listener with TLS") as told:
                attempt.run()
            assert told.value.final and "--command-config FILE" in told.value.remedy


def test_who_is_away_or_speaks_no_tls_is_not_taken_for_it():
    with socket.create_server(("127.0.0.1", 0)) as door:
        hangs_up = threading.Thread(target=lambda: door.accept()[0].close(), daemon=True)
        hangs_up.start()
        assert Reach(f"127.0.0.1:{door.getsockname()[1]},127.0.0.1:1").secured == ""


def test_a_state_that_cannot_be_written_ends_no_job(monkeypatch):
    """The thread of a job that has died would be taken for one that is done."""
    states, ran = [], []

    class Full:
        def attempt(self, number):
            self.set("starting")

        def set(self, state, *told, **more):
            states.append(state)
            if len(states) == 1:
                raise OSError(28, "No space left on device")

    job = SimpleNamespace(name="j", bootstrap=None, restart=None)
    monkeypatch.setattr(jobthread, "Patience", lambda policy: SimpleNamespace(failures=0))
    monkeypatch.setattr(
        jobthread, "Attempt", lambda *parts: SimpleNamespace(run=lambda: ran.append(parts))
    )
    monkeypatch.setattr(jobthread, "_PAUSE_S", 0)
    thread = jobthread.JobThread(None, job, None, ClientSettings(""), Full())
    thread.start_thread()
    thread.join(60)
    assert (states, len(ran)) == (["starting", "starting", "finished"], 1)


def test_a_producer_takes_rows_as_large_as_its_topic():
    assert sinks.sizes(1_048_588) == {
        "kafka.max.request.size": "1048588", "kafka.buffer.memory": str(32 << 20),
    }  # fmt: skip
    assert sinks.sizes(1000) == {}
    assert sinks.sizes(50 << 20)["kafka.buffer.memory"] == str(100 << 20)
    assert sinks.sizes((1 << 31) - 1)["kafka.buffer.memory"] == str((1 << 31) - 1)
