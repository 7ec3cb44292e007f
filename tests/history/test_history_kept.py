"""A real appliance with real clients: what they did is known afterwards, whoever was killed."""

import os
import signal
import time

import pytest
from confluent_kafka import Consumer, Producer

from appliance.history.format import BYTES, FILE
from appliance.history.samples import ClientIdentity
from appliance.observer.door import Observer
from appliance.ring.process_table import CONTROL, Peer
from console.model.asking.failure import Failure
from console.model.local import history
from console.model.local.clients import connections
from console.model.local.history import MINUTES, SECONDS

LIMIT_S = 60
RECORDS, SIZE, READ = 600, 500, 250
LOADER = ClientIdentity("ANONYMOUS", "loader", "local")


def until(holds, about):
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"never: {about}")


def past(appliance):
    """The history, "" while there is none."""
    try:
        return history.read(str(appliance.data_dir))
    except Failure:
        return None


def written(appliance, topic="orders"):
    found = past(appliance)
    return 0 if found is None else sum(found.topic(topic, SECONDS).amounts("bytes_in"))


def samples(appliance):
    found = past(appliance)
    return () if found is None else found.whole(SECONDS).times


def write(appliance, count):
    producer = Producer({"bootstrap.servers": appliance.bootstrap, "client.id": "loader"})
    for n in range(count):
        producer.produce("orders", os.urandom(SIZE), partition=0, key=str(n))
    producer.flush()
    return producer


def read(appliance):
    """READ records are read and committed by a member that stays."""
    consumer = Consumer(
        {
            "bootstrap.servers": appliance.bootstrap, "group.id": "readers",
            "client.id": "reader", "auto.offset.reset": "earliest", "enable.auto.commit": False,
        }
    )  # fmt: skip
    consumer.subscribe(["orders"])
    taken = []
    while len(taken) < READ:
        taken += consumer.consume(READ - len(taken), 1.0)
    consumer.commit(message=taken[-1], asynchronous=False)
    return consumer


def test_what_clients_did_is_known_whoever_was_killed(fresh_appliance):
    appliance = fresh_appliance(num_partitions=1, offsets_topic_num_partitions=1)
    with pytest.raises(Failure, match="not available"):
        history.read(str(appliance.data_dir.parent))
    began = time.time()
    producer, consumer = write(appliance, RECORDS), read(appliance)
    until(lambda: written(appliance) >= RECORDS * SIZE, "what was written")

    found = past(appliance)
    told = found.topic("orders", SECONDS)
    assert sum(told.amounts("records_in")) == RECORDS
    assert RECORDS * SIZE <= sum(told.amounts("bytes_in")) < RECORDS * SIZE * 1.2
    assert max(told.rates("bytes_in").values) > 0
    assert all(began - 2 < at < time.time() + 2 for at in told.times)
    until(lambda: LOADER in past(appliance).clients().of, "the producer")
    until(
        lambda: sum(past(appliance).clients().of[LOADER].amounts("produced")) >= RECORDS * SIZE,
        "what it sent",
    )
    assert sum(past(appliance).apis(SECONDS)[0].amounts("requests")) > 0
    assert {one.kind for each in past(appliance).processes(SECONDS).values()
            for one in each.told} == {0, 1, 2}  # fmt: skip

    there = {one.client_id: one for one in connections(str(appliance.data_dir), 0)}
    assert {"loader", "reader"} <= there.keys()
    assert there["loader"].software == "confluent-kafka-python" and there["loader"].version
    assert (there["loader"].user, there["loader"].address) == ("ANONYMOUS", "127.0.0.1")

    observer = Observer(str(appliance.data_dir))
    until(lambda: ("readers", "orders") in observer.tables.lags.read()[0], "the group's lag")
    assert observer.tables.lags.read()[0]["readers", "orders"] == RECORDS - READ

    before = samples(appliance)
    os.kill(observer.tables.processes.pid(Peer(CONTROL, 0)), signal.SIGKILL)
    until(lambda: len(samples(appliance)) > len(before) + 1, "samples of the successor")
    assert samples(appliance)[: len(before)] == before

    del producer
    consumer.close()
    before = samples(appliance)
    appliance.kill()
    after = past(appliance)
    assert after.whole(SECONDS).times[: len(before)] == before
    assert sum(after.topic("orders", SECONDS).amounts("records_in")) == RECORDS
    after.close()

    appliance.start()
    write(appliance, 10)
    until(lambda: len(samples(appliance)) > len(before) + 1, "samples of the next appliance")
    until(lambda: sum(past(appliance).topic("orders", SECONDS).amounts("records_in")) > RECORDS,
          "what was written since")  # fmt: skip
    assert samples(appliance)[: len(before)] == before
    assert (appliance.data_dir / FILE).stat().st_size == BYTES
    lags = Observer(str(appliance.data_dir)).tables.lags
    until(lambda: ("readers", "orders") in lags.read()[0], "the group's lag, told again")
    appliance.stop()
    last = past(appliance)
    assert last.lags()["readers", "orders"].values[-1] >= RECORDS - READ
    assert last.topic("orders", MINUTES).amounts("bytes_in")
    last.close()
