"""Clerks of a bank: members of a group who subscribe to its orders, book each order as a transfer
and commit its offset in the same transaction, with what they know of themselves as members.

Members come and go, are thrown out of the group in the middle of a transaction, and whatever they
talk to dies. The ledger holds, in order and once, both sides of each order below the committed
offset of its partition, and nothing else: who books for a group that has moved on is refused.
"""

import threading

import confluent_kafka as ck
import kafka
from kafka.errors import KafkaError as PythonError

from tests.transactions.copiers import CHUNK, differing, value
from tests.transactions.feeding import Feeder
from tests.transactions.reading import LIMIT_S, by_everybody, committed
from tests.transactions.writers import QUIET, Confluent, KafkaPython, Owner

PARTITIONS = 4
"""Of the orders."""
SIDES = 2
"""Partitions of a ledger: what is taken, and what is given."""
SESSION_MS = 2000
HEARTBEAT_MS = 200
LOOKS = 100
"""Of 50 ms, until a member has given its partitions back."""
MEMBERS = 2
BURST = 5


class ConfluentMember:
    """metadata: what it knows of itself since partitions were given to it."""

    failures = (ck.KafkaException,)

    def __init__(self, bootstrap, group, topic):
        self.metadata = None
        self.client = ck.Consumer({
            "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "isolation.level": "read_committed",
            "session.timeout.ms": SESSION_MS, "max.poll.interval.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS, "fetch.wait.max.ms": 20, **QUIET,
        })  # fmt: skip
        self.client.subscribe([topic], on_assign=self._assigned)

    def _assigned(self, client, _):
        self.metadata = client.consumer_group_metadata()

    def take(self):
        """The next records, as (partition, offset, value)."""
        got = self.client.consume(CHUNK, 0.2)
        return [(one.partition(), one.offset(), one.value()) for one in got if not one.error()]

    def close(self):
        """It gives its partitions back before: a rebalance that comes within `Consumer.close` calls
        `rd_kafka_assign` with the interpreter's lock, waits for ever, and every thread of the
        process with it (confluent-kafka 2.16.1)."""
        self.client.unsubscribe()
        for _ in range(LOOKS):
            self.client.poll(0.05)
            if not self.client.assignment():
                break
        self.client.close()


class KafkaPythonMember:
    failures = (PythonError,)

    def __init__(self, bootstrap, group, topic):
        self.client = kafka.KafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False,
            auto_offset_reset="earliest", isolation_level="read_committed",
            session_timeout_ms=SESSION_MS, max_poll_interval_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS, fetch_max_wait_ms=20, reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=200, retry_backoff_ms=20, request_timeout_ms=3000,
        )  # fmt: skip
        self.metadata = None

    def take(self):
        got = self.client.poll(200, max_records=CHUNK)
        self.metadata = self.client.group_metadata()
        if got and self.metadata.generation_id < 0:
            raise PythonError("thrown out of the group")
        return [(one.partition, one.offset, one.value) for of in got.values() for one in of]

    def close(self):
        self.client.close(timeout_ms=1000)


LIBRARIES = ((ConfluentMember, Confluent), (KafkaPythonMember, KafkaPython))


class Orders(Feeder):
    """An order is its partition and its number there."""

    def __init__(self, bootstrap, topic):
        super().__init__(bootstrap, topic, self._burst)
        self.count = 0
        """In each partition."""

    def _burst(self):
        self.count += BURST
        for number in range(self.count - BURST, self.count):
            for partition in range(PARTITIONS):
                yield partition, value(partition, number)


def rows(order):
    """Both sides of an order's transfer."""
    amount = int(order.rpartition(b"-")[2]) % 97 + 1
    return b"%s -%d" % (order, amount), b"%s %d" % (order, amount)


