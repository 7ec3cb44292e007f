"""Who writes to a simulated cluster and reads from it."""

from sim.node import Node
from sim.replicas.talk import Produce, Read, Trim

TWICE = 0.03
"""How often the same is sent over another connection, too, while the first one lives."""


class Client(Node):
    """Of one partition. Asks one broker after the other, or whom it was told."""

    def __init__(self, world, name, ledger, brokers):
        super().__init__(world, name)
        self.ledger = ledger
        self.brokers = brokers
        self.at = world.rng.choice(brokers)
        self.end = None

    @property
    def key(self):
        return self.ledger.key

    def send(self, message):
        if self.end is None:
            self.end = self.world.network.connect(self, f"n{self.at}")
        self.end.send(message)

    def turn_to(self, leader=-1):
        if self.end is not None:
            self.end.close()
        self.end = None
        others = [number for number in self.brokers if number != self.at]
        self.at = leader if leader in self.brokers else self.world.rng.choice(others)

    def lost(self, end):
        if end is self.end:
            self.turn_to()


class Producer(Client):
    """Idempotent, acks=all, one record in flight, sent again until it is acknowledged."""

    def __init__(self, world, number, ledger, brokers):
        super().__init__(world, f"p{number}", ledger, brokers)
        self.who = number
        self.number = self.token = 0
        self.going_on = True
        self.waits = False

    def begin(self):
        self.produce()

    def produce(self):
        if self.going_on:
            self.waits = True
            self.try_it()

    def try_it(self):
        self.token += 1
        message = Produce(self.token, self.key, -1, self.who, self.number)
        self.send(message)
        if self.world.rng.random() < TWICE:
            self.world.network.connect(self, f"n{self.at}").send(message)
        self.after(40, self.too_late, self.token)

    def too_late(self, token):
        if token == self.token:
            self.turn_to()
            self.try_it()

    def received(self, end, message):
        if end is not self.end or message.token != self.token:
            return
        if message.offset >= 0:
            self.ledger.acknowledged(self.who, self.number, message.offset)
            self.number += 1
            self.waits = False
            self.token += 1
            self.after(self.world.rng.expovariate(1 / 2), self.produce)
        else:
            self.turn_to(message.leader)
            self.after(4, self.again, self.token)

    def again(self, token):
        if token == self.token:
            self.try_it()


class Careless(Client):
    """acks=1, and looks at no answer: what it writes may be lost, and makes logs part."""

    going_on = True
    number = 0

    def begin(self):
        if self.going_on:
            rng = self.world.rng
            self.number += 1
            self.send(Produce(0, self.key, 1, -1, self.number))
            if rng.random() < 0.2:
                self.turn_to()
            self.after(rng.expovariate(1 / 3), self.begin)

    def received(self, end, message):
        if end is self.end and message.offset < 0:
            self.turn_to(message.leader)


class Reader(Client):
    """Reads what is shown, from the beginning on, and now and then has what it read deleted."""

    offset = 0
    going_on = True

    def begin(self):
        rng = self.world.rng
        self.send(Read(self.key, self.offset))
        if self.going_on and rng.random() < 0.1:
            self.send(Trim(self.key, self.ledger.not_needed(self.offset)))
        if rng.random() < 0.1:
            self.turn_to()
        self.after(8, self.begin)

    def received(self, end, message):
        if message.high_watermark < 0:
            if end is self.end:
                self.turn_to()
            return
        self.ledger.read(message)
        end = message.offset + len(message.entries)
        assert message.offset <= max(self.offset, message.log_start), "records are left out"
        self.offset = max(self.offset, end)
