"""A consumer of hundreds of partitions, from its connection to its home and back, and what crosses
the rings for it."""

import dataclasses
import random
import time
from collections import Counter

import pytest

from appliance.ring.messages import CANCEL, FOUND, NAMES, NEWS, READ, WATCH
from appliance.ring.process_table import IOPROC, Peer
from appliance.wire.records import NewRecord, build_batch
from tests.netproc.netproc_world import LAYOUT, World

COUNT = 300
TEN = 10
LIMIT_S = 60
LOOK_S = 0.0005
BATCH = build_batch([NewRecord(1, None, b"v" * 100)])
ROW = {
    "current_leader_epoch": -1, "log_start_offset": -1, "partition_max_bytes": 500_000,
    "last_fetched_epoch": -1,
}  # fmt: skip


class Counting(World):
    """crossed: by operation, what went through the rings between network and I/O process."""

    def __init__(self, path):
        layout = dataclasses.replace(LAYOUT, partition_rows=2048)
        super().__init__(path, {"num.partitions": str(COUNT)}, layout=layout)
        self.crossed = Counter()
        self.io_process()
        self.ends = [0] * COUNT

    def step(self):
        self.network_step()
        self.io_step()

    def network_step(self):
        self.sockets()
        self.now_ns += 1_000_000
        for peer, arrived in self.links.poll():
            self.crossed.update(NAMES[one.op] for one in arrived)
            self.server.handle(peer, arrived)
        self.server.run_once(self.now_ns)
        self.control_turn()

    def io_step(self):
        for peer, arrived in self.io.poll():
            self.crossed.update(NAMES[one.op] for one in arrived)
            self.shell.handle(peer, arrived)
        self.shell.run_once(self.now_ns)

    def until(self, done):
        give_up = time.monotonic() + LIMIT_S
        while time.monotonic() < give_up:  # a sync runs on a thread
            if (found := done()) is not None:
                return found
            self.step()
            time.sleep(LOOK_S)
        raise AssertionError("it does not come")

    def answer(self, client):
        return self.until(client.answer)[1]

    def produce(self, *partitions):
        client = self.client("producer")
        self.append(client, *partitions, acks=-1)
        (topic,) = self.answer(client).responses
        assert not any(int(row.error_code) for row in topic.partition_responses)

    def append(self, client, *partitions, acks):
        """Send it, no more."""
        rows = [{"index": one, "records": BATCH} for one in partitions]
        data = [{"name": "flights", "partition_data": rows}]
        client.send(0, 9, transactional_id=None, acks=acks, timeout=1 << 30, topic_data=data)
        for one in partitions:
            self.ends[one] += 1


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    one = Counting(tmp_path_factory.mktemp("many"))
    yield one
    one.close()


class Consumer:
    """In a session of the first `count` partitions, at the end of each."""

    def __init__(self, world, count):
        self.world, self.client, self.epoch = world, world.client(), 0
        self.at = world.ends[:count]
        self.session = 0
        self.ask(*range(count), max_wait=0)
        self.session = world.answer(self.client).session_id

    def ask(self, *partitions, max_wait=1 << 30, isolation=0):
        """max_wait: by the test's clock nearly for ever."""
        rows = [{"partition": one, "fetch_offset": self.at[one], **ROW} for one in partitions]
        self.client.send(
            1, 12, replica_id=-1, max_wait=max_wait, min_bytes=1, max_bytes=1 << 20,
            isolation_level=isolation, session_id=self.session, session_epoch=self.epoch,
            topics=[{"topic": "flights", "partitions": rows}] if rows else [],
            forgotten_topics_data=[], rack_id="",
        )  # fmt: skip
        self.epoch += 1

    def waits(self, *partitions):
        self.ask(*partitions)
        for _ in range(3):
            self.world.step()
            assert self.client.answer() is None

    def records(self):
        """The partitions of which it got some."""
        return self.take(self.world.answer(self.client))

    def take(self, answer):
        assert not int(answer.error_code)
        rows = [row for topic in answer.responses for row in topic.partitions]
        assert not any(int(row.error_code) for row in rows)
        took = sorted(row.partition_index for row in rows if row.records)
        for row in rows:
            if row.records:
                assert row.high_watermark > self.at[row.partition_index]
                self.at[row.partition_index] = row.high_watermark
        return took


