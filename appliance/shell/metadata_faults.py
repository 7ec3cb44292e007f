"""The `metadata-record-skipped` event: a record of the metadata log that does not replay.

Apache Kafka's brokers log such a record and go on without it; its controllers end, because they
would decide on a state that they do not know (`SharedServer.metadataLoaderFaultHandler`). Called by
the followers of netprocs and I/O processes; control is given none, so it ends.
"""

from appliance.metadata.follower import OnFault
from appliance.shell.log import ERROR, Log


def tell_faults(log: Log) -> OnFault:
    """Returns what tells each skipped record, at most one a second of a kind and its cause."""

    def on_fault(offset: int, kind: str, cause: Exception) -> None:
        why = f"{type(cause).__name__}: {cause}"
        log.event_of(
            ERROR, "metadata-record-skipped", f"{kind} {why}", offset=offset, kind=kind, cause=why
        )

    return on_fault
