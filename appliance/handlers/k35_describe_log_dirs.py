"""DescribeLogDirs, API key 35, versions 1 to 5.

2: flexible. 3: a code for the whole answer. 4: size of the volume (KIP-827). 5: cordoned folders.
Sizes are those that the homes of the partitions publish. A partition that moves is told in both of
its folders, where it goes as a future one, with how far the copy is behind. One whose own files
failed is told in a folder of its own, with the error: the log folder around it serves the others.
"""

from collections.abc import Iterable

from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.handlers.admin import AdminContext, Answer, Api, Message, Values
from appliance.metadata.log_dirs import directory_of
from appliance.metadata.parts import TopicImage
from appliance.ring.partition_table import (
    DIRECTORY,
    FUTURE,
    FUTURE_BYTES,
    LOG_END,
    OFFLINE,
    SIZE_BYTES,
    STATUS,
)

_UNKNOWN_VOLUME = (-1, -1)


def decide(request: Message, version: int, context: AdminContext) -> Answer:
    image = context.situation.image
    if request.topics is None:
        asked: dict[str, Iterable[int]] = {
            name: range(len(topic.partitions)) for name, topic in image.topics_by_name.items()
        }
    else:
        asked = {topic.topic: dict.fromkeys(topic.partitions) for topic in request.topics}
    places: list[dict[str, list[Values]]] = [{} for _ in context.dirs.paths]
    failed: list[Values] = []
    for name, indexes in asked.items():
        topic = image.topics_by_name.get(name)
        for index in indexes if topic is not None else ():
            assert topic is not None
            for number, row in _partition(context, topic, index):
                if _offline(context, topic, index):
                    failed.append(_failed(context.dirs.paths[number], name, row))
                else:
                    places[number].setdefault(name, []).append(row)
    results = [_directory(context, number, found) for number, found in enumerate(places)] + failed
    return Answer([], {"throttle_time": 0, "error_code": errors.NONE, "results": results})


def _directory(context: AdminContext, number: int, found: dict[str, list[Values]]) -> Values:
    path, directory_id = context.dirs.paths[number], context.dirs.ids[number]
    broker = context.situation.image.brokers.get(context.situation.node_id)
    failed = bool(broker and broker.log_dirs and directory_id not in broker.log_dirs)  # KIP-858
    volume = None if directory_id is None or failed else context.volume(path)
    total, usable = volume or _UNKNOWN_VOLUME
    topics = [{"name": name, "partitions": rows} for name, rows in found.items()]
    return {
        "error_code": errors.NONE if volume is not None else errors.KAFKA_STORAGE_ERROR,
        "log_dir": path,
        "topics": topics if volume is not None else [],
        "total_bytes": total,
        "usable_bytes": usable,
        "is_cordoned": bool(broker and directory_id in (broker.cordoned_log_dirs or ())),
    }


def _offline(context: AdminContext, topic: TopicImage, index: int) -> bool:
    handle = context.handles[topic.topic_id, index]
    return context.partitions.read_column(handle, STATUS) == OFFLINE


def _failed(path: str, name: str, row: Values) -> Values:
    """The folder of one partition that a write or sync failed in, or that cannot be opened."""
    return {
        "error_code": errors.KAFKA_STORAGE_ERROR,
        "log_dir": f"{path}/{name}-{row['partition_index']}",
        "topics": [{"name": name, "partitions": [row]}],
        "total_bytes": -1,
        "usable_bytes": -1,
        "is_cordoned": False,
    }


def _partition(context: AdminContext, topic: TopicImage, index: int) -> list[tuple[int, Values]]:
    """The partition as it is, and as it will be somewhere else: (number of the folder, row).

    Nothing for one that could not be opened because its folder is offline."""
    handle = context.handles.get((topic.topic_id, index))
    if handle is None:
        return []
    row = context.partitions.read_row(handle)
    if row[STATUS] == OFFLINE and len(context.dirs.paths) > 1:
        where = directory_of(topic.partitions[index], context.situation.node_id)
        if context.dirs.number(where) < 0:
            return []
    rows = [(row[DIRECTORY], _values(index, row[SIZE_BYTES], 0))]
    future = row[FUTURE]
    if future:
        behind = row[LOG_END] - (future >> 8)
        rows.append(
            (
                (future & 0xFF) - 1,
                {**_values(index, row[FUTURE_BYTES], behind), "is_future_key": True},
            )
        )
    return [one for one in rows if one[0] < len(context.dirs.paths)]


def _values(index: int, size: int, behind: int) -> Values:
    return {
        "partition_index": index,
        "partition_size": size,
        "offset_lag": max(behind, 0),
        "is_future_key": False,
    }


def refused(request: Message, told: Values) -> Values:
    return {**told, "results": []}


API = Api(*declared(35), decide, any_node=True, refused=refused)
