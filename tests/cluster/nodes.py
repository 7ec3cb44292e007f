"""A cluster of whole appliances as processes, for the tests that kill some of them.

    with Nodes(tmp_path) as nodes:
        nodes.create("t", partitions=6)
        nodes.kill(nodes.partition("t").leader)
        nodes.wait(lambda: nodes.partition("t").isr == [1, 2], "the others lead")

With PENSTOCK_TEST_BROKER=kafka they are Apache Kafka's. Whatever a test waits for is a fact that a
node tells or its files show; nothing is slept through.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from appliance.observer.door import NotThere, Observer
from appliance.ring import partition_table
from appliance.wire.batch_header import HEADER_SIZE, read_header
from benchmarks import kafka, nodes
from tests.broker_process import KAFKA, Broker
from tests.differential.link import CLOSED, Link

LIMIT_S = 60
DESCRIBE_QUORUM, DESCRIBE_CLUSTER, METADATA, CREATE_TOPICS = 55, 60, 3, 19
AGAIN = {
    "NOT_CONTROLLER", "REQUEST_TIMED_OUT", "COORDINATOR_NOT_AVAILABLE", "NETWORK_EXCEPTION",
    "INVALID_REPLICATION_FACTOR", "BROKER_NOT_AVAILABLE", "UNKNOWN_SERVER_ERROR",
}  # fmt: skip
"""What a request for a topic may be answered while brokers are missing."""


class Partition(NamedTuple):
    """As Metadata tells it; -1 for a leader: there is none. isr in ascending order."""

    leader: int
    epoch: int
    replicas: list[int]
    isr: list[int]


class Node(Broker):
    """One appliance of a cluster, or a node of Apache Kafka. within: the beginning of a command
    that starts it elsewhere than beside us."""

    within = ()
    format = ()  # flags of Apache Kafka's format step

    def __init__(self, folder, place, places, settings, is_kafka=KAFKA):
        super().__init__(folder / f"node-{place.number}", settings)
        self.number, self.host, self.serves = place.number, place.host, place.serves
        self.port = place.port if place.serves else place.controller_port
        self.properties = nodes.properties(place, places)
        self.is_kafka = is_kafka

    def wait_ready(self):
        if self.serves:
            super().wait_ready()

    def command(self):
        settings = self.properties | self.settings
        if not self.is_kafka:
            return [*self.within, *nodes.appliance_command(self.data, settings)]
        if reason := kafka.unavailable():
            pytest.skip(reason)
        return [*self.within, *nodes.kafka_command(self.data, settings, "512m", *self.format)]

    @property
    def log_dirs(self):
        return [Path(one) for one in self.settings.get("log.dirs", str(self.data)).split(",")]

    def partition_folders(self, name):
        """Where the files of a replica are."""
        return [found for one in self.log_dirs for found in one.rglob(name)]

    @property
    def runs(self):
        return self.process is not None and self.process.poll() is None


class Nodes:
    """Appliances 1 to `count` with a common cluster id, voters and brokers where `places` does not
    say otherwise.

    settings: Kafka's property names, for all of them. kafka: the numbers of those that are nodes of
    Apache Kafka. Use it as a context manager: it starts them all and leaves none.
    """

    def __init__(self, folder, count=3, settings=None, places=None, kafka=()):
        self.places = places or nodes.places(count)
        self.all = {
            one.number: Node(folder, one, self.places, settings or {}, KAFKA or one.number in kafka)
            for one in self.places
        }
        self._links = {}
        self.missed = ""  # by the last look at a topic

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for number in list(self._links):
            self._forget(number)
        for node in self.all.values():
            if node.runs:
                node.kill()

    def __getitem__(self, number):
        return self.all[number]

    @property
    def bootstrap(self):
        """Of all of them, for clients."""
        return nodes.bootstrap(self.places)

    @property
    def living(self):
        """The numbers of those whose process runs, and that serve clients."""
        return [number for number, node in self.all.items() if node.runs and node.serves]

    # What happens to them -------------------------------------------------------------------------

    def start(self, *numbers):
        """Start these, or all, at once; wait until each answers and the cluster has them."""
        chosen = numbers or tuple(self.all)
        for number in chosen:
            self.all[number].start(wait=False)
        for number in chosen:
            self.all[number].wait_ready()
        brokers = {number for number in chosen if self.all[number].serves}
        self.wait(lambda: brokers <= set(self.brokers()), f"{brokers} are unfenced")
        return self

    def kill(self, number):
        """kill -9 of all its processes."""
        self._forget(number)
        self.all[number].kill()

    def stop(self, number):
        """SIGTERM, and wait. Returns the exit code."""
        self._forget(number)
        return self.all[number].stop()

    # What a node tells ----------------------------------------------------------------------------

    def ask(self, key, version, values, number=None):
        """The answer of this node, or of one that lives. Raises ConnectionError."""
        number = self.living[0] if number is None else number
        answer = self._asked(number, key, version, values) if number in self._links else CLOSED
        if answer is CLOSED:  # a process that has died since took its connections with it
            self._forget(number)
            self._links[number] = Link((self.all[number].host, self.all[number].port))
            answer = self._asked(number, key, version, values)
        if answer is CLOSED:
            self._forget(number)
            raise ConnectionError(f"node {number} closed the connection")
        return answer

    def _asked(self, number, key, version, values):
        try:
            return self._links[number].ask(key, version, values)
        except OSError:
            return CLOSED

    def _forget(self, number):
        link = self._links.pop(number, None)
        if link is not None:
            link.close()

    def quorum_leader(self, number=None):
        """Who leads the metadata quorum, or -1 while nobody says so."""
        topic = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
        answer = self.ask(DESCRIBE_QUORUM, 1, {"topics": [topic]}, number)
        for told in answer["topics"]:
            for one in told["partitions"]:
                if one["error_code"] in ("NONE", "none"):
                    return one["leader_id"]
        return -1

    def brokers(self, number=None):
        """The numbers of the unfenced brokers, as one of them knows it."""
        answer = self.ask(DESCRIBE_CLUSTER, 0, {"include_cluster_authorized_operations": False},
                          number)  # fmt: skip
        return sorted(one["broker_id"] for one in answer["brokers"])

    def partitions(self, topic, number=None):
        """Number → Partition, as one of them knows it; nothing while it does not know the topic."""
        wanted = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        (told,) = self.ask(METADATA, 9, wanted, number)["topics"]
        found = {one["partition_index"]: one for one in told["partitions"]}
        return {
            at: Partition(
                one["leader_id"],
                one["leader_epoch"],
                one["replica_nodes"],
                sorted(one["isr_nodes"]),
            )
            for at, one in sorted(found.items())
        }

    def partition(self, topic, index=0, number=None):
        return self.partitions(topic, number)[index]

    def create(self, topic, partitions=1, configs=None, factor=3, assignment=None):
        """Create it and wait until every living node knows a leader of each partition and all
        replicas are in sync. assignment: replicas of each partition, the first one leads."""
        values = {"timeout": 10_000, "topics": [{
            "name": topic,
            "num_partitions": -1 if assignment else partitions,
            "replication_factor": -1 if assignment else factor,
            "assignments": [
                {"partition_index": at, "broker_ids": replicas}
                for at, replicas in enumerate(assignment or ())
            ],
            "configs": [{"name": k, "value": v} for k, v in (configs or {}).items()],
        }]}  # fmt: skip

        def made():
            (told,) = self.ask(CREATE_TOPICS, 5, values)["topics"]
            code = told["error_code"].upper()
            assert code in AGAIN | {"NONE", "TOPIC_ALREADY_EXISTS"}, told
            return code not in AGAIN

        self.wait(made, f"{topic} is created")
        count = len(assignment) if assignment else partitions
        self.wait(lambda: self.whole(topic, count), f"{topic} is whole")

    def whole(self, topic, count=None):
        """Whether all replicas of each partition are in sync, as every living node knows it."""
        for number in self.living:
            found = self.partitions(topic, number)
            bad = [
                one for one in found.values() if one.leader < 0 or one.isr != sorted(one.replicas)
            ]
            if bad or len(found) < (count or 1):
                self.missed = f"node {number} says of {topic}: {found}"
                return False
        self.missed = ""
        return True

    def wait(self, fact, what, limit_s=LIMIT_S):
        """Until `fact()` holds: what it gave. What a node that is gone does not answer is no fact
        yet."""
        end = time.monotonic() + limit_s
        while True:
            with suppress(ConnectionError, KeyError, NotThere):
                if given := fact():
                    return given
            assert time.monotonic() < end, f"never: {what}; {self.missed}\n{self.said()}"
            time.sleep(0.01)

    def said(self):
        """The last words of each."""
        return "\n".join(
            f"--- node {number}, {'runs' if node.runs else 'ended'}\n{node.output()[-1500:]}"
            for number, node in self.all.items()
            if node.log.exists()
        )

    # What its memory and its files show -----------------------------------------------------------

    def watermarks(self, topic, index=0):
        """Of each living appliance: (high watermark, log end) by number, from its tables."""
        topic_id = self.topic_id(topic)
        found = {}
        for number in self.living:
            table = Observer(str(self.all[number].data)).tables.partitions
            for row in table.live_rows():
                if (row.topic_id, row.partition) == (topic_id, index):
                    columns = (partition_table.HIGH_WATERMARK, partition_table.LOG_END)
                    found[number] = tuple(
                        table.read_column(row.handle, column) for column in columns
                    )
        return found

    def topic_id(self, topic):
        (told,) = self.ask(METADATA, 12, {"topics": [{"name": topic}]})["topics"]
        return bytes.fromhex(str(told["topic_id"]).replace("-", ""))

    def level(self, topic, count=1):
        """Whether every living replica of each partition shows everything, and the same."""
        if KAFKA:  # it keeps that to itself
            return all(len(set(self._logs(topic, index).values())) == 1 for index in range(count))
        for index in range(count):
            marks = set(self.watermarks(topic, index).values())
            if len(marks) != 1 or any(high != end for high, end in marks):
                return False
        return True

    def log_bytes(self, number, topic, index=0):
        """Every whole batch of this replica, in order, from all its segments."""
        (folder,) = self.all[number].partition_folders(f"{topic}-{index}")
        return b"".join(whole_batches(path.read_bytes()) for path in sorted(folder.glob("*.log")))

    def compare_replicas(self, topic, count=1):
        """All replicas of each partition hold the same bytes. Those of stopped nodes count, too."""
        for index in range(count):
            logs = self._logs(topic, index)
            holder, first = next(iter(logs.items()))
            for number, log in logs.items():
                assert log == first, (
                    f"{topic}-{index}: node {number} ({len(log)} bytes) is not as node"
                    f" {holder} ({len(first)}), from byte {_differ(log, first)} on"
                )

    def _logs(self, topic, index):
        holders = [n for n in self.all if self.all[n].partition_folders(f"{topic}-{index}")]
        return {number: self.log_bytes(number, topic, index) for number in holders}


def whole_batches(data):
    """A segment up to where its batches end; behind it there may be room."""
    at = 0
    while len(data) - at >= HEADER_SIZE and data[at + 16] == 2:
        size = read_header(data, at).size
        if at + size > len(data):
            break
        at += size
    return data[:at]


def _differ(one, other):
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