def counted(world):
    """What crossed for the fetch since the last look."""
    found = {one: world.crossed[NAMES[one]] for one in (READ, WATCH, CANCEL, FOUND, NEWS)}
    world.crossed.clear()
    return {NAMES[one]: number for one, number in found.items() if number}


@pytest.mark.parametrize("count", [TEN, 100, COUNT])
def test_what_a_fetch_that_waits_costs(world, count):
    """Answered by the first record, and followed by another one."""
    consumer = Consumer(world, count)
    counted(world)
    consumer.waits()
    few = count == TEN
    assert counted(world) == ({"READ": TEN} if few else {"WATCH": 1})
    world.produce(7)
    assert consumer.records() == [7]
    told = {"FOUND": 1, "CANCEL": 1} if few else {"NEWS": 1, "READ": 1, "FOUND": 1}
    assert counted(world) == told
    consumer.waits(7)
    assert counted(world) == ({"READ": TEN} if few else {"WATCH": 1})
    world.produce(7)
    assert consumer.records() == [7]
    told = {"FOUND": 1, "CANCEL": 1} if few else {"NEWS": 1}
    assert counted(world) == told, "it goes on where its connection was"
    consumer.client.close()
    world.until(lambda: None if world.server.exchanges.living else True)
    world.step()


def test_partitions_that_grow_in_one_turn(world):
    consumer = Consumer(world, COUNT)
    consumer.waits()
    counted(world)
    grown = range(100, 200)
    world.produce(*grown)
    got = consumer.records()
    assert counted(world)["NEWS"] == 1
    while consumer.at != world.ends:
        consumer.ask(*got)
        got = consumer.records()


@pytest.mark.interpreted("lets the home go on within a method of the host")
@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_missed_whoever_is_faster(world, seed, isolation, monkeypatch):
    """Appends between any two turns of the two processes, before any sync or behind it, and after
    a fetch has looked: each is told without another one, and without the time that the fetch would
    wait."""
    chance = random.Random(f"{seed} {isolation}")
    begin = world.server.host.watch_rows

    def watch(*given):
        if chance.random() < 0.5:
            world.io_step()
        begin(*given)

    monkeypatch.setattr(world.server.host, "watch_rows", watch)
    consumer, producer = Consumer(world, 100), world.client("producer")
    consumer.ask(isolation=isolation)

    def take():
        answer = consumer.client.answer()
        if answer is not None:
            consumer.ask(*consumer.take(answer[1]), isolation=isolation)
        return None

    steps = [world.network_step, world.io_step, take]
    for _ in range(20):
        for _ in range(chance.choice((1, 2, 4))):
            grown = chance.sample(range(100), chance.choice((1, 1, 2, 30)))
            world.append(producer, *grown, acks=chance.choice((1, -1)))
            for _ in range(chance.randrange(8)):
                chance.choice(steps)()
        world.until(lambda: take() or (True if consumer.at == world.ends[:100] else None))
    consumer.client.close()


def test_a_home_that_died_is_told_anew_where_replicas_are(world):
    before = world.server.host.routing
    world.server.peers_changed([Peer(IOPROC, 7)])
    assert world.server.host.routing != before, "sessions look and tell again"


def test_who_hangs_up_is_watched_for_no_more(world):
    consumer = Consumer(world, COUNT)
    consumer.waits()
    watches = world.shell.core.served.watches
    before = len(watches)
    assert before
    consumer.client.close()
    world.until(lambda: True if len(watches) < before else None)
