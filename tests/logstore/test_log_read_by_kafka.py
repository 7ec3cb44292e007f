"""Kafka's own dump-log reads our files and finds nothing wrong."""

import re
import subprocess
from random import Random

import pytest
from twin import TOPIC_ID, aborted, header_of, marker, small_batch, stage, transactional

from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from benchmarks import kafka

pytestmark = pytest.mark.skipif(bool(kafka.unavailable()), reason=kafka.unavailable() or "")


def dump(folder, *options: str) -> str:
    names = sorted(
        str(path) for path in folder.iterdir() if path.suffix[1:] in KINDS and path.stat().st_size
    )
    tool = (
        "java",
        "-Xmx256m",
        "-cp",
        f"{kafka.libs()}/*",
        "org.apache.kafka.tools.DumpLogSegments",
    )
    done = subprocess.run(
        [*tool, *options, "--files", ",".join(names)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


KINDS = ("log", "index", "timeindex", "txnindex", "snapshot")


@pytest.mark.parametrize("end", ["closed", "recovered", "cut"])
def test_dump_log_reads_what_we_wrote(tmp_path, end):
    rng = Random(1)
    folder = tmp_path / "t-0"
    config = LogConfig(segment_bytes=100_000, index_interval_bytes=1000)
    log = PartitionLog.create(OsDisk(), str(folder), TOPIC_ID, config, now_ms=1000)
    batches, sequence = [], 0
    for n in range(400):
        producer = (9, 0, sequence) if n % 2 else (-1, -1, -1)
        batch = small_batch(rng, 1_700_000_000_000 + n, producer)
        sequence += header_of(bytes(batch)).record_count if n % 2 else 0
        batches.append(stage(log, batch, 1 if n < 200 else 2, 0))
        log.commit()
    if end == "cut":  # into a segment that was full, and goes on there
        at = 1 + next(n for n, b in enumerate(batches) if header_of(b)[0] >= log.segments[1].base)
        log.truncate_to(header_of(batches[at])[0], 0)
        for old in batches[at:]:
            header = header_of(old)
            batch = small_batch(rng, 1_700_000_000_000, (header[9], header[10], header[11]))
            if header[9] >= 0:
                batch = bytearray(old)
            batches[at] = stage(log, batch, 3, 0)
            log.commit()
            at += 1
    if end == "recovered":
        with open(log.active.path, "ab") as file:
            file.write(bytes(100))
        log = PartitionLog.open_folder(
            OsDisk(),
            str(folder),
            config,
            recovery_point=0,
            log_start_offset=0,
            clean=False,
            machine_lived=False,
            now_ms=0,
        )
    log.close()
    assert len(log.segments) > 2

    deep = dump(folder, "--deep-iteration", "--index-sanity-check")
    records = sum(header_of(batch).record_count for batch in batches)
    assert len(re.findall(r"^\| offset", deep, re.M)) == records
    assert deep.count("passed sanity check") == 2 * len(log.segments)
    assert "isvalid: false" not in deep
    assert f"lastSequence: {sequence - 1}" in deep

    plain = dump(folder)  # this one compares each index entry with the log
    for complaint in ("Mismatches", "Index timestamp", "out of order", "Found timestamp"):
        assert complaint not in plain, plain
    assert plain.count("isvalid: true") == len(batches)


def test_dump_log_reads_transactions(tmp_path):
    """Two producers whose transactions cross, over several segments; one of them ends open."""
    rng, folder = Random(1), tmp_path / "t-0"
    log = PartitionLog.create(
        OsDisk(), str(folder), TOPIC_ID, LogConfig(segment_bytes=3000), now_ms=1000
    )
    sequences = {9: 0, 10: 0}
    for turn in range(9):
        for producer in sequences:
            batch = transactional(small_batch(rng, 7, (producer, 0, sequences[producer])))
            sequences[producer] += header_of(bytes(batch)).record_count
            stage(log, batch, 1, 0)
            if turn % 3 == producer % 2 and turn < 8:
                end = marker(producer, 0, committed=turn == 3, coordinator_epoch=4)
                stage(log, end, 1, 0)
            log.commit()
    assert len(log.segments) > 2
    wanted, open_ = aborted(log), log.producers.open
    assert len(wanted) > 3
    assert len(open_) == 2
    log.close()

    text = dump(folder, "--deep-iteration")
    entry = r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)"
    assert [tuple(map(int, one)) for one in re.findall(entry, text)] == wanted
    assert text.count("endTxnMarker: ABORT coordinatorEpoch: 4") == len(wanted)
    assert text.count("endTxnMarker: COMMIT coordinatorEpoch: 4") == 1
    newest = text[text.rindex(".snapshot") :]
    for producer, first in open_.items():
        known = (
            rf"producerId: {producer} .*coordinatorEpoch: 4 .*currentTxnFirstOffset: \D*{first}\D"
        )
        assert re.search(known, newest)