class Clerk(threading.Thread):
    """One member. stalls: in its next transaction it waits until others have done its work, which
    throws it out of the group; leaves: it goes, and comes again. refused: how often it was told so
    when it went on."""

    def __init__(self, office, number):
        super().__init__(daemon=True)
        self.office = office
        self.member, library = office.libraries
        self.owner = Owner(library, office.bootstrap, f"{office.ledger}-clerk-{number}")
        self.stalls, self.leaves = threading.Event(), threading.Event()
        self.overtaken = False
        self.refused = 0

    def run(self):
        try:
            while not self.office.ending.is_set():
                if self.owner.ready() is not None:
                    self._work()
            while self.owner.ready() is None and not self.office.hopeless.is_set():
                pass  # nothing of it stays open
        finally:
            self.owner.drop()

    def _work(self):
        """As one member of the group, until something fails or it leaves."""
        office, member = self.office, None
        try:
            member = self.member(office.bootstrap, office.ledger, office.orders)
            while not office.ending.is_set() and not self.leaves.is_set():
                if got := member.take():
                    self._book(self.owner.writer, member.metadata, got)
        except (*self.member.failures, *self.owner.library.failures) as error:
            with office.changed:
                self.refused += self.overtaken
                office.changed.notify_all()
            self.owner.drop(error)
        finally:
            self.overtaken = False
            self.leaves.clear()
            if member is not None:
                member.close()

    def is_refused(self):
        """Wait until it is, for the first time."""
        with self.office.changed:
            assert self.office.changed.wait_for(lambda: self.refused, LIMIT_S), self.office.told()

    def _book(self, writer, metadata, got):
        following = {partition: offset + 1 for partition, offset, _ in got}
        writer.begin()
        for _, _, order in got:
            for side, row in enumerate(rows(order)):
                writer.send(self.office.ledger, side, row)
        if self.stalls.is_set():
            self.overtaken = self.office.others_book(following)
            self.stalls.clear()
        writer.offsets(metadata, self.office.orders, following)
        writer.commit()
        self.office.booked(following)


class Office:
    """The clerks of one library, a group of the ledger's name. Use as a context manager.

    orders, ledger: topics, made by the caller with PARTITIONS and SIDES partitions."""

    def __init__(self, bootstrap, orders, ledger, libraries):
        self.bootstrap, self.orders, self.ledger = bootstrap, orders, ledger
        self.libraries = libraries
        self.ending, self.hopeless = threading.Event(), threading.Event()
        self.changed = threading.Condition()
        self.reached = {}
        self.transactions = 0
        self.clerks = [Clerk(self, number) for number in range(MEMBERS)]

    def __enter__(self):
        for one in self.clerks:
            one.start()
        return self

    def __exit__(self, *_):
        self.hopeless.set()
        self._end()

    def _end(self):
        self.ending.set()
        with self.changed:
            self.changed.notify_all()
        for one in self.clerks:
            one.join(LIMIT_S)

    def booked(self, following):
        """Partition → next offset, of a transaction that is committed."""
        with self.changed:
            self.transactions += 1
            self.reached |= following
            self.changed.notify_all()

    def others_book(self, following):
        """Wait until others have booked all of that; whether they have."""

        def done():
            return all(self.reached.get(at, 0) >= offset for at, offset in following.items())

        with self.changed:
            self.changed.wait_for(lambda: done() or self.ending.is_set(), LIMIT_S)
            return done()

    def go_on(self, count=10):
        """Wait until so many more transactions are committed."""
        with self.changed:
            wanted = self.transactions + count
            assert self.changed.wait_for(lambda: self.transactions >= wanted, LIMIT_S), self.told()

    def told(self):
        return {one.owner.name: one.owner.told[-3:] for one in self.clerks}

    def finish(self):
        self._end()
        assert not any(one.is_alive() for one in self.clerks), self.told()

    def check(self):
        """How many orders are booked."""
        done = committed(self.bootstrap, self.ledger, self.orders, PARTITIONS)
        found = by_everybody(self.bootstrap, self.ledger, SIDES)
        for side in range(SIDES):
            for partition, offset in done.items():
                ours = b"%d-" % partition
                mine = [row for at, _, row in found if at == side and row.startswith(ours)]
                wanted = [rows(value(partition, number))[side] for number in range(offset)]
                assert mine == wanted, f"{self.ledger}-{side}: {differing(mine, wanted)}"
        assert len(found) == SIDES * sum(done.values())
        return sum(done.values())
