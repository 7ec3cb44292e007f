"""Kafka's own dump-log reads the records of transactional ids."""

import json
import subprocess

import pytest
from transaction_world import World

from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.wire import own_batch
from appliance.wire.batch_header import read_header
from benchmarks import kafka

pytestmark = pytest.mark.skipif(bool(kafka.unavailable()), reason=kafka.unavailable() or "")


def test_dump_log_reads_every_state(tmp_path):
    world = World()
    producer = world.init()
    world.add(producer, 2, 0, version=5)
    producer = world.end(producer, version=5)
    world.mark()
    world.end(producer, commit=False, version=5)
    world.jump(32_766)
    world.add((1000, 32_766), 1, version=5)
    world.end((1000, 32_766), version=5)
    world.mark()
    world.tick(world.settings.expiration_ms)
    folder = tmp_path / "__transaction_state-0"
    log = PartitionLog.create(OsDisk(), str(folder), bytes(16), LogConfig(compact=True), now_ms=0)
    for record in world.log:
        batch = own_batch.build([record], 1000)
        log.stage(memoryview(batch), read_header(batch), 0, 0)
    log.commit()
    log.close()
    tool = (
        "java",
        "-Xmx256m",
        "-cp",
        f"{kafka.libs()}/*",
        "org.apache.kafka.tools.DumpLogSegments",
    )
    done = subprocess.run(
        [*tool, "--transaction-log-decoder", "--files", str(folder / f"{0:020d}.log")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "payload: " in line]
    assert all('key: {"type":"0","data":{"transactionalId":"x"}}' in line for line in lines)
    payloads = [line.split("payload: ")[1] for line in lines]
    assert payloads.pop() == "<DELETE>"
    told = [json.loads(payload)["data"] for payload in payloads]
    assert [one["transactionStatus"] for one in told] == [0, 1, 2, 4, 3, 5, 5, 1, 2, 4]
    assert told[2]["transactionPartitions"] == [{"topic": "t", "partitionIds": [0, 2]}]
    assert (told[8]["producerId"], told[8]["producerEpoch"]) == (1000, 32_767)
    assert told[8]["nextProducerId"] == told[9]["producerId"] == 1001
    assert told[9]["previousProducerId"] == 1000
    assert {one.get("clientTransactionVersion", 0) for one in told} == {0, 2}
