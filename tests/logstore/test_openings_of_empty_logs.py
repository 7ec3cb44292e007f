"""A node with thousands of partitions that nobody wrote to opens them in seconds: an opening writes
nothing for a log without records, and asks the disk little."""

from collections import Counter

import pytest
from sim.disk import SimDisk
from twin import TOPIC_ID

from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog

PATH = "/t-0"
MOST_CALLS = 11


class CountingDisk:
    """A disk, and how often each of its calls was made."""

    def __init__(self) -> None:
        self.disk = SimDisk()
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name):
        call = getattr(self.disk, name)

        def counted(*given, **named):
            self.calls[name] += 1
            return call(*given, **named)

        return counted

    def files(self) -> dict[str, bytes]:
        nodes = self.disk.root.names["t-0"].names
        return {name: bytes(node.data) for name, node in nodes.items()}


@pytest.mark.parametrize("clean", [True, False])
def test_an_opening_writes_nothing_for_a_log_without_records(clean):
    disk = CountingDisk()
    log = PartitionLog.create(disk, PATH, TOPIC_ID, LogConfig(), now_ms=0)
    for _ in range(2):
        if clean:
            log.close()
        else:
            log.let_go()
        before = disk.files()
        disk.calls.clear()
        log = PartitionLog.open_folder(
            disk, PATH, log.config, recovery_point=0, log_start_offset=0, clean=clean,
            machine_lived=True, now_ms=0,
        )  # fmt: skip
        assert disk.files() == before
        assert disk.calls.keys().isdisjoint({"create", "rename", "unlink", "sync_dir"})
        assert disk.calls.total() <= MOST_CALLS, disk.calls
    log.close()
    assert disk.disk.open_files == 0
