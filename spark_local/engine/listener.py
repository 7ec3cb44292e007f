"""Spark's listener of streaming queries → an inbox: JSON of every batch's account, ENDED at last.

Spark calls it on a thread of its own, one call at a time for each session.
"""

import queue
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


IDLE: Final = "idle"
"""In the inbox: there is nothing to read, for ten seconds."""
ENDED: Final = "ended"
"""In the inbox: the query has ended, and everything was told."""


def forward(spark: "SparkSession", inbox: "queue.SimpleQueue[str | None]") -> Any:
    """Listen to the queries of this session alone. Gives the listener, for removal."""
    from pyspark.sql.streaming import StreamingQueryListener

    class Forward(StreamingQueryListener):  # type: ignore[misc]
        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            inbox.put(event.progress.json)

        def onQueryIdle(self, event: Any) -> None:
            inbox.put(IDLE)

        def onQueryTerminated(self, event: Any) -> None:
            inbox.put(ENDED)

    listener = Forward()
    spark.streams.addListener(listener)
    return listener
