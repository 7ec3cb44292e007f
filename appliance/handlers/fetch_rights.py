"""Rights of a Fetch: asked before a partition is looked at, and again when rules have changed
while it waited."""

from appliance.authorization.needs import ACT_AS_BROKER, READ_TOPIC
from appliance.base import errors
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Host
from appliance.handlers.fetch_state import FetchedPartition, FetchState
from appliance.wire import fetch


def refusal(host: Host, x: Exchange, topic: bytes) -> int:
    """The error code for who may not read the topic, or not as another replica."""
    state: FetchState = x.state
    if state.request.replica_id < 0:
        return gather.refusal(host, x, READ_TOPIC, topic, x.version >= fetch.FIRST_TOPIC_ID)
    if x.rights.refusal(ACT_AS_BROKER):
        return errors.TOPIC_AUTHORIZATION_FAILED
    return errors.NONE


def judge_anew(host: Host, x: Exchange) -> None:
    """Rules have changed since: nothing is told any more of what they refuse now."""
    state: FetchState = x.state
    state.rules = x.rights.generation
    for index, asked in enumerate(state.asked):
        code = refusal(host, x, asked.partition.topic)
        if code:
            asked.route = None
            state.found[index] = FetchedPartition(code, -1, -1, -1)
            state.failed = True
