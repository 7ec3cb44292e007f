"""The one Spark driver of a process: its settings, and a session of its own for every job.

Sessions share the JVM, the executors and cached tables; each has its own views and spark.sql.*
settings. Called by the runner and by commands that run a job themselves.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_local.cause import JobError
from spark_local.engine.jars import has_delta, need_jars
from spark_local.engine.java import need_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # One task reads the log of a table, not fifty.
    "spark.databricks.delta.snapshotPartitions": "1",
    # A batch without rows is a commit, too: it says that the table has the batch.
    "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    # `keep` may be shorter than a week.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # A vacuum lists folders in so many tasks, of which Spark's default is 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    # What is larger is left as it is.
    "spark.databricks.delta.optimize.minFileSize": str(64 << 20),
    "spark.databricks.delta.optimize.maxFileSize": str(128 << 20),
}
"""Of every session, because Delta asks the one that is active on a thread."""
_END_LIMIT_S: Final = 20.0
_DYING_S: Final = 0.5
_LEFT: Final = ("artifacts", "spark", "tmp")
"""Folders of a JVM that is no more; one that was killed leaves what is in them."""
_LOUD: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark that print kilobytes of JSON for what is raised anyway."""
_LOG4J: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
logger.hadoop.name = org.apache.hadoop.util.NativeCodeLoader
logger.hadoop.level = error
logger.kafka.name = org.apache.kafka.clients
logger.kafka.level = error
logger.names.name = org.apache.kafka.common.utils.AppInfoParser
logger.names.level = error
"""


def cores(master: str) -> int:
    """Partitions of a shuffle: as many as local cores; on a cluster a guess that can be set."""
    inner = master.removeprefix("local").strip("[]")
    if master.startswith("local"):
        return int(inner) if inner.isdigit() else (os.cpu_count() or 1) if inner == "*" else 1
    return 8


def _collector() -> str:
    """Java's option for the garbage collector; empty for Java's own choice. On two cores threads
    that collect beside the work only take turns with it: the demo took 3 CPU-seconds more."""
    return " -XX:+UseSerialGC" if (os.cpu_count() or 1) <= 2 else ""


def settings(master: str, place: Path, memory: str) -> dict[str, str]:
    """The driver's settings. place: the folder for its log and temporary files."""
    log4j = place / "log4j2.properties"
    java = f'"-Dlog4j2.configurationFile=file:{log4j}" "-Djava.io.tmpdir={place / "tmp"}"'
    local = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    # A stage that runs again would send again what its tasks sent in the open transaction.
    once = {"spark.stage.maxConsecutiveAttempts": "1"} if master.startswith("local") else {}
    return (
        {
            "spark.app.name": "penstock",
            "spark.master": master,
            "spark.jars": ",".join(map(str, need_jars())),
            "spark.driver.memory": memory,
            "spark.driver.extraJavaOptions": java + _collector(),
            "spark.local.dir": str(place / "spark"),
            "spark.sql.warehouse.dir": str(place / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.scheduler.mode": "FAIR",
            "spark.sql.shuffle.partitions": str(cores(master)),
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.streaming.stateStore.providerClass": (
                "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
            ),
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
            "spark.sql.streaming.minBatchesToRetain": "10",
            "spark.sql.streaming.noDataProgressEventInterval": "10000",
            "spark.sql.streaming.stopTimeout": "60000",
        }
        | once
        | (DELTA if has_delta() else {})
        | (local if master.startswith("local") or "127.0.0.1" in master else {})
    )


def start_session(
    master: str, place: Path, *, memory: str = "1g", more: Mapping[str, str] | None = None
) -> "SparkSession":
    """Start the driver's JVM, which writes below `place` and nowhere else. more: settings that win.
    Raises JobError when it cannot."""
    need_java()
    chosen = settings(master, place, memory) | dict(more or {})
    place.mkdir(parents=True, exist_ok=True)
    for name in _LEFT:
        shutil.rmtree(place / name, ignore_errors=True)
    (place / "tmp").mkdir()
    (place / "log4j2.properties").write_text(_LOG4J.format(file=place / "spark.log"))
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    for name in _LOUD:
        PySparkLogger.getLogger(name).disabled = True
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        # Spark 4.0 keeps artifacts of sessions in the JVM's working directory, whatever is set.
        with contextlib.chdir(place):
            return builder.getOrCreate()
    except Exception as problem:  # of many kinds: PySpark's, py4j's, the system's
        said = str(problem).split("\n\tat ")[0].splitlines()[0][:300]
        problem_text = f"Spark did not start on {chosen['spark.master']}: {said}"
        raise JobError(problem_text, f"{place / 'spark.log'} is Spark's own log") from problem


def died(spark: "SparkSession") -> bool:
    """True if the driver's JVM has ended. A killed one closes its connections a moment before its
    end shows, so this waits for that moment after a failed call.
    """
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(_DYING_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def end_session(spark: "SparkSession") -> None:
    """Stop Spark and wait for the end of its JVM; it is killed when it does not end. Without the
    wait the JVM outlives this process for a moment, and a service manager kills it."""
    from pyspark import SparkContext

    gateway = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None or process.poll() is None:
        spark.stop()
    if process is None:  # somebody else's JVM
        return
    if process.poll() is None:
        gateway.shutdown()
    process.stdin.close()  # PySpark's JVM ends with its input
    try:
        process.wait(_END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None
