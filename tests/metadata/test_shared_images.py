"""Two images over shared parts: a copy never changes with the one that it came from, and a delta
takes one image exactly as far as replaying took the other."""

from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st
from test_image_replay import RECORD

from appliance.metadata.changes import Change
from appliance.metadata.delta import Delta
from appliance.metadata.diff import changes_between
from appliance.metadata.image import MetadataImage
from appliance.metadata.replay import ReplayFailed
from appliance.wire import kraft_records as kraft

BATCHES = st.lists(st.lists(RECORD, max_size=8), max_size=8)


def take(image, records, offset) -> list[Change]:
    changes: list[Change] = []
    for record in records:
        try:
            changes += image.apply(offset, record)
        except ReplayFailed:
            continue
        offset += 1
    return changes


@settings(max_examples=300)
@given(BATCHES)
def test_a_delta_says_what_replaying_said(batches):
    ahead, behind, twin = MetadataImage(), MetadataImage(), MetadataImage()
    deltas, states = [], []
    for records in batches:
        deltas.append(Delta(ahead, take(ahead, records, 5)))
        take(twin, records, 5)
        states.append(deepcopy(twin))
    assert ahead == twin
    for delta, state in zip(deltas, states, strict=True):  # late, when the other is far ahead
        delta.apply_to(behind)
        assert behind == state
    assert ahead == twin and changes_between(ahead, behind) == []


@settings(max_examples=200)
@given(BATCHES, BATCHES, BATCHES)
def test_a_copy_goes_its_own_way(before, one_way, other_way):
    image = MetadataImage()
    for records in before:
        take(image, records, 1)
    copy = image.copy()
    frozen, held = deepcopy(image), image.copy()
    for records in one_way:
        take(image, records, 2)
    assert copy == frozen
    took = deepcopy(image)
    for records in other_way:
        take(copy, records, 3)
    assert image == took and held == frozen


def test_a_topic_of_many_partitions_is_copied_once_not_for_each_of_them():
    image = MetadataImage()
    image.apply(0, kraft.TopicRecord(name="t", topic_id=b"t" * 16))
    lists = set()
    for index in range(100):
        image.apply(index, partition(index))
        lists.add(id(image.topics_by_name["t"].partitions))
    assert len(lists) == 1
    held = image.copy()
    before = image.topics_by_name["t"].partitions
    assert held.topics_by_name["t"].partitions is before, "shared until somebody changes it"
    image.apply(100, partition(100))
    assert image.topics_by_name["t"].partitions is not before and len(before) == 100
    after = image.topics_by_name["t"].partitions
    image.apply(101, partition(101))
    assert image.topics_by_name["t"].partitions is after


def partition(index):
    return kraft.PartitionRecord(
        partition_id=index, topic_id=b"t" * 16, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
        partition_epoch=0,
    )  # fmt: skip
