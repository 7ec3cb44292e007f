"""A replica that is not what was written: others lead while they have everything, and its log is
fetched anew."""

import errno
import types
from dataclasses import replace
from random import Random

import pytest
from core_world import NOW_MS, batch
from test_home import Cluster, synced
from test_home_replicas import registered, replicated

from appliance.base import errors
from appliance.base.errors import StorageFailed
from appliance.config.log_config import LogConfig
from appliance.ioproc.lifecycle.replica_rebuild import MARK
from appliance.ioproc.replica_fetcher.fetched_records import FetchedRecords
from appliance.metadata.log_dirs import LOST
from appliance.ring import messages
from appliance.ring import partition_table as columns
from appliance.wire.batch_header import HEADER_SIZE, MAGIC_AT, read_header
from tests.seeds import each_seed

FOLDER = b"f" * 16
SMALL = LogConfig(segment_bytes=400, index_interval_bytes=1, flush_policy="os")


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    for life in cluster.lives:
        life.end()


def led(cluster, count=12, value=b"v" * 40, **says):
    """A life that leads what all three have, in several segments, and its partition."""
    registered(cluster)
    replicated(cluster, **says)
    life = cluster.live()
    partition = life.world.core.partitions[0]
    partition.set_rules(SMALL)
    for _ in range(count):
        life.world.append(0, batch(value), acks=1)
        (answer,) = life.world.turn()
        assert answer.flags == errors.NONE
    synced(life)
    for replica in partition.role.replicas:
        partition.progress.replica_at(replica, count, 0)
    life.world.core.publish(partition)
    life.world.turn()
    return life, partition


def says(cluster, life, where=None, **rest):
    """The metadata, from now on. where: the folder of our replica."""
    change = replicated(cluster, **rest)
    if where is not None:
        found = cluster.image.topics_by_name["t"].partitions
        others = (FOLDER, FOLDER)
        found[0] = found[0]._replace(directories=(where, *others))
    life.home.apply([change])


def logs(folder):
    """Name → bytes of the segments in the partition's folder, and of those beside it."""
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.log"))
    }


def flip(cluster, offset, at=MAGIC_AT, bit=0):
    """One bit of the batch of this offset, so many bytes behind its begin."""
    folder = cluster.folder / "t-0"
    path = max(one for one in folder.glob("*.log") if int(one.stem) <= offset)
    data, begins = path.read_bytes(), 0
    while (head := read_header(data, begins)).base_offset < offset:
        begins += head.size
    with path.open("r+b") as file:
        file.seek(begins + at)
        file.write(bytes((data[begins + at] ^ 1 << bit,)))


def read(life, offset, max_bytes=1, **rest):
    life.world.read(0, offset, token=5, max_bytes=max_bytes, wait=False, **rest)
    (answer,) = life.world.turn()
    return answer


def removes(life):
    """What is to be removed is."""
    for _ in range(3):
        life.keeping.tick(1 << 62, NOW_MS + 1)


def status(life):
    return life.world.table.read_column(0, columns.STATUS)


def test_a_leader_gives_up_what_others_have(cluster):
    life, partition = led(cluster)
    flip(cluster, 3)
    assert read(life, 2).flags == errors.NONE
    assert read(life, 3).flags == errors.KAFKA_STORAGE_ERROR
    assert status(life) == columns.OFFLINE
    assert ("closed", "t-0") in life.world.observers, "who tells the controller hears of it"
    assert read(life, 2).flags == errors.KAFKA_STORAGE_ERROR
    life.world.append(0, batch(b"more"), acks=-1, token=6)
    assert [m.flags for m in life.world.turn()] == [errors.KAFKA_STORAGE_ERROR]
    assert len(life.world.failures) == 1, "said once"
    assert partition.broken is not None


@pytest.mark.parametrize(
    ("isr", "least", "stays"),
    [
        ((1,), 1, True),
        ((1, 2), 2, True),  # one left, and two are to be
        ((1, 2), 1, False),
        ((1, 2, 3), 3, False),  # it will be whole again, for all that is known
    ],
)
def test_a_leader_without_others_in_sync_serves_what_is_good(cluster, isr, least, stays):
    life, partition = led(cluster, isr=isr)
    partition.set_rules(replace(SMALL, min_insync_replicas=least))
    flip(cluster, 3)
    assert read(life, 3).flags == errors.KAFKA_STORAGE_ERROR
    assert (status(life) == columns.ONLINE) is stays
    assert (read(life, 5).flags == errors.NONE) is stays


