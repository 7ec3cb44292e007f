"""Tellers, each with a transactional id, move money between accounts; no money comes or goes.

A transfer is two records in the teller's own partition, sent one after the other, and two in
partitions that all tellers share. Every fifth one is aborted when its records are in the log. At
each moment when an auditor is at the end of what it may read, every teller's own partition holds
whole transfers; at the end all partitions do. Records that a teller's library called committed are
there, those it gave up are not, and where it died while it committed all are there or none.
"""

import random
import threading
from collections import Counter, defaultdict

import confluent_kafka as ck

from tests.transactions.reading import LIMIT_S, by_everybody
from tests.transactions.writers import LIBRARIES, Owner

SHARED = 2
COMMITTED, ABORTED, DOUBTFUL = "committed", "aborted", "doubtful"


class Teller(threading.Thread):
    """outcomes: what became of each transfer, by number."""

    def __init__(self, bank, number, library):
        super().__init__(daemon=True)
        self.bank = bank
        self.number = number
        self.owner = Owner(library, bank.bootstrap, f"{bank.topic}-teller-{number}")
        self.chance = random.Random(number)
        self.outcomes = {}

    def run(self):
        transfer = 0
        try:
            while not self.bank.ending.is_set():
                if self.owner.ready() is not None:
                    self._transfer(transfer)
                    transfer += 1
            while self.owner.ready() is None and not self.bank.hopeless.is_set():
                pass  # nothing of it stays open
        finally:
            self.owner.drop()

    def _transfer(self, number):
        writer, commits = self.owner.writer, number % 5 != 4
        self.outcomes[number] = ABORTED
        try:
            writer.begin()
            self._records(writer, number)
            if commits:
                self.outcomes[number] = DOUBTFUL
                writer.commit()
                self.outcomes[number] = COMMITTED
            else:
                writer.abort()
        except writer.failures as error:
            self.owner.drop(error)
        else:
            with self.bank.changed:
                self.bank.ended += 1
                self.bank.changed.notify_all()

    def _records(self, writer, number):
        amount = self.chance.randrange(1, 100)
        own, shared = self.number, [len(self.bank.tellers) + at for at in range(SHARED)]
        for part, (at, delta) in enumerate(zip([own, own, *shared], (-1, 1, -1, 1), strict=True)):
            writer.send(self.bank.topic, at, b"%d %d %d %d" % (self.number, number, part,
                                                               delta * amount))  # fmt: skip
            if part == 0:
                writer.flush()
        if number % 5 == 4:
            writer.flush()


PARTS = 4


class Bank:
    """Use as a context manager: tellers of each library work until it is left, an auditor looks on.

    topic: made by the caller with `Bank.partitions(tellers)` partitions."""

    def __init__(self, bootstrap, topic, tellers=LIBRARIES):
        self.bootstrap = bootstrap
        self.topic = topic
        self.ending, self.hopeless = threading.Event(), threading.Event()
        self.changed = threading.Condition()
        self.ended = 0
        self.tellers = [None] * len(tellers)
        self.tellers = [Teller(self, at, library) for at, library in enumerate(tellers)]
        self.auditor = Auditor(self)

    @staticmethod
    def partitions(tellers=LIBRARIES):
        return len(tellers) + SHARED

    def __enter__(self):
        for thread in (*self.tellers, self.auditor):
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.hopeless.set()
        for thread in (*self.tellers, self.auditor):
            thread.join(LIMIT_S)

    def go_on(self, count=30):
        """Wait until so many more transfers have ended."""
        with self.changed:
            wanted = self.ended + count
            assert self.changed.wait_for(lambda: self.ended >= wanted, LIMIT_S), self.told()
        self.auditor.check()

    def told(self):
        return {one.owner.name: one.owner.told[-3:] for one in self.tellers}

    def settled(self):
        """Copies of the tellers' outcomes as they are now."""
        return [dict(one.outcomes) for one in self.tellers]

    def finish(self):
        """Let every teller end what it does; then nothing is open."""
        self.ending.set()
        for thread in (*self.tellers, self.auditor):
            thread.join(LIMIT_S)
            assert not thread.is_alive(), self.told()

    def check(self, before=None):
        """Read everything. before: outcomes when the power went; what came later may be either."""
        found = by_everybody(self.bootstrap, self.topic, self.partitions(self.tellers))
        parts = defaultdict(list)
        for partition, _, value in found:
            teller, transfer, part, _ = map(int, value.split())
            parts[teller, transfer].append(part)
            wanted = teller if part < 2 else len(self.tellers) + part - 2
            assert partition == wanted, (partition, value)
        whole = list(range(PARTS))
        broken = {which: seen for which, seen in parts.items() if sorted(seen) != whole}
        assert not broken, f"transfers in parts or twice: {broken}"
        for number, teller in enumerate(self.tellers):
            for transfer, outcome in teller.outcomes.items():
                there = (number, transfer) in parts
                if before is not None and before[number].get(transfer) != outcome:
                    continue
                assert outcome != COMMITTED or there, f"committed {number, transfer} is gone"
                assert outcome != ABORTED or not there, f"aborted {number, transfer} is seen"
        assert sum(int(value.split()[3]) for _, _, value in found) == 0
        self.auditor.check(set(found) if before is None else None)
        return Counter(outcome for one in self.tellers for outcome in one.outcomes.values())


class Auditor(threading.Thread):
    """Reads what is committed as it comes."""

    def __init__(self, bank):
        super().__init__(daemon=True)
        self.bank = bank
        self.seen = set()
        self.views = 0
        self.wrong = []
        self.sums = Counter()

    def run(self):
        client = ck.Consumer({
            "bootstrap.servers": self.bank.bootstrap, "group.id": "unused",
            "enable.auto.commit": False, "auto.offset.reset": "error",
            "isolation.level": "read_committed", "enable.partition.eof": True,
            "fetch.wait.max.ms": 20, "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 200, "log_level": 0,
        })  # fmt: skip
        count = self.bank.partitions(self.bank.tellers)
        client.assign([ck.TopicPartition(self.bank.topic, at, 0) for at in range(count)])
        while not self.bank.ending.is_set():
            for message in client.consume(500, 0.05):
                self._take(message)
        client.close()

    def _take(self, message):
        partition = message.partition()
        if message.error():
            if message.error().code() == ck.KafkaError._PARTITION_EOF:
                self.views += 1
                if partition < len(self.bank.tellers) and self.sums[partition]:
                    self.wrong.append(f"{self.sums[partition]} too much in {partition} up to"
                                      f" {message.offset()}")  # fmt: skip
            return
        place = (partition, message.offset(), message.value())
        if place in self.seen:
            self.wrong.append(f"{place} twice")
        self.seen.add(place)
        self.sums[partition] += int(message.value().split()[3])

    def check(self, found=None):
        """Nothing was wrong so far. found: all that is there now."""
        assert not self.wrong, self.wrong[:5]
        if found is not None:
            assert self.seen <= found, f"seen and gone: {list(self.seen - found)[:5]}"
