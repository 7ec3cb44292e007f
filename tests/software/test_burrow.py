"""Burrow, LinkedIn's monitor of lags, in the version of Debian: it asks as clients of Kafka 0.9 do.
What it does not read of a group, it does not read of one of Apache Kafka 4, either."""

import json
import subprocess
import urllib.request
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, TopicPartition
from installs import debian_package
from no_zookeeper import NoZookeeper

from benchmarks.kafka import free_port
from tests.broker_process import KAFKA, Broker
from tests.compat.waiting import until
from tests.software.records import Records

pytestmark = pytest.mark.skipif(KAFKA, reason="Apache Kafka 4 no longer serves what it asks")
COUNT = 50
SETTINGS = """
[general]
pidfile = "{folder}/burrow.pid"
[zookeeper]
servers = ["127.0.0.1:{zookeeper}"]
[client-profile.all]
kafka-version = "2.0.0"
[cluster.local]
class-name = "kafka"
servers = ["{bootstrap}"]
client-profile = "all"
topic-refresh = 1
offset-refresh = 1
[consumer.local]
class-name = "kafka"
cluster = "local"
servers = ["{bootstrap}"]
client-profile = "all"
[httpserver.default]
address = "127.0.0.1:{port}"
"""


@pytest.mark.timeout(400)
def test_burrow_knows_topics_and_reads_every_commit(tmp_path):
    program = debian_package("burrow") / "usr" / "bin" / "Burrow"
    port = free_port()

    def told(path):
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return json.load(answer)
        return {}

    settings = {"penstock.legacy.protocol": "true", "offsets.topic.num.partitions": "2"}
    with Broker(tmp_path / "data", settings) as broker, NoZookeeper() as zookeeper:
        records = Records(broker.bootstrap)
        records.create("numbers")
        records.write("numbers", range(COUNT))
        group = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
        group.commit(offsets=[TopicPartition("numbers", 0, 3)], asynchronous=False)
        group.close()
        text = SETTINGS.format(
            folder=tmp_path, zookeeper=zookeeper.port, bootstrap=broker.bootstrap, port=port
        )
        (tmp_path / "burrow.toml").write_text(text)
        with (
            (tmp_path / "said").open("wb") as said,
            subprocess.Popen([program, "--config-dir", tmp_path], stdout=said, stderr=said) as one,
        ):
            try:
                ends = list(records.ends("numbers").values())
                until(lambda: told("/v3/kafka/local/topic/numbers").get("offsets") == ends)
                until(lambda: b'"failed to decode"' in (tmp_path / "said").read_bytes())
            finally:
                one.terminate()
    lines = (tmp_path / "said").read_text().splitlines()
    (commit,) = (json.loads(line) for line in lines if '"group":"readers"' in line)
    assert (commit["reason"], commit["topic"], commit["partition"]) == (
        "value version", "numbers", 0,
    )  # fmt: skip
