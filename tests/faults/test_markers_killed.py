"""Decided transactions reach all their partitions, whatever process dies between the decision and
its markers."""

import os
import signal
import time

import pytest

from appliance.wire import markers
from appliance.wire.batch_header import read_header
from tests.broker_process import KAFKA, Broker, answers
from tests.differential.link import CLOSED, Link

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="processes of one appliance are killed"),
]
PARTITIONS = 12
LIMIT_S = 60
RETRIABLE = frozenset(
    (
        "concurrent_transactions",
        "coordinator_load_in_progress",
        "coordinator_not_available",
        "leader_not_available",
        "not_coordinator",
        "not_leader_or_follower",
        "unknown_topic_or_partition",
    )
)


class Client:
    """Asks until there is an answer that is not retriable."""

    def __init__(self, broker):
        self.broker = broker
        self.link = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hang_up()

    def hang_up(self):
        if self.link is not None:
            self.link.close()
        self.link = None

    def ask(self, api, version, code_of, **values):
        end, answer = time.monotonic() + LIMIT_S, None
        while True:
            assert time.monotonic() < end, f"{api}: {answer}\n{self.broker.output()[-2000:]}"
            try:
                if self.link is None:
                    self.link = Link(("127.0.0.1", self.broker.port))
                answer = self.link.ask(api, version, values)
            except OSError as failure:
                answer = failure
                self.hang_up()
                continue
            if answer == CLOSED:
                self.hang_up()
            elif code_of(answer).lower() not in RETRIABLE:
                return answer
            time.sleep(0.01)

    def find(self, name):
        """The first one makes the topic."""
        self.ask(10, 3, lambda a: a["error_code"], key=name, key_type=1)

    def init(self, name):
        answer = self.ask(
            22, 5, lambda a: a["error_code"], transactional_id=name, transaction_timeout=60_000,
            producer_id=-1, producer_epoch=-1,
        )  # fmt: skip
        assert answer["error_code"].lower() == "none", answer
        return answer["producer_id"], answer["producer_epoch"]

    def add(self, name, producer, topic):
        indexes = list(range(PARTITIONS))
        answer = self.ask(
            24, 3, lambda a: rows(a)[0]["partition_error_code"], v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0], v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[{"name": topic, "partitions": indexes}],
        )  # fmt: skip
        assert {row["partition_error_code"].lower() for row in rows(answer)} == {"none"}, answer

    def send_ends(self, names, producers):
        """EndTxn for all of them, whose answers nobody waits for: commits and aborts in turns."""
        for n, name in enumerate(names):
            producer_id, epoch = producers[name]
            values = {
                "transactional_id": name,
                "producer_id": producer_id,
                "producer_epoch": epoch,
                "committed": n % 2 == 0,
            }
            self.link.send(26, 3, values)
        self.link.receive()
        self.hang_up()


def rows(answer):
    topics = answer["results_by_topic_v3_and_below"]
    return [row for topic in topics for row in topic["results_by_partition"]]


@pytest.fixture
def broker(tmp_path):
    settings = {"penstock.io.processes": "2", "penstock.net.processes": "1"}
    with Broker(tmp_path / "data", settings | {"transaction.state.log.num.partitions": "4"}) as one:
        yield one


def await_all(broker, count):
    end = time.monotonic() + LIMIT_S
    while len(broker.pids()) < count or not answers(broker.port):
        assert time.monotonic() < end, broker.output()[-2000:]
        time.sleep(0.01)


def outcomes(broker, topic, partition):
    """What the markers in a partition say, by producer id and epoch: at least one of each."""
    found = {}
    (segment,) = (broker.files / f"{topic}-{partition}").glob("*.log")
    data, at = segment.read_bytes(), 0
    while at < len(data):
        header = read_header(data, at)
        marker = markers.read(data[at : at + header.size])
        who = header.producer_id, header.producer_epoch
        assert found.setdefault(who, marker.committed) == marker.committed
        at += header.size
    return found


def test_every_partition_has_its_marker_whoever_dies(broker):
    """Each process, then all of them, is killed right behind the decisions. Afterwards every id can
    begin again, so that its transaction is complete, and all partitions say the same of each."""
    with Client(broker) as client:
        decide_and_kill(broker, client)


def decide_and_kill(broker, client):
    topic = broker.peer.create(PARTITIONS, {}, "marked")
    names = [f"id-{n}" for n in range(8)]
    client.find(names[0])
    children = broker.pids()[1:]
    producers = {name: client.init(name) for name in names}
    for number, victim in enumerate([*children, 0], 1):
        for name in names:
            client.add(name, producers[name], topic)
        client.send_ends(names, producers)
        if victim:
            os.kill(victim, signal.SIGKILL)
            await_all(broker, 1 + len(children))
        else:
            broker.kill()
            broker.start()
        producers = {name: client.init(name) for name in names}
        first = outcomes(broker, topic, 0)
        assert len(first) == number * len(names)
        for partition in range(1, PARTITIONS):
            assert outcomes(broker, topic, partition) == first
    assert {True, False} == set(first.values())
