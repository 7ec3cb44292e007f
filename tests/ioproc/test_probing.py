"""A partition that fails casts doubt on its log folder: a small file tells."""

import errno

import pytest
from core_world import HeldThreads, World

from appliance.base.errors import DiskFull, StorageFailed
from appliance.ioproc.log_folders.folder_probe import AGAIN_MS, FolderProbe
from appliance.replication.role import PartitionRole

SHARED = PartitionRole(leads=True, leader=1, replicas=(2, 3), isr=(2, 3))


class Said:
    def __init__(self):
        self.events = []

    def event(self, level, name, **fields):
        self.events.append((name, fields["folder"]))


class Story:
    def __init__(self, path):
        self.world = World(path)
        self.threads, self.said = HeldThreads(), Said()
        self.metadata_say_so = False
        self.told = []
        self.folder = str(path)
        self.probing = FolderProbe(
            self.world.disk, [self.folder], 0, self.threads, lambda number: self.metadata_say_so,
            self.told.append, self.said,
        )  # fmt: skip
        self.world.core._observers += (self.probing,)
        self.now_ms = 0

    def fails(self, role=SHARED):
        partition = self.world.add(role=role)
        self.world.core.fail(partition, StorageFailed("t-0", errno.EIO, "broken"))

    def tick(self, ms=0):
        self.now_ms += ms
        self.probing.tick(self.now_ms)
        self.threads.run_all()
        self.probing.tick(self.now_ms)
        told, self.told[:] = list(self.told), []
        return told


@pytest.fixture
def story(tmp_path):
    return Story(tmp_path)


class Refusing:
    """A disk that takes no new file."""

    def __init__(self, disk, failure):
        self._disk, self._failure = disk, failure

    def __getattr__(self, name):
        if name == "create":
            raise self._failure("a file", errno.EIO, "broken")
        return getattr(self._disk, name)


def test_one_bad_file_is_no_bad_folder(story, tmp_path):
    story.fails()
    assert story.tick() == story.tick(AGAIN_MS) == []
    assert story.said.events == []
    assert [path.name for path in tmp_path.iterdir()] == ["t-0"], "the probe is gone"


def test_a_folder_that_takes_no_file_is_told_until_the_metadata_say_so(story):
    story.fails()
    story.probing._disk = Refusing(story.world.disk, StorageFailed)
    assert story.tick() == [0]
    assert story.tick() == []
    assert story.tick(AGAIN_MS) == [0]
    story.metadata_say_so = True
    assert story.tick(AGAIN_MS) == []
    assert story.said.events == [("log-dir-failed", story.folder)]


def test_a_full_folder_has_not_failed(story):
    story.fails()
    story.probing._disk = Refusing(story.world.disk, DiskFull)
    assert story.tick() == []


def test_nothing_is_asked_where_nobody_else_has_a_replica(story):
    story.fails(role=PartitionRole(leads=True))
    story.probing.tick(0)
    assert story.threads.outstanding() == 0


def test_it_is_asked_and_told_without_waiting_for_the_clock(story):
    story.world.served.stirred = False
    story.fails()
    assert story.world.served.stirred and story.probing.busy
    story.tick()
    assert not story.probing.busy
