"""Who writes what others consume, transform and produce, for as long as a test lasts."""

import threading

import confluent_kafka as ck

from tests.transactions.reading import LIMIT_S
from tests.transactions.writers import QUIET

PACE_S = 0.05


class Feeder(threading.Thread):
    """Writes a burst of records again and again, each of them once, whatever happens to the broker.
    Use as a context manager.

    burst: without arguments, gives (partition, value) of each record of the next burst."""

    def __init__(self, bootstrap, topic, burst):
        super().__init__(daemon=True)
        self.bootstrap, self.topic, self.burst = bootstrap, topic, burst
        self.ending = threading.Event()
        self.failed = []

    def run(self):
        client = ck.Producer({
            "bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 0,
            "message.timeout.ms": 0, **QUIET,
        })  # fmt: skip
        while not self.ending.wait(PACE_S):
            for partition, value in self.burst():
                client.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
            client.poll(0)
        client.flush(LIMIT_S)

    def _delivered(self, error, _):
        if error is not None:
            self.failed.append(error)

    def end(self):
        """All is written."""
        self.ending.set()
        self.join(LIMIT_S)
        assert not self.is_alive() and not self.failed, self.failed[:3]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(LIMIT_S)
