"""Apache Kafka's own TransactionalMessageCopier, which aborts at random, in JVMs that are killed,
against a broker whose processes are: the output is the input, once."""

import os
import signal
import subprocess
import threading

import pytest

from benchmarks import kafka
from tests.broker_process import Broker
from tests.transactions.copiers import PARTITIONS, fill, value
from tests.transactions.reading import by_everybody

pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(180),
]
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
RECORDS = 800
LIMIT_S = 60


class Copier:
    """The tool on one partition; it ends when it has copied what was there at its start."""

    def __init__(self, bootstrap, source, sink, partition):
        self.process = subprocess.Popen(
            kafka.java(
                COPIER, "--broker-list", bootstrap, "--input-topic", source, "--output-topic", sink,
                "--input-partition", str(partition), "--transactional-id", f"{sink}-{partition}",
                "--consumer-group", f"{sink}-{partition}", "--transaction-size", "20",
                "--enable-random-aborts", "--use-group-metadata",
            ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.lines = []
        self.copies = threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            if len(self.lines) > 5:
                self.copies.set()

    def begins(self):
        """Wait until it copies."""
        assert self.copies.wait(LIMIT_S), self.lines[-5:]
        return self

    def end(self):
        """Wait until it is done."""
        assert self.process.wait(LIMIT_S) == 0, self.lines[-5:]
        self.close()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()


def test_the_output_is_the_input(tmp_path):
    with Broker(tmp_path / "data") as broker:
        source, sink = (broker.peer.create(PARTITIONS, {}, word) for word in ("source", "sink"))
        fill(broker.bootstrap, source, RECORDS)
        there = [broker.bootstrap, source, sink]
        Copier(*there, 0).begins().close()
        first, second = (Copier(*there, partition) for partition in range(PARTITIONS))
        second.begins()
        for pid in broker.pids()[1:]:
            os.kill(pid, signal.SIGKILL)
        second.end()
        first.end()
        found = sorted(what for _, _, what in by_everybody(broker.bootstrap, sink, PARTITIONS))
        assert found == sorted(value(at, n) for at in range(PARTITIONS) for n in range(RECORDS))
