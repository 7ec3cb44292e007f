"""The formats of tables and their sinks."""

from typing import Any, Final

from spark_local.engine.delta import DeltaSink
from spark_local.engine.iceberg import IcebergSink
from spark_local.engine.table_sink import TableSink
from spark_local.job import DELTA, ICEBERG, Job

_SINKS: Final[dict[str, type[TableSink]]] = {ICEBERG: IcebergSink, DELTA: DeltaSink}


def table_sink(job: Job, *words: Any) -> TableSink:
    """The sink of a job whose sink is a table. words: as TableSink takes them behind the job."""
    assert job.sink.place.table is not None
    return _SINKS[job.sink.place.table.format](job, *words)
