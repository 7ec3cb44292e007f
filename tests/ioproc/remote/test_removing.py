"""A deleted partition's objects go before its folder does, never those of a topic that lives."""

import pytest

from appliance.ioproc.remote.link import AnswerRoutes
from appliance.ioproc.remote.removing import RemoteRemovals
from appliance.logstore.removal import Removal
from appliance.remotelog.journal import NAME
from tests.ioproc.remote.test_tiering import LOCAL, filled, new_disk, new_ids
from tests.ioproc.remote.tiering_world import FOLDER, TOPIC_ID, Events, Life, Store, StoreOfFiles

GONE = f"{FOLDER}.{TOPIC_ID.hex()}-delete"
LATER_NS = 40_000_000_000


class Removals:
    """A partition that was tiered and whose folder is to be removed."""

    def __init__(self):
        life = Life(new_disk(), Store(), {}, new_ids(), **LOCAL)
        filled(life)
        life.finish()
        self.disk, self.store, self.events = life.disk, life.store, Events()
        self.disk.rename(FOLDER, GONE)
        self.exists = self.used = False
        self.link = StoreOfFiles(self.disk, self.store)
        self.routes = AnswerRoutes(self.link, lambda where, step: step())
        self.made = RemoteRemovals(
            self.disk, self.events, self.routes, lambda topic_id: self.exists, 1
        )  # fmt: skip

    def turn(self, now_ns=0, now_ms=0):
        self.made.tick(now_ns, now_ms, lambda topic_id, partition: self.used)
        if self.link.asked:
            self.link.run_one()
        self.routes.deliver_answers(now_ns, now_ms)
        for removal in self.made.take_ready():
            removal.run(self.disk)


@pytest.fixture
def story():
    return Removals()


def test_objects_go_before_the_folder(story):
    assert len(story.store.held) > 5
    assert story.made.take_removal(Removal(1000, (), GONE))
    story.turn(now_ms=999)
    assert len(story.disk.listdir(GONE)) > 2, "its time has not come"
    story.store.refuses = True
    story.turn(now_ms=1000)
    assert story.disk.listdir(GONE) == ["partition.metadata", NAME], "only what is needed waits"
    story.turn(now_ms=1000)
    story.turn(LATER_NS, 1000)
    assert [name for name, _ in story.events.said] == ["remote-delete-failed"]
    story.store.refuses = False
    story.turn(2 * LATER_NS, 1000)
    assert story.store.held == {} and not story.disk.exists(GONE)


def test_a_copy_that_is_under_way_is_waited_for(story):
    story.used = True
    assert story.made.take_removal(Removal(0, (), GONE))
    story.turn()
    assert story.store.held and story.disk.exists(GONE)
    story.used = False
    story.turn()
    assert not story.store.held and not story.disk.exists(GONE)


def test_objects_stay_while_another_node_can_bring_the_topic_back(story):
    story.store.objects.hold_partition(TOPIC_ID, 0, 2)
    held = set(story.store.held)
    assert story.made.take_removal(Removal(0, (), GONE))
    story.turn()
    assert not story.disk.exists(GONE)
    assert held - set(story.store.held) == {f"{TOPIC_ID.hex()}/0/holders/1"}
    assert story.store.objects.release_partition(TOPIC_ID, 0, 2) > 5, "the last one removes them"
    assert story.store.held == {}


def test_what_lives_on_keeps_its_objects(story):
    story.exists = True
    assert not story.made.take_removal(Removal(0, (), GONE))
    story.exists = False
    assert not story.made.take_removal(Removal(0, (f"{GONE}/x.log.deleted",)))
    story.disk.unlink(f"{GONE}/{NAME}")
    assert not story.made.take_removal(Removal(0, (), GONE))
    assert story.store.held
