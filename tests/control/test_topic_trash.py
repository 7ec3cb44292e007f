"""What control remembers of deleted topics: for how long, at what cost, and over its own death."""

import os

import pytest
from sim.disk import SimDisk

from appliance.base.disk import Space, write_file
from appliance.base.space import KEEP_FREE_PERCENT
from appliance.config.broker import BrokerConfig
from appliance.control.deletion.topic_trash import KEEP_FREE_TIMES, PROMISE_MS, TopicTrash
from appliance.logstore.files import PARTITION_METADATA
from appliance.logstore.partition_metadata import write_metadata
from appliance.metadata import trash as trash_file
from appliance.metadata.image import MetadataImage
from appliance.metadata.trash import TRASH_FILE
from appliance.shell.flusher import run
from appliance.shell.log import Log
from appliance.wire import kraft_records as kraft

DATA = "/data"
NOW_MS = 1_700_000_000_000
KEEP = 64 << 20
SILENT = Log("test", fd=os.open(os.devnull, os.O_WRONLY), journal=False)


class Roomy(SimDisk):
    """A disk whose free space the test says."""

    free = 1 << 40
    behind_a_listing = ()

    def listdir(self, path):
        found = super().listdir(path)
        renamed, self.behind_a_listing = self.behind_a_listing, ()
        if renamed:  # by an I/O process, just then
            self.rename(*renamed)
        return found

    def space(self, path):
        return Space(100 * KEEP, self.free)


class World:
    several = False
    monotonic_ms = 0

    def __init__(self, **settings):
        self.disk = Roomy()
        self.disk.mkdir(DATA)
        self.disk.sync_dir("/")
        self.image = MetadataImage()
        self.offset = 0
        self.sizes = (1000, 10)
        self.config = BrokerConfig.of({"node.id": "1", **settings})
        self.again()

    def again(self):
        """Control begins again over the same disk."""
        everyone, now_ms = (lambda offset: True), (lambda: self.monotonic_ms)
        self.trash = TopicTrash(self.disk, [DATA], 1, everyone, SILENT, self.several, now_ms)

    def commit(self, now_ms, *records):
        note = self.trash.before(records, self.image, self.config, lambda *_: self.sizes, now_ms)
        assert self.write() >= note
        for record in records:
            self.image.apply(self.offset, record)
            self.offset += 1

    def create(self, name, topic_id=None, now_ms=NOW_MS, replicas=(1,)):
        topic_id = topic_id or name.encode().ljust(16, b"\0")
        made = kraft.PartitionRecord(
            partition_id=0, topic_id=topic_id, replicas=replicas, isr=replicas, leader=1,
            leader_epoch=3, partition_epoch=4,
        )  # fmt: skip
        self.commit(now_ms, kraft.TopicRecord(name=name, topic_id=topic_id), made)
        return topic_id

    def delete(self, topic_id, now_ms=NOW_MS):
        self.commit(now_ms, kraft.RemoveTopicRecord(topic_id=topic_id))

    def write(self):
        """What control has a thread do: the newest note that was written, 0 when none was due."""
        due = self.trash.job()
        if due is None:
            return 0
        note, job = due
        self.trash.wrote(note, run((), job).failure)
        return note

    def tick(self, now_ms):
        self.trash.tick(self.image, self.config, self.offset, now_ms)
        self.write()

    def kept(self):
        return [one.name for one in trash_file.read(self.disk, DATA).topics.values()]

    def held(self, name):
        return [set(one.held) for one in self.trash.kept(name)]

    def blocked_ms(self, name, now_ms):
        return self.trash.blocked_ms(name, lambda: self.config, now_ms)


def write_metadata_of(disk, path, topic_id):
    """A folder of a partition of this topic."""
    disk.mkdir(path)
    write_metadata(disk, path, topic_id)


def test_topics_stay_for_their_time_and_names_for_theirs():
    world = World()
    first = world.create("first")
    second = world.create("second")
    world.delete(first)
    world.delete(second, NOW_MS + 1000)
    assert world.kept() == ["first", "second"]
    world.again()
    assert world.blocked_ms("first", NOW_MS + 599_000) == 1000
    assert world.blocked_ms("first", NOW_MS + 600_000) == 0
    world.tick(NOW_MS + 3_600_000 - 1)
    assert world.kept() == ["first", "second"]
    world.tick(NOW_MS + 3_600_000)
    assert world.kept() == ["second"]
    world.tick(NOW_MS + 3_601_000)
    assert world.kept() == []
    assert not trash_file.read(world.disk, DATA).names


