"""Producer states as a file, `<offset>.snapshot`: the state below that offset, in Kafka's format, version 1.

int16 version, uint32 CRC32C of what follows, int32 count, then 46 bytes per producer. Only the last batch of each is kept,
as with Kafka: a producer that sends an older one again after a restart is told that it is out of order.
"""

from struct import Struct
from typing import Final

from crc32c import crc32c

from appliance.logstore.producer_state import Producer, ProducerStates

_VERSION: Final = 1
_HEAD: Final = Struct(">hIi")
_ENTRY: Final = Struct(">qhiqiqiq")
assert _HEAD.size == 10
assert _ENTRY.size == 46
_CRC_FROM: Final = 6
_SEQUENCES: Final = 1 << 31


def encode_snapshot(states: ProducerStates) -> bytes:
    """The file's bytes."""
    out = bytearray(_HEAD.pack(_VERSION, 0, len(states.producers)))
    for producer_id, known in states.producers.items():
        last = known.batches[-1] if known.batches else (-1, -1, 0, known.last_timestamp)
        sequence, offset, delta, _ = last
        out += _ENTRY.pack(
            *(producer_id, known.epoch, sequence, offset, delta, known.last_timestamp),
            *(known.coordinator_epoch, known.txn_start),
        )
    _HEAD.pack_into(out, 0, _VERSION, crc32c(bytes(out[_CRC_FROM:])), len(states.producers))
    return bytes(out)


def decode_snapshot(data: bytes) -> ProducerStates | None:
    """What a file says, None when it is damaged or of another version."""
    if len(data) < _HEAD.size:
        return None
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION or len(data) != _HEAD.size + count * _ENTRY.size:
        return None
    if crc32c(data[_CRC_FROM:]) != crc:
        return None
    states = ProducerStates()
    for entry in _ENTRY.iter_unpack(data[_HEAD.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_start = entry
        known = states.producers[producer_id] = Producer(epoch)
        known.last_timestamp = timestamp
        known.coordinator_epoch = coordinator_epoch
        known.txn_start = txn_start
        if offset >= 0 and sequence >= 0:
            known.next_sequence = (sequence + 1) % _SEQUENCES
            known.batches.append((sequence, offset, delta, timestamp))
    return states
