"""The jars of Spark's Kafka connector: fetched once into the user's cache, found there afterwards.

They are those of the installed PySpark's very version. Fetching uses Spark's own resolver with what
the host is set up for: PENSTOCK_IVY_SETTINGS, PENSTOCK_MAVEN_REPOSITORY, or the mirrors of Maven's
settings.xml. Sessions use local files only, so that a job starts without any network.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from spark_local.cause import JobError
from spark_local.engine.java import need_java

FETCH_LIMIT_S: Final = 900.0
ICEBERG: Final = "1.10.1"
"""The newest one whose jar for Spark 4.0 tests have run with."""
DELTA: Final = {"4.0": "4.0.1"}
"""Release of Delta Lake for each line of Spark: each is built for one alone."""
_SDK: Final = "2.33.0"
"""Release of AWS's SDK in Iceberg's bundle of it, a tenth of AWS's own."""
_EXCLUDED: Final = (  # PySpark has them itself
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.scala-lang:scala-library",
    "org.scala-lang.modules:scala-parallel-collections_2.13",
    "org.lz4:lz4-java",
    "org.xerial.snappy:snappy-java",
    "org.slf4j:slf4j-api",
    "org.apache.spark:spark-tags_2.13",
    "com.google.code.findbugs:jsr305",
    "commons-logging:commons-logging",
    "org.antlr:antlr4-runtime",
    "org.tukaani:xz",
    # Iceberg's bundle has what S3A needs of AWS's SDK.
    "org.wildfly.openssl:wildfly-openssl",
    *(
        f"software.amazon.awssdk:{one}"
        for one in (
            "bundle",
            "s3",
            "sdk-core",
            "utils",
            "annotations",
            "regions",
            "arns",
            "aws-core",
            "json-utils",
            "protocol-core",
            "auth",
            "http-client-spi",
        )
    ),
)
_RESOLVE: Final = """
import sys
from pyspark.sql import SparkSession
b = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
b = b.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
for pair in sys.argv[1:]:
    b = b.config(*pair.split("=", 1))
b.getOrCreate().stop()
"""


def spark_version() -> str:
    """The version of the installed PySpark. Raises JobError."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        remedy = "pip install '.[spark]' in a checkout, or 'pyspark>=4.0,<5', installs it"
        raise JobError("PySpark is not installed", remedy) from None


def folder() -> Path:
    """Where the jars of the installed PySpark are kept."""
    if named := os.environ.get("PENSTOCK_SPARK_JARS"):
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "penstock" / f"spark-{spark_version()}"


def found() -> list[Path]:
    """The jars, empty when they have not been fetched."""
    jars = sorted(folder().glob("*.jar"))
    wanted = f"-{spark_version()}.jar"
    there = any(j.name.startswith("spark-sql-kafka") and j.name.endswith(wanted) for j in jars)
    return jars if there else []


def need_jars() -> list[Path]:
    """The jars, or JobError."""
    jars = found()
    if not jars:
        problem = "the jars of Spark's Kafka connector are not here"
        raise JobError(problem, "penstock job setup fetches them once")
    return jars


def add(jar: Path) -> Path:
    """Keep one more jar with them, a database's driver for one: where it is now."""
    if not jar.is_file() or jar.suffix != ".jar":
        raise JobError(f"{jar} is no jar", "name a file that ends in .jar")
    folder().mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy2(jar, folder()))


def fetch() -> list[Path]:
    """Fetch the jars unless they are here. Raises JobError with the reason when it cannot."""
    if here := found():
        return here
    _fetch(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version()}")
    return need_jars()


def has_tables() -> bool:
    """True if Apache Iceberg's jar is with them."""
    return any(folder().glob("iceberg-spark-runtime-*.jar"))


def has_delta() -> bool:
    """True if Delta Lake's jars are with them."""
    return all(any(folder().glob(f"delta-{one}*.jar")) for one in ("spark_", "storage-"))


def has_store() -> bool:
    """True if the jars for tables in buckets are with them."""
    names = ("hadoop-aws-*", "iceberg-aws-bundle-*", "s3-transfer-manager-*")
    return all(any(folder().glob(f"{one}.jar")) for one in names)


def need_tables() -> None:
    """Raises JobError where Apache Iceberg's jar is missing."""
    if not has_tables():
        raise _missing("the jar of Apache Iceberg, which [sink.table] needs, is not here", "tables")


def need_delta() -> None:
    """Raises JobError where Delta Lake's jars are missing."""
    if not has_delta():
        raise _missing("the jars of Delta Lake, which [sink.table] needs, are not here", "delta")


def has_schemas() -> bool:
    """True if the jar for values of Avro is with them."""
    return any(folder().glob("spark-avro_*.jar"))


def need_schemas() -> None:
    """Raises JobError where the jar for values of Avro is missing."""
    if not has_schemas():
        raise _missing('Spark\'s jar for Avro, which format = "avro" needs, is not here', "schemas")


