"""Asks the schema registry of a source, whose answer is the source's `writers`: before the job
starts, and when a value names a schema that is new.

Known schemas are kept beside the checkpoint: an id means one schema for ever, so a job goes on
while its registry is away, and reads by the same columns after a restart.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_local import avro_schemas, json_schemas
from spark_local.cause import JobError
from spark_local.client_settings import ClientSettings
from spark_local.engine import avro_values, sources
from spark_local.engine.jars import need_schemas
from spark_local.engine.stores import secret_of
from spark_local.folder import read_json, write_json
from spark_local.job import AVRO, Job, RegistryPlace, Source, Writers
from spark_local.registry import Registered, SchemaRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KINDS: Final = {AVRO: "AVRO", "json-schema": "JSON"}
_MOST_ABSENT: Final = 1000
FILE: Final = "registry.json"
"""Beside the checkpoint."""
_NEW: Final = re.compile(re.escape(avro_values.NEW_ID) + r"(\d+)")


Spans = dict[str, tuple[dict[str, int] | None, dict[str, int] | None]]
"""Source → (begin, end) of what is read of its topic: partition → offset."""


class NewSchemas(Exception):
    """A batch met schemas that were not known; they are now, and the next attempt reads it."""


def open_registry(place: RegistryPlace) -> SchemaRegistry:
    """The registry of a source or sink. Raises JobError for a login that cannot be read."""
    if place.user is None or place.password is None:
        return SchemaRegistry(place.url)
    return SchemaRegistry(place.url, (secret_of(place.user), secret_of(place.password)))


def ask_registries(spark: "SparkSession", job: Job, keep: Path | None) -> Job:
    """The job with the `writers` of its sources. keep: the file that remembers them. Raises
    JobError for a subject that is not there, a schema of another kind, or a newest version that the
    one which the job reads by does not read."""
    if job.sink.format == AVRO or any(one.format == AVRO for one in job.sources):
        need_schemas()
    asked = [_with_writers(spark, one, keep) if one.registry else one for one in job.sources]
    return replace(job, sources=tuple(asked))


def _with_writers(spark: "SparkSession", source: Source, keep: Path | None) -> Source:
    place = source.registry
    assert place is not None
    kept = _kept(source, keep)
    try:
        versions = open_registry(place).versions(place.subject)
    except JobError as away:
        if not (kept and away.waits):
            raise
        versions = []
    _check_versions(source, versions, kept)
    if kept is None:
        wanted = place.version or versions[-1].version
        reader = next((one for one in versions if one.version == wanted), None)
        if reader is None:
            problem = f"{place.subject} has no version {wanted} in the registry {place.url}"
            raise JobError(problem, f"it has {', '.join(str(v.version) for v in versions)}")
        kept = {"url": place.url, "subject": place.subject, "version": reader.version,
                "reader": _text(source, reader, reads=True), "known": {}}  # fmt: skip
    known = {int(one): text for one, text in kept["known"].items() if text is not None}
    known |= {one.number: _text(source, one) for one in versions}
    missed = [int(one) for one in kept["known"] if int(one) not in known]
    found = _writers(spark, source, kept, known)
    newest = versions[-1].number if versions else -1
    if newest in found.unfit:
        problem = (
            f"version {versions[-1].version} of {place.subject} cannot be read by version "
            f"{found.version}, which the job reads by: {found.unfit[newest]}"
        )
        raise JobError(problem, "write another version in registry, or register one that can be")
    if keep is not None:
        told = {str(one): text for one, text in known.items()}
        _keep(keep, source.name, kept | {"known": told})
    told_source = replace(source, writers=found)
    return learn_numbers(spark, told_source, missed, keep) if missed else told_source


def _kept(source: Source, keep: Path | None) -> dict[str, Any] | None:
    """The remembered schemas of a source that reads as it did."""
    place = source.registry
    assert place is not None
    kept: dict[str, Any] | None = read_json(keep).get(source.name) if keep else None
    if kept is None or (kept["url"], kept["subject"]) != (place.url, place.subject):
        return None
    return kept if place.version in (None, kept["version"]) else None


def _keep(keep: Path, name: str, content: dict[str, Any]) -> None:
    told = read_json(keep)
    if told.get(name) != content:
        keep.parent.mkdir(parents=True, exist_ok=True)
        write_json(keep, told | {name: content})


def _check_versions(source: Source, versions: list[Registered], kept: object) -> None:
    place = source.registry
    assert place is not None
    if not versions and kept is None:
        problem = f"the registry {place.url} has no subject {place.subject}"
        remedy = "register it, or correct registry; the job waits for it"
        raise JobError(problem, remedy, final=False, waits=True)
    wrong = {one.kind for one in versions} - {_KINDS[source.format]}
    if wrong:
        problem = f"{place.subject} is {', '.join(sorted(wrong))}, and {source.name} has format "
        raise JobError(f'{problem}"{source.format}"', "correct format of the source")


def _text(source: Source, one: Registered, *, reads: bool = False) -> str:
    if source.format != AVRO:
        return one.text
    schema = avro_schemas.inlined(one.text, one.references)
    return json.dumps(avro_schemas.marked(schema) if reads else schema)


def _writers(
    spark: "SparkSession", source: Source, kept: dict[str, Any], known: dict[int, str]
) -> Writers:
    reader = str(kept["reader"])
    if source.format != AVRO:
        columns = source.schema or json_schemas.columns_of(avro_schemas.parse_schema(reader))
        return Writers(reader, int(kept["version"]), columns)
    unfit = {one: why for one, text in known.items() if (why := unfit_reason(spark, text, reader))}
    columns = avro_columns(spark, reader)
    return Writers(reader, int(kept["version"]), columns, known, unfit=unfit)


def unfit_reason(spark: "SparkSession", writer: str, reader: str) -> str:
    """Why values of `writer` cannot be read by `reader`, by Avro's own rules; "" when they can."""
    jvm: Any = spark._jvm
    schema = jvm.org.apache.avro.Schema
    try:
        pair = [schema.Parser().parse(text) for text in (reader, writer)]
    except Exception as problem:  # of Avro's kinds, through py4j
        return str(problem).splitlines()[-1][:200]
    found = jvm.org.apache.avro.SchemaCompatibility.checkReaderWriterCompatibility(*pair)
    wrong = list(found.getResult().getIncompatibilities())
    told = (f"{one.getType()} at {one.getLocation()}: {one.getMessage()}" for one in wrong)
    return "; ".join(told)[:400]


