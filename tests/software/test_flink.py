"""Flink's connector, in a local cluster of one JVM: exactly once, by transactions that its
checkpoints commit."""

import subprocess

import pytest
from installs import PROGRAMS, jars, need
from records import LIMIT_S

FLINK, CONNECTOR = "2.2.1", "5.0.0-2.2"
WANTED = [
    f"org.apache.flink:{name}:{FLINK}"
    for name in ("flink-streaming-java", "flink-clients", "flink-connector-base")
] + [f"org.apache.flink:flink-connector-kafka:{CONNECTOR}"]
COUNT = 200


@pytest.fixture
def classes(tmp_path):
    """The class path with the job."""
    compiler, libraries = need("javac"), jars(*WANTED)
    source = PROGRAMS / "FlinkDoubles.java"
    command = [compiler, "-d", tmp_path, "-cp", f"{libraries}/*", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return f"{tmp_path}:{libraries}/*"


@pytest.mark.timeout(900)
def test_doubles_are_there_exactly_once(classes, broker, records, fresh_name, tmp_path):
    group, source, sink = fresh_name("flink"), fresh_name("numbers"), fresh_name("doubles")
    records.create(source, sink)
    records.write(source, range(COUNT))
    opened = [f"--add-opens=java.base/java.{room}=ALL-UNNAMED" for room in ("lang", "util")]
    command = [need("java"), *opened, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", classes]
    command += ["FlinkDoubles", broker.bootstrap, group, source, sink]
    run = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    found = sorted(int(value) for _, value in records.read(sink, COUNT))
    assert found == [2 * n for n in range(COUNT)]
    # A bounded job may end before the offsets of its last checkpoint are written, on Kafka, too.
    ends = records.ends(source)
    assert all(0 < at <= ends[index] for index, at in records.committed(group, source).items())
