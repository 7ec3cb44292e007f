"""A read of the metadata log that fails is tried again: nothing of what changed is lost."""

import errno
import os

import pytest
from test_control_shell import Appliance, create, new

from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.metadata.changes import TopicAdded
from appliance.metadata.follower import A_SLICE, Follower
from appliance.shell import read_retries
from appliance.shell.read_retries import LIMIT_NS, ReadRetries
from tests.seats import log_file


class Failing:
    """A disk on which opening fails while `left` is 0; it counts down."""

    def __init__(self):
        self.disk, self.left = OsDisk(), -1

    def __getattr__(self, name):
        return getattr(self.disk, name)

    def open_file(self, *args, **more):
        if self.left == 0:
            raise StorageFailed(args[0], errno.EMFILE, "Too many open files")
        self.left -= 1
        return self.disk.open_file(*args, **more)


@pytest.fixture
def appliance(tmp_path):
    one = Appliance(tmp_path)
    yield one
    one.close()


@pytest.mark.parametrize("topics", [1, A_SLICE + 20])
@pytest.mark.parametrize("opens", [0, 1, 2])
def test_what_was_replayed_before_a_read_failed_is_said_by_the_next(appliance, topics, opens):
    disk = Failing()
    follower = Follower(disk, appliance.path, appliance.memory.partitions)
    create(appliance, new("first"))
    follower.catch_up(appliance.table.metadata_offset)
    for number in range(topics):
        create(appliance, new(f"t{number}"))
        if appliance.memory.partitions.rows - number < 10:
            break
    committed = appliance.table.metadata_offset
    changes, failed = [], 0
    disk.left = opens
    for _ in range(1000):
        try:
            found = follower.replay_slice(committed)
        except StorageFailed:
            failed += 1
            disk.left = 1 << 30
            continue
        changes += found or []
        if follower.applied == committed:
            break
    assert follower.image == appliance.followed().image
    assert follower.handles == appliance.followed().handles
    names = [one.name for one in changes if isinstance(one, TopicAdded)]
    assert len(names) == len(set(names)) == len(follower.image.topics_by_name) - 1
    assert failed or opens


def test_a_snapshot_that_cannot_be_read_leaves_the_image(appliance):
    disk = Failing()
    follower = Follower(disk, appliance.path, appliance.memory.partitions)
    create(appliance, new("a"))
    follower.catch_up(appliance.table.metadata_offset)
    before, disk.left = follower.image, 0
    with pytest.raises(StorageFailed):
        follower._jump(appliance.table.metadata_offset, lambda: None)
    assert follower.image is before


def test_a_read_that_fails_for_long_is_given_up(tmp_path, monkeypatch):
    fd, log = log_file(tmp_path, "netproc")
    now = [1]
    monkeypatch.setattr(read_retries, "monotonic_ns", lambda: now[0])
    retries, failure, tries = ReadRetries(log), StorageFailed("log", errno.EIO, "no"), []

    def fails(committed):
        tries.append(committed)
        raise failure

    assert retries.attempt(fails, 7) is None
    assert retries.attempt(fails, 7) is None
    assert tries == [7], "it rests behind a failure"
    now[0] += LIMIT_NS // 2
    assert retries.attempt(fails, 8) is None
    assert tries == [7, 8]
    now[0] += LIMIT_NS // 4
    assert retries.attempt(lambda committed: [], 8) == []
    assert retries.attempt(fails, 9) is None
    assert tries == [7, 8, 9], "a success ends the rest"
    now[0] += LIMIT_NS
    with pytest.raises(StorageFailed):
        retries.attempt(fails, 9)
    text = (tmp_path / "log").read_text()
    assert text.count("metadata-not-read") == 2 and text.count("metadata-read ") <= 2
    os.close(fd)
