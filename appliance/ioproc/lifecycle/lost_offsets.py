"""The events of an opening that found less than was written: a tail that was cut off, offsets that
no segment has. Called by `partition_manager.py`.
"""

from typing import Final

from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.partitions.partition import Partition
from appliance.logstore import offset_gaps
from appliance.shell.log import NOTICE, WARNING, Log

_SHOWN: Final = 10
"""Holes and segments of one partition that are named, the others are counted."""


def say_cut(events: Log, partition: Partition) -> None:
    """Logs what recovery cut off: a torn tail, or whole segments behind a hole."""
    cut = partition.log.cut
    if cut is None:
        return
    shown = ",".join(map(str, cut.segments[:_SHOWN])) or "none"
    more = {"more": len(cut.segments) - _SHOWN} if len(cut.segments) > _SHOWN else {}
    events.event(
        WARNING if cut.segments else NOTICE, "log-cut", partition=partition, end=cut.offset,
        bytes=cut.size, segments=shown, **more, folder=partition.log.path, cause=cut.why,
    )  # fmt: skip


def say_missing(events: Log, opener: PartitionOpener, partition: Partition) -> None:
    """At the start: which offsets are gone. Raises StorageFailed."""
    log, lost = partition.log, opener.lost
    cause = "the folder was missing: the partition starts empty"
    holes = [lost] if lost is not None else offset_gaps.offsets(log)
    if lost is None and holes:
        cause = "no segment has them: consumers continue after them"
        key = (partition.topic, partition.index)
        compacted = opener.compacted_to(partition.directory, key)
        holes = [hole for hole in holes if hole[1] >= compacted]
    if holes:
        shown = ",".join(f"{first}-{last}" for first, last in holes[:_SHOWN])
        more = {"more": len(holes) - _SHOWN} if len(holes) > _SHOWN else {}
        events.event(
            WARNING, "offsets-missing", partition=partition, offsets=shown, **more,
            folder=log.path, cause=cause,
        )  # fmt: skip
