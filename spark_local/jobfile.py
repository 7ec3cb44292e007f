"""Job files: TOML text → Job, with every mistake named (file, key, value, remedy) before Spark
starts. The reference for people is docs/jobs.md. Imports neither pyspark nor appliance.
"""

import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from spark_local import ddl, tablefile, valuefile
from spark_local.job import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    HEADERS,
    INFER,
    MAX_AHEAD_MS,
    METADATA,
    TOMBSTONE,
    TRANSACTION_MS,
    Files,
    Jdbc,
    Job,
    Place,
    Restart,
    Sink,
    Source,
    Table,
)
from spark_local.mistakes import JobFileError, Mistake, TableReader

__all__ = ["JobFileError", "Mistake", "load", "parse"]

_JOB_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_VIEW: Final = re.compile(r"[A-Za-z_]\w{0,99}")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MASTER: Final = re.compile(r"local(\[(\*|\d+)\])?|spark://\S+|yarn|k8s://\S+")
_FILE_FORMATS: Final = ("json", "csv", "parquet")
_LONGEST_TRANSACTION_MS: Final = (1 << 31) - 1  # as InitProducerId has it
_OF_TOPICS: Final = (
    "start", "max_records", "tasks", "on_loss", "metadata", "headers", "tombstones",
)  # fmt: skip


def load(path: str | Path, base: Path | None = None) -> Job:
    """The job of a file. base: the folder that its relative paths mean, when it is not its own.
    Raises JobFileError with all its mistakes."""
    file = Path(path)
    try:
        text = file.read_text()
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise _alone(file, "the file", f"it cannot be read: {reason}", "check the path") from None
    except UnicodeDecodeError:
        raise _alone(file, "the file", "it is not UTF-8", "save it as UTF-8") from None
    return parse(text, file, base)


