"""Files of the cache by the real process and a real store: what comes is whole and checked, and one
that dies is replaced."""

import os
import select
import signal

import pytest

from appliance.ioproc.remote.link import RemoteLink
from appliance.ioproc.remote.store_files import StoreFiles
from appliance.remotelog.objects import LOG, OFFSET_INDEX, RemoteObjects
from console.model.backup.store import opened
from tests.bucket_server import serving
from tests.ioproc.tiered import TieredWorld
from tests.sim.disk import SimDisk

FAST = 1e12


@pytest.fixture(params=["folder", "bucket"])
def url(request, tmp_path, monkeypatch):
    if request.param == "folder":
        yield f"file://{tmp_path}/remote"
        return
    with serving(monkeypatch) as where:
        yield where


@pytest.fixture
def one(url):
    """A segment of ten batches that lies in the store."""
    world = TieredWorld("", disk=SimDisk())
    partition = world.add("t", segment_bytes=1 << 20, index_interval_bytes=1)
    for number in range(10):
        world.write(partition, b"%d" % number * 20)
    partition.log.roll(0)
    world.tier(partition, 1)
    [found] = world.segments[partition].finished()
    store = opened(url.removeprefix("file://"))
    for name, data in world.store.kept.items():
        store.write_object(name, [data])
    RemoteObjects(store).fetch_range(found, 0, 1)
    return found


class Fetcher:
    def __init__(self, url, folder):
        self.link = RemoteLink(url, 1, 2)
        self.files = StoreFiles(self.link, lambda: FAST)
        self.folder = folder
        folder.mkdir()

    def fetch(self, number, one, kind, span):
        self.files.fetch_file(number, one, kind, span, str(self.folder / f"{number}.log"))
        return self.wait()

    def wait(self):
        bell = select.poll()
        bell.register(self.link.fd, select.POLLIN)
        found = []
        while not found:
            assert bell.poll(60_000), "no answer came"
            self.link.hush()
            found = self.files.take_arrivals()
        return found[0]


@pytest.fixture
def fetcher(url, tmp_path):
    made = Fetcher(url, tmp_path / "cache")
    yield made
    made.link.close()


def names(fetcher):
    return sorted(one.name for one in fetcher.folder.iterdir())


def test_files_come_whole_and_checked(one, fetcher):
    size = one.segment_size_in_bytes
    chunk = fetcher.fetch(2, one, LOG, (0, size // 10 * 4))
    assert (chunk.number, chunk.size, chunk.end_offset, chunk.failure) == (2, size // 10 * 4, 4, "")
    index = fetcher.fetch(3, one, OFFSET_INDEX, (0, 0))
    assert (index.failure, index.end_offset) == ("", -1)
    torn = fetcher.fetch(4, one, LOG, (0, size // 10 * 4 + 1))
    assert "cut off" in torn.failure and not torn.lost
    assert names(fetcher) == ["2.log", "3.log"]
    fetcher.files.remove_file(str(fetcher.folder / "2.log"))
    assert fetcher.fetch(5, one, OFFSET_INDEX, (0, 0)).failure == ""
    assert fetcher.fetch(6, one, OFFSET_INDEX, (0, 0)).failure == ""
    assert "2.log" not in names(fetcher)


def test_a_process_that_is_killed_is_told_as_lost_and_replaced(one, fetcher):
    size = one.segment_size_in_bytes
    assert fetcher.fetch(2, one, LOG, (0, size)).failure == ""
    os.kill(fetcher.link._process.pid, signal.SIGSTOP)
    fetcher.files.fetch_file(3, one, LOG, (0, size), str(fetcher.folder / "3.log"))
    os.kill(fetcher.link._process.pid, signal.SIGKILL)
    arrival = fetcher.wait()
    if arrival.failure:  # it may have been asked before it died, or the next one at once
        assert arrival.lost
        assert fetcher.fetch(4, one, LOG, (0, size)).failure == ""
