"""The content of a job file, as values. Made by jobfile.py; read by the engine and the command
line.

Every length of time is in ms. Nothing here is Spark's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

INFER: Final = "infer"
AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"
TRANSACTION_MS: Final = 300_000
"""The longest that a micro-batch may take; brokers allow 15 minutes unless told otherwise."""
MAX_AHEAD_MS: Final = 86_400_000
METADATA: Final = ("_key", "_topic", "_partition", "_offset", "_timestamp")
"""Columns that `metadata = true` adds to a source."""
ICEBERG: Final = "iceberg"
DELTA: Final = "delta"
AVRO: Final = "avro"
JSON_SCHEMA: Final = "json-schema"
HEADERS: Final = "_headers"
TOMBSTONE: Final = "_tombstone"


@dataclass(frozen=True, slots=True)
class Files:
    """Files below a path: a folder, a file or a pattern. options: Spark's of that format."""

    path: str
    format: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Jdbc:
    """A table of a database. The password is the content of `password_file`."""

    url: str
    table: str
    user: str | None = None
    password_file: str | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True)
class RegistryPlace:
    """A subject of a schema registry. version: None is the newest, of a source the one that is
    newest at the job's first start. user, password: FILE:NAME of a line that has it."""

    url: str
    subject: str
    version: int | None = None
    user: str | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True)
class Writers:
    """How the values of a source are read, as its registry says. reader: the schema that all are
    read by, and its version; columns: what it has. known: id → schema of a writer. absent: ids that
    the registry does not know. unfit: id → why the reader's schema does not read it."""

    reader: str
    version: int
    columns: str
    known: Mapping[int, str] = field(default_factory=dict)
    absent: tuple[int, ...] = ()
    unfit: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """How a bucket of S3, or of a store like it, is reached. keys: where access key and secret key
    stand, `FILE:NAME` of properties; without them, where AWS's own tools look."""

    bucket: str
    endpoint: str | None = None
    region: str | None = None
    keys: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A table of Apache Iceberg or Delta Lake below a folder, `path`: of Iceberg its catalog. name:
    with its namespace, `shop.orders`. latest: of several rows of a key in one batch, the one that
    has most in this column counts. deleted: a row that is true there deletes its key, and the
    column is not kept. maintain_ms: how often small files are made one and snapshots older than
    `keep_ms` expire.
    """

    path: str
    name: str
    format: str = ICEBERG
    partition_by: tuple[str, ...] = ()
    latest: str | None = None
    deleted: str | None = None
    maintain_ms: int = 3_600_000
    keep_ms: int = 7 * 86_400_000
    store: ObjectStore | None = None

    @property
    def location(self) -> str:
        """The table's own folder: the catalog's, its namespace's, its name's."""
        return "/".join((self.path, *self.name.split(".")))


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from or go to: exactly one of the four is set."""

    topic: str | None = None
    file: Files | None = None
    jdbc: Jdbc | None = None
    table: LakeTable | None = None

    @property
    def text(self) -> str:
        """For people: `topic flights`, `file /a/b`, `jdbc table t`, `table t in /a`."""
        if self.topic:
            return f"topic {self.topic}"
        if self.file:
            return f"file {self.file.path}"
        if self.table:
            return f"table {self.table.name} in {self.table.path}"
        assert self.jdbc is not None
        return f"jdbc table {self.jdbc.table}"


@dataclass(frozen=True, slots=True)
class Source:
    """A stream (or, in a batch job, everything that is there) as a view of that name."""

    name: str
    place: Place
    format: str  # json | csv | string | binary | avro | json-schema
    schema: str | None  # columns, or INFER; None: a registry says
    event_time: str | None = None
    event_expression: str | None = None  # in SQL, what event_time is; None: a column
    watermark_ms: int | None = None
    max_ahead_ms: int = MAX_AHEAD_MS  # of an event time before the clock, with a watermark
    start: str = "earliest"  # earliest | latest | milliseconds since 1970 in digits
    max_records: int = 200_000  # of one micro-batch
    tasks: int = 0  # that read a micro-batch, at least; 0: one for each partition
    on_loss: str = "stop"  # stop | continue
    on_change: str = "stop"  # stop | skip: commits of a table that are no appends
    metadata: bool = False
    headers: bool = False
    tombstones: bool = False  # a record without a value is a row of nulls, with TOMBSTONE
    options: dict[str, str] = field(default_factory=dict)  # Spark's, for a topic's values
    registry: RegistryPlace | None = None
    writers: Writers | None = None  # what the registry said, while the job runs


@dataclass(frozen=True, slots=True)
class Table:
    """Latest value of each key, looked at again every `refresh_ms` while the job runs."""

    name: str
    place: Place
    key: tuple[str, ...]
    format: str
    schema: str | None
    refresh_ms: int = 30_000
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sink:
    """Where derived rows go."""

    place: Place
    key: tuple[str, ...] = ()
    mode: str = "append"  # append | update | complete
    delivery: str = AT_LEAST_ONCE
    transaction_timeout_ms: int = TRANSACTION_MS  # of a micro-batch, delivered exactly once
    partitions: int = -1  # -1: what the broker's settings say
    config: dict[str, str] = field(default_factory=dict)
    format: str = "json"  # json | avro | json-schema, of a topic's values
    registry: RegistryPlace | None = None

    @property
    def is_transactional(self) -> bool:
        """Each micro-batch is a transaction of Kafka."""
        return self.delivery == EXACTLY_ONCE and self.place.topic is not None


@dataclass(frozen=True, slots=True)
class Restart:
    """After a failure: wait `first_ms`, twice as long each time up to `longest_ms`, and give up
    after `attempts`. `healthy_ms` without a failure begins again."""

    first_ms: int = 1000
    longest_ms: int = 60_000
    attempts: int = 10
    healthy_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Job:
    """One job file. `path` is where it was read; relative paths in it are resolved against it."""

    name: str
    path: Path
    sink: Sink
    description: str = ""
    sources: tuple[Source, ...] = ()
    tables: tuple[Table, ...] = ()
    sql: str | None = None
    python: tuple[str, str] | None = None  # (file, function)
    trigger_ms: int | None = 250  # None: what is there, then the job ends
    batch: bool = False
    bootstrap: str | None = None
    client_config: Path | None = None
    master: str | None = None
    restart: Restart = Restart()
    spark: dict[str, str] = field(default_factory=dict)

    @property
    def once(self) -> bool:
        """It ends by itself."""
        return self.batch or self.trigger_ms is None

    @property
    def dead_letters(self) -> str:
        """The topic for records that cannot be read."""
        return f"{self.name}.dlq"

    @property
    def inputs(self) -> list[Source | Table]:
        """Everything that it reads."""
        return [*self.sources, *self.tables]

    @property
    def files(self) -> list[Path]:
        """The job file and the Python file that it names."""
        return [self.path, *([self.path.parent / self.python[0]] if self.python else [])]