def test_a_bad_sector_is_no_other_bit(cluster, monkeypatch):
    """What cannot be read may be readable the next time."""
    life, _ = led(cluster)
    (cluster.folder / "t-0" / f"{0:020d}.log").unlink()
    flags = messages.READ_GONE
    life.world.ask(messages.READ, 0, 5, 0, e=1, f=1, flags=flags)
    assert [m.flags for m in life.world.turn()] == [errors.KAFKA_STORAGE_ERROR]
    assert status(life) == columns.ONLINE


def test_who_waits_there_is_told_once(cluster):
    """A read that waits is looked at when the high watermark rises."""
    life, partition = led(cluster)
    for token in (7, 8):
        life.world.read(0, 3, token=token, max_bytes=1, enough=1 << 20)
        assert life.world.turn() == []
    flip(cluster, 3)
    life.world.append(0, batch(b"more"), acks=1, token=9)
    life.world.turn()
    for replica in (2, 3):
        partition.progress.replica_at(replica, 13, 0)
    partition.raise_visible()
    life.world.core.publish(partition)
    told = [(m.token, m.flags) for m in life.world.turn() + life.world.turn()]
    assert sorted(told) == [(7, errors.KAFKA_STORAGE_ERROR), (8, errors.KAFKA_STORAGE_ERROR)]
    assert ("closed", "t-0") in life.world.observers


def test_a_follower_that_serves_consumers_is_no_copy_either(cluster):
    life, _ = led(cluster)
    says(cluster, life, leader=2, epoch=5, partition_epoch=8)
    flip(cluster, 3)
    flags = messages.ANY_REPLICA
    life.world.ask(messages.READ, 0, 5, 3, e=1, f=1, flags=flags)
    assert [m.flags for m in life.world.turn()] == [errors.KAFKA_STORAGE_ERROR]
    assert status(life) == columns.OFFLINE


def fetch(life, offset, replica=2, wait=0, visible=0):
    flags = messages.READ_REPLICA | (messages.READ_WAIT if wait else 0)
    epoch = life.world.cluster.broker_epoch(replica)
    head = (messages.READ, flags, 0, 5, offset, 4, -1, 0, epoch, replica, visible, 0)
    message = messages.Message(*head, 1 << 20, wait or 1)
    life.world.arrivals.handle(life.world.core.askers[0], [message], NOW_MS)
    return [answer.flags for answer in life.world.turn()]


def test_a_follower_that_comes_again_is_believed_if_it_is_right(cluster):
    """It looks at checksums, and asks for the same again when they are wrong."""
    life, _ = led(cluster)
    flip(cluster, 1, at=HEADER_SIZE + 5)  # of a record
    for offset in (0, 4, 4, 4, 0):
        assert fetch(life, offset) == [errors.NONE], "it may have its own reasons"
    assert status(life) == columns.ONLINE
    assert fetch(life, 0) == [errors.KAFKA_STORAGE_ERROR]
    assert status(life) == columns.OFFLINE


def test_a_follower_is_believed_where_one_alone_is_left(cluster):
    """It comes into sync as soon as another one leads, and never before."""
    life, partition = led(cluster, isr=(1, 3))
    partition.set_rules(replace(SMALL, min_insync_replicas=2))
    flip(cluster, 1, at=HEADER_SIZE + 5)
    assert fetch(life, 0) == [errors.NONE]
    assert fetch(life, 0) == [errors.KAFKA_STORAGE_ERROR]
    assert status(life) == columns.OFFLINE


def test_nobody_is_in_sync_beside_a_leader_that_is_not_believed(cluster):
    """It goes on as before."""
    life, _ = led(cluster, isr=(1,))
    flip(cluster, 1, at=HEADER_SIZE + 5)
    for _ in range(4):
        assert fetch(life, 0) == [errors.NONE]
    assert status(life) == columns.ONLINE
    assert len(life.world.failures) == 1


def test_a_follower_that_waits_while_the_leader_is_found_damaged_hears_it_once(cluster):
    life, partition = led(cluster)
    flip(cluster, 1, at=HEADER_SIZE + 5)
    assert fetch(life, 0) == [errors.NONE]
    assert fetch(life, 0, wait=1 << 20, visible=13) == []
    life.world.append(0, batch(b"more"), acks=0)
    life.world.turn()
    for replica in (2, 3):
        partition.progress.replica_at(replica, 13, 0)
    partition.raise_visible()
    life.world.core.publish(partition)
    told = [m.flags for m in life.world.turn() + life.world.turn()]
    assert told == [errors.KAFKA_STORAGE_ERROR]
    assert ("closed", "t-0") in life.world.observers


