"""Dead letters: records that a job could not read go to `<job>.dlq` as they were, and are counted.

A stream tells only that a batch had some. The batch's offsets are then read once more, the bad
records picked out and written with headers topic, partition, offset and error. How far each source
has been seen through is kept beside the checkpoint, so that a crash loses none; one may then be
written twice, with the same key. Used on the thread of one job.
"""

import codecs
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_local.client_settings import ClientSettings
from spark_local.engine import sources, values
from spark_local.engine.clients import CLIENTS
from spark_local.engine.schemas import columns
from spark_local.folder import read_json, write_json
from spark_local.job import AVRO, JSON_SCHEMA, Job, Source
from spark_local.registry import HEAD_BYTES, schema_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AT_ONCE: Final = 1000
EARLIEST: Final = -2  # as the connector writes it
Offsets = dict[str, int]


class DeadLetters:
    """Dead letters of one job. `count`: their number since the job's last reset."""

    def __init__(
        self,
        spark: "SparkSession",
        job: Job,
        schemas: dict[str, str],
        kafka: ClientSettings,
        file: Path,
    ) -> None:
        """file: where the count is kept; one that is not there for a look."""
        self._spark = spark
        self._job = job
        self._schemas = schemas
        self._kafka = kafka
        self._file = file
        kept = read_json(file)
        self.count = int(kept.get("count", 0))
        self._seen: dict[str, Offsets] = kept.get("seen", {})
        self._made = False
        self._pending: list[Any] = []

    def saw(
        self, source: Source, begin: Offsets, end: Offsets, bad: int, now_ms: int | None = None
    ) -> int:
        """A batch of `source` went from `begin` to `end` and had `bad` bad records: how many
        letters were written. What came before `begin` and was not seen through is looked at too.
        now_ms: the time of the batch."""
        seen = self._seen.setdefault(source.name, {})
        since = {p: min(seen.get(p, begin.get(p, EARLIEST)), at) for p, at in end.items()}
        if not bad and all(since[p] >= begin.get(p, EARLIEST) for p in end):
            seen |= end
            return 0
        written = self._search(source, since, end, now_ms)
        seen |= end
        self.count += written
        self.keep_positions()
        return written

    def unreadable(self, source: Source, raw: "DataFrame", most: int) -> tuple[int, list[str]]:
        """How many of these records cannot be read, and why the first of them cannot."""
        found = self._bad(raw, source, None)
        return found.count(), [reason(source, one) for one in found.limit(most).collect()]

    def table_letters(self, table: str, records: list[Any]) -> int:
        """Bad records of a table that were not told before."""
        seen = self._seen.setdefault(f"table {table}", {})
        fresh = [one for one in records if one.offset >= seen.get(str(one.partition), 0)]
        for one in fresh:
            self._write(one, f"it does not fit the columns of table {table}")
        self._flush()
        for one in fresh:
            seen[str(one.partition)] = max(seen.get(str(one.partition), 0), one.offset + 1)
        if fresh:
            self.count += len(fresh)
            self.keep_positions()
        return len(fresh)

    def forget_source(self, source: Source) -> None:
        """Its topic is another one now: nothing of it was seen through."""
        if self._seen.pop(source.name, None):
            self.keep_positions()

    def keep_positions(self) -> None:
        """Remember how far was seen."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_json(self._file, {"count": self.count, "seen": self._seen})

    def _search(self, source: Source, begin: Offsets, end: Offsets, now_ms: int | None) -> int:
        raw = sources.raw_batch(self._spark, source, self._kafka, begin=begin, end=end)
        written = 0
        for one in self._bad(raw, source, now_ms).toLocalIterator():
            self._write(one, reason(source, one))
            written += 1
        self._flush()
        return written

    def _bad(self, raw: "DataFrame", source: Source, now_ms: int | None) -> "DataFrame":
        from pyspark.sql import functions as f

        now = None if now_ms is None else f.timestamp_millis(f.lit(now_ms))
        schema = self._schemas[source.name]
        records = values.read(raw, source, schema)
        ahead = values.is_ahead(source, now).alias("ahead")
        records = records.where(values.bad(source, now))
        wrong: Any = f.array().cast("array<string>")
        miscased = wrong
        if source.format in ("json", JSON_SCHEMA):
            text = values.body(source.format).cast("string")
            fields = _fields(self._spark, schema)
            cases = (f.when(values.is_miscased(text, name), name) for name, _ in fields)
            miscased = f.array_compact(f.array(*cases))
            wrong = f.array_compact(
                f.array(*(f.when(_unfit(text, name, kind, source), name) for name, kind in fields))
            )
        if source.format == "csv":
            wrong = f.array_compact(f.array(*_misfits(self._spark, source, schema)))
        corrupt = f.col(values.CORRUPT).isNotNull().alias("corrupt")
        return records.select("key", "value", "topic", "partition", "offset", corrupt,
                              ahead, wrong.alias("wrong"), miscased.alias("miscased"))  # fmt: skip

    def _write(self, one: Any, error: str) -> None:
        headers = {"topic": one.topic, "partition": one.partition, "offset": one.offset}
        told = [(name, str(value).encode()) for name, value in headers.items()]
        key = None if one.key is None else bytes(one.key)
        self._pending.append((bytes(one.value), key, [*told, ("error", error.encode())]))
        if len(self._pending) >= _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        """Returns when all are acknowledged. Raises ClientError; what was not acknowledged is
        found again by the next attempt."""
        if not self._pending:
            return
        records, self._pending = self._pending, []
        topic = self._job.dead_letters
        if not self._made:
            CLIENTS.call("create", self._kafka, topic, 1, {})
            self._made = True
        CLIENTS.call("produce", self._kafka, topic, records)


def reason(source: Source, one: Any) -> str:
    """Why a record cannot be read, for a person."""
    value = bytes(one.value)
    if source.registry is not None and one.corrupt:
        if told := _of_registry(source, value):
            return told
        value = value[HEAD_BYTES:]
    if source.format in ("json", JSON_SCHEMA):
        if value.startswith(codecs.BOM_UTF8):
            return "it begins with a byte order mark, which JSON does not"
        try:
            found = json.loads(value)
        except ValueError as problem:
            return f"it is not JSON: {problem}"
        if not isinstance(found, dict):
            return "it is no JSON object"
        if one.wrong:
            told = ", ".join(f"{name} = {json.dumps(found.get(name))}" for name in one.wrong)
            return f"it does not fit the schema: {told}"[:1000]
        if one.miscased:
            told = ", ".join(one.miscased)
            return f"it has no {told}: the name is written in another case"[:1000]
    if one.ahead:
        span = f"{source.max_ahead_ms // 1000} s"
        return f"its {source.event_time}, the event time, is more than {span} ahead (max_ahead)"
    if one.corrupt:
        told = f": {', '.join(one.wrong)}" if one.wrong else ""
        return f"it does not fit the schema{told}"[:1000]
    if source.event_expression:
        return f"its event time, {source.event_expression}, is null"
    return f"it has no {source.event_time}, the event time"


def _of_registry(source: Source, value: bytes) -> str:
    """Why a value cannot be read by its registry; "" where its content is JSON's affair."""
    assert source.registry is not None
    number = schema_number(value)
    if number is None:
        return "it does not begin with a byte 0 and the id of a schema"
    if source.format != AVRO or source.writers is None:
        return ""
    if number in source.writers.absent:
        return f"the registry {source.registry.url} has no Avro schema of id {number}"
    if why := source.writers.unfit.get(number):
        version = f"version {source.writers.version} of {source.registry.subject}"
        return f"schema {number} cannot be read by {version}: {why}"[:1000]
    return f"its bytes do not fit schema {number}"


