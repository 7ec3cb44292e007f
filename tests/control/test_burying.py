"""What a node notes of deletions that others decided: all of them together before it is level, and
each before it comes true later; what is over at its start, not at all."""

from types import SimpleNamespace

import pytest
from test_topic_trash import DATA, NOW_MS, SILENT, Roomy

from appliance.config.broker import BrokerConfig
from appliance.control.deletion.deletion_barrier import DecidedBatch, DeletionBarrier
from appliance.control.deletion.deletion_journal import Burying
from appliance.metadata.image import MetadataImage
from appliance.wire import kraft_records as kraft

HOUR_MS = 3_600_000
A = b"a" * 16


class World:
    def __init__(self):
        disk = Roomy()
        disk.mkdir(DATA)
        disk.sync_dir("/")
        self.image = MetadataImage()
        self.image.apply(0, kraft.TopicRecord(name="t", topic_id=A))
        self.image.apply(1, kraft.PartitionRecord(
            partition_id=0, topic_id=A, replicas=(1, 2), isr=(2,), leader=2, leader_epoch=6,
            partition_epoch=9,
        ))  # fmt: skip
        self.level = True
        self.jobs = []
        self.deletions = DeletionBarrier()
        config = BrokerConfig.of({"node.id": "1"})
        rows = SimpleNamespace(size=lambda *_: (5, 3), everyone_has=lambda offset: True)
        clock = SimpleNamespace(wall_ms=lambda: NOW_MS, monotonic_ns=lambda: 0)
        quorum = SimpleNamespace(image=self.image, replayed_end=2, deletions=self.deletions)
        started = SimpleNamespace(
            disk=disk, clock=clock, quorum=quorum, rows=rows, identity=SimpleNamespace(node_id=1)
        )
        seat = SimpleNamespace(config=config, log_dirs=(DATA,))
        threads = SimpleNamespace(submit=lambda tag, job: self.jobs.append((tag, job)))
        self.burying = Burying(seat, started, threads, lambda: self.level, SILENT)

    def hear(self, at_ms):
        """Another node has removed the topic then."""
        removal = kraft.RemoveTopicRecord(topic_id=A)
        return self.deletions.notice(DecidedBatch([removal], 3, at_ms), self.image)

    def run(self):
        [((_, note), job)] = self.jobs
        self.jobs.clear()
        job()
        self.burying.wrote(note, None)
        return note

    @property
    def kept(self):
        return self.burying.trash.view.topics


@pytest.fixture
def world():
    return World()


def test_what_is_decided_now_is_noted_by_our_own_clock_before_it_comes_true(world):
    note = world.hear(NOW_MS - 5 * HOUR_MS)  # the clock of the other one is wrong
    assert note
    assert world.kept[A].deleted_ms == NOW_MS
    assert (world.kept[A].size, world.kept[A].records) == (5, 3)
    assert world.burying.unwritten
    assert world.burying.begin_note()
    assert not world.burying.begin_note(), "one at a time"
    assert world.burying.unwritten
    assert world.run() == note
    assert not world.burying.unwritten


def test_what_was_decided_before_our_start_is_noted_by_its_time_and_holds_nothing_up(world):
    world.level = False
    assert world.hear(NOW_MS - HOUR_MS + 1000) == 0
    assert world.kept[A].deleted_ms == NOW_MS - HOUR_MS + 1000
    assert world.burying.unwritten, "nothing is published before it is on the disk"


def test_what_is_over_already_is_not_noted(world):
    world.level = False
    assert world.hear(NOW_MS - HOUR_MS) == 0
    assert not world.kept
    assert not world.burying.unwritten


def test_nothing_expires_before_it_is_known_what_was_agreed(world):
    world.level = False
    world.hear(NOW_MS - HOUR_MS + 1000)
    world.image.apply(2, kraft.RemoveTopicRecord(topic_id=A))
    world.burying.drop_expired(NOW_MS + HOUR_MS)
    assert world.kept
    world.level = True
    world.burying.drop_expired(NOW_MS + HOUR_MS)
    assert not world.kept
