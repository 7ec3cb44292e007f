"""Kafka's own dump-log reads the records of remote segments."""

import pytest
from test_remote_segments import FINISHED, MARKED, STARTED

from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.remotelog.records import encode_record
from appliance.wire import own_batch
from appliance.wire.batch_header import read_header
from benchmarks import kafka
from tests.java_tools import tool

pytestmark = pytest.mark.skipif(bool(kafka.unavailable()), reason=kafka.unavailable() or "")


def test_dump_log_reads_every_record(tmp_path):
    folder = tmp_path / "__remote_log_metadata-0"
    log = PartitionLog.create(OsDisk(), str(folder), bytes(16), LogConfig(), now_ms=0)
    for value in (STARTED, FINISHED, MARKED):
        batch = own_batch.build([(b"", encode_record(value))], 1000)
        log.stage(memoryview(batch), read_header(batch), 0, 0)
    log.commit()
    log.close()
    done = tool(
        "org.apache.kafka.tools.DumpLogSegments",
        "--remote-log-metadata-decoder",
        "--files",
        str(folder / f"{0:020d}.log"),
    )
    assert done.returncode == 0, done.stderr
    started, finished, marked = [
        line.split("payload: ")[1] for line in done.stdout.splitlines() if "payload: " in line
    ]
    assert "orders-3" in started and "startOffset=100, endOffset=199" in started
    assert "{0=100, 4=150}" in started and "state=COPY_SEGMENT_STARTED" in started
    assert "state=COPY_SEGMENT_FINISHED" in finished
    assert "state=DELETE_PARTITION_MARKED" in marked
