"""What the controller is told of replicas here: where they are, and that they are lost."""

import errno

import pytest
from core_world import World

from appliance.base.errors import StorageFailed
from appliance.ioproc.log_folders.directory_reports import AGAIN_MS, NOWHERE, DirectoryReports
from appliance.metadata.log_dirs import LOST
from appliance.metadata.parts import BrokerImage, PartitionImage, TopicImage
from appliance.replication.role import role_of
from appliance.ring import partition_table as columns

US, OTHER, THIRD = 1, 2, 3


def folder(node):
    return b"%d" % node + b"f" * 15


HERE = folder(US)


class Story:
    """One partition of which three nodes have replicas, and what control was told of it."""

    def __init__(self, path):
        self.world = World(path)
        self.image = self.world.image
        self.told = []
        self.epoch = 0
        self.where = DirectoryReports(
            US, self.world.served, lambda: self.image, lambda *what: self.told.append(what)
        )
        self.world.core._observers += (self.where,)
        for node in (US, OTHER, THIRD):
            self.broker(node)
        self.says()
        self.partition = self.world.add(epoch=1, role=role_of(self.now, US))
        assert self.tick() == []

    def broker(self, node, cordoned=(), fenced=False, log_dirs=None):
        self.image.brokers[node] = BrokerImage(
            broker_id=node, incarnation_id=bytes(16), epoch=node, endpoints=(), fenced=fenced,
            log_dirs=log_dirs or (folder(node),), cordoned_log_dirs=cordoned,
        )  # fmt: skip

    def says(self, leader=US, isr=(US, OTHER, THIRD), here=HERE):
        """The metadata, from now on."""
        self.epoch += 1
        self.now = PartitionImage(
            index=0, leader=leader, leader_epoch=self.epoch, partition_epoch=0,
            replicas=(US, OTHER, THIRD), isr=isr,
            directories=(here, folder(OTHER), folder(THIRD)),
        )  # fmt: skip
        topic_id = b"t".ljust(16, b"\0")
        topic = TopicImage("t", topic_id, [self.now])
        self.image.topics_by_id[topic_id] = topic
        if hasattr(self, "partition"):
            role = role_of(self.now, US)
            if role.leads:
                self.world.core.lead(self.partition, self.epoch, role)
            else:
                self.world.core.follow(self.partition, self.epoch, role)
            self.where.compare_folder(self.partition.handle, topic_id, 0)

    def tick(self, ms=0):
        self.world.now_ns += ms * 1_000_000
        self.where.tick(self.world.now_ms)
        told, self.told = self.told, []
        return told

    def full(self, *, low):
        self.world.space.low = low


@pytest.fixture
def story(tmp_path):
    return Story(tmp_path)


def test_one_that_fails_is_lost_until_the_metadata_say_so(story):
    row = story.partition.handle
    story.world.core.fail(story.partition, StorageFailed("t-0", errno.EIO, "broken"))
    assert story.tick() == [(row, NOWHERE)]
    assert story.tick() == [], "not in each turn"
    assert story.tick(AGAIN_MS) == [(row, NOWHERE)]
    story.says(leader=OTHER, isr=(OTHER, THIRD), here=LOST)
    assert story.tick(AGAIN_MS) == story.tick(AGAIN_MS) == []
    assert story.world.table.read_column(row, columns.STATUS) == columns.OFFLINE, "whoever leads"


def test_one_that_could_not_be_opened_is_lost(story):
    table, served = story.world.table, story.world.served
    row = table.add(b"u".ljust(16, b"\0"), 0)
    story.image.topics_by_id[b"u".ljust(16, b"\0")] = TopicImage("u", b"", [story.now])
    story.where.compare_folder(row, b"u".ljust(16, b"\0"), 0)
    assert story.tick() == [], "it is about to be opened"
    served.refuse_row(row)
    story.where.compare_folder(row, b"u".ljust(16, b"\0"), 0)
    assert story.tick() == [(row, NOWHERE)]


def test_what_was_lost_is_where_it_was_opened(story):
    story.says(leader=OTHER, isr=(OTHER, THIRD), here=LOST)
    assert story.tick() == [(story.partition.handle, 0)]
    story.says(leader=OTHER, isr=(OTHER, THIRD))
    assert story.tick(AGAIN_MS) == []


def test_what_the_metadata_has_in_a_folder_that_is_gone_is_where_it_was_made(story):
    """An empty disk took the place of a lost one: the id of its folder is another."""
    new = b"n" * 16
    row = story.partition.handle
    story.broker(US, log_dirs=(new,))
    assert story.tick() == [(row, 0)], "nobody says anything new of the partition"
    assert story.tick(AGAIN_MS) == [(row, 0)]
    story.says(here=new)
    assert story.tick(AGAIN_MS) == story.tick(AGAIN_MS) == []


def test_one_on_its_way_to_another_folder_here_is_where_the_metadata_say(story):
    new = b"n" * 16
    story.broker(US, log_dirs=(folder(US), new))
    story.says(here=new)
    assert story.tick(AGAIN_MS) == []


def test_nothing_is_told_where_nobody_else_has_a_replica(story):
    alone = story.world.add("alone")
    story.world.core.fail(alone, StorageFailed("alone-0", errno.EIO, "broken"))
    assert story.tick() == []


def test_a_leader_without_room_goes_when_somebody_in_sync_has_some(story):
    row = story.partition.handle
    story.full(low=True)
    assert story.tick() == [], "the others do not know yet, and may have none either"
    story.broker(US, cordoned=(folder(US),))
    story.broker(OTHER, cordoned=(folder(OTHER),))
    story.broker(THIRD, fenced=True)
    assert story.tick(AGAIN_MS) == []
    story.broker(THIRD)
    assert story.tick(AGAIN_MS) == [(row, NOWHERE)]
    story.says(leader=THIRD, isr=(OTHER, THIRD), here=LOST)
    assert story.tick(AGAIN_MS) == []
    story.full(low=False)
    assert story.tick() == [(row, 0)]


def test_a_leader_that_nobody_can_follow_comes_back_without_room(story):
    """Reads go on."""
    story.full(low=True)
    story.broker(US, cordoned=(folder(US),))
    story.says(leader=-1, isr=(), here=LOST)
    assert story.tick() == [(story.partition.handle, 0)]


def test_a_follower_without_room_goes_when_it_has_missed_something(story):
    row = story.partition.handle
    story.says(leader=OTHER)
    story.full(low=True)
    assert story.tick() == []
    story.world.served.starved[row] = None
    assert story.tick(AGAIN_MS) == [(row, NOWHERE)]
    story.says(leader=OTHER, isr=(OTHER, THIRD), here=LOST)
    assert story.tick(AGAIN_MS) == []
    story.full(low=False)
    assert story.tick() == [(row, 0)]
    story.says(leader=OTHER, isr=(OTHER, THIRD))
    story.full(low=True)
    assert story.tick(AGAIN_MS) == [], "it has missed nothing since"


def test_it_is_looked_at_again_as_soon_as_brokers_say_who_has_room(story):
    row = story.partition.handle
    story.full(low=True)
    assert story.tick() == []
    story.broker(US, cordoned=(folder(US),))
    assert story.tick() == [(row, NOWHERE)], "the controller knows that there is no room here"
    assert story.tick() == []
