"""Which partitions have a row of the shared table: those with a replica here, while it is here."""

import pytest

from appliance.control.partitions.rows import PartitionRows
from appliance.metadata.handles import Handles
from appliance.metadata.image import MetadataImage
from appliance.ring.partition_table import PartitionTable
from appliance.wire import kraft_records as kraft

HERE, ROWS = 1, 4
TOPIC = b"t" * 16


class World:
    """The metadata as control commits it; `handles` as another process follows it."""

    def __init__(self):
        needed = PartitionTable.bytes_needed(ROWS)
        self.table = PartitionTable(memoryview(bytearray(needed)), ROWS)
        self.said = []  # how many lack a row
        self.image, self.end, self.applied = MetadataImage(), 0, 0
        self.rows = PartitionRows(self.table, HERE, lambda: self.applied, self.said.append)
        self.handles = Handles(self.table)
        self.commit(kraft.TopicRecord(name="t", topic_id=TOPIC))

    def commit(self, *records):
        changes = []
        for record in records:
            changes += self.image.apply(self.end, record)
            self.end += 1
        for change in changes:
            self.rows.apply(change, self.image, self.end)
        self.handles.refresh(changes)
        found = {index for _, index in self.rows.handles}
        assert self.handles.rows == self.rows.handles
        return found

    def made(self, index, *replicas):
        return self.commit(
            kraft.PartitionRecord(
                partition_id=index, topic_id=TOPIC, replicas=replicas, isr=replicas,
                leader=replicas[0], leader_epoch=0, partition_epoch=0,
            )
        )  # fmt: skip

    def moved(self, index, *replicas):
        return self.commit(
            kraft.PartitionChangeRecord(
                partition_id=index, topic_id=TOPIC, replicas=replicas, isr=replicas,
                leader=replicas[0],
            )
        )  # fmt: skip


@pytest.fixture
def world():
    return World()


def test_a_partition_without_a_replica_here_has_no_row(world):
    assert world.made(0, 2, 3) == set()
    assert world.made(1, 3, 1) == {1}
    assert world.rows.free_rows == ROWS - 1


def test_a_replica_that_comes_gets_a_row_and_one_that_goes_gives_it_back(world):
    world.made(0, 2, 3)
    assert world.moved(0, 1, 2) == {0}
    before = world.rows.handles[TOPIC, 0]
    assert world.moved(0, 2, 1) == {0}
    assert world.rows.handles[TOPIC, 0] == before, "it only leads no more"
    assert world.moved(0, 2, 3) == set()
    assert world.rows.free_rows == ROWS - 1, "somebody may still speak of it"
    world.applied = world.end
    assert world.rows.free_rows == ROWS
    assert world.moved(0, 2, 1) == {0}
    assert world.rows.handles[TOPIC, 0] != before


def test_a_topic_that_is_made_and_removed_at_once_leaves_no_row(world):
    world.made(0, 1)
    assert world.commit(
        kraft.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=1),
        kraft.RemoveTopicRecord(topic_id=TOPIC),
    ) == set()  # fmt: skip
    world.applied = world.end
    assert world.rows.free_rows == ROWS


def test_a_start_gives_rows_to_what_has_a_replica_here_and_takes_the_others(world):
    for index in range(3):
        world.made(index, 1 if index else 2)
    assert {index for _, index in world.rows.handles} == {1, 2}
    world.image.apply(
        world.end,
        kraft.PartitionChangeRecord(partition_id=1, topic_id=TOPIC, replicas=(2,), isr=(2,)),
    )
    successor = PartitionRows(world.table, HERE, lambda: world.applied, world.said.append)
    successor.reconcile(world.image, world.end + 1, lambda: False)
    assert {index for _, index in successor.handles} == {2}


def test_replicas_for_which_there_is_no_row_wait_for_one(world):
    for index in range(ROWS + 2):
        world.made(index, 2, 1)
    assert set(world.rows.handles) == {(TOPIC, index) for index in range(ROWS)}
    assert world.rows.lacking == {(TOPIC, ROWS), (TOPIC, ROWS + 1)}
    assert world.said == [1, 2]
    world.moved(0, 2)
    world.applied = world.end
    assert ROWS in world.moved(ROWS, 2, 1), "its next change finds the row that was given back"
    assert world.rows.lacking == {(TOPIC, ROWS + 1)}
    world.moved(ROWS + 1, 2, 3)
    assert not world.rows.lacking
    world.made(ROWS + 2, 1)
    world.commit(kraft.RemoveTopicRecord(topic_id=TOPIC))
    assert not world.rows.lacking
