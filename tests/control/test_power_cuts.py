"""The power fails at every change to the disk, from the first one of the format step on."""

import contextlib
from random import Random

import pytest

from appliance.config.broker import BrokerConfig
from appliance.control.folder.format import open_or_format
from appliance.control.quorum.metadata_log import open_log
from appliance.control.quorum.metadata_quorum import VotingSetup, open_quorum
from appliance.control.quorum.snapshots import SnapshotLimits
from appliance.controller.registration import bootstrap_records
from appliance.metadata.checkpoint import read
from appliance.metadata.follower import Follower
from appliance.metadata.identity import META_PROPERTIES
from appliance.ring.partition_table import PartitionTable
from appliance.wire import kraft_records as kraft
from tests.sim.disk import PowerCut, SimDisk

LIMITS = SnapshotLimits(snapshot_bytes=1024, snapshot_ms=0, segment_bytes=1024)
DATA = "/host/data"
ALONE = BrokerConfig.of({"node.id": "1"})


class Witness:
    """What somebody outside was told: it must be true for ever after."""

    def __init__(self) -> None:
        self.cluster_id = ""
        self.settings: dict[str, str] = {}
        self.led = 0


def run(disk: SimDisk, rng: Random, witness: Witness, changes: int) -> None:
    """One life of control: start, commit some changes, take snapshots on the way."""
    identity, _ = open_or_format(disk, DATA, ALONE, rng.randbytes, 1)
    if witness.cluster_id:
        assert identity.cluster_id == witness.cluster_id
    table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(16))), 16)
    log = open_log(disk, DATA, LIMITS.segment_bytes, 1)
    vote = VotingSetup(directory=identity.directory_id)
    quorum = open_quorum(disk, 1, log, Follower(disk, DATA, table), LIMITS, vote)
    found = quorum.image.config(4, "")
    for key, value in witness.settings.items():
        assert int(found[key]) >= int(value), "what was answered is lost"
    quorum.elected(1)
    assert quorum.leadership.epoch > witness.led, "an epoch was led twice"
    quorum.activate(1)
    if not quorum.image.metadata_version:
        assert not witness.settings
        quorum.append(bootstrap_records(), 1)
    quorum.sync()
    witness.led = quorum.leadership.epoch
    witness.cluster_id = identity.cluster_id
    for number in range(changes):
        key = f"key-{number % 3}"
        value = str(int(quorum.image.config(4, "").get(key, "0")) + 1)
        record = kraft.ConfigRecord(resource_type=4, resource_name="", name=key, value=value)
        quorum.append([record], 1)
        quorum.sync()
        witness.settings[key] = value
        if quorum.snapshot_due(1):
            quorum.snapshot(1)
    log.close()


def new_disk(rng: Random) -> SimDisk:
    """A data folder that somebody has just made: its own name is not durable yet."""
    disk = SimDisk(rng)
    disk.mkdir("/host")
    disk.sync_dir("/")
    disk.mkdir(DATA)
    disk.steps = 0
    return disk


def steps_of(changes: int) -> int:
    disk = new_disk(Random(0))
    run(disk, Random(0), Witness(), changes)
    return disk.steps


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_at_every_change_loses_nothing_that_was_answered(seed):
    total = steps_of(30)
    assert total > 100
    for cut in range(1, total + 1):
        rng = Random(seed * 100_003 + cut)
        disk = new_disk(rng)
        witness = Witness()
        disk.crash_at = cut
        with contextlib.suppress(PowerCut):
            run(disk, rng, witness, 30)
        disk.power_cut(rng)
        if not disk.exists(DATA):
            assert not witness.cluster_id, "the folder itself is lost"
            disk.mkdir(DATA)
        if disk.exists(f"{DATA}/{META_PROPERTIES}"):
            bootstrap = disk.open_file(f"{DATA}/bootstrap.checkpoint")
            assert read(bootstrap.pread(bootstrap.size(), 0)).values
        run(disk, rng, witness, 5)
        run(disk, rng, witness, 5)


def test_cuts_one_after_the_other():
    for seed in range(60):
        rng = Random(seed)
        disk = new_disk(rng)
        witness = Witness()
        for _ in range(6):
            disk.crash_at = disk.steps + rng.randint(1, 60)
            try:
                run(disk, rng, witness, 20)
            except PowerCut:
                disk.power_cut(rng)
            if not disk.exists(DATA):
                assert not witness.cluster_id
                disk.mkdir(DATA)
        disk.crash_at = -1
        run(disk, rng, witness, 3)