def parse(text: str, path: Path, base: Path | None = None) -> Job:
    """The job that `text` describes; `path` gives its default name and, without `base`, resolves
    its paths. Raises JobFileError with all mistakes."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise _alone(path, "the file", f"it is not TOML: {problem}", "see docs/jobs.md") from None
    out: list[Mistake] = []
    job = _job(TableReader(path.name, "", content, out), path.absolute(), base)
    if out:
        raise JobFileError(out)
    return job


def _alone(file: Path, key: str, problem: str, remedy: str) -> JobFileError:
    return JobFileError([Mistake(file.name, key, None, problem, remedy)])


def _job(read: TableReader, path: Path, base: Path | None) -> Job:
    name = read.checked("name", _job_name, None)
    if "name" not in read:
        try:
            name = _job_name(path.stem)
        except ValueError as wrong:
            read.wrong("name", f"the file's name {path.stem!r} is no name of a job", wrong.args[1])
    batch = read.flag("batch")
    folder = base or path.parent
    sources = tuple(_source(n, r, folder, batch) for n, r in read.children("sources").items())
    tables = tuple(_table(n, r, folder) for n, r in read.children("tables").items())
    sink_table = read.table("sink", needed=True)
    sink = Sink(Place(topic="-")) if sink_table is None else _sink(sink_table, folder, batch)
    if not sources:
        read.wrong("sources", "the job reads nothing", "write a table [sources.NAME]")
    client = read.text("client_config")
    sql, python = read.text("sql"), read.checked("python", _python(path.parent), None)
    job = Job(
        name=name or "-",
        path=path,
        description=read.text("description", "") or "",
        sources=sources,
        tables=tables,
        sql=sql,
        python=python,
        sink=sink,
        trigger_ms=_trigger(read, sink),
        batch=batch,
        bootstrap=read.checked("bootstrap", _bootstrap, None),
        client_config=None if client is None else folder / client,
        master=read.checked("master", _master, None),
        restart=_restart(read.table("restart")),
        spark=_spark(read),
    )
    _cross(read, job)
    read.finish()
    return job


def _cross(read: TableReader, job: Job) -> None:
    """Checks that involve several keys."""
    if not job.sql and not job.python and "sql" not in read and "python" not in read:
        read.wrong("sql", "the job derives nothing", 'write sql = "SELECT …" or python = "f.py:f"')
    if "sql" in read and "python" in read:
        read.wrong("python", "there is sql too", "keep one of the two")
    views = [one.name for one in job.inputs]
    for name in {name for name in views if views.count(name) > 1}:
        read.wrong(f"tables.{name}", "a source has the same name", "give it another name")
    for name in views if job.sql else ():
        if not re.search(rf"\b{re.escape(name)}\b", job.sql or "", re.IGNORECASE):
            read.wrong("sql", f"it does not use {name}", "use it, or take its table out")
    if job.batch and "trigger" in read:
        read.wrong("trigger", "a batch job runs once and ends", "take one of the two keys out")
    for source in job.sources if job.batch else ():
        if source.start == "latest":
            key = f"[sources.{source.name}] start"
            read.wrong(key, "a batch job cannot begin at the end", 'write "earliest" or a time')
    if job.batch and job.sink.mode != "append":
        read.wrong("[sink] mode", "a batch job appends", 'leave it out or write mode = "append"')
    if job.sink.is_transactional and not (job.master or "local").startswith("local"):
        remedy = f'write master = "local[*]", or [sink] delivery = "{AT_LEAST_ONCE}"'
        read.wrong("master", "the workers of a cluster cannot share a transaction", remedy)
    if job.sink.place.topic and job.sink.place.topic in (s.place.topic for s in job.sources):
        read.wrong("[sink] topic", "the job would read what it writes", "write to another topic")
    tablefile.check_inputs(read, job)


def _source(name: str, read: TableReader, folder: Path, batch: bool) -> Source:
    _view_name(name, read)
    place = _place(read, folder)
    form, schema = valuefile.read_format(read, place)
    options = valuefile.read_options(read, place, form)
    known = _columns(schema)
    metadata = read.flag("metadata")
    if metadata:
        known = known and [*known, *METADATA]
    headers, tombstones = read.flag("headers"), read.flag("tombstones")
    known = known and [*known, *[HEADERS] * headers, *[TOMBSTONE] * tombstones]
    event_time, expression = _event_time(read, known)
    watermark = read.duration("watermark", None, least=0)
    if watermark is not None and event_time is None:
        read.wrong("watermark", "no column says when an event was", "write event_time too")
    ahead = read.duration("max_ahead", MAX_AHEAD_MS)
    if "max_ahead" in read and watermark is None:
        read.wrong("max_ahead", "it guards a watermark, and there is none", "take the key out")
    if place.jdbc and not batch:
        read.wrong("jdbc", "a database is no stream", "write batch = true, or make it a table")
    if place.topic is None:
        for key in _OF_TOPICS:
            if key in read:
                read.wrong(key, "only topics have it", "take the key out")
    tablefile.check_source(read, place)
    source = Source(
        name=name,
        place=place,
        format=form,
        schema=schema,
        event_time=event_time,
        event_expression=expression,
        watermark_ms=watermark,
        max_ahead_ms=ahead or MAX_AHEAD_MS,
        start=read.checked("start", _start, "earliest"),
        max_records=read.number("max_records", 200_000, 1, 1_000_000_000),
        tasks=read.number("tasks", 0, 1, 10_000),
        on_loss=read.choice("on_loss", ("stop", "continue"), "stop"),
        on_change=read.choice("on_change", ("stop", "skip"), "stop"),
        metadata=metadata,
        headers=headers,
        tombstones=tombstones,
        options=options,
        registry=valuefile.read_registry(read, place, form, folder),
    )
    read.finish()
    return source


def _event_time(read: TableReader, known: list[str] | None) -> tuple[str | None, str | None]:
    """The column of the event time, and the expression that it is when the schema has none."""
    text = read.text("event_time")
    if text is None or re.fullmatch(r"\w+", text):
        _known_columns(read, "event_time", (text,) if text else (), known)
        return text, None
    named = re.fullmatch(r"(.+?)\s+as\s+(\w+)\s*", text, re.IGNORECASE | re.DOTALL)
    if named is None:
        example = 'write event_time = "timestamp_millis(at) AS happened"'
        read.wrong("event_time", "an expression needs a name", example)
        return None, None
    if known and named[2] in known:
        read.wrong("event_time", f"the schema has a column {named[2]!r}", "write another name")
    return named[2], named[1]


def _table(name: str, read: TableReader, folder: Path) -> Table:
    _view_name(name, read)
    place = _place(read, folder)
    form, schema = valuefile.read_format(read, place)
    options = valuefile.read_options(read, place, form)
    if form in valuefile.REGISTERED:
        remedy = "make a stream of it, or derive a topic of format json first"
        read.wrong("format", "tables of topics have no registry", remedy)
    key = read.names("key")
    if place.topic and not key:
        read.wrong("key", "a table of a topic has a key", 'write key = "column"')
    _known_columns(read, "key", key, _columns(schema))
    refresh = read.duration("refresh", 30_000, least=100)
    read.finish()
    return Table(name, place, key, form, schema, refresh or 30_000, options)


def _sink(read: TableReader, folder: Path, batch: bool) -> Sink:
    place = tablefile.sink_table(read, folder) or _place(read, folder)
    usual = EXACTLY_ONCE if place.table else AT_LEAST_ONCE
    delivery = read.choice("delivery", (AT_LEAST_ONCE, EXACTLY_ONCE), usual)
    timeout = read.duration("transaction_timeout", TRANSACTION_MS, least=1000) or TRANSACTION_MS
    if timeout > _LONGEST_TRANSACTION_MS:
        read.wrong("transaction_timeout", "it is too long", 'write "24 days" or less')
    if place.table:
        tablefile.check_delivery(read)
    else:
        _check_delivery(read, place, delivery, batch)
    mode = read.choice("mode", ("append", "update", "complete"), "append")
    if place.table:
        tablefile.check_mode(read, place.table, mode)
    elif place.topic is None:
        if mode != "append" and not batch:
            read.wrong("mode", "rows are only added to files and databases", 'write "append"')
        for key in ("key", "partitions", "config"):
            if key in read:
                read.wrong(key, "only topics have it", "take the key out")
    form, registry = valuefile.read_sink_format(read, place, folder)
    sink = Sink(
        place=place,
        format=form,
        registry=registry,
        key=read.names("key"),
        mode=mode,
        delivery=delivery,
        transaction_timeout_ms=timeout,
        partitions=read.number("partitions", -1, 1, 10_000),
        config=read.scalars("config"),
    )
    if place.topic and mode != "append" and not sink.key:
        read.wrong("key", "rows of this mode replace each other", 'write key = ["column", …]')
    if "compact" in sink.config.get("cleanup.policy", "") and not sink.key:
        read.wrong("key", "a compacted topic needs keys", 'write key = ["column", …]')
    read.finish()
    return sink


def _check_delivery(read: TableReader, place: Place, delivery: str, batch: bool) -> None:
    if "transaction_timeout" in read and delivery != EXACTLY_ONCE:
        remedy = f'write delivery = "{EXACTLY_ONCE}" too, or take the key out'
        read.wrong("transaction_timeout", "no transaction is made", remedy)
    if delivery != EXACTLY_ONCE:
        return
    if place.file:
        read.wrong("delivery", "files have no transactions", "take it out: a stream's appear once")
    elif place.jdbc:
        remedy = f'write "{AT_LEAST_ONCE}", or write to a topic'
        read.wrong("delivery", "a database takes part in no transaction of Kafka", remedy)
    if batch:
        remedy = 'write trigger = "once" instead of batch = true'
        read.wrong("delivery", "a batch job keeps no note of what it wrote", remedy)


def _place(read: TableReader, folder: Path) -> Place:
    named = [key for key in ("topic", "file", "jdbc", "table") if key in read]
    topic = read.checked("topic", _topic, None)
    file, jdbc = read.table("file"), read.table("jdbc")
    files = _files(file, folder) if file else None
    base = _jdbc(jdbc, folder) if jdbc else None
    inner = read.table("table")
    table = tablefile.read_table(inner, folder) if inner else None
    if len(named) != 1:
        read.wrong(
            named[1] if named else "topic",
            f"there is {named[0]} too" if named else "nothing says where",
            "write exactly one of topic, file, jdbc and table",
        )
    if sum(one is not None for one in (topic, files, base, table)) != 1:
        return Place(topic="-")
    return Place(topic, files, base, table)


def _files(read: TableReader, folder: Path) -> Files:
    path = read.text("path")
    if path is None and "path" not in read:
        read.wrong("path", "it is missing", 'write path = "folder"')
    form = read.choice("format", _FILE_FORMATS, "json")
    options = read.scalars("options")
    read.finish()
    remote = path is not None and "://" in path
    return Files(path or "-" if remote else str(folder / (path or "-")), form, options)


def _jdbc(read: TableReader, folder: Path) -> Jdbc:
    url, table = read.text("url"), read.text("table")
    for key, value in (("url", url), ("table", table)):
        if value is None and key not in read:
            read.wrong(key, "it is missing", f'write {key} = "…"')
    if url and not url.startswith("jdbc:"):
        read.wrong("url", "it is no JDBC address", 'write "jdbc:postgresql://host/database"')
    secret = read.text("password_file")
    found = Jdbc(
        url=url or "-",
        table=table or "-",
        user=read.text("user"),
        password_file=str(folder / secret) if secret else None,
        driver=read.text("driver"),
    )
    read.finish()
    return found


def _restart(read: TableReader | None) -> Restart:
    usual = Restart()
    if read is None:
        return usual
    found = Restart(
        first_ms=read.duration("first", usual.first_ms) or usual.first_ms,
        longest_ms=read.duration("longest", usual.longest_ms) or usual.longest_ms,
        attempts=read.number("attempts", usual.attempts, 0, 1_000_000),
        healthy_ms=read.duration("healthy", usual.healthy_ms) or usual.healthy_ms,
    )
    if found.longest_ms < found.first_ms:
        read.wrong("longest", "it is shorter than the first wait", "write first ≤ longest")
    read.finish()
    return found


def _spark(read: TableReader) -> dict[str, str]:
    settings = read.scalars("spark")
    for name in settings:
        if not name.startswith("spark.sql."):
            read.wrong(
                f"[spark] {name}",
                "it belongs to all jobs together",
                "only spark.sql.* can be set for a job; penstock job serve has the rest",
            )
    return settings


def _view_name(name: str, read: TableReader) -> None:
    if not _VIEW.fullmatch(name):
        read.wrong("the table's name", "SQL cannot use it", "write letters, digits and _ only")


def _columns(schema: str | None) -> list[str] | None:
    return None if schema is None or schema == INFER else list(ddl.columns(schema))


def _known_columns(
    read: TableReader, key: str, wanted: tuple[str, ...], known: list[str] | None
) -> None:
    for column in wanted if known else ():
        assert known is not None
        if column not in known:
            read.wrong(key, f"the schema has no column {column!r}", f"it has {', '.join(known)}")


def _refuse(pattern: re.Pattern[str], problem: str, remedy: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(problem, remedy)
        return value

    return check


_job_name = _refuse(
    _JOB_NAME, "it is no name of a job", "write small letters, digits, _ and -, 100 at most"
)
_topic = _refuse(
    _TOPIC, "it is no name of a topic", "write letters, digits, . _ and -, 249 at most"
)
_master = _refuse(_MASTER, "Spark knows no such master", 'write "local[2]" or "spark://host:7077"')
_bootstrap = _refuse(
    re.compile(r"[^\s,]+:\d+(,[^\s,]+:\d+)*"), "it is no list of HOST:PORT", 'write "host:9092"'
)


def _start(value: Any) -> str:
    if value in ("earliest", "latest"):
        return str(value)
    remedy = 'write "earliest", "latest" or a time such as "2013-01-01T00:00:00Z"'
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("it is no place to begin", remedy) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return str(int(moment.timestamp() * 1000))


def _trigger(read: TableReader, sink: Sink) -> int | None:
    usual = tablefile.TRIGGER_MS if sink.place.table else 250
    return None if read.raw("trigger") == "once" else read.duration("trigger", usual, least=0)


def _python(folder: Path) -> Callable[[Any], tuple[str, str] | None]:
    def check(value: Any) -> tuple[str, str]:
        file, colon, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
        if not colon or not file.endswith(".py") or not function.isidentifier():
            raise ValueError("it is no file with a function", 'write "delays.py:derive"')
        if Path(file).name != file:
            raise ValueError("it lies in another folder", "put it next to the job file")
        if not (folder / file).is_file():
            raise ValueError("there is no such file", f"write it to {file} next to the job file")
        return file, function

    return check
