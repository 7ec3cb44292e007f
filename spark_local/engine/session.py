"""The one Spark driver of a process: its settings, and a session of its own for every job.

Sessions share the JVM, the executors and cached tables; each has its own views and spark.sql.*
settings. Called by the runner and by commands that run a job themselves.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_local.cause import JobError
from spark_local.engine.jars import need_jars
from spark_local.engine.java import need_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    local = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    return {
        "spark.app.name": "penstock",
        "spark.master": master,
        "spark.jars": ",".join(map(str, need_jars())),
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log4j}{_collector()}",
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
    } | (local if master.startswith("local") or "127.0.0.1" in master else {})


def start(
    master: str, place: Path, *, memory: str = "1g", more: Mapping[str, str] | None = None
) -> "SparkSession":
    """Start the driver's JVM. more: settings that win. Raises JobError when it cannot."""
    need_java()
    chosen = settings(master, place, memory) | dict(more or {})
    place.mkdir(parents=True, exist_ok=True)
    (place / "log4j2.properties").write_text(_LOG4J.format(file=place / "spark.log"))
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as problem:
        said = str(problem).split("\n\tat ")[0].splitlines()[0][:300]
        problem_text = f"Spark did not start on {chosen['spark.master']}: {said}"
        raise JobError(problem_text, f"{place / 'spark.log'} has its own story") from problem
