"""DescribeProducers, API key 61, version 0 (KIP-664): who has written to partitions with a producer
id, and where their open transactions began. Flexible.
"""

from typing import Final

from appliance.authorization.needs import READ_TOPIC
from appliance.authorization.operations import TEXTS
from appliance.base import errors
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host
from appliance.handlers.gather import Asked, Gathering, Values
from appliance.ring.messages import DESCRIBE_PRODUCERS, PRODUCERS, Message
from appliance.wire import producers

_TEXTS: Final = TEXTS | {
    errors.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition."
}
_FIELDS: Final = (
    "producer_id",
    "producer_epoch",
    "last_sequence",
    "last_timestamp",
    "coordinator_epoch",
    "current_txn_start_offset",
)


def begin(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    topics = [
        (topic.name, [Asked(index, 0, 0, 0) for index in topic.partition_indexes])
        for topic in request.topics
    ]
    flat = [asked for _, rows in topics for asked in rows]
    gather.start(
        host, x, Gathering(topics, flat, DESCRIBE_PRODUCERS, READ_TOPIC, failed, answered, "name")
    )


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    if message is not None and message.op == PRODUCERS:
        x.state.flat[index].payload += payload
    else:
        gather.complete(host, x, index, message, payload)


def failed(asked: Asked, code: int) -> Values:
    return {
        "partition_index": asked.partition,
        "error_code": code,
        "error_message": _TEXTS.get(code),
        "active_producers": (),
    }


def answered(asked: Asked, message: Message) -> Values:
    rows = producers.decode(asked.payload)
    return failed(asked, 0) | {
        "active_producers": [dict(zip(_FIELDS, row, strict=True)) for row in rows]
    }


HANDLER: Final[Handler] = Handler(61, "DescribeProducers", 0, 0, begin, complete)
