"""One Spark session, one appliance and one runner for all tests of jobs; skipped without Java."""

import faulthandler
import gc
import json
import signal
import socket
import sys
import threading
import time
import uuid
import warnings
from contextlib import suppress

import pytest

from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine import jars, java
from spark_local.folder import Folder

pytest.importorskip("pyspark")
LIMIT_S = 180  # a first batch on a busy machine
JAVA_FOR_A_MINUTE = "-XX:TieredStopAtLevel=1"
"""What it runs is over before translating it well pays: that would take as long as the work."""


def reason():
    if found := java.unavailable():
        return found
    try:
        jars.fetch()
    except JobError as problem:
        return str(problem)
    for fetch in (jars.fetch_tables, jars.fetch_delta, jars.fetch_store, jars.fetch_schemas):
        with suppress(JobError):  # their own tests say that they are without them
            fetch()
    return None


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """An appliance for all tests of jobs; each takes topics of its own."""
    from penstock.local import Appliance

    with Appliance(tmp_path_factory.mktemp("jobs-appliance") / "data") as appliance:
        yield appliance


@pytest.fixture
def java_for_a_minute(monkeypatch):
    """For what the test starts."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", JAVA_FOR_A_MINUTE)


@pytest.fixture(scope="session")
def writer(broker):
    """A producer for all: librdkafka's idempotent one takes half a second to begin."""
    import penstock

    with penstock.connect(broker.bootstrap).producer(linger_ms=0) as producer:
        yield producer


@pytest.fixture(scope="session")
def kept():
    """The session of Spark, while there is one."""
    return []


@pytest.fixture(scope="module")
def spark(request, kept, tmp_path_factory):
    """One session for all modules that need one; the last of them ends it."""
    if why := reason():
        pytest.skip(why)
    from spark_local.engine import session

    if not kept:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JDK_JAVA_OPTIONS", JAVA_FOR_A_MINUTE)
            kept.append(
                session.start_session("local[2]", tmp_path_factory.mktemp("spark"), memory="768m")
            )
    renew_callbacks(kept[0])
    yield kept[0]
    if request.session.shouldfail or not needed_later(request):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # py4j leaves its sockets to the collector
            kept.pop().stop()
            gc.collect()


def renew_callbacks(spark):
    """Python's end of `foreachBatch` listens again, where a module in between has ended it
    (tests/transactions/test_bank_power_cut.py does)."""
    gateway = spark.sparkContext._gateway
    if (server := getattr(gateway, "_callback_server", None)) is None:
        return
    try:
        socket.create_connection(("127.0.0.1", server.port), 5).close()
    except OSError:
        gateway._callback_server = None  # pyspark starts another at the next use


def needed_later(request):
    """Whether a module after this one needs Spark."""
    here = [item.path for item in request.session.items].index(request.path)
    later = (item for item in request.session.items[here:] if item.path != request.path)
    return any("spark" in item.fixturenames for item in later)


class Bench:
    """A jobs folder with a runner in this process, and topics with names of their own."""

    def __init__(self, spark, broker, writer, path):
        import penstock
        from spark_local.engine.runner import Runner

        self.broker = broker
        self.writer = writer
        self.link = penstock.connect(broker.bootstrap)
        self.kafka = ClientSettings(broker.bootstrap)
        self.path = path
        self.folder = Folder(path / "jobs")
        self.folder.path.mkdir()
        self.spark = spark
        self._runner = Runner(self.folder, self.kafka, "local[2]", "768m")
        self._runner._spark = spark
        self.folder.runner.mkdir()
        self._runner.take_questions()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        self.mark = uuid.uuid4().hex[:6]

    def _look(self):
        while not self._ended.wait(0.1):
            self._runner.apply_wishes()

    def close(self):
        self._ended.set()
        self._thread.join(30)
        self._runner._spark = None  # it stays for the next test
        self._runner.end_jobs()

    def topic(self, name, partitions=1, **config):
        from confluent_kafka.admin import NewTopic

        full = f"{name}-{self.mark}"
        config = {key.replace("_", "."): str(value) for key, value in config.items()}
        admin = self.link.admin()
        new = NewTopic(full, num_partitions=partitions, replication_factor=1, config=config)
        admin.create_topics([new])[full].result(30)
        return full

    def write(self, topic, *values, key=None):
        for value in values:
            raw = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            self.writer.produce(topic, raw, key=None if key is None else key.encode())
        assert self.writer.flush(LIMIT_S) == 0

    def read(self, topic):
        return list(self.link.read(topic))

    def rows(self, topic):
        """Key → latest value."""
        return {(m.key() or b"").decode(): json.loads(m.value()) for m in self.read(topic)}

    def add(self, name, text, **files):
        from spark_local.jobfile import load

        place = self.path / "files"
        place.mkdir(exist_ok=True)
        for file, content in files.items():
            (place / f"{file}.py").write_text(content)
        (place / f"{name}.toml").write_text(text)
        return self.folder.add(load(place / f"{name}.toml"))

    def until(self, place, ready, limit_s=LIMIT_S):
        """Until `ready` of the job's state; fails with the job's log."""
        end = time.monotonic() + limit_s
        while not ready(told := place.state()):
            if time.monotonic() > end:
                log = place.log_file.read_text() if place.log_file.exists() else ""
                faulthandler.dump_traceback(sys.__stderr__)
                # Java prints the stacks of its threads, and goes on.
                self.spark.sparkContext._gateway.proc.send_signal(signal.SIGQUIT)
                time.sleep(1)
                raise AssertionError(f"{told}\n{log}")
            time.sleep(0.05)
        return told

    def state(self, place, *wanted):
        """Until it is in one of these states, for the newest wish."""
        number = place.read_wish().number
        return self.until(
            place, lambda told: told.get("wish") == number and told.get("state") in wanted
        )

    def read_rows(self, place, count):
        """Until so many rows were read since it was added."""
        number = place.read_wish().number

        def ready(told):
            rows = (told.get("progress") or {}).get("rows_in", 0)
            return told.get("wish") == number and rows >= count

        return self.until(place, ready)


@pytest.fixture
def bench(spark, broker, writer, tmp_path):
    found = Bench(spark, broker, writer, tmp_path)
    yield found
    found.close()
