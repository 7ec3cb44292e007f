"""The remote segments of one partition, as the records of `__remote_log_metadata` make them.

Replay is the only mutator. A segment can be read once its copy is finished and until its deletion
begins; everything else is known so that it can be removed from the store.
"""

from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Final

from appliance.remotelog.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)
from appliance.remotelog.states import (
    COPY_SEGMENT_FINISHED,
    DELETE_SEGMENT_FINISHED,
    DELETION_CHANGES,
    DELETION_STATES,
    SEGMENT_CHANGES,
    SEGMENT_STATES,
)

_Change = (
    RemoteLogSegmentMetadataRecord
    | RemoteLogSegmentMetadataUpdateRecord
    | RemotePartitionDeleteMetadataRecord
)


_start = attrgetter("start_offset")


class UnlawfulChange(Exception):
    """A record that may not follow what is known; it changes nothing."""


class RemoteSegments:
    """Invariants: a segment has one of SEGMENT_STATES, but not DELETE_SEGMENT_FINISHED: then it is
    forgotten. deletion: one of DELETION_STATES, None before the deletion of the partition."""

    def __init__(self, topic_id: bytes, partition: int) -> None:
        self._key: Final = (topic_id, partition)
        self._known: dict[bytes, RemoteLogSegmentMetadataRecord] = {}
        self._finished: list[RemoteLogSegmentMetadataRecord] | None = None  # made when needed
        self._reached: list[int] = []  # the highest end offset up to each of them
        self.deletion: int | None = None

    def replay(self, change: _Change) -> None:
        """Take in a record; raises UnlawfulChange, and nothing has changed then."""
        if isinstance(change, RemotePartitionDeleteMetadataRecord):
            self._replay_deletion(change)
            return
        owner = change.remote_log_segment_id.topic_id_partition
        self._check_owner(owner.id, owner.partition)
        segment_id, state = change.remote_log_segment_id.id, change.remote_log_segment_state
        known = self._known.get(segment_id)
        before = None if known is None else known.remote_log_segment_state
        if known is None and state == DELETE_SEGMENT_FINISHED:
            return  # written twice: the first one forgot the segment
        if state not in SEGMENT_CHANGES[before]:
            raise UnlawfulChange(_text(segment_id, SEGMENT_STATES, before, state))
        if isinstance(change, RemoteLogSegmentMetadataRecord):
            _check_segment(change)
            if known is not None and known != replace(
                change, event_timestamp_ms=known.event_timestamp_ms
            ):
                raise UnlawfulChange(f"segment {segment_id.hex()} is told twice and differently")
            self._known[segment_id] = change
            self._finished = None
            return
        if known is None:
            raise UnlawfulChange(f"segment {segment_id.hex()} is not known: its copy never began")
        self._finished = None
        if state == DELETE_SEGMENT_FINISHED:
            del self._known[segment_id]
            return
        custom = change.custom_metadata
        self._known[segment_id] = replace(
            known,
            broker_id=change.broker_id,
            event_timestamp_ms=change.event_timestamp_ms,
            custom_metadata=known.custom_metadata if custom is None else custom,
            remote_log_segment_state=state,
        )

    def add(self, one: RemoteLogSegmentMetadataRecord) -> None:
        """Take over a segment in the state that it has elsewhere."""
        self._known[one.remote_log_segment_id.id] = one
        self._finished = None

    def find_segment(self, leader_epoch: int, offset: int) -> RemoteLogSegmentMetadataRecord | None:
        """The finished segment that has this offset as the epoch wrote it; of several the one that
        goes furthest."""
        every, found = self._in_order(), None
        number = bisect_right(every, offset, key=_start)
        while number and self._reached[number - 1] >= offset:
            number -= 1
            one = every[number]
            further = found is None or one.end_offset > found.end_offset
            if further and _holds(one, leader_epoch, offset):
                found = one
        return found

    def highest_offset(self, leader_epoch: int) -> int:
        """The last offset of an epoch in finished segments, -1 when they have none."""
        ends = [_range_of(one, leader_epoch)[1] for one in self._in_order()]
        return max(ends, default=-1)

    def finished(self) -> list[RemoteLogSegmentMetadataRecord]:
        """Those that can be read, by start offset."""
        return list(self._in_order())

    def _in_order(self) -> list[RemoteLogSegmentMetadataRecord]:
        every = self._finished
        if every is None:
            every = self._finished = self._sorted(finished=True)
            self._reached = list(accumulate((one.end_offset for one in every), max))
        return every

    def unfinished(self) -> list[RemoteLogSegmentMetadataRecord]:
        """Those whose copy did not end or whose deletion did not: objects to remove."""
        return self._sorted(finished=False)

    def _sorted(self, *, finished: bool) -> list[RemoteLogSegmentMetadataRecord]:
        found = [
            one
            for one in self._known.values()
            if (one.remote_log_segment_state == COPY_SEGMENT_FINISHED) is finished
        ]
        return sorted(found, key=lambda one: (one.start_offset, one.end_offset))

    def _replay_deletion(self, change: RemotePartitionDeleteMetadataRecord) -> None:
        self._check_owner(change.topic_id_partition.id, change.topic_id_partition.partition)
        state = change.remote_partition_delete_state
        if state not in DELETION_CHANGES[self.deletion]:
            raise UnlawfulChange(_text(self._key[0], DELETION_STATES, self.deletion, state))
        self.deletion = state

    def _check_owner(self, topic_id: bytes, partition: int) -> None:
        if (topic_id, partition) != self._key:
            raise UnlawfulChange(f"{topic_id.hex()}-{partition} is another partition")


def _check_segment(one: RemoteLogSegmentMetadataRecord) -> None:
    """Raises UnlawfulChange unless its offsets, size and epochs make sense together."""
    epochs = [(each.leader_epoch, each.offset) for each in one.segment_leader_epochs]
    rising = all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(epochs))
    if not 0 <= one.start_offset <= one.end_offset or one.segment_size_in_bytes < 0:
        text = f"offsets {one.start_offset} to {one.end_offset}, {one.segment_size_in_bytes} bytes"
    elif not epochs or not rising or epochs[0][0] < 0:
        text = f"leader epochs {epochs}"
    elif epochs[0][1] > one.start_offset or epochs[-1][1] > one.end_offset:
        text = f"leader epochs {epochs} of offsets {one.start_offset} to {one.end_offset}"
    else:
        return
    raise UnlawfulChange(f"segment {one.remote_log_segment_id.id.hex()} has {text}")


def _holds(one: RemoteLogSegmentMetadataRecord, leader_epoch: int, offset: int) -> bool:
    first, last = _range_of(one, leader_epoch)
    return first <= offset <= last


def _range_of(one: RemoteLogSegmentMetadataRecord, leader_epoch: int) -> tuple[int, int]:
    """First and last offset of an epoch in a segment, (0, -1) when it has none."""
    epochs = one.segment_leader_epochs
    for number, each in enumerate(epochs):
        if each.leader_epoch == leader_epoch:
            behind = epochs[number + 1].offset if number + 1 < len(epochs) else one.end_offset + 1
            return max(each.offset, one.start_offset), behind - 1
    return 0, -1


def _text(thing: bytes, names: dict[int, str], before: int | None, state: int) -> str:
    was = "unknown" if before is None else names[before]
    return f"{thing.hex()} is {was} and cannot become {names.get(state, state)}"