def _misfits(spark: "SparkSession", source: Source, schema: str) -> list[Any]:
    """For each column of a CSV value: null, or the column with its text where it does not fit."""
    from pyspark.sql import functions as f

    fields = _fields(spark, schema)
    options = {**source.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": values.CORRUPT}
    texts = f.from_csv(
        f.col("value").cast("string"), ", ".join(f"`{name}` STRING" for name, _ in fields), options
    )
    found = []
    for name, kind in fields:
        alone = f.to_csv(f.struct(texts[name].alias(name)), dict(source.options))
        read = f.from_csv(alone, f"`{name}` {kind}, {values.CORRUPT} STRING", options)
        told = f.concat(f.lit(f'{name} = "'), texts[name], f.lit('"'))
        found.append(f.when(read[values.CORRUPT].isNotNull() & texts[name].isNotNull(), told))
    return found


def _fields(spark: "SparkSession", schema: str) -> list[tuple[str, str]]:
    from pyspark.sql.types import StructType

    names = set(columns(spark, schema))
    fields = [(f.name, f.dataType.simpleString()) for f in StructType.fromDDL(schema)]
    return [pair for pair in fields if pair[0] in names]


def _unfit(text: Any, name: str, kind: str, source: Source) -> Any:
    """True where this field alone keeps the record from being read."""
    from pyspark.sql import functions as f

    schema = f"`{name}` {kind}, {values.CORRUPT} STRING"
    options = {**source.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": values.CORRUPT}
    return f.from_json(text, schema, options)[values.CORRUPT].isNotNull()
