"""Kafka's dump-log tool reads the files on disk: segments, indexes, the metadata log."""

import re
from pathlib import Path

import pytest
from test_confluent_kafka import send

from benchmarks import kafka

DUMP = "org.apache.kafka.tools.DumpLogSegments"
pytestmark = [
    pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable())),
    pytest.mark.timeout(300),
]


def dump(*arguments, files):
    names = ",".join(str(path) for path in files)
    done = kafka.tool(DUMP, *arguments, "--files", names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exception" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture
def written(broker, bootstrap, topic):
    """A partition's folder with batches of every codec, from an idempotent producer."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        messages = [{"key": b"k%d" % i, "value": codec.encode() * 50} for i in range(500)]
        settings = {"compression.type": codec, "enable.idempotence": True, "batch.num.messages": 50}
        send(bootstrap, topic, messages, **settings)
    return broker.files / f"{topic}-0"


def test_segment(written):
    said = dump("--print-data-log", "--deep-iteration", files=[written / f"{0:020}.log"])
    offsets = [int(text) for text in re.findall(r"^\| offset: (\d+)", said, re.M)]
    assert offsets == list(range(2500))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f"compresscodec: {codec}" in said
    assert "isvalid: false" not in said
    assert said.count(" payload: zstdzstd") == 500


def test_indexes(written):
    """The tool checks every entry against the log and says so when one is wrong."""
    said = dump(files=[written / f"{0:020}.index"])
    assert re.search(r"^offset: \d+ position: \d+", said, re.M)
    assert "Mismatches" not in said
    assert "Non-consecutive" not in said
    said = dump(files=[written / f"{0:020}.timeindex"])
    assert "Found timestamp mismatch" not in said
    assert "Found out of order" not in said


def test_metadata_log(broker, topic):
    folder = next(broker.data.rglob("__cluster_metadata-0"))
    log = sorted(folder.glob("*.log"))[0]
    said = dump("--cluster-metadata-decoder", files=[log])
    for kind in ("TOPIC_RECORD", "PARTITION_RECORD", "FEATURE_LEVEL_RECORD"):
        assert f'"type":"{kind}"' in said or kind in _bootstrap(folder), kind
    assert f'"name":"{topic}"' in said
    assert "isvalid: false" not in said


def _bootstrap(folder: Path) -> str:
    """What a snapshot or the bootstrap file says, for records that are not in the log itself."""
    files = [*folder.glob("*.checkpoint"), *folder.parent.glob("bootstrap.checkpoint")]
    return dump("--cluster-metadata-decoder", files=files) if files else ""
