"""The fetch load: one request at a time over data that is in the page cache, every answer checked.

The reader walks forward through the partition and starts again at its end, so it is fed from the
page cache and not from one page in the processor's cache. Requests are prebuilt; the offset is
patched in.
"""

import time
from dataclasses import dataclass
from struct import pack_into, unpack_from

from benchmarks import batches, requests
from benchmarks.peer import Peer, Wire, WrongAnswer
from benchmarks.produce import Flow, ProduceRow, Result

DATA_BYTES = 128 << 20


@dataclass(frozen=True)
class FetchRow:
    """Ask for `size` bytes at a time. partitions: more than one are a session, and one of them has
    the data."""

    size: int
    version: int = 4
    partitions: int = 1

    @property
    def title(self) -> str:
        size = f"{self.size >> 20} MB" if self.size >= 1 << 20 else f"{self.size >> 10} KB"
        text = f"fetch {size}, one at a time" + (f", v{self.version}" if self.version != 4 else "")
        several = self.partitions > 1
        return text + (f", session of {self.partitions} partitions" if several else "")


@dataclass(frozen=True)
class Data:
    """A partition filled with equal batches. batch: bytes of each, records: records of each."""

    topic: str
    batch: int
    records: int
    batches: int


def fill(peer: Peer, size: int = DATA_BYTES, partitions: int = 1) -> Data:
    """A topic with `size` bytes of batches of 16 × 1 KB in its first partition, all of them
    visible."""
    row = ProduceRow(16, 1000, 5, acks=-1)
    batch = batches.uniform(row.records, row.size, time.time_ns() // 1_000_000)
    topic, count = peer.create(partitions), size // len(batch)
    wire = peer.connect()
    try:
        flow = Flow(wire, row, topic, 0, batch)
        flow.send(row.in_flight)
        sent, done = row.in_flight, 0
        while done < count:
            got = flow.receive()
            done += got
            more = min(got, count - sent)
            if more:
                flow.send(more)
                sent += more
    finally:
        wire.close()
    return Data(topic, len(batch), row.records, count)


class Reader:
    """One connection that fetches. The answer's records stay in the buffer until the next call."""

    def __init__(self, wire: Wire, row: FetchRow, data: Data, partition: int = 0) -> None:
        self.wire = wire
        self.data = data
        self.row = row
        mark, epoch = 0x0102030405060708, 0x0A0B0C0D
        session = (self._open(partition), epoch) if row.partitions > 1 else (0, -1)
        raw = requests.fetch(data.topic, partition, mark, row.size, 7, row.version, session=session)
        self.request = bytearray(raw)
        self.place = raw.index(mark.to_bytes(8, "big"))
        self.epoch = 0
        self.epoch_at = raw.index(epoch.to_bytes(4, "big")) if row.partitions > 1 else 0
        self.shape = requests.fetch_shape(data.topic, row.version)
        self.end = data.batches * data.records
        self.offset = 0

    def once(self) -> int:
        """Fetch, check, move on. Returns the bytes of records."""
        wire, buffer, shape = self.wire, self.wire.buffer, self.shape
        pack_into(">q", self.request, self.place, self.offset)
        if self.epoch_at:
            self.epoch += 1
            pack_into(">i", self.request, self.epoch_at, self.epoch)
        wire.socket.sendall(self.request)
        wire.exact(0, shape.size)
        size, correlation = unpack_from(">ii", buffer)
        wire.exact(shape.size, size + 4)
        code, high = shape.fields.unpack_from(buffer, shape.at)
        length, at = self._records()
        if code or correlation != 7 or length <= 0 or high < self.end:
            raise WrongAnswer(
                f"Fetch at {self.offset} answered error {code}, {length} bytes, end {high}"
            )
        if self.offset < unpack_from(">q", buffer, at)[0]:
            raise WrongAnswer(f"Fetch at {self.offset} skipped records")
        self.offset += max(1, length // self.data.batch) * self.data.records
        if self.offset + self.row.size // self.data.batch * self.data.records > self.end:
            self.offset = 0
        return length

    def _open(self, partition: int) -> int:
        """A session of all partitions: its id."""
        row = self.row
        named = requests.fetch(
            self.data.topic, partition, 0, 1, 7, row.version,
            session=(0, 0), others=row.partitions - 1,
        )  # fmt: skip
        answer = self.wire.call(named)
        code, session = unpack_from(">hi", answer, 1 + 4)
        if code or not session:
            raise WrongAnswer(f"Fetch of {row.partitions} partitions: error {code}, no session")
        return int(session)

    def last(self, length: int) -> memoryview:
        """The records of the last answer, `length` bytes as `once` returned them."""
        at = self._records()[1]
        return self.wire.view[at : at + length]

    def _records(self) -> tuple[int, int]:
        """Length and place of the records behind the fixed fields."""
        buffer, at = self.wire.buffer, self.shape.size
        if self.row.version < 12:
            return int(unpack_from(">i", buffer, at - 4)[0]), at
        length = shift = 0
        while True:
            byte = buffer[at]
            length |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return length - 1, at


def run(peer: Peer, row: FetchRow, data: Data, seconds: float) -> Result:
    """Fetch from `peer` for `seconds`. Raises WrongAnswer, OSError."""
    wire = peer.connect(row.size + (1 << 17))
    try:
        reader = Reader(wire, row, data)
        once, clock = reader.once, time.perf_counter
        for _ in range(10):
            once()
        done = total = 0
        cpu, begun = peer.cpu_seconds(), clock()
        while clock() - begun < seconds:
            total += once()
            done += 1
        passed, after = clock() - begun, peer.cpu_seconds()
    finally:
        wire.close()
    used = None if cpu is None or after is None else (after - cpu) / done * 1e6
    return Result(done / passed, total / passed / 1e6, used)
