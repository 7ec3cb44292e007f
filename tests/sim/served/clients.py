"""Producers and consumers of one I/O process: as idempotent, as patient and as careless as real
ones are."""

from collections import deque

from ioproc.core_world import NOW_MS
from sim.node import Node
from sim.served.talk import Append, Appended, Read

from appliance.base.errors import NONE, OUT_OF_ORDER_SEQUENCE_NUMBER
from appliance.wire.batch import NewRecord, build_batch, iter_records
from appliance.wire.batch_header import HEADER_SIZE, read_header

TIMEOUT_MS = 100
TWICE, COPY = 0.05, -1
"""How often the same is sent over another connection, too, while the first one lives; its token."""
IN_FLIGHT = 3


class Client(Node):
    """One connection at a time; `connected` is what it does with a new one."""

    end = None
    going_on = True

    def begin(self):
        self.connect()

    def connect(self):
        if self.end is not None:
            self.end.close()
        self.end = self.world.network.connect(self, "home")
        self.connected()

    def lost(self, end):
        if end is self.end:
            self.end = None
            self.after(5, self.connect)

    def may_hear(self, message, code):
        """Whether this error is one that may be."""
        return False


class Producer(Client):
    """Idempotent, acks=all, some batches in flight; whatever is not acknowledged is sent again, in
    order. acknowledged: how many of its values are."""

    def __init__(self, world, name, partition, number):
        super().__init__(world, name)
        self.partition = partition
        self.number = number
        self.sequence = self.acknowledged = self.token = 0
        self.unacknowledged = deque()  # (sequence, count, batch)
        self.sent = {}  # token → sequence

    def begin(self):
        super().begin()
        self.produce()

    def produce(self):
        rng = self.world.rng
        if self.going_on and len(self.unacknowledged) < IN_FLIGHT:
            count = rng.randint(1, 3)
            values = [
                b"%s:%d:%s" % (self.name.encode(), self.sequence + n, bytes(rng.randint(0, 250)))
                for n in range(count)
            ]
            records = [NewRecord(NOW_MS, None, value) for value in values]
            batch = build_batch(
                records, producer_id=self.number, producer_epoch=0, base_sequence=self.sequence
            )
            self.unacknowledged.append((self.sequence, count, bytes(batch)))
            self.sequence += count
            self.send(self.unacknowledged[-1])
        self.after(rng.expovariate(1 / 4), self.produce)

    def connected(self):
        self.sent.clear()
        if self.unacknowledged:
            self.world.reached("batches are sent again")
        for one in self.unacknowledged:
            self.send(one)

    def send(self, one):
        if self.end is not None:
            self.token += 1
            self.sent[self.token] = one[0]
            self.end.send(Append(self.token, self.partition, -1, one[2]))
            self.after(TIMEOUT_MS, self.too_late, self.token)
            if one is self.unacknowledged[0] and self.world.rng.random() < TWICE:
                # Not what is behind it: whom nobody knows may begin with any sequence, as with
                # Apache Kafka, and the first batch would be out of order for ever.
                self.world.reached("a batch is sent over two connections")
                other = self.world.network.connect(self, "home")
                other.send(Append(COPY, self.partition, -1, one[2]))

    def too_late(self, token):
        if token in self.sent:
            self.connect()

    def received(self, end, message):
        sequence = self.sent.pop(message.token, None)
        if end is not self.end or sequence is None:
            return
        if message.code != NONE:
            self.end.close()
            self.lost(end)
            return
        assert self.unacknowledged[0][0] == sequence, "answers come in order"
        self.acknowledged += self.unacknowledged.popleft()[1]

    def may_hear(self, message, code):
        """An old batch that comes late does not follow what came since; nor does one behind a
        batch that was refused."""
        sequence = read_header(message.batch).base_sequence
        return code == OUT_OF_ORDER_SEQUENCE_NUMBER and (
            message.token == COPY
            or not self.unacknowledged
            or sequence != self.unacknowledged[0][0]
        )


class Careless(Client):
    """acks=1 or 0, without a producer id."""

    def connected(self):
        pass

    def begin(self):
        super().begin()
        self.write()

    def write(self):
        rng = self.world.rng
        if self.going_on and self.end is not None:
            value = b"%s:-:%s" % (self.name.encode(), rng.randbytes(rng.randint(1, 400)))
            batch = build_batch([NewRecord(NOW_MS, None, value)])
            self.end.send(Append(0, rng.randrange(3), rng.choice((0, 1)), bytes(batch)))
        self.after(rng.expovariate(1 / 4), self.write)


class Consumer(Client):
    """Reads one partition from its beginning on. high: the highest high watermark it was told."""

    def __init__(self, world, name, partition):
        super().__init__(world, name)
        self.partition = partition
        self.offset = self.high = self.token = 0

    def connected(self):
        self.ask()

    def ask(self):
        if self.end is not None:
            self.token += 1
            waits = self.world.rng.random() < 0.5
            self.end.send(Read(self.token, self.partition, self.offset, waits))
            self.after(TIMEOUT_MS, self.too_late, self.token)

    def too_late(self, token):
        if token == self.token:
            self.connect()

    def received(self, end, message):
        if end is not self.end or message.token != self.token or isinstance(message, Appended):
            return
        self.token += 1
        if message.code == NONE:
            assert message.high_watermark >= self.high, "what was shown is not hidden again"
            self.high = message.high_watermark
            for header, _ in batches(message.data):
                assert header.base_offset == self.offset, "nothing is passed over"
                self.offset = header.last_offset + 1
        self.after(0 if message.data else 3, self.ask)


def batches(data):
    """The whole batches of `data`: (header, bytes)."""
    found, at = [], 0
    while len(data) - at >= HEADER_SIZE:
        header = read_header(data, at)
        if at + header.size > len(data):
            break
        found.append((header, data[at : at + header.size]))
        at += header.size
    return found


def values_of(batch):
    return [record.value for record in iter_records(batch)]
