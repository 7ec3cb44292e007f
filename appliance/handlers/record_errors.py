"""Which records of a refused batch are wrong, in Kafka's words (Produce 8 and later, KIP-467).

Only asked when a batch was refused: what is looked at is bounded, so that nobody else waits long
for it. A batch of more records, or one that opens to more bytes, is refused without naming them.
"""

from itertools import islice
from typing import Final

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.config.log_config import LogConfig
from appliance.wire.batch_header import HEADER_SIZE
from appliance.wire.produce import RecordError
from appliance.wire.records import iter_records

RECORDS_MAX: Final = 2000
BYTES_MAX: Final = 1 << 20
_MAGIC_AT: Final = 16
_MAGIC: Final = 2
_TOLD: Final = 3


def explain(
    batch: memoryview, code: int, rules: LogConfig, topic: str, partition: int
) -> tuple[str | None, tuple[RecordError, ...]]:
    """(text for people or None, record errors) of a batch that was refused with `code`."""
    if code == errors.INVALID_TIMESTAMP:
        text = (
            "One or more records have been rejected due to invalid timestamp. Of topic"
            f" {topic}: message.timestamp.before.max.ms={rules.message_timestamp_before_max_ms},"
            f" message.timestamp.after.max.ms={rules.message_timestamp_after_max_ms}."
        )
        return text, ()
    if code == errors.CORRUPT_MESSAGE and len(batch) > _MAGIC_AT:
        magic = int.from_bytes(batch[_MAGIC_AT : _MAGIC_AT + 1], "big", signed=True)
        if magic != _MAGIC:
            return f"Invalid magic found in record: {magic}", ()
    if code != errors.INVALID_RECORD or not rules.compact:
        return None, ()
    why = "Compacted topic cannot accept message without key in topic partition"
    found = tuple(RecordError(at, f"{why} {topic}-{partition}") for at in _without_key(batch))
    if not found:
        return None, ()
    told = ", ".join(
        f"RecordError(batchIndex={one.batch_index}, message='{one.message}')"
        for one in found[:_TOLD]
    )
    text = (
        f"One or more records have been rejected due to {len(found)} record errors in total, and"
        f" only showing the first three errors at most: [{told}]"
    )
    return text, found


def _without_key(batch: memoryview) -> list[int]:
    if len(batch) < HEADER_SIZE:
        return []
    try:
        records = list(islice(iter_records(batch, BYTES_MAX), RECORDS_MAX + 1))
    except PeerError:
        return []
    if len(records) > RECORDS_MAX:
        return []
    return [index for index, record in enumerate(records) if record.key is None]