def test_names_whose_time_is_over_cost_the_disk_nothing():
    world = World()
    world.delete(world.create("gone"))
    steps = world.disk.steps
    assert world.blocked_ms("gone", NOW_MS + 599_999) == 1
    world.tick(NOW_MS + 600_000)
    assert not world.trash.view.names
    assert world.disk.steps == steps, "the loop of control syncs nothing for it"
    world.again()
    assert world.blocked_ms("gone", NOW_MS + 600_000) == 0, "whatever the file says"
    world.tick(NOW_MS + 600_001)
    assert not world.trash.view.names
    assert world.disk.steps == steps
    world.delete(world.create("other"), NOW_MS + 600_002)
    assert list(trash_file.read(world.disk, DATA).names) == ["other"]


def test_who_creates_the_topic_ends_the_wait():
    world = World()
    world.delete(world.create("again"))
    assert world.blocked_ms("again", NOW_MS) == 600_000
    world.create("again", b"2" * 16)
    assert world.blocked_ms("again", NOW_MS) == 0
    assert world.blocked_ms("never", NOW_MS) == 0


def test_times_of_nothing_write_nothing():
    world = World(
        **{
            "penstock.topic.trash.retention.ms": "0",
            "penstock.topic.deleted.auto.create.delay.ms": "0",
        }
    )
    world.delete(world.create("t"))
    assert not world.disk.exists(f"{DATA}/{TRASH_FILE}")
    assert world.blocked_ms("t", NOW_MS) == 0


def test_the_oldest_go_when_the_disk_is_short_of_space():
    world = World()
    for name in ("a", "b", "c"):
        world.delete(world.create(name))
    world.tick(NOW_MS)
    assert world.kept() == ["a", "b", "c"]
    world.disk.free = KEEP_FREE_TIMES * KEEP - 1500  # two of them are enough
    world.tick(NOW_MS + 10)
    assert world.kept() == ["c"]
    world.tick(NOW_MS + 20)
    assert world.kept() == ["c"], "the files of the others are only now removed"
    world.tick(NOW_MS + 10_000)
    assert world.kept() == []


def test_it_goes_before_produce_is_refused():
    from appliance.control.deletion import topic_trash

    assert topic_trash.KEEP_FREE_PERCENT > KEEP_FREE_PERCENT
    assert KEEP_FREE_TIMES > 2, "a guard that was low wants twice as much to go on"


def test_a_topic_that_is_back_stays_in_the_list_while_a_folder_is_away():
    world = World()
    topic_id = world.create("t")
    world.delete(topic_id)
    folder = f"{DATA}/t-0.{topic_id.hex()}-delete"
    world.disk.mkdir(folder)
    world.create("t", topic_id)
    world.tick(NOW_MS + 3_600_001)
    assert world.kept() == ["t"]
    world.disk.rename(folder, f"{DATA}/t-0")
    world.tick(NOW_MS + 3_600_002)
    assert world.kept() == []


def test_what_is_kept_says_whose_folders_are_here():
    world = World()
    topic_id = world.create("t")
    path = f"{DATA}/t-0"
    write_metadata_of(world.disk, path, topic_id)
    world.delete(topic_id)
    assert world.held("t") == [{0}], "the ioproc has not heard of it yet"
    world.disk.rename(path, f"{path}.{topic_id.hex()}-delete")
    assert world.held("t") == [{0}]
    world.disk.unlink(f"{path}.{topic_id.hex()}-delete/{PARTITION_METADATA}")
    world.disk.rmdir(f"{path}.{topic_id.hex()}-delete")
    assert world.held("t") == [set()]
    write_metadata_of(world.disk, path, b"2" * 16)
    assert world.held("t") == [set()], "that is another topic's"
    assert world.held("other") == []


class OneOfSeveral(World):
    """Others may keep what this node does not."""

    several = True


def test_what_was_promised_stays_whatever_time_it_is():
    world = World()
    world.sizes = (1 << 40, 10)
    topic_id = world.create("t")
    write_metadata_of(world.disk, f"{DATA}/t-0", topic_id)
    world.delete(topic_id)
    assert world.held("t") == [{0}]
    world.disk.free = 0
    world.tick(NOW_MS + 3_600_000)
    world.monotonic_ms = PROMISE_MS - 1
    world.tick(NOW_MS + 3_602_000)
    assert world.kept() == ["t"], "somebody may lead by it"
    world.monotonic_ms = PROMISE_MS
    world.tick(NOW_MS + 3_604_000)
    assert world.kept() == []


