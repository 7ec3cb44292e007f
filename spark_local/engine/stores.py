"""Buckets of S3, and of stores like it, for a session: by Hadoop's S3A.

Settings of a session stand in plans and logs, so they hold no secret. Keys are written to a store
of Hadoop's credentials, a file of the runner's user alone, and a setting names that file.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_local.cause import JobError
from spark_local.engine.jars import need_store
from spark_local.job import Job, ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SYSTEM: Final = {
    "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "fs.s3a.path.style.access": "true",  # what stores of others take
    "fs.s3a.change.detection.mode": "none",  # theirs have no versions
    "fs.s3a.attempts.maximum": "5",
    "fs.s3a.retry.limit": "5",
}
_PROVIDER: Final = "security.credential.provider.path"
_REGION: Final = "us-east-1"
"""For a store with an address of its own that names no region: its signature needs one."""


def open_stores(spark: "SparkSession", job: Job) -> None:
    """Let this session reach the buckets of the job's tables. Raises JobError for missing jars and
    keys that cannot be read."""
    places = (job.sink.place, *(one.place for one in job.inputs))
    stores = {one.table.store for one in places if one.table and one.table.store}
    if not stores:
        return
    need_store()
    for name, value in _SYSTEM.items():
        spark.conf.set(name, value)
    for store in stores:
        for name, value in store_settings(store, os.environ).items():
            spark.conf.set(f"fs.s3a.bucket.{store.bucket}.{name}", value)
        if store.keys is not None:
            access, secret = (secret_of(one) for one in store.keys)
            folder = Path(spark.sparkContext.getConf().get("spark.local.dir", "") or ".")
            file = folder.absolute() / f"{job.name}.{store.bucket}.jceks"
            _write_keys(spark, file, {"fs.s3a.access.key": access, "fs.s3a.secret.key": secret})
            setting = f"fs.s3a.bucket.{store.bucket}.{_PROVIDER}"
            spark.conf.set(setting, f"localjceks://file{file}")


def store_settings(store: ObjectStore, environment: Mapping[str, str]) -> dict[str, str]:
    """Settings of a bucket that are no secrets. environment: has those of AWS's tools."""
    endpoint = store.endpoint or environment.get("AWS_ENDPOINT_URL")
    region = store.region or environment.get("AWS_REGION") or (_REGION if endpoint else None)
    found = {}
    if endpoint:
        found["endpoint"] = endpoint
        found["connection.ssl.enabled"] = str(endpoint.startswith("https://")).lower()
    if region:
        found["endpoint.region"] = region
    return found


def secret_of(reference: str) -> str:
    """The value of `FILE:NAME`, a line NAME=VALUE of the file. Raises JobError."""
    file, _, name = reference.rpartition(":")
    try:
        lines = Path(file).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise JobError(f"the keys of a bucket cannot be read from {file}: {problem}") from None
    for line in lines:
        key, there, value = line.partition("=")
        if there and key.strip() == name:
            return value.strip()
    raise JobError(f"{file} has no line {name}=…, which [s3] names", "write it there")


def _write_keys(spark: "SparkSession", file: Path, keys: dict[str, str]) -> None:
    """A store of credentials with just these."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    silence = jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream())
    for name, value in keys.items():
        shell = jvm.org.apache.hadoop.security.alias.CredentialShell()
        shell.setConf(jvm.org.apache.hadoop.conf.Configuration())
        shell.setOut(silence)
        shell.setErr(silence)
        words = ["create", name, "-value", value, "-provider", f"localjceks://file{file}"]
        told = gateway.new_array(jvm.java.lang.String, len(words))
        for at, word in enumerate(words):
            told[at] = word
        if shell.run(told):
            raise JobError(f"the keys of a bucket cannot be kept in {file}")
