"""DescribeProducers, API key 61, version 0 (KIP-664): who has written to partitions with a producer
id, and where their open transactions began. Flexible.
"""

from typing import Final

from appliance.authorization.apis import declared
from appliance.authorization.needs import READ_TOPIC
from appliance.authorization.operations import TEXTS
from appliance.base import errors
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host, Steps
from appliance.handlers.gather import GatheredPartition, Gathering, Values
from appliance.ring.messages import DESCRIBE_PRODUCERS, PRODUCERS, Message
from appliance.wire import error_codes, producers
from appliance.wire.producers import DescribedProducers

_TEXTS: Final = TEXTS | {
    errors.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition."
}


def begin_describe_producers(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    topics = [
        (topic.name, [GatheredPartition(index, 0, -1, 0) for index in topic.partition_indexes])
        for topic in request.topics
    ]
    flat = [asked for _, rows in topics for asked in rows]
    wanted = DESCRIBE_PRODUCERS, READ_TOPIC
    gather.ask_partitions(
        host, x, Gathering(topics, flat, *wanted, failed, answered, "name", reply)
    )


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    if message is not None and message.op == PRODUCERS:
        asked = x.state.flat[index]
        asked.before = asked.before or []
        asked.before.append(payload)
    else:
        gather.complete(host, x, index, message, payload)


def failed(asked: GatheredPartition, code: int) -> Values:
    return {
        "partition_index": asked.partition,
        "error_code": code,
        "error_message": _TEXTS.get(code),
        "active_producers": (),
    }


def answered(asked: GatheredPartition, message: Message) -> Values:
    return failed(asked, errors.NONE) | {"active_producers": asked.before or ()}


def reply(host: Host, x: Exchange, values: Values, count: int) -> None:
    """Finish with rows as their homes made them, over several turns where they are many."""
    out: list[bytes] = []
    steps = _answer(host, x, values, out)
    gather.in_turns(host, x, count, steps, lambda: host.finish(x, [b"".join(out)]))


def _answer(host: Host, x: Exchange, values: Values, out: list[bytes]) -> Steps:
    for code in error_codes.collect_codes(x.handler.key, x.version, values):
        host.failed(x, code)
    yield
    topics = [
        (topic["name"], [DescribedProducers(*one.values()) for one in topic["partitions"]])
        for topic in values["topics"]
    ]
    yield
    for number, _ in enumerate(producers.put_answer(out, topics)):
        if number % gather.MANY == 0:
            yield


HANDLER: Final[Handler] = Handler(*declared(61), begin_describe_producers, complete, slices=True)
