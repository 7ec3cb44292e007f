"""Control batches of a leader that has gone mad, with sums that are right: whatever they say, a
follower's log takes them or refuses them with a code, and says the same after a start."""

import random

import pytest
from sim.disk import SimDisk
from twin import TOPIC_ID, marker, small_batch, transactional, with_producer

from appliance.base.crc import crc32c
from appliance.base.errors import PeerError
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.wire import markers, own_batch
from appliance.wire.batch import read_header
from tests.seeds import each_seed

NOW_MS = 1_700_000_000_000
PATH = "/t-0"
LAST_ID, LAST_EPOCH = (1 << 63) - 1, (1 << 15) - 1
IDS = (0, 1, 2, 3, -1, -2, -(1 << 63), LAST_ID)
EPOCHS = (0, 0, 1, 2, -1, -(1 << 15), LAST_EPOCH)


def summed(batch):
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    return batch


def strange(rng):
    """A control batch that ends something, or says anything."""
    who = rng.choice(IDS), rng.choice(EPOCHS)
    key = rng.choice(
        (b"\0\0\0\0", b"\0\0\0\1", b"\0\0\0\5", b"\xff\xff\x7f\xff", b"", rng.randbytes(3))
    )
    value = rng.choice((b"\0\0" + rng.randbytes(4), b"\0\0\x7f\xff\xff\xff", b"", b"\0", None))
    batch = own_batch.build([(key, value)] * rng.choice((1, 1, 1, 2)), NOW_MS, who, control=True)
    for _ in range(rng.choice((0, 0, 1, 3))):
        at = rng.randrange(21, len(batch))
        batch[at] = rng.randrange(256)
    return summed(batch)


def next_batch(rng):
    kind = rng.randrange(4)
    if kind == 0:
        return strange(rng)
    if kind == 1:
        committed = rng.random() < 0.5
        return marker(rng.randrange(4), rng.randrange(3), committed=committed)
    made = small_batch(rng, NOW_MS)
    producer = rng.choice(IDS[:4]), rng.randrange(3), rng.choice((0, 5, (1 << 31) - 1))
    made = with_producer(made, *producer)
    return transactional(made) if kind == 2 else made


def said(log):
    """What the log knows of producers."""
    states = log.producers
    known = {
        number: (one.epoch, one.next_sequence, list(one.batches), one.coordinator_epoch)
        for number, one in states.producers.items()
    }
    return known, dict(states.open)


@each_seed(3000)
def test_whatever_a_marker_says_the_log_says_the_same_after_a_start(seed):
    rng = random.Random(seed)
    disk = SimDisk(random.Random(seed))
    config = LogConfig(segment_bytes=3000, index_interval_bytes=300)
    log = PartitionLog.create(disk, PATH, TOPIC_ID, config, now_ms=NOW_MS)
    taken = 0
    for _ in range(rng.randrange(5, 60)):
        batch = next_batch(rng)
        batch[:8] = log.end_offset.to_bytes(8, "big")
        batch[12:16] = rng.choice((0, 0, 0, 1)).to_bytes(4, "big")
        end = log.end_offset
        try:
            size = log.follow(memoryview(batch), NOW_MS, 1)
            log.commit()
        except PeerError:
            assert log.end_offset == end, "what is refused is not there"
        else:
            taken += bool(size)
            assert not size or log.end_offset > end
        if rng.random() < 0.05:
            log.sync_now()
        assert all(first <= log.end_offset for first in log.producers.open.values())
    before, end = said(log), log.end_offset
    clean = rng.random() < 0.5
    point = log.recovery_point
    log.sync_now()
    if clean:
        point = log.recovery_point
    log.close()
    log = PartitionLog.open_folder(
        disk, PATH, config, recovery_point=point, log_start_offset=0, clean=clean,
        machine_lived=rng.random() < 0.5, now_ms=NOW_MS,
    )  # fmt: skip
    assert log.end_offset == end
    assert said(log) == before, "live as after a start"
    assert taken
    log.close()


@each_seed(3000)
def test_bytes_of_a_marker_are_read_or_are_none(seed):
    rng = random.Random(seed)
    for _ in range(50):
        batch = strange(rng)
        found = markers.read(batch)
        assert found is None or isinstance(found.committed, bool)
        assert found is None or -(1 << 31) <= found.coordinator_epoch < 1 << 31


@pytest.mark.parametrize("size", range(61, 70))
def test_a_marker_cut_short_is_none(size):
    batch = marker(1, 0, committed=True)[:size]
    batch[8:12] = (size - 12).to_bytes(4, "big")
    assert markers.read(summed(batch)) is None and read_header(batch).is_control
