"""DescribeTopicPartitions, API key 75, version 0 (KIP-966): topics page by page, in the order of
their names.

A page ends after response_partition_limit partitions (at most max.request.partition.size.limit);
next_cursor says where the next one begins. No topics named means all of them. Those that the caller
may not see count for no page: they are told last when they were named, else not at all.
"""

from appliance.authorization.needs import DESCRIBE_TOPIC
from appliance.authorization.operations import TOPIC
from appliance.base import errors
from appliance.handlers import describe, gather
from appliance.handlers.exchange import Exchange, Handler, Host, never
from appliance.handlers.gather import Values


def begin(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    limit = host.config.int("max.request.partition.size.limit")
    left = max(1, min(request.response_partition_limit, limit))
    names = sorted({topic.name for topic in request.topics} or set(host.image.topics_by_name))
    start_topic, start_partition = "", 0
    if request.cursor is not None:
        start_topic, start_partition = request.cursor.topic_name, request.cursor.partition_index
    asked = {topic.name for topic in request.topics}
    if start_partition < 0 or (start_topic and asked and start_topic not in asked):
        wrong = [describe.unknown_topic(errors.INVALID_REQUEST, name) for name in names]
        gather.reply(host, x, {"throttle_time": 0, "topics": wrong, "next_cursor": None})
        return
    hidden: list[Values] = []
    if not x.rights.everything:
        codes = {name: x.rights.refusal(DESCRIBE_TOPIC, name) for name in names}
        names = [name for name, code in codes.items() if not code]
        hidden = [describe.unknown_topic(code, name) for name, code in codes.items() if code]
    topics: list[Values] = []
    cursor = None
    view = describe.View(host, x)
    for name in names:
        if name < start_topic:
            continue
        if left == 0:
            cursor = {"topic_name": name, "partition_index": 0}
            break
        image = host.image.topics_by_name.get(name)
        if image is None:
            code = describe.unknown_code(name)
            operations = x.rights.operations(TOPIC, name)
            topics.append(describe.unknown_topic(code, name, operations=operations))
            continue
        values = view.topic(image, x.rights)
        first = start_partition if name == start_topic else 0
        page = values["partitions"][first : first + left]
        for one in page:
            one["error_code"] = errors.NONE  # also of those that nobody leads, as Kafka's
        topics.append({**values, "partitions": page})
        left -= len(page)
        if first + len(page) < len(image.partitions):
            cursor = {"topic_name": name, "partition_index": first + len(page)}
            break
    if asked:
        topics += hidden
    gather.reply(host, x, {"throttle_time": 0, "topics": topics, "next_cursor": cursor})


HANDLER = Handler(75, "DescribeTopicPartitions", 0, 0, begin, never)