def test_its_log_is_set_aside_and_fetched_anew(cluster):
    life, partition = led(cluster)
    before = logs(cluster.folder)
    flip(cluster, 3)
    read(life, 3)
    life.settle()
    assert life.world.core.partitions[0] is partition, "nobody else leads it yet"
    says(cluster, life, LOST, leader=2, epoch=5, partition_epoch=8, isr=(1, 2, 3))
    life.settle()
    assert life.world.core.partitions[0] is partition, "it still counts"
    says(cluster, life, LOST, leader=2, epoch=5, partition_epoch=9, isr=(2, 3))
    life.settle()
    anew = life.world.core.partitions[0]
    assert anew is not partition
    assert (anew.leads, anew.role.leader, anew.log.end_offset) == (False, 2, 0)
    assert status(life) == columns.FOLLOWING
    aside = {name for name in logs(cluster.folder) if "-stray/" in name}
    assert len(aside) == len(before), "nothing is lost before it is whole"
    assert "replica-set-aside" in life.said()
    says(cluster, life, FOLDER, leader=2, epoch=5, partition_epoch=10, isr=(1, 2, 3))
    life.settle()
    removes(life)
    assert not any("-stray/" in name for name in logs(cluster.folder))
    assert "replica-whole" in life.said()


def test_what_is_not_set_aside_before_all_end_is_after_the_next_start(cluster):
    """It does not come back as if nothing had been: nobody would notice before it leads again."""
    life, _ = led(cluster)
    flip(cluster, 3)
    read(life, 3)
    life.settle()
    says(cluster, life, LOST, leader=2, epoch=5, partition_epoch=8, isr=(2, 3))
    again = cluster.live()
    assert status(again) == columns.OFFLINE
    again.settle()
    assert (status(again), again.world.core.partitions[0].log.end_offset) == (columns.FOLLOWING, 0)
    assert any("-stray/" in name for name in logs(cluster.folder))


def test_a_mark_of_which_nobody_knows_is_forgotten(cluster):
    """Nobody leads: what is good is served again, and found damaged again."""
    life, _ = led(cluster)
    life.keeping.close()  # what is synced is known
    flip(cluster, 3)
    read(life, 3)
    life.settle()
    assert (cluster.folder / "t-0" / MARK).exists()
    again = cluster.live()
    assert not (cluster.folder / "t-0" / MARK).exists()
    assert again.world.core.partitions[0].log.end_offset == 12


def test_what_cannot_be_opened_for_damage_is_fetched_anew(cluster):
    """All of it was synced, and the log ends before that."""
    life, partition = led(cluster)
    life.keeping.close()
    (cluster.folder / "t-0" / f"{partition.log.active_base:020d}.log").write_bytes(b"")
    says(cluster, life, FOLDER, leader=2, epoch=5, partition_epoch=8, isr=(1, 2, 3))
    again = cluster.live()
    assert status(again) == columns.OFFLINE
    assert 0 in [handle for handle, *_ in again.looked], "the controller is told"
    again.settle()
    assert status(again) == columns.OFFLINE, "it still counts"
    says(cluster, again, LOST, leader=2, epoch=5, partition_epoch=9, isr=(2, 3))
    again.settle()
    assert (status(again), again.world.core.partitions[0].log.end_offset) == (columns.FOLLOWING, 0)
    assert "replica-set-aside" in again.said()


def test_compaction_that_meets_a_wrong_checksum_says_so(cluster):
    """It reads all, and is the first to notice on a follower."""
    life, partition = led(cluster)
    says(cluster, life, leader=2, epoch=5, partition_epoch=8)
    life.world.core.doubt(partition, StorageFailed("file", errno.EBADMSG, "corrupt"))
    assert status(life) == columns.OFFLINE


def test_whoever_finds_it_damaged_it_is_fetched_anew(cluster):
    """A coordinator that loads it, a truncation: what fails for that fails for good."""
    life, partition = led(cluster)
    life.world.core.fail(partition, StorageFailed("file", errno.EBADMSG, "corrupt"))
    says(cluster, life, LOST, leader=2, epoch=5, partition_epoch=8, isr=(2, 3))
    life.settle()
    assert (status(life), life.world.core.partitions[0].log.end_offset) == (columns.FOLLOWING, 0)


def test_a_disk_that_refuses_is_another_matter(cluster):
    """Nothing is written there again before the next start."""
    life, partition = led(cluster)
    life.world.core.fail(partition, StorageFailed("file", errno.EIO, "broken"))
    says(cluster, life, LOST, leader=2, epoch=5, partition_epoch=8, isr=(2, 3))
    life.settle()
    assert life.world.core.partitions[0] is partition
    assert status(life) == columns.OFFLINE


