"""`penstock metadata repair` and `log dump` on a metadata log with one wrong byte."""

import json
import subprocess

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.console_process import started, typing


def penstock(*args, code=0):
    return typing("")(*map(str, args), code=code)


@pytest.fixture
def data(tmp_path):
    """A data folder with a topic of one record, after an orderly end; its topic's batch damaged."""
    from penstock.local import Appliance

    with Appliance(tmp_path / "data") as one:
        admin = AdminClient({"bootstrap.servers": one.bootstrap})
        admin.create_topics([NewTopic("kept", 2, 1)])["kept"].result(30)
        producer = confluent_kafka.Producer({"bootstrap.servers": one.bootstrap})
        producer.produce("kept", b"v", partition=1)
        producer.flush(30)
    log = one.data_dir / "__cluster_metadata-0" / f"{0:020d}.log"
    raw = bytearray(log.read_bytes())
    raw[raw.index(b"kept")] ^= 1
    log.write_bytes(raw)
    return one.data_dir


def test_a_damaged_metadata_log_is_dumped_up_to_the_damage_and_beyond_no_traceback(data):
    log = data / "__cluster_metadata-0" / f"{0:020d}.log"
    told = penstock("log", "dump", log, code=4)
    assert "wrong CRC32C" in told.stderr
    assert "FeatureLevelRecord" in told.stdout


def test_repair_says_what_it_would_do_does_it_and_the_records_are_there(data):
    words = ("up", "--data", str(data), "--listen", "127.0.0.1:0")
    with started("", *words, stderr=subprocess.PIPE, text=True) as up:
        _, refused = up.communicate(timeout=60)
    assert up.returncode == 1 and "metadata repair" in refused
    told = penstock("metadata", "repair", data, "--dry-run", "-o", "json", code=4)
    [row] = json.loads(told.stdout)
    assert row["from_folders"] == ["kept"] and row["lost"] == 1
    assert "topic kept (2 partitions) is recovered from its folders" in told.stderr
    assert "needs --yes" in penstock("metadata", "repair", data, code=2).stderr
    penstock("metadata", "repair", data, "--yes")
    [row] = json.loads(penstock("metadata", "repair", data, "-o", "json").stdout)
    assert row["result"] == "sound"
    from penstock.local import Appliance

    with Appliance(data) as one:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": one.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.assign([confluent_kafka.TopicPartition("kept", 1, 0)])
        assert consumer.poll(30).value() == b"v"
        consumer.close()
        in_use = penstock("metadata", "repair", data, "--dry-run", code=1)
        assert "in use" in in_use.stderr
