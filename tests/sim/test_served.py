"""One I/O process under clients, whatever ends its lives; and the same with a bug planted, which
must be found."""

import pytest
from sim.disk import SimDisk, SimFile
from sim.seeds import first_broken
from sim.served.home import DATA, Home
from sim.served.story import play

from appliance.config.log_config import LogConfig
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from tests.seeds import plays


@plays(100)
def test_what_was_promised_holds_whatever_ends_a_life(some):
    for seed in some:
        play(seed)


# Bugs that must be found --------------------------------------------------------------------------


class LyingFile(SimFile):
    """Says that it is on the disk and is not."""

    def sync(self):
        if self._disk.lies_about == "sync" and self.path.endswith(".log"):
            self._disk.change(self.path, "sync")
        else:
            super().sync()

    def pwrite_medium(self, data, position):
        if self._disk.lies_about == "journal":
            self.pwritev([data], position)
        else:
            super().pwrite_medium(data, position)


class LyingDisk(SimDisk):
    lies_about = "sync"

    def create(self, path):
        made = super().create(path)
        return LyingFile(self, path, made._inode, write=True)

    def open_file(self, path, *, write=False):
        found = super().open_file(path, write=write)
        return LyingFile(self, path, found._inode, write=write)


class LiesAboutJournals(LyingDisk):
    lies_about = "journal"


class PageCacheCounts(Home):
    """acks=all, and what is visible, wait for no sync."""

    settings = LogConfig(
        segment_bytes=3000, index_interval_bytes=300, retention_ms=-1, flush_policy="os"
    )


class ForgetsProducers(Home):
    """A start knows nothing of what was written last."""

    def made(self, partition):
        partition.log.producers.producers.clear()
        return partition


class ForgetsJournals(Home):
    """A start does not go on with what they hold."""

    def left_journals(self):
        return JournalRecovery(self.disk, [DATA], clean=True)


@pytest.mark.parametrize(
    "planted",
    [
        {"disk": LyingDisk},
        {"disk": LiesAboutJournals},
        {"home": PageCacheCounts},
        {"home": ForgetsProducers},
        {"home": ForgetsJournals},
    ],
    ids=lambda planted: next(iter(planted.values())).__name__,
)
def test_a_planted_bug_is_found(planted):
    assert first_broken(lambda seed: play(seed, **planted), 40), "no seed shows it"
