"""OffsetForLeaderEpoch, API key 23, versions 2 to 4 (3: replica id, 4: flexible): where a leader
epoch ended.

Clients use it to see whether the log was cut behind them (KIP-101, KIP-320).
"""

from typing import Any

from appliance.authorization.apis import declared
from appliance.authorization.needs import SEE_EPOCHS
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host, Steps
from appliance.handlers.gather import GatheredPartition, Gathering, Values
from appliance.ring.messages import EPOCH_END, Message
from appliance.ring.slots import read_epoch_ended


def begin_offset_for_leader_epoch(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    gathering = Gathering(EPOCH_END, SEE_EPOCHS, failed, answered, "topic")
    count = sum(len(topic.partitions) for topic in request.topics)
    gather.ask_partitions(host, x, gathering, count, _plan(request, gathering))


def _plan(request: Any, gathering: Gathering) -> Steps:
    for topic in request.topics:
        made = (
            GatheredPartition(item.partition, item.leader_epoch, item.current_leader_epoch, 0)
            for item in topic.partitions
        )
        yield from gathering.add_rows(topic.topic, made)


def failed(asked: GatheredPartition, code: int) -> Values:
    return {"error_code": code, "partition": asked.partition, "leader_epoch": -1, "end_offset": -1}


def answered(asked: GatheredPartition, message: Message) -> Values:
    ended = read_epoch_ended(message)
    return {
        "error_code": 0,
        "partition": asked.partition,
        "leader_epoch": ended.leader_epoch,
        "end_offset": ended.end_offset,
    }


HANDLER = Handler(*declared(23), begin_offset_for_leader_epoch, gather.complete, slices=True)
