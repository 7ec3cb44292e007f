"""rskafka, a client in Rust without groups: what it writes with each codec, it reads back."""

import subprocess

import pytest
from installs import rust_program
from records import LIMIT_S

DEPENDENCIES = """
rskafka = { version = "=0.6.0", default-features = false, features = [
    "compression-gzip", "compression-lz4", "compression-snappy"] }
tokio = { version = "1", features = ["rt", "macros"] }
chrono = { version = "0.4", default-features = false }
""".replace("features = [\n    ", "features = [")


@pytest.mark.timeout(900)
def test_every_codec_comes_back(broker, records, fresh_name):
    program, topic = rust_program("rskafka_trip", DEPENDENCIES), fresh_name("rskafka")
    done = subprocess.run(
        [program, broker.bootstrap, topic], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == [f"produced [{offset}]" for offset in range(4)]
    assert lines[4:6] == ["range 2 4", "high 4"], "two are deleted"
    assert lines[6:] == [f"read {n} k{n} 800 {n} {1_700_000_000_000 + n}" for n in (2, 3)]
    assert records.ends(topic) == {0: 0, 1: 4}
