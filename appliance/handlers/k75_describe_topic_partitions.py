"""DescribeTopicPartitions, API key 75, version 0 (KIP-966): topics page by page, in the order of
their names.

A page ends after response_partition_limit partitions (at most max.request.partition.size.limit);
next_cursor says where the next one begins. No topics named means all of them. Those that the caller
may not see count for no page: they are told last when they were named and are not before the
cursor, else not at all.
"""

from dataclasses import field

from appliance.authorization.apis import declared
from appliance.authorization.needs import DESCRIBE_TOPIC
from appliance.authorization.operations import TOPIC
from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.handlers import describe, gather
from appliance.handlers.exchange import Exchange, Handler, Host, Steps, never
from appliance.handlers.gather import Values


@dataclass(slots=True)
class TopicPage:
    """names: sorted. left: partitions that the page has room for. named: topics were named."""

    names: list[str]
    start_topic: str
    start_partition: int
    left: int
    named: bool
    topics: list[Values] = field(default_factory=list)
    hidden: list[Values] = field(default_factory=list)
    cursor: Values | None = None


def begin_describe_topic_partitions(host: Host, x: Exchange) -> None:
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
        values = {"throttle_time": 0, "topics": wrong, "next_cursor": None}
        gather.reply_in_turns(host, x, values, len(wrong))
        return
    page = TopicPage(names, start_topic, start_partition, left, bool(asked))
    gather.in_slices(host, x, _fill(host, x, page), lambda: _answer(host, x, page))


def _fill(host: Host, x: Exchange, page: TopicPage) -> Steps:
    view, left = describe.View(host, x), page.left
    for number, name in enumerate(page.names):
        if number % gather.MANY == gather.MANY - 1:
            yield
        if name < page.start_topic:
            continue
        if not x.rights.everything and (code := x.rights.refusal(DESCRIBE_TOPIC, name)):
            page.hidden.append(describe.unknown_topic(code, name))
            continue
        if page.cursor is not None:
            continue
        if left == 0:
            page.cursor = {"topic_name": name, "partition_index": 0}
            continue
        image = host.image.topics_by_name.get(name)
        if image is None:
            code = describe.unknown_code(name)
            operations = x.rights.operations(TOPIC, name)
            page.topics.append(describe.unknown_topic(code, name, operations=operations))
            continue
        first = page.start_partition if name == page.start_topic else 0
        partitions = yield from view.partitions(image.partitions[first : first + left])
        for one in partitions:
            one["error_code"] = errors.NONE  # also of those that nobody leads, as Kafka's
        page.topics.append(view.topic(image, x.rights, partitions))
        left -= len(partitions)
        if first + len(partitions) < len(image.partitions):
            page.cursor = {"topic_name": name, "partition_index": first + len(partitions)}


def _answer(host: Host, x: Exchange, page: TopicPage) -> None:
    topics = page.topics + page.hidden if page.named else page.topics
    values = {"throttle_time": 0, "topics": topics, "next_cursor": page.cursor}
    rows = sum(1 + len(topic["partitions"]) for topic in topics)
    gather.reply_in_turns(host, x, values, rows)


HANDLER = Handler(*declared(75), begin_describe_topic_partitions, never, slices=True)