def avro_columns(spark: "SparkSession", reader: str) -> str:
    """The columns of a schema, as Spark writes them. Raises JobError for one without such."""
    from pyspark.sql import functions as f

    try:
        row = avro_values.decoded(f.lit(None).cast("binary"), reader, reader)
        kind: Any = spark.range(0).select(row.alias("row")).schema["row"].dataType
    except Exception as problem:
        said = str(problem).splitlines()[0]
        raise JobError(f"Spark cannot read the Avro schema: {said}", "register another") from None
    fields = (one for one in kind.fields if one.name != avro_schemas.MARK)
    return ", ".join(f"`{one.name}` {one.dataType.simpleString()}" for one in fields)


def new_number(trace: str) -> int | None:
    """The id that made a batch fail because it is not known; None for other failures."""
    found = _NEW.search(trace)
    return None if found is None else int(found[1])


def learn_numbers(spark: "SparkSession", source: Source, fresh: Iterable[int],
                  keep: Path | None) -> Source:  # fmt: skip
    """The source with the schemas of these ids, or the knowledge that the registry has none. Raises
    JobError, also where so many are unknown that the topic has no such values."""
    writers, place = source.writers, source.registry
    assert writers is not None
    assert place is not None
    registry, absent, found = open_registry(place), set(writers.absent), dict(writers.known)
    for number in sorted({*fresh} - {*found} - absent):
        one = registry.by_number(number)
        if one is None or one.kind != "AVRO":
            absent.add(number)
        else:
            found[number] = _text(source, one)
    if len(absent) > _MOST_ABSENT:
        problem = f"topic {source.place.topic} names more than {_MOST_ABSENT} schemas that "
        raise JobError(f"{problem}{place.url} does not know", "correct format of the source")
    why = {one: unfit_reason(spark, text, writers.reader) for one, text in found.items()}
    unfit = {one: text for one, text in why.items() if text}
    if keep is not None:
        kept = read_json(keep).get(source.name) or {}
        told: dict[str, str | None] = {str(one): text for one, text in found.items()}
        told |= dict.fromkeys(map(str, absent))
        _keep(keep, source.name, kept | {"known": told})
    return replace(
        source, writers=replace(writers, known=found, absent=tuple(sorted(absent)), unfit=unfit)
    )


def scan(
    spark: "SparkSession", job: Job, kafka: ClientSettings, spans: Spans, keep: Path | None = None
) -> Job:
    """The job with every schema that these records name, kept in `keep`. spans: source → (begin,
    end) of what is read of its topic, None for all."""
    found = []
    for source in job.sources:
        if source.format == AVRO and source.name in spans:
            begin, end = spans[source.name]
            raw = sources.raw_batch(spark, source, kafka, begin=begin, end=end)
            fresh = avro_values.numbers(raw, 2 * _MOST_ABSENT)
            found.append(learn_numbers(spark, source, fresh, keep))
        else:
            found.append(source)
    return replace(job, sources=tuple(found))
