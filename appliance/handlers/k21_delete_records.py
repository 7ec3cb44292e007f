"""DeleteRecords, API key 21, versions 0 to 2 (2: flexible): advance the log start offset; -1 means
the high watermark.

Internal topics are refused as Kafka does (POLICY_VIOLATION is for compacted topics, decided by the
partition's home). Of a partition that is named twice the last offset counts, as Kafka's. Where
other nodes have replicas the answer waits for them, up to the request's timeout.
"""

from datetime import timedelta
from typing import Any, Final

from appliance.authorization import needs
from appliance.authorization.apis import declared
from appliance.base import errors
from appliance.base.ids import INTERNAL_TOPICS
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host, Steps
from appliance.handlers.gather import GatheredPartition, Gathering, Values
from appliance.ring.messages import DELETE_RECORDS, Message
from appliance.ring.slots import read_deleted

_MS: Final = timedelta(milliseconds=1)


def begin_delete_records(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    x.deadline_ns = host.now_ns + request.timeout // _MS * 1_000_000
    gathering = Gathering(DELETE_RECORDS, needs.DELETE_RECORDS, failed, answered, "name", _reply)
    count = sum(len(topic.partitions) for topic in request.topics)
    gather.ask_partitions(host, x, gathering, count, _plan(request, gathering))


def _plan(request: Any, gathering: Gathering) -> Steps:
    wanted: dict[str, dict[int, GatheredPartition]] = {}
    count = 0
    for topic in request.topics:
        rows = wanted.setdefault(topic.name, {})
        for partition in topic.partitions:
            asked = GatheredPartition(partition.partition_index, partition.offset, -1, 0)
            if topic.name in INTERNAL_TOPICS:
                asked.answer = failed(asked, errors.INVALID_TOPIC_EXCEPTION)
            rows[partition.partition_index] = asked
            count += 1
            if count % gather.MANY == 0:
                yield
    for name, found in wanted.items():
        yield from gathering.add_rows(name, found.values())


def failed(asked: GatheredPartition, code: int) -> Values:
    return {"partition_index": asked.partition, "low_watermark": -1, "error_code": code}


def answered(asked: GatheredPartition, message: Message) -> Values:
    low = read_deleted(message).low_watermark
    return {"partition_index": asked.partition, "low_watermark": low, "error_code": 0}


def _reply(host: Host, x: Exchange, values: Values, count: int) -> None:
    """The answer; what was deleted is told to the audit."""
    deleted: list[dict[str, str]] = []

    def end_noting() -> None:
        if deleted:
            host.audit_change(x, deleted)
        gather.reply_in_turns(host, x, values, count)

    gather.in_turns(host, x, count, _note_deleted(values, deleted), end_noting)


def _note_deleted(values: Values, deleted: list[dict[str, str]]) -> Steps:
    number = 0
    for topic in values["topics"]:
        for row in topic["partitions"]:
            if not row["error_code"]:
                name = f"{topic['name']}-{row['partition_index']}"
                before = str(row["low_watermark"])
                deleted.append(
                    {"type": "records", "name": name, "action": "delete", "before": before}
                )
            number += 1
            if number % gather.MANY == 0:
                yield


HANDLER = Handler(*declared(21), begin_delete_records, gather.complete, gather.expire, slices=True)