def test_of_several_nodes_one_lets_go_of_its_folders_and_remembers_the_topic():
    world = OneOfSeveral()
    topic_id = world.create("t")
    write_metadata_of(world.disk, f"{DATA}/t-0", topic_id)
    world.delete(topic_id)
    world.disk.free = KEEP_FREE_TIMES * KEEP - 1
    world.tick(NOW_MS)
    assert world.kept() == ["t"]
    found = trash_file.listed(world.disk, DATA)
    assert (found.names, found.let_go) == ({topic_id: "t"}, {topic_id})
    assert world.held("t") == [set()], "though it may not be removed yet"
    world.again()
    assert world.held("t") == [set()]
    world.monotonic_ms += PROMISE_MS
    world.tick(NOW_MS + 3_600_000)
    assert world.kept() == []


def test_a_note_of_what_has_not_gone_yet_stays():
    """Between the note and the replay of the removal the topic is there, with all its folders."""
    world = OneOfSeveral()
    topic_id = world.create("t")
    removal = kraft.RemoveTopicRecord(topic_id=topic_id)
    end = world.offset + 1
    world.trash.before(
        [removal], world.image, world.config, lambda *_: world.sizes, NOW_MS, end=end
    )
    assert not world.trash.settled("t")
    world.write()
    assert world.trash.settled("t")
    world.tick(NOW_MS)
    assert world.kept() == ["t"]
    world.image.apply(world.offset, kraft.NoOpRecord())  # it was never agreed
    world.offset += 1
    world.tick(NOW_MS + 1000)
    assert world.kept() == []


def test_a_topic_without_records_may_be_without_folders_where_nobody_else_has_it():
    world = World()
    world.sizes = (0, 0)
    world.delete(world.create("alone"))
    world.delete(world.create("shared", replicas=(1, 2)))
    assert world.held("alone") == [{0}]
    assert world.held("shared") == [set()]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"version": 2}', b'{"version":1,"topics":[1],"names":{}}']
)
def test_a_list_that_cannot_be_read_is_empty_and_no_reason_to_stop(data):
    world = World()
    file = world.disk.create(f"{DATA}/{TRASH_FILE}")
    file.pwritev([data], 0)
    world.again()
    assert not world.trash.view.topics
    world.delete(world.create("t"))
    assert world.kept() == ["t"]


def test_a_full_disk_deletes_without_keeping():
    world = World()
    topic_id = world.create("t")
    world.disk.refusing[TRASH_FILE, "write"] = 28
    world.delete(topic_id)
    assert not world.trash.view.topics
    assert "t" not in world.image.topics_by_name


def test_what_is_written_is_read_again():
    world = World()
    world.delete(world.create("t"))
    entries = [trash_file.entry(one) for one in world.trash.view.topics.values()]
    data = trash_file.encode(entries, world.trash.view.names)
    assert trash_file.decode(data) == world.trash.view == trash_file.read(world.disk, DATA)


def test_the_short_reading_says_the_same_names():
    world = World()
    assert trash_file.listed(world.disk, DATA).names == {}
    assert trash_file.version_of(world.disk, DATA) == (0, 0)
    world.delete(world.create("first"))
    before = trash_file.version_of(world.disk, DATA)
    world.delete(world.create("second", b"2" * 16))
    assert trash_file.version_of(world.disk, DATA) != before
    topics = trash_file.read(world.disk, DATA).topics
    assert trash_file.listed(world.disk, DATA).names == {
        key: one.name for key, one in topics.items()
    }
    assert len(topics) == 2


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b'{"version": 9, "topics": []}', b'{"version": 1, "topics": [{"id": 3}]}']
)
def test_a_damaged_list_is_refused_by_both_readings(text):
    world = World()
    write_file(world.disk, f"{DATA}/{trash_file.TRASH_FILE}", text)
    for reading in (trash_file.read, trash_file.listed):
        with pytest.raises(ValueError, match=r"list|version|Expecting"):
            reading(world.disk, DATA)


def test_a_folder_that_is_renamed_during_the_look_is_held():
    world = World()
    topic_id = world.create("t")
    path = f"{DATA}/t-0"
    write_metadata_of(world.disk, path, topic_id)
    world.delete(topic_id)
    world.disk.behind_a_listing = (path, f"{path}.{topic_id.hex()}-delete")
    assert world.held("t") == [{0}]
    assert not world.disk.behind_a_listing
