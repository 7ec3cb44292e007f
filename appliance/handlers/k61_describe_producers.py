"""DescribeProducers, API key 61, version 0 (KIP-664): who has written to partitions with a producer
id, and where their open transactions began. Flexible.
"""

from collections import Counter
from typing import Any, Final

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
    wanted = DESCRIBE_PRODUCERS, READ_TOPIC
    gathering = Gathering(*wanted, failed, answered, "name", reply)
    count = sum(len(topic.partition_indexes) for topic in request.topics)
    gather.ask_partitions(host, x, gathering, count, _plan(request, gathering))


def _plan(request: Any, gathering: Gathering) -> Steps:
    for topic in request.topics:
        made = (GatheredPartition(index, 0, -1, 0) for index in topic.partition_indexes)
        yield from gathering.add_rows(topic.name, made)


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
    key, version = x.handler.key, x.version
    codes = Counter((yield from error_codes.told_in_slices(key, version, values)))
    for code, times in codes.items():
        host.failed(x, code, times)
    topics: list[tuple[str, list[DescribedProducers]]] = []
    count = 0
    for topic in values["topics"]:
        rows: list[DescribedProducers] = []
        topics.append((topic["name"], rows))
        for one in topic["partitions"]:
            rows.append(DescribedProducers(*one.values()))
            count += 1
            if count % gather.MANY == 0:
                yield
    for number, _ in enumerate(producers.put_answer(out, topics)):
        if number % gather.MANY == 0:
            yield


HANDLER: Final[Handler] = Handler(*declared(61), begin_describe_producers, complete, slices=True)
