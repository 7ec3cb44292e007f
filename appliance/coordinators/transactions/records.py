"""The records of transactional ids in `__transaction_state`, as Kafka 4.3 writes and reads them.

Sources: TransactionLogKey and TransactionLogValue of Apache Kafka (KIP-98, KIP-890, KIP-939).
"""

from typing import ClassVar, Final

from appliance.coordinators.runtime.records import RecordTypes
from appliance.wire.declared import of, record

RECORDS: Final = RecordTypes()
WRITTEN: Final = 1
"""Version of a value as it is written, whatever transaction.version is: 0 has no producer id that
takes over and would lose it. Apache Kafka reads 1 since 3.5 (KIP-915)."""


@record
class PartitionsOfTopic:
    topic: str = of("string")
    partition_ids: tuple[int, ...] = of("[]int32")


@record
class TransactionLogValue:
    """previous_producer_id: at the state before. next_producer_id: what takes over when the epochs
    of producer_id are used up, -1 otherwise. Times are ms, of timestamps since 1970, -1 for none.
    client_transaction_version: transaction.version by which its client works."""

    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 1
    producer_id: int = of("int64")
    previous_producer_id: int = of("int64", since=1, tag=0, default=-1)
    next_producer_id: int = of("int64", since=1, tag=1, default=-1)
    producer_epoch: int = of("int16")
    next_producer_epoch: int = of("int16", since=1, tag=3, default=-1)
    transaction_timeout: int = of("int32")
    transaction_status: int = of("int8")
    transaction_partitions: tuple[PartitionsOfTopic, ...] | None = of("[]struct", nullable=True)
    last_update_timestamp: int = of("int64")
    start_timestamp: int = of("int64")
    client_transaction_version: int = of("int16", since=1, tag=2, default=0)


@RECORDS.declare(0, value=TransactionLogValue)
@record
class TransactionLogKey:
    TYPE: ClassVar = 0
    transactional_id: str = of("string")
