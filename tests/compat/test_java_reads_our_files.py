"""Kafka's dump-log tool reads the files on disk: segments, indexes, the metadata log."""

import os
import re

import kafka as python_client
import pytest

from benchmarks import kafka
from tests import java_tools
from tests.broker_process import Broker

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
DUMP = "org.apache.kafka.tools.DumpLogSegments"
pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.skipif("PENSTOCK_TEST_BOOTSTRAP" in os.environ, reason="not our broker's files"),
    pytest.mark.timeout(300),
]


def dump(*arguments, files):
    names = ",".join(str(path) for path in files)
    done = java_tools.tool(DUMP, *arguments, "--files", names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exception" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A broker that has ended in order, so that its derived files are written too. It had batches
    of
    every codec, most of them from idempotent producers, in the topic `written`."""
    with Broker(tmp_path_factory.mktemp("files") / "data") as broker:
        broker.peer.create(1, {}, "written")
        for codec in CODECS:
            producer = python_client.KafkaProducer(
                bootstrap_servers=broker.bootstrap, compression_type=codec, batch_size=4000
            )
            name = str(codec).encode()
            futures = [producer.send("written", name * 50, key=b"k%d" % i) for i in range(500)]
            assert [future.get(30) for future in futures]
            producer.close()
        broker.stop()
        yield broker


@pytest.fixture
def written(stopped):
    return stopped.files / "written-0"


def test_segment(written):
    said = dump("--print-data-log", "--deep-iteration", files=[written / f"{0:020}.log"])
    offsets = [int(text) for text in re.findall(r"^\| offset: (\d+)", said, re.M)]
    assert offsets == list(range(2500))
    for codec in CODECS:
        assert f"compresscodec: {str(codec).lower()}" in said
    assert "isvalid: false" not in said
    assert said.count(" payload: zstdzstd") == 500


def test_indexes(written):
    """The tool checks every entry against the log and says so when one is wrong."""
    said = dump(files=[written / f"{0:020}.index"])
    assert re.search(r"^offset: \d+ position: \d+", said, re.M)
    assert "Mismatches" not in said
    assert "Non-consecutive" not in said
    said = dump(files=[written / f"{0:020}.timeindex"])
    assert re.search(r"^timestamp: \d+ offset: \d+", said, re.M)
    assert "Found timestamp mismatch" not in said
    assert "Found out of order" not in said


def test_producer_snapshot(written):
    said = dump(files=[sorted(written.glob("*.snapshot"))[-1]])
    assert len(set(re.findall(r"producerId: (\d+)", said))) == len(CODECS)


def test_metadata_log(stopped):
    folder = next(stopped.data.rglob("__cluster_metadata-0"))
    said = dump("--cluster-metadata-decoder", files=[sorted(folder.glob("*.log"))[0]])
    assert '"name":"written"' in said
    assert "isvalid: false" not in said
    said += _bootstrap(folder)
    for kind in ("TOPIC_RECORD", "PARTITION_RECORD", "FEATURE_LEVEL_RECORD"):
        assert f'"type":"{kind}"' in said, kind


def _bootstrap(folder):
    """What a snapshot or the bootstrap file says, for records that are not in the log itself."""
    files = [*folder.glob("*.checkpoint"), *folder.parent.glob("bootstrap.checkpoint")]
    return dump("--cluster-metadata-decoder", files=files) if files else ""
