"""Producer states as files, `<offset>.snapshot`: the state below that offset, in Kafka's format 1.

int16 version, uint32 CRC32C of what follows, int32 count, then 46 bytes per producer. Only the
last batch of each is kept; recovery finds the other four by reading on from a place a little
before the snapshot. A damaged snapshot counts as none. Called by the log and by recovery.
"""

from struct import Struct
from typing import Final

from appliance.base.crc import crc32c
from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import DiskFull
from appliance.logstore.files import SNAPSHOT, stem
from appliance.logstore.producer_state import Producer, ProducerStates

_VERSION: Final = 1
_HEAD: Final = Struct(">hIi")
_ENTRY: Final = Struct(">qhiqiqiq")
assert _HEAD.size == 10
assert _ENTRY.size == 46
_CRC_FROM: Final = 6
_SEQUENCES: Final = 1 << 31
_KEPT: Final = 2
NEVER: Final = 1 << 63


def encode_snapshot(states: ProducerStates) -> bytes:
    """The file's bytes."""
    out = bytearray(_HEAD.pack(_VERSION, 0, len(states.producers)))
    for producer_id, known in states.producers.items():
        last = known.batches[-1] if known.batches else (-1, -1, 0, known.last_timestamp)
        sequence, offset, delta, _ = last
        out += _ENTRY.pack(
            *(producer_id, known.epoch, sequence, offset, delta, known.last_timestamp),
            *(known.coordinator_epoch, states.open.get(producer_id, -1)),
        )
    _HEAD.pack_into(out, 0, _VERSION, crc32c(bytes(out[_CRC_FROM:])), len(states.producers))
    return bytes(out)


def decode_snapshot(data: bytes, now_ms: int) -> ProducerStates | None:
    """Parses a snapshot file; None when it is damaged or of another version."""
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
        known.last_seen_ms = now_ms
        known.coordinator_epoch = coordinator_epoch
        if txn_start >= 0:
            states.open[producer_id] = txn_start
        if offset >= 0 and sequence >= 0:
            known.next_sequence = (sequence + 1) % _SEQUENCES
            known.batches.append((sequence, offset, delta, timestamp))
    return states


class ProducerSnapshots:
    """The snapshot files of one log; the two newest are kept. needed_from: and those behind this
    offset, which are to be copied to a remote store."""

    __slots__ = ("_disk", "_folder", "needed_from", "offsets")

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self.offsets: list[int] = []
        self.needed_from = NEVER

    def path(self, offset: int) -> str:
        return stem(self._folder, offset) + SNAPSHOT

    def add_snapshot(self, offset: int) -> tuple[str, ...]:
        """There is, or will be, a snapshot at `offset`; the paths of those to remove after it."""
        known = self.offsets
        if not known or known[-1] < offset:
            known.append(offset)
        stale = [old for old in known[:-_KEPT] if old <= self.needed_from]
        self.offsets = [old for old in known if old not in stale]
        return tuple(map(self.path, stale))

    def write_snapshot(self, offset: int, states: ProducerStates) -> None:
        """Write one now, without syncing it; none when there is no room: an older one and the
        batches behind it say the same. Raises StorageFailed."""
        try:
            write_file(self._disk, self.path(offset), encode_snapshot(states), sync=False)
        except DiskFull:
            return
        for path in self.add_snapshot(offset):
            if self._disk.exists(path):
                self._disk.unlink(path)

    def read(self, offset: int, now_ms: int) -> ProducerStates | None:
        """The states in a file that exists, None when it is damaged. Raises StorageFailed."""
        return decode_snapshot(read_file(self._disk, self.path(offset)), now_ms)

    def keep_to(self, end: int) -> None:
        """Remove those behind `end`: the log was cut there. Raises StorageFailed."""
        while self.offsets and self.offsets[-1] > end:
            self._disk.unlink(self.path(self.offsets.pop()))
