"""Partitions that move between log folders under load, while processes are killed."""

import os
import signal
import time

import pytest
from kafka.admin import KafkaAdminClient
from load import LIMIT_S, Load

from tests.broker_process import KAFKA, Broker

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(KAFKA, reason="Kafka is one process with folders of its own"),
]
PARTITIONS = 3


@pytest.fixture
def folders(tmp_path):
    return [str(tmp_path / "data"), str(tmp_path / "more")]


def places(admin, topic):
    """Partition → folder; None while one is on its way."""
    (node,) = admin.describe_log_dirs([topic])
    found = {}
    for folder in node["log_dirs"]:
        for one in (p for t in folder["topics"] for p in t["partitions"]):
            index = one["partition_index"]
            found[index] = None if index in found or one["is_future_key"] else folder["log_dir"]
    return found


def move_all(broker, topic, path):
    """Ask until every partition lies there; whoever is asked may be dead just now."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        except Exception:  # it is being replaced
            time.sleep(0.05)
            continue
        try:
            admin.alter_replica_log_dirs({(topic, n, 1): path for n in range(PARTITIONS)})
            while time.monotonic() < end:
                found = places(admin, topic)
                if found == dict.fromkeys(range(PARTITIONS), path):
                    return
                time.sleep(0.02)
        except Exception:
            time.sleep(0.05)
        finally:
            admin.close()
    raise AssertionError(f"not all of {topic} came to {path}:\n{broker.output()[-3000:]}")


def test_nothing_is_lost_when_ioprocs_die_while_partitions_move(tmp_path, folders):
    settings = {"log.dirs": ",".join(folders), "log.segment.bytes": "1048576"}
    settings["penstock.io.processes"] = "2"
    with Broker(tmp_path / "data", settings) as broker:
        topic = broker.peer.create(PARTITIONS, {}, "moving")
        with Load(broker.bootstrap, topic, PARTITIONS, value_bytes=1000) as load:
            for turn in range(3):
                load.go_on()
                admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
                path = folders[(turn + 1) % 2]
                admin.alter_replica_log_dirs({(topic, n, 1): path for n in range(PARTITIONS)})
                admin.close()
                victims = broker.pids()[1:] if turn % 2 else broker.pids()[1:4]
                for pid in victims:
                    os.kill(pid, signal.SIGKILL)
                move_all(broker, topic, path)
            load.go_on()
            load.finish()
            load.check_content()
        assert "partition-moved" in broker.output()


def test_nothing_is_lost_when_everything_is_killed_in_the_middle_of_a_move(tmp_path, folders):
    settings = {"log.dirs": ",".join(folders), "log.segment.bytes": "1048576"}
    with Broker(tmp_path / "data", settings) as broker:
        topic = broker.peer.create(PARTITIONS, {}, "moving")
        with Load(broker.bootstrap, topic, PARTITIONS, value_bytes=1000) as load:
            for turn in range(2):
                load.go_on()
                admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
                path = folders[(turn + 1) % 2]
                admin.alter_replica_log_dirs({(topic, n, 1): path for n in range(PARTITIONS)})
                admin.close()
                broker.kill()
                broker.start()
                move_all(broker, topic, path)
            load.go_on()
            load.finish()
            load.check_content()
