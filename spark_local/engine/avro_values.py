"""Values of Avro in a registry's wire format → rows: each by the schema that wrote it, as the
reader's schema has it.

Spark decodes by schemas that the plan names. A value of an id that the plan does not name ends the
batch, so that registered.py learns the id and the batch is run again; none is passed over.
"""

from typing import TYPE_CHECKING, Final

from spark_local.avro_schemas import MARK
from spark_local.job import Writers
from spark_local.registry import HEAD_BYTES, frame_head

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CORRUPT: Final = "__corrupt"
NEW_ID: Final = "penstock: new schema id "
"""What the text of the failure begins with that a new id raises; the id follows."""
_HEAD: Final = f"substring(value, 1, {HEAD_BYTES})"
_ID: Final = f"conv(hex(substring(value, 2, {HEAD_BYTES - 1})), 16, 10)"


def parsed(raw: "DataFrame", writers: Writers) -> "DataFrame":
    """The connector's columns with `row` (a struct of the reader's columns) and CORRUPT (the empty
    text where a value cannot be read, else null)."""
    from pyspark.sql import functions as f

    head, row = f.expr(_HEAD), f.col("row")
    fit = {one: text for one, text in writers.known.items() if one not in writers.unfit}
    bad = [f.lit(bytearray(frame_head(one))) for one in (*writers.absent, *writers.unfit)]
    no_row = decoded(f.lit(None).cast("binary"), writers.reader, writers.reader)
    rows = no_row
    for number, text in fit.items():
        is_its = head == f.lit(bytearray(frame_head(number)))
        rows = f.when(is_its, decoded(f.expr(f"substring(value, {HEAD_BYTES + 1})"), text,
                                      writers.reader)).otherwise(rows)  # fmt: skip
    good = [f.lit(bytearray(frame_head(one))) for one in fit]
    broken = f.when(~is_framed(), f.lit(""))
    broken = broken.when(head.isin(*good), f.when(row[MARK].isNull(), f.lit("")))
    if bad:
        broken = broken.when(head.isin(*bad), f.lit(""))
    broken = broken.otherwise(f.raise_error(f.concat(f.lit(NEW_ID), f.expr(_ID))).cast("string"))
    broken = f.when(f.col("value").isNotNull(), broken)
    return raw.withColumn("row", rows).withColumn(CORRUPT, broken)


def decoded(value: "Column", writer: str, reader: str) -> "Column":
    """A struct of the reader's columns; of nulls, MARK among them, for bytes that do not fit."""
    from pyspark.sql.avro.functions import from_avro

    return from_avro(value, writer, {"avroSchema": reader, "mode": "PERMISSIVE"})


def numbers(raw: "DataFrame", most: int) -> list[int]:
    """Ids in the heads of these records, `most` at most."""
    from pyspark.sql import functions as f

    ids = raw.where(f.col("value").isNotNull() & is_framed()).select(
        f.expr(f"CAST({_ID} AS BIGINT)").alias("id")
    )
    return [int(one.id) for one in ids.distinct().limit(most).collect()]


def is_framed() -> "Column":
    """True where a value begins as the wire format does."""
    from pyspark.sql import functions as f

    return f.expr("substring(value, 1, 1) = X'00'") & (f.length("value") >= HEAD_BYTES)
