"""Apache Kafka's VerifiableProducer and VerifiableConsumer, unchanged, each as a process."""

import json
import signal
import subprocess
import time
from collections import Counter

from benchmarks import kafka

LIMIT_S = 60
TOOLS = "org.apache.kafka.tools."


AGAIN = "enable.idempotence=true\nretries=2147483647\n"
"""Else the producer gives up at the first error."""


class Verifiable:
    """Both on one topic, until this is left: use it as a context manager. They write what they see
    as lines of JSON into `folder`."""

    def __init__(self, bootstrap, topic, folder, a_second=100):
        words = ["--bootstrap-server", bootstrap, "--topic", topic]
        settings = folder / "verifiable.properties"
        settings.write_text(AGAIN)
        producer = ["--throughput", str(a_second), "--acks", "-1", "--command-config", settings]
        self._commands = {
            "Producer": [*words, *map(str, producer)],
            "Consumer": [*words, "--group-id", topic, "--reset-policy", "earliest", "--verbose"],
        }
        self._folder = folder
        self._processes = {}

    def __enter__(self):
        for name, words in self._commands.items():
            command = kafka.java(f"{TOOLS}Verifiable{name}", *words, heap="128m")
            with self._file(name).open("wb") as out:
                self._processes[name] = subprocess.Popen(
                    command, stdout=out, stderr=subprocess.STDOUT
                )
        return self

    def __exit__(self, *_):
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _file(self, name):
        return self._folder / f"verifiable-{name}.out"

    def _told(self, name, event):
        lines = self._file(name).read_text(errors="replace").splitlines()
        found = [json.loads(one) for one in lines if one.startswith("{") and one.endswith("}")]
        return [one for one in found if one["name"] == event]

    def acknowledged(self):
        """Value → (partition, offset)."""
        told = self._told("Producer", "producer_send_success")
        return {one["value"]: (one["partition"], one["offset"]) for one in told}

    def consumed(self):
        """(partition, offset) → value."""
        told = self._told("Consumer", "record_data")
        return {(one["partition"], one["offset"]): one["value"] for one in told}

    def go_on(self, count=20):
        """Wait until so many more records are acknowledged."""
        wanted = len(self.acknowledged()) + count
        self._wait(lambda: len(self.acknowledged()) >= wanted, "records are acknowledged")

    def finish(self):
        """The producer ends. All that was acknowledged is consumed, each record once there, in
        order."""
        self._processes["Producer"].send_signal(signal.SIGTERM)
        self._processes["Producer"].wait(LIMIT_S)
        failed = self._told("Producer", "producer_send_error")
        assert not failed, failed[:3]
        acknowledged = self.acknowledged()
        self._wait(
            lambda: set(acknowledged.values()) <= set(self.consumed()), "all of it is consumed"
        )
        consumed = self.consumed()
        assert {value: place for place, value in consumed.items()} == acknowledged
        twice = [value for value, count in Counter(consumed.values()).items() if count > 1]
        assert not twice, twice[:5]
        for at in {partition for partition, _ in consumed}:
            values = [int(v) for (partition, _), v in sorted(consumed.items()) if partition == at]
            assert values == sorted(values), f"partition {at} is out of order"

    def _wait(self, fact, what):
        end = time.monotonic() + LIMIT_S
        while not fact():
            for name, process in self._processes.items():
                assert process.poll() in (None, 143), f"{name} ended: {self._last(name)}"
            assert time.monotonic() < end, f"never: {what}; {self._last('Producer')}"
            time.sleep(0.05)

    def _last(self, name):
        return self._file(name).read_text(errors="replace")[-1000:]
