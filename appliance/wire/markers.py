"""The marker that ends a transaction in a partition: a control batch of one record (KIP-98).

Key: version and type as two int16, 0 ABORT, 1 COMMIT; value: EndTxnMarker in version 0, int16
version and int32 epoch of the coordinator that decided. Producer id and epoch are the batch's.
Callers: the homes of partitions, which write it; the log store, which learns from it what became of
a transaction.
"""

from struct import Struct
from typing import Final, NamedTuple

from appliance.base.errors import PeerError
from appliance.wire import own_batch
from appliance.wire.batch_header import read_header
from appliance.wire.control_records import ABORT, COMMIT
from appliance.wire.records import iter_records

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_VERSION: Final = 0


class Marker(NamedTuple):
    """committed: or aborted. coordinator_epoch: leader epoch of the partition of
    `__transaction_state` that decided."""

    committed: bool
    coordinator_epoch: int


def build(producer_id: int, epoch: int, marker: Marker, timestamp: int) -> bytearray:
    """The control batch with a marker. timestamp: ms since 1970."""
    key = _KEY.pack(_VERSION, COMMIT if marker.committed else ABORT)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return own_batch.build([(key, value)], timestamp, (producer_id, epoch), control=True)


def read(batch: bytes | bytearray | memoryview) -> Marker | None:
    """The marker in a whole control batch; None when it ends no transaction: compaction has taken
    the marker with all of its transaction, or the record is of another kind."""
    if read_header(batch).record_count < 1:
        return None
    try:
        record = next(iter_records(batch))
    except PeerError:
        return None
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size or len(value) < _VALUE.size:
        return None
    kind = _KEY.unpack_from(key)[1]
    if kind not in (ABORT, COMMIT):
        return None
    return Marker(kind == COMMIT, _VALUE.unpack_from(value)[1])
