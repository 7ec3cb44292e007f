"""A Kafka Streams application (`Sums.java`) that sums orders per account exactly once, whoever
writes the orders, and what its output and its changelog have to be: what a batch computes."""

import random
import signal
import subprocess
import threading
from collections import defaultdict
from pathlib import Path

import confluent_kafka as ck

from benchmarks import kafka
from tests.transactions.feeding import Feeder
from tests.transactions.reading import LIMIT_S, by_everybody
from tests.transactions.writers import QUIET

SOURCE = Path(__file__).with_name("Sums.java")
PARTITIONS = 2
ACCOUNTS = 10
BURST = 20


class Orders(Feeder):
    """Writes orders, those of an account into one partition, and keeps what comes of them.

    An order is "ACCOUNT AMOUNT". rows: account → what the application has to make of its orders."""

    def __init__(self, bootstrap, topic):
        super().__init__(bootstrap, topic, self._burst)
        self.chance = random.Random(PARTITIONS)
        self.rows = defaultdict(list)

    def _burst(self):
        for _ in range(BURST):
            account, amount = self.chance.randrange(ACCOUNTS), self.chance.randrange(-99, 100)
            rows = self.rows[account]
            so_far = int(rows[-1].split()[2]) if rows else 0
            rows.append(b"%d %d %d" % (account, len(rows) + 1, so_far + amount))
            yield account % PARTITIONS, b"%d %d" % (account, amount)

    def count(self):
        return sum(len(rows) for rows in self.rows.values())


class Rows(threading.Thread):
    """Reads the application's output as it is committed; each account's rows count from one on."""

    def __init__(self, bootstrap, topic):
        super().__init__(daemon=True)
        self.bootstrap, self.topic = bootstrap, topic
        self.ending = threading.Event()
        self.changed = threading.Condition()
        self.seen = 0
        self.last = defaultdict(int)
        self.wrong = []

    def run(self):
        client = ck.Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": "unused", "enable.auto.commit": False,
            "auto.offset.reset": "error", "isolation.level": "read_committed",
            "fetch.wait.max.ms": 20, **QUIET,
        })  # fmt: skip
        client.assign([ck.TopicPartition(self.topic, at, 0) for at in range(PARTITIONS)])
        while not self.ending.is_set():
            got = [one.value() for one in client.consume(500, 0.05) if not one.error()]
            with self.changed:
                for row in got:
                    self._take(row)
                self.changed.notify_all()
        client.close()

    def _take(self, row):
        account, count, _ = map(int, row.split())
        if count != self.last[account] + 1:
            self.wrong.append(f"{row} after {self.last[account]}")
        self.last[account] = count
        self.seen += 1


class Application:
    """One JVM of it."""

    def __init__(self, command, folder):
        folder.mkdir()
        self.log = folder / "log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen([*command, str(folder / "state")],
                                            stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out)  # fmt: skip

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """In order."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT_S)


class Sums:
    """Orders, JVMs and a reader of what they do. Use as a context manager; it ends what it started.

    topics: those of orders and rows, made by the caller with PARTITIONS partitions. name: the
    application's id."""

    def __init__(self, bootstrap, topics, name, folder):
        self.bootstrap, self.name, self.folder = bootstrap, name, folder
        self.orders, self.rows = Orders(bootstrap, topics[0]), Rows(bootstrap, topics[1])
        self.command = kafka.java(str(SOURCE), bootstrap, name, *topics)
        self.started, self.running = 0, []

    def __enter__(self):
        self.orders.start()
        self.rows.start()
        return self

    def __exit__(self, *_):
        for thread in (self.orders, self.rows):
            thread.ending.set()
            thread.join(LIMIT_S)
        for one in self.running:
            one.kill()

    def start(self):
        self.started += 1
        self.running.append(Application(self.command, self.folder / f"{self.name}-{self.started}"))

    def kill(self):
        """The oldest one."""
        self.running.pop(0).kill()

    def go_on(self, count=200):
        """Wait until so many more rows are committed."""
        self._until(self.rows.seen + count)

    def _until(self, wanted):
        with self.rows.changed:
            came = self.rows.changed.wait_for(lambda: self.rows.seen >= wanted, LIMIT_S)
        assert came, f"{self.rows.seen} of {wanted} rows\n{self.told()}"
        assert not self.rows.wrong, self.rows.wrong[:5]

    def told(self):
        return "\n".join(one.log.read_text()[-2000:] for one in self.running)

    def finish(self):
        """All that was ordered is there, and the application ends."""
        self.orders.end()
        self._until(self.orders.count())
        for one in self.running:
            one.stop()

    def check(self):
        """The rows and the changelog, as every library reads them, are what the batch says."""
        for topic in (self.rows.topic, f"{self.name}-sums-changelog"):
            found = defaultdict(list)
            for _, _, row in by_everybody(self.bootstrap, topic, PARTITIONS):
                found[int(row.split()[0])].append(row)
            for account, wanted in self.orders.rows.items():
                assert found[account] == wanted, f"{topic}: account {account} differs"
            assert found.keys() == self.orders.rows.keys()
