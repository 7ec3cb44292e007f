"""Who writes to a simulated cluster and reads from it."""

from sim.node import Node
from sim.replicated.talk import Produce, Read, Trim, batches

from appliance.wire.batch import NewRecord, build_batch


class Client(Node):
    """Asks one broker after the other until one answers as it wants."""

    def __init__(self, world, name, ledger):
        super().__init__(world, name)
        self.ledger = ledger
        self.at = 0
        self.end = None

    def send(self, message):
        if self.end is None:
            names = self.ledger.names
            self.end = self.world.network.connect(self, names[self.at % len(names)])
        self.end.send(message)

    def next_broker(self):
        if self.end is not None:
            self.end.close()
        self.end = None
        self.at += 1

    def lost(self, end):
        if end is self.end:
            self.next_broker()


class Producer(Client):
    """Idempotent, acks=all, one batch in flight, sent again until it is acknowledged."""

    def __init__(self, world, name, ledger, number):
        super().__init__(world, name, ledger)
        self.number = number
        self.sequence = self.count = self.token = 0
        self.going_on = True
        self.batch = None

    def begin(self):
        self.produce()

    def produce(self):
        if not self.going_on:
            return
        rng = self.world.rng
        values = [
            b"%s:%d:%s" % (self.name.encode(), self.sequence + n, bytes(rng.randint(0, 300)))
            for n in range(rng.randint(1, 3))
        ]
        records = [NewRecord(self.world.clock.wall_ms(), None, value) for value in values]
        self.count = len(values)
        self.batch = build_batch(
            records, producer_id=self.number, producer_epoch=0, base_sequence=self.sequence
        )
        self.try_it()

    def try_it(self):
        if self.batch is not None:
            self.token += 1
            self.send(Produce(self.token, -1, bytes(self.batch)))
            self.after(60, self.too_late, self.token)

    def too_late(self, token):
        if token == self.token:
            self.next_broker()
            self.try_it()

    def received(self, end, message):
        if end is not self.end or message.token != self.token:
            return
        if message.done:
            self.sequence += self.count
            self.batch = None
            self.token += 1
            self.after(self.world.rng.expovariate(1 / 4), self.produce)
        else:
            self.next_broker()
            self.after(5, self.again, self.token)

    def again(self, token):
        if token == self.token:
            self.try_it()


class Careless(Client):
    """acks=1, and looks at no answer: what it writes may be lost, and makes logs part."""

    going_on = True

    def begin(self):
        self.write()

    def write(self):
        if self.going_on:
            rng = self.world.rng
            value = b"%s:-:%s" % (self.name.encode(), rng.randbytes(rng.randint(1, 200)))
            record = NewRecord(self.world.clock.wall_ms(), None, value)
            self.send(Produce(0, 1, bytes(build_batch([record]))))
            if rng.random() < 0.3:
                self.next_broker()
            self.after(rng.expovariate(1 / 5), self.write)


class Reader(Client):
    """Reads what is shown, from the beginning on, and now and then has what it read deleted."""

    offset = 0

    def begin(self):
        self.send(Read(self.offset))
        if self.world.rng.random() < 0.2:
            self.send(Trim(self.ledger.not_needed(self.offset)))
        if self.world.rng.random() < 0.2:
            self.next_broker()
        self.after(10, self.begin)

    def received(self, end, message):
        for header, batch in batches(message.data):
            self.ledger.read(header, batch, message.high_watermark)
            self.offset = max(self.offset, header.last_offset + 1)
        if message.high_watermark < 0:
            self.next_broker()