def test_without_room_what_lies_aside_goes_first(cluster):
    life, _ = led(cluster)
    flip(cluster, 3)
    read(life, 3)
    says(cluster, life, LOST, leader=2, epoch=5, partition_epoch=8, isr=(2, 3))
    life.settle()
    assert any("-stray/" in name for name in logs(cluster.folder))
    life.world.space.low = True
    life.settle()
    removes(life)
    assert not any("-stray/" in name for name in logs(cluster.folder))


# From seeds ---------------------------------------------------------------------------------------


class Journey:
    """A leader of which bits flip, its peers who have everything, readers, and the metadata."""

    def __init__(self, cluster, seed):
        self.cluster, self.rng = cluster, Random(seed)
        self.count = self.rng.randint(6, 30)
        self.life, self.partition = led(cluster, self.count, b"v" * self.rng.randint(1, 120))
        self.epoch, self.version = 4, 7
        folder = cluster.folder / "t-0"
        self.written = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
        self.batches = list(self.cut(self.written))

    def cut(self, data):
        at = 0
        while at < len(data):
            size = read_header(data, at).size
            yield data[at : at + size]
            at += size

    def flips(self):
        """Some bits by which batches are stepped over, in segments that are full."""
        full = self.partition.log.active_base
        self.bad = sorted(self.rng.sample(range(full), min(full, self.rng.randint(1, 3))))
        for offset in self.bad:
            flip(self.cluster, offset, MAGIC_AT, self.rng.randrange(8))

    def consumer(self):
        """Reads batch by batch, in order, until it is told an error: what it was given."""
        given = []
        for offset in range(self.count):
            answer = read(self.life, offset)
            if answer.flags != errors.NONE:
                return given, answer.flags
            given.append(self.life.world.bytes_of(answer, self.partition))
        return given, errors.NONE

    def elects(self):
        """Others lead, in one step or in two; a look in between changes nothing."""
        steps = [(2, (2, 3), LOST)]
        if self.rng.random() < 0.5:
            steps.insert(0, (-1, (2, 3), LOST))
        for leader, isr, where in steps:
            before = self.life.world.core.partitions[0]
            self.life.settle()
            assert self.life.world.core.partitions[0] is before
            self.epoch, self.version = self.epoch + 1, self.version + 1
            told = {"epoch": self.epoch, "partition_epoch": self.version}
            says(self.cluster, self.life, where, leader=leader, isr=isr, **told)

    def fetches(self):
        """From a peer, in pieces, as whole batches come."""
        anew = self.life.world.core.partitions[0]
        anew.set_rules(SMALL)
        taking = FetchedRecords(self.life.world.core, lambda *_: None)
        at = 0
        while at < len(self.batches):
            some = self.batches[at : at + self.rng.randint(1, 5)]
            data = memoryview(b"".join(some))
            while data:
                data = data[taking.records(anew, data, 0, NOW_MS) :]
            at += len(some)
            if self.rng.random() < 0.3:
                self.life.settle()
                assert self.aside(), "not before it is whole"
        answer = types.SimpleNamespace(high_watermark=self.count, log_start=0)
        taking.ends(anew, answer)
        self.life.world.turn()
        self.partition = anew

    def aside(self):
        return [name for name in logs(self.cluster.folder) if "-stray/" in name]

    def joins(self):
        self.version += 1
        told = {"leader": 2, "epoch": self.epoch, "partition_epoch": self.version}
        says(self.cluster, self.life, FOLDER, isr=(1, 2, 3), **told)
        self.life.settle()
        removes(self.life)

    def leads_again(self):
        self.epoch, self.version = self.epoch + 1, self.version + 1
        told = {"epoch": self.epoch, "partition_epoch": self.version}
        says(self.cluster, self.life, FOLDER, leader=1, **told)
        for replica in (2, 3):
            self.partition.progress.replica_at(replica, self.count, 0)
        self.life.world.core.publish(self.partition)
        self.life.world.turn()


@each_seed(40)
def test_whatever_flips_nothing_is_lost_nor_given_twice(cluster, seed):
    journey = Journey(cluster, seed)
    journey.flips()
    given, code = journey.consumer()
    assert code == errors.KAFKA_STORAGE_ERROR
    assert given == journey.batches[: journey.bad[0]], "what is good, and no byte of what is not"
    journey.elects()
    journey.life.settle()
    assert journey.aside()
    journey.fetches()
    journey.joins()
    assert not journey.aside()
    journey.leads_again()
    given, code = journey.consumer()
    assert (code, given) == (errors.NONE, journey.batches)
