"""One transaction in very many partitions, and small ones that end beside it.

PENSTOCK_TEST_PARTITIONS=10000 plays the large case, with PENSTOCK_TEST_BROKER=kafka on Apache
Kafka; both say how long each step took (`pytest -s`).
"""

import os
import threading
import time
from itertools import pairwise

import pytest

from tests.broker_process import Broker
from tests.differential.link import Link
from tests.differential.records import batch
from tests.differential.transactions import TRANSACTIONAL, codes

pytestmark = pytest.mark.timeout(900)
COUNT = int(os.environ.get("PENSTOCK_TEST_PARTITIONS", 300))
AT_ONCE = 500
LIMIT_S = 300
SETTINGS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
AGAIN = {
    "CONCURRENT_TRANSACTIONS", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS",
    "NOT_COORDINATOR", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER",
}  # fmt: skip


class Writer:
    """A transactional producer that speaks one request at a time; its epoch stays."""

    def __init__(self, broker, name, topic):
        self.link = Link(("127.0.0.1", broker.port), name)
        self.name, self.topic = name, topic
        self.sequence = 0
        self.ask("FindCoordinator", 10, 3, key=name, key_type=1)
        said = self.ask(
            "InitProducerId", 22, 4, transactional_id=name, transaction_timeout=600_000,
            producer_id=-1, producer_epoch=-1,
        )  # fmt: skip
        self.who = {
            "transactional_id": name,
            "producer_id": said["producer_id"],
            "producer_epoch": said["producer_epoch"],
        }

    def ask(self, what, api, version, /, **values):
        """Until no error of it says that it may be asked again; then there is none."""
        end = time.monotonic() + LIMIT_S
        while not codes(answer := self.link.ask(api, version, values)).isdisjoint(AGAIN):
            assert time.monotonic() < end, f"{what}: {codes(answer)}"
            time.sleep(0.002)
        assert codes(answer) <= {"NONE"}, f"{what}: {codes(answer)}"
        return answer

    def write(self, partitions):
        """A transaction with a record in each."""
        fields = {**self.who, "topics": [{"name": self.topic, "partitions": list(partitions)}]}
        added = {f"v3_and_below_{field}": value for field, value in fields.items()}
        self.ask("AddPartitionsToTxn", 24, 3, **added)
        who = (self.who["producer_id"], self.who["producer_epoch"], self.sequence)
        records = batch(b"v", attributes=TRANSACTIONAL, producer=who)
        for at in range(0, len(partitions), AT_ONCE):
            some = partitions[at : at + AT_ONCE]
            rows = [{"index": index, "records": records} for index in some]
            self.ask(
                "Produce", 0, 9, transactional_id=self.name, acks=-1, timeout=60_000,
                topic_data=[{"name": self.topic, "partition_data": rows}],
            )  # fmt: skip
        self.sequence += 1

    def end(self, commit):
        self.ask("EndTxn", 26, 3, **self.who, committed=commit)

    def await_markers(self):
        end = time.monotonic() + LIMIT_S
        while True:
            (one,) = self.link.ask(65, 0, {"transactional_ids": [self.name]})["transaction_states"]
            if one["transaction_state"].startswith("Complete"):
                return
            assert time.monotonic() < end, one["transaction_state"]
            time.sleep(0.002)

    def ends(self, count, level):
        """Where readers of this isolation level end."""
        rows = [{"partition_index": n, "current_leader_epoch": -1, "timestamp": -1}
                for n in range(count)]  # fmt: skip
        asked = {"replica_id": -1, "isolation_level": level}
        topics = [{"name": self.topic, "partitions": rows}]
        (topic,) = self.ask("ListOffsets", 2, 7, **asked, topics=topics)["topics"]
        return [row["offset"] for row in topic["partitions"]]


def create(broker, name, count):
    """In two steps: Apache Kafka's controller makes less than 10,000 records at once."""
    link = Link(("127.0.0.1", broker.port))
    first = {"name": name, "num_partitions": (count + 1) // 2, "replication_factor": 1}
    made = link.ask(19, 5, {"timeout": 120_000, "topics": [first]})
    assert codes(made) <= {"NONE"}, made
    if count > 1:
        more = {"name": name, "count": count, "assignments": None}
        asked = {"topics": [more], "timeout": 120_000, "validate_only": False}
        assert codes(link.ask(37, 1, asked)) <= {"NONE"}
    link.close()


def test_one_in_very_many_partitions_ends_whole_and_beside_small_ones(tmp_path):
    with Broker(tmp_path / "data", SETTINGS) as broker:
        create(broker, "many", COUNT)
        create(broker, "one", 1)
        large, small = Writer(broker, "large", "many"), Writer(broker, "small", "one")
        large.ends(COUNT, 0)  # every partition is there
        small.ends(1, 0)
        over, took = threading.Event(), []

        def beside():
            while not over.is_set():
                begun = time.monotonic()
                small.write([0])
                small.end(commit=True)
                small.await_markers()
                took.append(time.monotonic() - begun)

        thread = threading.Thread(target=beside)
        thread.start()
        try:
            for round_, commit in enumerate((True, False), 1):
                times, done = [time.monotonic()], len(took)
                for step in (
                    lambda: large.write(range(COUNT)),
                    lambda commit=commit: large.end(commit),
                    large.await_markers,
                ):
                    step()
                    times.append(time.monotonic())
                shown = [f"{after - before:.3f}" for before, after in pairwise(times)]
                worst = max(took[done:], default=0)
                print(f"{COUNT}: write, end, markers {shown} s; small ones at most {worst:.3f} s")
                for level in (0, 1):
                    assert large.ends(COUNT, level) == [2 * round_] * COUNT
        finally:
            over.set()
            thread.join()
        assert small.ends(1, 0) == small.ends(1, 1) == [2 * len(took)]
        for one in (large, small):
            one.link.close()
