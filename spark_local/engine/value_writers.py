"""Rows of a topic's sink → values: JSON, or what a schema registry knows by an id."""

import json
from typing import TYPE_CHECKING, Any, Final, Protocol

from spark_local import avro_schemas, json_schemas
from spark_local.cause import JobError
from spark_local.engine.jars import need_schemas
from spark_local.engine.registered import open_registry
from spark_local.job import AVRO, JSON_SCHEMA, Sink
from spark_local.registry import frame_head

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TIMES: Final = {
    "timestamp": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestamp_ntz": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Type → the one form of its values, in keys and in rows; of milliseconds, two rows of the same
millisecond would have the same key."""
JSON_OPTIONS: Final = {
    "ignoreNullFields": "false",
    "timestampFormat": TIMES["timestamp"],
    "timestampNTZFormat": TIMES["timestamp_ntz"],
}
_KINDS: Final = {AVRO: "AVRO", JSON_SCHEMA: "JSON"}
_SPACE: Final = "penstock"


class ValueWriter(Protocol):
    """Makes the values of a sink's rows."""

    def check_rows(self, rows: "DataFrame") -> None:
        """Raises JobError when such rows cannot be written."""

    def register_rows(self, rows: "DataFrame") -> None:
        """Before the first row is written. Raises JobError."""

    def column(self, rows: "DataFrame") -> "Column":
        """The values."""


class JsonWriter:
    """Values are JSON objects."""

    def check_rows(self, rows: "DataFrame") -> None:
        """Everything can be written."""

    def register_rows(self, rows: "DataFrame") -> None:
        """Registers nothing."""

    def column(self, rows: "DataFrame") -> "Column":
        """The rows as text."""
        from pyspark.sql import functions as f

        return f.to_json(_row(rows), JSON_OPTIONS)


class RegisteredWriter:
    """Values begin with the id of a schema that their columns have, which is registered when the
    first row is to be written. Without a registry in the sink, the id is 0."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._number = 0
        self._registered: str | None = None

    def check_rows(self, rows: "DataFrame") -> None:
        """Raises JobError when the registry does not take the schema of these rows."""
        place = self._sink.registry
        text = self._schema(rows)
        if place is None or text == self._registered:
            return
        why = open_registry(place).refusal(place.subject, self._kind, text)
        if why:
            problem = f"the rows do not fit the versions of {place.subject} in {place.url}: {why}"
            remedy = "derive the columns as before, or write to another topic or subject"
            raise JobError(problem[:1000], remedy)

    def register_rows(self, rows: "DataFrame") -> None:
        """Learn the id of the rows' schema. Raises JobError."""
        place = self._sink.registry
        text = self._schema(rows)
        if place is None or text == self._registered:
            return
        self.check_rows(rows)
        self._number = open_registry(place).register(place.subject, self._kind, text)
        self._registered = text

    def column(self, rows: "DataFrame") -> "Column":
        """The rows in the wire format."""
        from pyspark.sql import functions as f

        if self._sink.format == AVRO:
            need_schemas()
            from pyspark.sql.avro.functions import to_avro

            content = to_avro(_row(rows), self._schema(rows))
        else:
            content = f.encode(f.to_json(_row(rows), JSON_OPTIONS), "UTF-8")
        return f.concat(f.lit(bytearray(frame_head(self._number))), content)

    @property
    def _kind(self) -> str:
        return _KINDS[self._sink.format]

    def _schema(self, rows: "DataFrame") -> str:
        columns: list[dict[str, Any]] = json.loads(rows.schema.json())["fields"]
        name = avro_schemas.record_name(self._sink.place.topic or "rows")
        if self._sink.format == AVRO:
            return json.dumps(avro_schemas.record_of(columns, name, _SPACE))
        return json.dumps(json_schemas.schema_of(columns, name))


def make_writer(sink: Sink) -> ValueWriter:
    """The writer that the sink of a job file asks for."""
    return JsonWriter() if sink.format == "json" else RegisteredWriter(sink)


def _row(rows: "DataFrame") -> "Column":
    from pyspark.sql import functions as f

    return f.struct(*(f.col(f"`{name}`") for name in rows.columns))
