"""The hot modules compile, and what is compiled serves a client: the door that setup.py offers."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks import kafka

ROOT = Path(__file__).parents[2]
HEADERS = Path(sysconfig.get_path("include")) / "Python.h"
WHERE = "import appliance.netproc.server as server; print(server.__file__)"


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.skipif(not HEADERS.exists(), reason="Python's headers are not installed")
@pytest.mark.timeout(600)
def test_a_compiled_appliance_serves(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    shutil.copytree(ROOT / "appliance", tree / "appliance", ignore=shutil.ignore_patterns("*.so"))
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(ROOT / name, tree)
    environment = {**os.environ, "PENSTOCK_COMPILE": "1", "PYTHONPATH": str(tree)}
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    where = subprocess.check_output([sys.executable, "-c", WHERE], cwd=tree, env=environment)
    assert where.strip().endswith(b".so")

    port = kafka.free_port()
    up = [sys.executable, "-m", "appliance.cli", "up", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(
        [*up, "--listen", f"127.0.0.1:{port}"], cwd=tree, env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        read = _round_trip(f"127.0.0.1:{port}")
    finally:
        process.terminate()
        ended = process.wait(30)
    assert read == [str(n).encode() for n in range(1000)]
    assert ended == 0


def _round_trip(bootstrap):
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for n in range(1000):
        producer.produce("compiled", str(n).encode(), partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "compiled"})
    consumer.assign([TopicPartition("compiled", 0, 0)])
    read = []
    while len(read) < 1000:
        found = consumer.consume(1000, 30)
        assert found, f"only {len(read)} records came back"
        read += [message.value() for message in found]
    consumer.close()
    return read
