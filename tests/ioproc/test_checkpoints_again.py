"""A checkpoint that could not be written is written the next time, though nothing moved since."""

import errno

import pytest
from made_up_leader import MadeUp, Poller
from pulling_world import SMALL, Follower, level, some, write

from appliance.base.errors import DiskFull
from appliance.base.os_disk import OsDisk
from appliance.ioproc.durability import checkpoints


@pytest.fixture
def follower(tmp_path, rng):
    leader = MadeUp(Poller())
    led = leader.add("t", **SMALL)
    one = Follower(tmp_path, leader, disk=OsDisk())
    partition = one.add(led)
    for batch in some(rng, 5):
        write(led.log, batch, epoch=0)
    one.until(level(led, partition))
    yield one
    one.pulling.close()
    partition.log.close()
    led.log.close()
    leader.close()


@pytest.fixture
def rng():
    import random

    return random.Random(3)


def test_what_a_full_disk_refused_is_written_when_there_is_room(follower, tmp_path, monkeypatch):
    (partition,) = follower.core.partitions.values()
    with monkeypatch.context() as full:

        def refuse(disk, path, name, offsets):
            raise DiskFull(f"{path}/{name}", errno.ENOSPC, "planted")

        full.setattr(checkpoints, "merge", refuse)
        follower.checkpoint()
    assert [line["cause"] for line in follower.said.of("chore-failed")]
    follower.checkpoint()
    place = {("t", 0): partition.log.recovery_point}
    assert partition.log.recovery_point > 0
    assert checkpoints.read(OsDisk(), str(tmp_path), checkpoints.RECOVERY_POINT) == place
    marks = {("t", 0): partition.high_watermark}
    assert checkpoints.read(OsDisk(), str(tmp_path), checkpoints.HIGH_WATERMARK) == marks
