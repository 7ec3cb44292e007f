"""Exceptions planted in parts of a running appliance: its processes stay the same, the partition
that one concerns is refused, and everybody else is served."""

import os

import pytest

from benchmarks import requests
from benchmarks.batches import batch
from tests.broker_process import KAFKA, Broker
from tests.compat.waiting import until

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(KAFKA, reason="plants in our parts")]
OFFLINE = {5, 6, 56}
"""Nobody leads it, or not this node, or its storage failed."""
PLANTED = """
from appliance.exporter.scrape import Exporter
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.replication.replicas import Replicas
from appliance.ioproc.log_folders.directory_reports import DirectoryReports

def fail(*args, **more):
    raise KeyError("planted")

whole = Replicas.leads

def leads(self, partition):
    if partition.topic == "planted":
        fail()
    return whole(self, partition)

Replicas.leads = leads
Housekeeping._checkpoint_watermarks = Housekeeping._checkpoint_recovery_points = fail
Housekeeping._begin_round = fail
DirectoryReports.tick = fail
Exporter.sample_all = fail
"""


def produced(peer, topic):
    """The error code, and whether the record is read again."""
    with peer.connect(1 << 20) as wire:
        wire.socket.settimeout(30)
        answer = wire.call(requests.produce(topic, 0, batch([b"value"], 1), -1, 1))
    at = 4 + 2 + len(topic) + 4 + 4
    return int.from_bytes(answer[at : at + 2], "big", signed=True)


def test_no_process_ends_and_one_partition_is_refused(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(PLANTED)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    settings = {
        "penstock.metrics.listener": "127.0.0.1:0",
        "replica.high.watermark.checkpoint.interval.ms": "100",
        "log.flush.offset.checkpoint.interval.ms": "100",
        "log.retention.check.interval.ms": "100",
    }
    with Broker(tmp_path / "data", settings) as broker:
        before = broker.pids()
        with broker.peer.connect(1 << 16) as wire:
            wire.call(requests.create_topic("planted", 1, {}))
        broker.peer.create(1, {}, "sound")
        until(lambda: produced(broker.peer, "planted") in OFFLINE)
        assert produced(broker.peer, "sound") == 0
        wheres = ("checkpoint of high watermarks", "checkpoint of recovery points",
                  "a round over partitions", "whereabouts", "a partition", "look")  # fmt: skip
        until(lambda: all(f'cause="{where}' in broker.output() for where in wheres))
        assert produced(broker.peer, "sound") == 0
        assert broker.pids() == before
        said = broker.output()
        assert "child-died" not in said and "child-killed" not in said
        assert said.count('cause="checkpoint of high watermarks: Traceback') == len(
            {line.split()[2] for line in said.splitlines() if "of high watermarks: Tr" in line}
        ), "with its traceback once for each process"
        broker.stop()  # its exit code says that a partition is offline
