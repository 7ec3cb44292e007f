"""Frameworks in Python that build on librdkafka, aiokafka or both: each doubles numbers of one
topic into another, ends, and goes on where it was. What they keep in topics of their own (change
logs, leaders) is theirs to create."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest
from installs import PROGRAMS, python_packages
from records import LIMIT_S

BYTEWAX = ("bytewax==0.21.1", "confluent-kafka==2.12.2", "requests==2.32.5", "fastavro==1.12.1")
FAUST = ("faust-streaming==0.15.3", "aiokafka==0.14.0")
FASTSTREAM = ("faststream==0.7.8", "aiokafka==0.14.0", "confluent-kafka==2.16.1")
QUIX = ("quixstreams==3.28.1",)
FIRST, MORE = 200, 50

pytestmark = pytest.mark.timeout(900)


def run(*command, **environment):
    """Runs a program to its end, which must be a good one."""
    done = subprocess.run(
        command, env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@contextlib.contextmanager
def running(log, *command):
    """A program that works until SIGTERM, upon which it must end."""
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT_S)
    except BaseException:
        print(log.read_text()[-5000:])
        raise
    finally:
        process.kill()
        process.wait()


def doubles(found):
    """The doubles in records whose values are JSON: numbers, or objects that have one."""
    values = [json.loads(value) for _, value in found]
    return sorted(value["double"] if isinstance(value, dict) else value for value in values)


def expected(numbers):
    return [2 * number for number in numbers]


def test_quix_streams_counts_exactly_once(broker, records, fresh_name, tmp_path):
    python = python_packages(*QUIX)
    group, source, sink = fresh_name("quix"), fresh_name("numbers"), fresh_name("doubles")
    records.create(source)
    records.write(source, range(FIRST))

    def double(count, folder):
        program = PROGRAMS / "quix_doubles.py"
        run(python, program, broker.bootstrap, group, source, sink, str(count), tmp_path / folder)

    double(FIRST, "state")
    assert doubles(records.read(sink, FIRST)) == expected(range(FIRST))
    assert records.committed(group, source) == records.ends(source)
    records.write(source, range(FIRST))
    double(FIRST, "elsewhere")  # without its state, which it has back from the changelog topic
    found = records.read(sink, 2 * FIRST)
    assert sorted(json.loads(value)["seen"] for _, value in found) == sorted([1, 2] * FIRST)


def test_faust_reads_writes_and_commits(broker, records, fresh_name, tmp_path):
    python = python_packages(*FAUST)
    group, source, sink = fresh_name("faust"), fresh_name("numbers"), fresh_name("doubles")
    records.create(source, sink)
    records.write(source, range(FIRST))
    words = [group, broker.bootstrap, source, sink, str(tmp_path / "state")]
    command = [python, PROGRAMS / "faust_doubles.py", *words, "worker", "-l", "warn"]
    with running(tmp_path / "log", *command):
        assert doubles(records.read(sink, FIRST)) == expected(range(FIRST))
    assert records.committed(group, source) == records.ends(source)


@pytest.mark.parametrize("client", ["aiokafka", "confluent"])
def test_faststream_goes_on_where_it_was(broker, records, fresh_name, tmp_path, client):
    python = python_packages(*FASTSTREAM)
    group, source, sink = fresh_name("faststream"), fresh_name("numbers"), fresh_name("doubles")
    records.create(source, sink)
    words = [client, broker.bootstrap, group, source, sink]
    command = [python, PROGRAMS / "faststream_doubles.py", *words]
    done = 0
    for more in (FIRST, MORE):
        records.write(source, range(done, done + more))
        done += more
        with running(tmp_path / "log", *command):
            assert doubles(records.read(sink, done)) == expected(range(done))
        assert records.committed(group, source) == records.ends(source)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="bytewax has wheels up to Python 3.12")
def test_bytewax_resumes_from_its_recovery_store(broker, records, fresh_name, tmp_path):
    python = python_packages(*BYTEWAX)
    source, sink = fresh_name("numbers"), fresh_name("doubles")
    records.create(source, sink)
    store = tmp_path / "recovery"
    store.mkdir()
    run(python, "-m", "bytewax.recovery", store, "1")
    flow = [python, "-m", "bytewax.run", f"{PROGRAMS / 'bytewax_doubles.py'}:flow"]
    done = 0
    for more in (FIRST, MORE):
        records.write(source, range(done, done + more))
        done += more
        names = {"BOOTSTRAP": broker.bootstrap, "SOURCE": source, "SINK": sink}
        run(*flow, "-r", store, "-s", "0", "-b", "0", **names)
        assert doubles(records.read(sink, done)) == expected(range(done))
