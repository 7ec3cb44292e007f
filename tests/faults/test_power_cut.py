"""The power goes at any instant: what was acknowledged with acks=all is there, and it starts by
itself.

What counts is what was acknowledged before the cut: this machine lives on for some milliseconds
after it, and a sync that was under way may still be told that it succeeded.

On Apache Kafka this holds only with flush.messages=1, which these tests set for it.
"""

import contextlib
import os
import threading
import time

import confluent_kafka as ck
import pytest
from load import Load
from loop_disk import LoopDisk

from benchmarks.peer import WrongAnswer
from tests.broker_process import KAFKA, Broker

pytestmark = pytest.mark.timeout(300)
SETTINGS = {"log.flush.interval.messages": "1"} if KAFKA else {}


@pytest.fixture
def disk(tmp_path):
    with LoopDisk(tmp_path) as mounted:
        yield mounted


def first_start(broker):
    """Started on an empty disk. Kafka's format step does not sync, so that is done for it."""
    broker.start()
    if KAFKA:
        os.sync()


@pytest.fixture
def broker(disk, tmp_path):
    """Not started yet. Killed before the disk is taken away."""
    node = Broker(disk.mount / "data", SETTINGS)
    node.log = tmp_path / "broker.out"
    yield node
    if node.process is not None and node.process.poll() is None:
        node.kill()


def cut(disk, broker):
    disk.cut()
    broker.kill()
    disk.back()


def test_under_load(disk, broker):
    """Three cuts; each load goes on where the log of the last one ended."""
    first_start(broker)
    for turn in range(3):
        topic = broker.peer.create(4, {}, f"load-{turn}")
        with Load(broker.bootstrap, topic, 4) as load:
            load.go_on(2000 * (turn + 1))
            # A machine without power acknowledges nothing; this one lives on for some ms, in which
            # a sync that was under way may end as if it had succeeded.
            before_the_cut = dict(load.acknowledged)
            before = load.settled()
            disk.cut()
            broker.kill()
            load.give_up()
        disk.back()
        broker.start()
        load.acknowledged = before_the_cut
        load.check_content(before)


def test_no_consumer_saw_what_is_gone(disk, broker):
    """A consumer beside two producers, one of which does not wait for the disk: what it was given
    before the cut is there after it, and no other record has its place."""
    first_start(broker)
    for turn in range(4):
        topic = broker.peer.create(1, {}, f"seen-{turn}")
        with Load(broker.bootstrap, topic) as load, Careless(broker.bootstrap, topic):
            load.go_on(1500)
            seen = dict(load.consumed)
            disk.cut()
            broker.kill()
            load.give_up()
        disk.back()
        broker.start()
        found = load.everything()
        gone = [place for place in seen if found.get(place[:2]) != place[2]]
        assert not gone, f"{len(gone)} of {len(seen)} that were seen are gone: {gone[:3]}"


class Careless:
    """A producer with acks=1 beside a load, on a thread of its own."""

    def __init__(self, bootstrap, topic):
        self.topic = topic
        self.ending = threading.Event()
        self.producer = ck.Producer({
            "bootstrap.servers": bootstrap, "acks": "1", "linger.ms": 1, "log_level": 0,
            "queue.buffering.max.messages": 5000,
        })  # fmt: skip
        self.thread = threading.Thread(target=self._produce)

    def _produce(self):
        number = 0
        while not self.ending.is_set():
            try:
                self.producer.produce(self.topic, b"careless %d" % number, partition=0)
                number += 1
            except BufferError:
                pass
            self.producer.poll(0.001)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        self.producer.purge()
        self.producer.flush(1)


def test_after_topics_were_made(disk, broker):
    """A topic whose creation was answered exists, and its first record with it."""
    first_start(broker)
    for turn in range(3):
        names = [f"made-{turn}-{i}" for i in range(4)]
        for name in names:
            broker.peer.create(2, {"retention.ms": "123456789"}, name)
        cut(disk, broker)
        broker.start()
        for name in names:
            broker.peer.wait_served(name, 2, 30)


@pytest.mark.parametrize("seconds", [0.05, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0])
def test_in_the_first_second_after_the_first_start(disk, broker, seconds):
    """Formatted or not: the next start needs no help, and keeps what was acknowledged before."""
    if KAFKA:
        pytest.skip("Kafka's format step does not sync: its folder would not start again")
    broker.start(wait=False)
    end, kept = time.monotonic() + seconds, None
    while time.monotonic() < end:
        if kept is None:
            with contextlib.suppress(OSError, WrongAnswer):
                kept = broker.peer.create(1, {}, "early")
        else:
            time.sleep(0.005)  # the instant of the cut is the fault itself
    cut(disk, broker)
    broker.start()
    if kept is None:
        kept = broker.peer.create(1, {}, "early")
    with Load(broker.bootstrap, kept) as load:
        load.go_on()
        load.finish()
        load.check_errors()
        load.check_content()


def test_cut_while_it_starts_again(disk, broker):
    """Recovery is cut as well: whatever it had rewritten by then, nothing is lost."""
    if KAFKA:
        pytest.skip("a test of our recovery")
    broker.start()
    topic = broker.peer.create(4, {}, "load")
    with Load(broker.bootstrap, topic, 4) as load:
        load.go_on(5000)
        before = load.settled()
        disk.cut()
        broker.kill()
        load.give_up()
    disk.back()
    for seconds in (0.1, 0.2, 0.3, 0.45):
        broker.start(wait=False)
        time.sleep(seconds)  # the instant of the cut is the fault itself
        cut(disk, broker)
    broker.start()
    load.check_content(before)