def fetch_schemas() -> None:
    """Fetch the jar for values of Avro unless it is here. Raises JobError."""
    if not has_schemas():
        _fetch(f"org.apache.spark:spark-avro_2.13:{spark_version()}")
        need_schemas()


def need_store() -> None:
    """Raises JobError where the jars for buckets are missing."""
    if not has_store():
        raise _missing("the jars for tables in buckets (path = s3://…) are not here", "s3")


def _missing(problem: str, flag: str) -> JobError:
    remedy = f"penstock job setup --{flag} fetches it once; then start penstock job serve again"
    return JobError(problem, remedy)


def fetch_tables() -> None:
    """Fetch Apache Iceberg's jar unless it is here. Raises JobError."""
    if not has_tables():
        _fetch(f"org.apache.iceberg:iceberg-spark-runtime-{_line()}_2.13:{ICEBERG}")
        need_tables()


def fetch_delta() -> None:
    """Fetch Delta Lake's jars unless they are here. Raises JobError."""
    if has_delta():
        return
    release = DELTA.get(_line())
    if release is None:
        known = ", ".join(f"{line}.x" for line in DELTA)
        problem = f"no release of Delta Lake is known for PySpark {spark_version()}"
        raise JobError(problem, f'install PySpark {known}, or write format = "iceberg"')
    _fetch(f"io.delta:delta-spark_2.13:{release}")
    need_delta()


def fetch_store() -> None:
    """Fetch the jars for tables in buckets unless they are here. Raises JobError."""
    if has_store():
        return
    import pyspark

    api = next(Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar"))
    hadoop = api.stem.rpartition("-")[2]
    _fetch(
        f"org.apache.hadoop:hadoop-aws:{hadoop},org.apache.iceberg:iceberg-aws-bundle:{ICEBERG},"
        f"software.amazon.awssdk:s3-transfer-manager:{_SDK}"
    )
    need_store()


def _line() -> str:
    return ".".join(spark_version().split(".")[:2])


def _fetch(package: str) -> None:
    need_java()
    with tempfile.TemporaryDirectory(prefix="penstock-jars-") as place:
        settings = {
            "spark.jars.packages": package,
            "spark.jars.excludes": ",".join(_EXCLUDED),
            "spark.jars.ivy": place,
        } | _repositories()
        command = [sys.executable, "-c", _RESOLVE, *(f"{k}={v}" for k, v in settings.items())]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=FETCH_LIMIT_S, check=False,
                cwd=place,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise JobError(f"{package} did not come in time", "try again later") from None
        if done.returncode:
            raise JobError(f"{package} cannot be fetched: {_reason(done.stderr)}", _REMEDY)
        _keep(sorted(Path(place, "jars").glob("*.jar")))


_REMEDY: Final = (
    "a host without Maven Central sets PENSTOCK_MAVEN_REPOSITORY to the address of its mirror, or "
    "PENSTOCK_IVY_SETTINGS to a settings file of Ivy"
)


def _keep(jars: list[Path]) -> None:
    """All of them under their plain names, the connector last: it shows that nothing is missing."""
    target = folder()
    target.mkdir(parents=True, exist_ok=True)
    for jar in sorted(jars, key=lambda one: "spark-sql-kafka" in one.name):
        name = (
            jar.name.split("_", 1)[1]
            if jar.name.startswith(("org.", "com.", "io.", "software."))
            else jar.name
        )
        part = target / f".{name}.part"
        shutil.copy2(jar, part)
        part.rename(target / name)


def _repositories() -> dict[str, str]:
    if settings := os.environ.get("PENSTOCK_IVY_SETTINGS"):
        return {"spark.jars.ivySettings": settings}
    if named := os.environ.get("PENSTOCK_MAVEN_REPOSITORY"):
        return {"spark.jars.repositories": named}
    mirrors = _mirrors(Path.home() / ".m2" / "settings.xml")
    return {"spark.jars.repositories": ",".join(mirrors)} if mirrors else {}


def _mirrors(file: Path) -> list[str]:
    """Addresses of the mirrors of Maven Central that Maven's settings name."""
    try:
        root = xml.parse(file).getroot()
    except (OSError, xml.ParseError):
        return []
    found = []
    for mirror in root.iter():
        if mirror.tag.rpartition("}")[2] == "mirror":
            parts = {part.tag.rpartition("}")[2]: (part.text or "").strip() for part in mirror}
            of = parts.get("mirrorOf", "").split(",")
            if {"*", "central", "external:*"} & set(of) and parts.get("url"):
                found.append(parts["url"])
    return found


def _reason(said: str) -> str:
    """The line of Ivy's and Java's long story that says why."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for mark in ("unresolved dependency", "not found", "Server access error", "Exception"):
        for line in lines:
            if mark in line:
                return line.strip(":- ")[:200]
    return lines[-1][:200] if lines else "no reason was given"
