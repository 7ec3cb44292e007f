"""DescribeLogDirs, API key 35, versions 1 to 5.

2: flexible. 3: a code for the whole answer. 4: size of the volume (KIP-827). 5: cordoned folders.
There is one log folder; sizes are those that the homes of the partitions publish.
"""

from collections.abc import Iterable

from appliance.base import errors
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.ring.partition_table import HIGH_WATERMARK, LOG_END, SIZE_BYTES


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    image = context.situation.image
    if request.topics is None:
        asked: dict[str, Iterable[int]] = {
            name: range(len(topic.partitions)) for name, topic in image.topics_by_name.items()
        }
    else:
        asked = {topic.topic: dict.fromkeys(topic.partitions) for topic in request.topics}
    topics = []
    for name, indexes in asked.items():
        topic = image.topics_by_name.get(name)
        if topic is None:
            continue
        rows = [_partition(context, topic.topic_id, index) for index in indexes]
        found = [row for row in rows if row is not None]
        if found:
            topics.append({"name": name, "partitions": found})
    total, usable = context.volume()
    broker = image.brokers.get(context.situation.node_id)
    cordoned = bool(broker and context.situation.directory_id in (broker.cordoned_log_dirs or ()))
    directory = {
        "error_code": errors.NONE,
        "log_dir": context.log_dir,
        "topics": topics,
        "total_bytes": total,
        "usable_bytes": usable,
        "is_cordoned": cordoned,
    }
    values = {"throttle_time": 0, "error_code": errors.NONE, "results": [directory]}
    return Answer([], values)


def _partition(context: AdminContext, topic_id: bytes, index: int) -> Values | None:
    handle = context.handles.get((topic_id, index))
    if handle is None:
        return None
    row = context.partitions.read_row(handle)
    return {
        "partition_index": index,
        "partition_size": row[SIZE_BYTES],
        "offset_lag": max(row[LOG_END] - row[HIGH_WATERMARK], 0),
        "is_future_key": False,
    }


API = Api(35, "DescribeLogDirs", 1, 5, 2, decide)
