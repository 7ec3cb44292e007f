"""A dumb twin of a log: a list of batches, and how to compare a real one with it."""

from random import Random

from crc32c import crc32c

from appliance.logstore.aborted import AbortedTransactions
from appliance.logstore.log import PartitionLog
from appliance.logstore.producer_state import ProducerStates
from appliance.wire import markers
from appliance.wire.batch import NewRecord, build_batch, read_header
from appliance.wire.batch_header import BatchHeader

TOPIC_ID = bytes(range(16))


def small_batch(
    rng: Random, timestamp: int, producer: tuple[int, int, int] = (-1, -1, -1), most: int = 4
) -> bytearray:
    """A batch of one to `most` records. producer: id, epoch, base sequence."""
    records = [
        NewRecord(timestamp + n, b"k", rng.randbytes(rng.choice((0, 10, 100, 900))))
        for n in range(rng.randint(1, most))
    ]
    batch = bytearray(build_batch(records))
    return with_producer(batch, *producer)


def with_producer(batch: bytearray, producer_id: int, epoch: int, sequence: int) -> bytearray:
    batch[43:51] = producer_id.to_bytes(8, "big", signed=True)
    batch[51:53] = epoch.to_bytes(2, "big", signed=True)
    batch[53:57] = sequence.to_bytes(4, "big", signed=True)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return batch


def transactional(batch: bytearray) -> bytearray:
    batch[22] |= 0x10
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return batch


def marker(
    producer_id: int, epoch: int, *, committed: bool, coordinator_epoch: int = 0
) -> bytearray:
    made = markers.Marker(committed, coordinator_epoch)
    return bytearray(markers.build(producer_id, epoch, made, 7))


def stage(log: PartitionLog, batch: bytearray, epoch: int, now_ms: int) -> bytes:
    """Stage a batch; the bytes that must be in the log afterwards."""
    log.stage(memoryview(batch), read_header(batch), epoch, now_ms)
    return bytes(batch)


def stored(log: PartitionLog, start: int | None = None, most: int = 5000) -> list[bytes]:
    """Every batch of the log, found and read as a consumer would."""
    offset = log.log_start_offset if start is None else start
    batches: list[bytes] = []
    while (found := log.locate(offset, most, log.end_offset)) is not None:
        base, position, length, first = found
        file = log.disk.open_file(f"{log.path}/{base:020d}.log")
        data = file.pread(length, position)
        file.close()
        assert len(data) == length
        at = 0
        while len(data) - at >= 61:
            header = read_header(data, at)
            if at + header.size > len(data):
                break
            batches.append(data[at : at + header.size])
            offset = header.last_offset + 1
            at += header.size
        assert at >= first, "the first batch is not whole"
    assert offset == log.written_end
    return batches


def header_of(batch: bytes) -> BatchHeader:
    return read_header(batch)


def states_of(batches: list[bytes]) -> ProducerStates:
    """What the producers look like after these batches."""
    return told_of(batches)[0]


def told_of(batches: list[bytes]) -> tuple[ProducerStates, list[tuple[int, int, int, int]]]:
    """The same, and the transactions that were aborted."""
    states, found = ProducerStates(), []
    for batch in batches:
        header = read_header(batch)
        if header.is_control:
            found.append(states.end_transaction(header, header.base_offset, 0, markers.read(batch)))
        elif header.producer_id >= 0:
            states.update(header, header.base_offset, 0)
    return states, [one for one in found if one]


def aborted(log: PartitionLog) -> list[tuple[int, int, int, int]]:
    """What its transaction indexes say."""
    return list(AbortedTransactions(log.disk, log.path, 0))


def producer_view(states: ProducerStates, window: int = 5) -> dict[int, tuple]:
    """Comparable form of producer states, with at most `window` batches of each."""
    return {
        producer_id: (known.epoch, known.next_sequence, list(known.batches)[-window:])
        for producer_id, known in states.producers.items()
    }
