"""A sync that fails: what the kernel may have dropped is never believed again, neither by the log
that saw it fail nor by one that is opened after it, until it was written once more."""

from errno import EIO, ENOSPC
from random import Random

import pytest
from sim.disk import SimDisk
from twin import TOPIC_ID, aborted, marker, small_batch, stage, stored, told_of, transactional

from appliance.base.errors import DiskFull, StorageFailed
from appliance.config.log_config import LogConfig
from appliance.logstore import fast_sync
from appliance.logstore.files import PARTITION_METADATA
from appliance.logstore.log import PartitionLog
from appliance.logstore.partition_metadata import read_topic_id
from appliance.wire.batch import read_header
from tests.seeds import each_seed

CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=600, retention_ms=-1)
PATH = "/t-0"


class Life:
    """A log over many openings. checkpoint: the recovery point that is known from outside.
    transactions: how many there were, each of a producer of its own."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.disk = SimDisk(self.rng)
        self.checkpoint = 0
        self.sent: list[bytes] = []
        self.transactions = 0
        self.log = PartitionLog.create(self.disk, PATH, TOPIC_ID, CONFIG, now_ms=0)

    def append(self, batches: int) -> None:
        for _ in range(batches):
            self.write(small_batch(self.rng, self.rng.randint(0, 10_000)))

    def transaction(self, *, committed: bool) -> None:
        self.transactions += 1
        producer = self.transactions, 0, 0
        self.write(transactional(small_batch(self.rng, 0, producer)))
        self.write(marker(*producer[:2], committed=committed))

    def write(self, batch: bytearray) -> None:
        batch[0:8] = self.log.end_offset.to_bytes(8, "big")
        sent = bytearray(batch)
        sent[12:16] = bytes(4)
        batch[0:8] = bytes(8)
        stage(self.log, batch, 0, 0)
        self.log.commit()
        self.sent.append(bytes(sent))

    def open(self, *, machine_lived: bool, clean: bool = False) -> None:
        self.log = PartitionLog.open_folder(
            self.disk,
            PATH,
            CONFIG,
            recovery_point=self.checkpoint,
            log_start_offset=0,
            clean=clean,
            machine_lived=machine_lived,
            now_ms=0,
        )
        found = stored(self.log)
        assert found == self.sent[: len(found)]
        assert aborted(self.log) == told_of(found)[1], "or readers get what was aborted"
        self.sent = found

    def open_somehow(self, safe: int, *, machine_lived: bool) -> bool:
        """False: a sync failed again. A log that no sync ever covered may be gone whole."""
        try:
            if safe or (self.disk.exists(PATH) and self.disk.listdir(PATH)):
                self.open(machine_lived=machine_lived)
            else:
                self.sent = []
                self.log = PartitionLog.create(self.disk, PATH, TOPIC_ID, CONFIG, now_ms=0)
        except StorageFailed as failure:
            if failure.errno != EIO:
                raise
            return False
        return True

    def ends(self, power: bool) -> None:
        if power:
            self.disk.power_cut(self.rng)
        else:
            self.disk.process_death()


@pytest.mark.parametrize("machine_lived", [False, True])
@each_seed(40)
def test_a_successor_believes_nothing_that_it_did_not_write_itself(seed, machine_lived):
    """A sync fails, the process dies, its successor takes over, the power goes."""
    life = Life(seed)
    life.append(10)
    life.log.sync_now()
    life.checkpoint = safe = life.log.recovery_point
    life.append(life.rng.choice([1, 30, 200]))
    life.disk.refusing["", "sync"] = 5
    with pytest.raises(StorageFailed):
        life.log.sync_now()
    with pytest.raises(StorageFailed):
        life.log.sync_now()
    life.disk.refusing.clear()
    life.ends(power=False)
    life.open(machine_lived=machine_lived)
    assert life.log.end_offset >= safe
    assert life.log.recovery_point == life.log.end_offset, "what is opened is on the disk"
    life.append(3)  # the retries of what was not acknowledged
    life.log.sync_now()
    safe = life.log.recovery_point
    life.ends(power=True)
    life.open(machine_lived=False)
    assert life.log.end_offset >= safe


@pytest.mark.parametrize("clean", [False, True])
@each_seed(40)
def test_a_log_whose_first_sync_failed_is_still_that_of_its_topic(seed, clean):
    """Nothing had been written yet, and the kernel drops the file that names the topic: without it
    the folder would count as a stray."""
    life = Life(seed)
    life.disk.refusing[PARTITION_METADATA, "sync"] = EIO
    with pytest.raises(StorageFailed):
        life.log.sync_now()
    life.disk.refusing.clear()
    if clean:
        life.log.close()
    else:
        life.ends(power=False)
    if read_topic_id(life.disk, PATH) != TOPIC_ID:
        return  # dropped before the opening: a folder without records, which is made again
    life.open(machine_lived=True, clean=clean)
    life.append(3)
    life.log.sync_now()
    for _ in range(20):
        life.ends(power=False)
    assert read_topic_id(life.disk, PATH) == TOPIC_ID


def test_what_memory_still_holds_is_not_given_up():
    """Nothing was evicted: records that no sync ever covered live on, and last from then on."""
    life = Life(1)
    life.append(50)
    life.disk.refusing["", "sync"] = 5
    with pytest.raises(StorageFailed):
        life.log.sync_now()
    life.disk.refusing.clear()
    end = life.log.end_offset
    life.open(machine_lived=True)
    assert life.log.end_offset == end
    life.ends(power=True)
    life.open(machine_lived=False)
    assert life.log.end_offset == end


def test_a_log_stays_shut_until_an_opening_could_write_it():
    life = Life(2)
    life.append(50)
    life.disk.refusing["", "sync"] = 5
    with pytest.raises(StorageFailed):
        life.log.sync_now()
    for _ in range(3):
        with pytest.raises(StorageFailed):
            life.open(machine_lived=True)
    life.disk.refusing.clear()
    life.open(machine_lived=True)
    assert life.log.end_offset == read_header(life.sent[-1]).last_offset + 1
    life.log.close()
    assert not life.disk.root.names["t-0"].names["00000000000000000000.log"].lost


@pytest.mark.parametrize("seed", range(10))
def test_what_was_aborted_is_known_for_as_long_as_its_marker_is_there(seed):
    """The sync of the transaction index fails alone; who opens the log next finds all of it in
    memory, and the power goes."""
    life = Life(seed)
    life.append(1)
    life.log.sync_now()
    life.checkpoint = life.log.recovery_point
    life.transaction(committed=False)
    life.disk.refusing[".txnindex", "sync"] = 5
    with pytest.raises(StorageFailed):
        life.log.sync_now()
    life.disk.refusing.clear()
    life.open(machine_lived=True)
    assert not life.disk.would_change(f"{PATH}/{0:020d}.txnindex")
    life.checkpoint = life.log.recovery_point
    life.ends(power=True)
    life.open(machine_lived=False)


def power_takes_the_marker(life):
    """Its entry was faster."""
    life.transaction(committed=False)
    file = life.disk.open_file(f"{PATH}/{0:020d}.txnindex")
    file.sync()
    file.close()
    life.disk.sync_dir(PATH)
    life.ends(power=True)
    life.open(machine_lived=False)


def lacks_room(life):
    """For the marker; its entry found some, and is on the disk."""
    life.write(transactional(small_batch(life.rng, 0, (7, 0, 0))))
    life.disk.refusing[".log", "write"] = ENOSPC
    stage(life.log, marker(7, 0, committed=False), 0, 0)
    with pytest.raises(DiskFull):
        life.log.commit()
    life.log.sync_now()


def the_marker_is_taken_back(life):
    lacks_room(life)
    life.log.take_back(0)
    life.disk.refusing.clear()


def the_marker_is_forgotten_at_the_end(life):
    lacks_room(life)
    life.log.close()
    life.disk.refusing.clear()
    life.checkpoint = life.log.recovery_point
    life.open(machine_lived=False, clean=True)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "forgets",
    [power_takes_the_marker, the_marker_is_taken_back, the_marker_is_forgotten_at_the_end],
)
def test_an_entry_without_its_marker_never_comes_back(forgets, seed):
    """Where the marker was to lie is something else after that."""
    life = Life(seed)
    life.append(1)
    life.log.sync_now()
    life.checkpoint = life.log.recovery_point
    forgets(life)
    life.append(5)
    life.log.sync_now()
    life.checkpoint = life.log.recovery_point
    life.ends(power=True)
    life.open(machine_lived=False)


@each_seed(60)
def test_random_lives_on_a_disk_whose_syncs_fail(seed):
    """Everything below a recovery point is there after anything that may happen."""
    life = Life(seed)
    rng = life.rng
    for _ in range(12):
        life.disk.failing = rng.choice([0, 0.1, 0.5])
        safe = life.log.recovery_point
        try:
            for _ in range(rng.randint(0, 30)):
                if rng.random() < 0.3:
                    life.log.sync_now()
                    safe = life.log.recovery_point
                elif rng.random() < 0.2:
                    life.transaction(committed=rng.random() < 0.5)
                else:
                    life.append(rng.randint(1, 8))
                if rng.random() < 0.2:
                    life.checkpoint = life.log.recovery_point
            if rng.random() < 0.2:
                life.log.close()
                safe = life.log.recovery_point
        except StorageFailed:
            assert life.log.failure is not None
        for failing in (life.disk.failing, 0.2, 0.0):
            life.disk.failing = failing
            power = rng.random() < 0.4
            life.ends(power)
            if life.open_somehow(safe, machine_lived=not power):
                break
        assert life.log.end_offset >= safe
        assert life.log.failure is None
        assert life.log.recovery_point == life.log.end_offset
        life.checkpoint = rng.choice([life.checkpoint, life.log.recovery_point])


def test_a_lone_end_that_was_synced_outlives_the_power():
    life = Life(3)
    life.append(1)
    assert not fast_sync.is_all(life.log), "its files are new: so are their names"
    life.log.sync_now()
    life.append(5)
    assert fast_sync.is_all(life.log)
    fast_sync.sync(life.log)
    end = life.log.recovery_point
    assert end == life.log.end_offset
    life.append(5)
    life.ends(power=True)
    life.open(machine_lived=False)
    assert life.log.end_offset >= end


def test_a_lone_end_whose_sync_fails_is_not_called_durable():
    life = Life(4)
    life.append(1)
    life.log.sync_now()
    safe = life.log.recovery_point
    life.append(5)
    life.disk.refusing["", "sync"] = 5
    with pytest.raises(StorageFailed):
        fast_sync.sync(life.log)
    assert life.log.recovery_point == safe
