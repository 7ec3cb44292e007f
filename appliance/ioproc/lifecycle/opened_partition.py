"""The questions to `partition_opener.py`, and its answers."""

from typing import NamedTuple

from appliance.config.broker import BrokerConfig
from appliance.config.log_config import LogConfig
from appliance.ioproc.deletion.deleted_folders import DeletedFolders
from appliance.logstore.log import PartitionLog
from appliance.metadata.effective import log_config
from appliance.metadata.follower import Follower
from appliance.metadata.log_dirs import UNASSIGNED
from appliance.metadata.parts import TopicImage

Place = tuple[TopicImage, int]
"""A topic and the number of a partition of it."""


class WantedLog(NamedTuple):
    """The arguments of `PartitionOpener.open_log`."""

    topic: str
    partition: int
    topic_id: bytes
    handle: int
    config: LogConfig
    now_ms: int
    wanted: bytes = UNASSIGNED


class OpenedPartition(NamedTuple):
    """A log and the number of the log folder that it lies in. high_watermark: the last one that is
    known. marked: it was undeleted, and its folder says what the checkpoints do not."""

    log: PartitionLog
    directory: int
    high_watermark: int
    marked: bool = False


def find_wanted(
    follower: Follower, config: BrokerConfig, trash: DeletedFolders, now_ms: int, place: Place
) -> WantedLog | None:
    """Returns the arguments for this place, where there is one log folder; None where they may
    change: the partition has no row yet, or its folder may come out of the trash."""
    topic, index = place
    handle = follower.handles.get((topic.topic_id, index))
    if handle is None or trash.keeps(topic.topic_id):
        return None
    rules = log_config(follower.image, config, topic.name)
    return WantedLog(topic.name, index, topic.topic_id, handle, rules, now_ms)
