"""Requests for groups: passed on to the home of their partition of `__consumer_offsets`, answers
back.

A request that names one group goes to one home as it came; only the group's id is looked at here.
One that names several, or asks for all, is split among the partitions concerned, and the answers
are spliced. The request is kept until it is answered: a home that dies is answered for here, with
an error upon which clients look for their coordinator again.
"""

from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

from appliance.base import errors
from appliance.base.errors import MalformedRequest
from appliance.base.ids import OFFSETS_TOPIC
from appliance.coordinators import routing
from appliance.coordinators.call import Call
from appliance.coordinators.settings import Settings
from appliance.coordinators.shard import Shard
from appliance.handlers.exchange import Exchange, Handler, Host
from appliance.metadata.image import MetadataImage
from appliance.ring.messages import Message
from appliance.wire import messages
from appliance.wire.build import response
from appliance.wire.request_head import is_flexible
from appliance.wire.varint import read_uvarint

_TOPIC: Final = OFFSETS_TOPIC.encode()
_NO_IMAGE: Final = MetadataImage()
_SHORT = Struct(">h").unpack_from
_SEVERAL: Final = frozenset(
    (
        routing.DESCRIBE_GROUPS,
        routing.LIST_GROUPS,
        routing.DELETE_GROUPS,
        routing.CONSUMER_GROUP_DESCRIBE,
    )
)


@dataclass(slots=True)
class Coordinated:
    """One request under way. count: partitions of the topic; 0: there is no such topic.

    asked: the partitions and what each was asked; `complete` names them by their index here.
    answers: encoded, in the same order, in pieces.
    """

    count: int
    asked: list[tuple[int, bytes]]
    answers: list[list[bytes]] = field(default_factory=list)


def begin(host: Host, x: Exchange) -> None:
    """Ask every partition concerned. Raises MalformedRequest."""
    body = bytes(host.memory[x.position : x.end])
    topic = host.image.topics_by_name.get(OFFSETS_TOPIC)
    count = 0 if topic is None else len(topic.partitions)
    asked = _asked(x.handler.key, x.version, body, count) if count else [(0, body)]
    state = x.state = Coordinated(count, asked, [[] for _ in asked])
    for index, (shard, part) in enumerate(asked):
        route = host.route(_TOPIC, shard, by_id=False) if count else None
        if route is None:
            state.answers[index] = [_refused(x, state, index)]
        else:
            host.coordinate(x, index, route, part)
    if not x.pending:
        _finish(host, x)


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """A piece of one partition's answer. message None: its home died."""
    state: Coordinated = x.state
    if message is None:
        state.answers[index] = [_refused(x, state, index)]
    elif message.flags == 1:
        state.answers[index].append(payload)
    else:
        host.hang_up(x, f"the coordinator did not answer: error {message.flags - 1}")
        return
    if not x.pending and x.answer is None:
        _finish(host, x)


def _asked(key: int, version: int, body: bytes, count: int) -> list[tuple[int, bytes]]:
    if key not in _SEVERAL and not (key == routing.OFFSET_FETCH and version >= 8):
        return [(routing.shard_of(group_id(key, version, body), count), body)]
    request = messages.decode_request(key, version, body)
    return [
        (shard, body if part is request else messages.encode_request(part))
        for shard, part in routing.split(key, request, count).items()
    ]


def group_id(key: int, version: int, body: bytes) -> str:
    """The group's id: the first field of every request that names one group. Raises
    MalformedRequest."""
    if is_flexible(key, version):
        size, at = read_uvarint(memoryview(body), 0, len(body))
        size -= 1
    elif len(body) >= 2:
        size, at = _SHORT(body)[0], 2
    else:
        size, at = -1, 0
    if not 0 <= size <= len(body) - at:
        raise MalformedRequest(f"group id of {size} bytes, {len(body) - at} remain")
    try:
        return body[at : at + size].decode()
    except UnicodeDecodeError as cause:
        raise MalformedRequest(f"the group id is not UTF-8: {cause}") from cause


def _refused(x: Exchange, state: Coordinated, index: int) -> bytes:
    """What a partition that nobody serves answers: there is no topic yet, or its home died."""
    key, version = x.handler.key, x.version
    code = errors.NOT_COORDINATOR
    if key == routing.LIST_GROUPS:  # nobody's in particular: without the topic there are no groups
        code = errors.COORDINATOR_NOT_AVAILABLE if state.count else errors.NONE
    shard, body = state.asked[index]
    values = refusal(key, version, body, code, shard, max(state.count, 1))
    return messages.encode_response(response(key, version, values))


def refusal(
    key: int, version: int, body: bytes, code: int, shard: int, count: int
) -> dict[str, Any]:
    """The answer with this error of partition `shard` of `count`. Raises MalformedRequest."""
    nobody = Shard(shard, Settings(partitions=count), _NO_IMAGE, bytes)
    request = messages.decode_request(key, version, body)
    outcome = nobody.refuse(Call(key, version, 0), request, code)
    return dict(outcome.responses[0][1])


def _finish(host: Host, x: Exchange) -> None:
    state: Coordinated = x.state
    if len(state.answers) == 1:
        host.finish(x, list(state.answers[0]))
        return
    answers = [b"".join(pieces) for pieces in state.answers]
    host.finish(x, [routing.splice(x.handler.key, x.version, answers)])


def handler(key: int, name: str, lowest: int, highest: int) -> Handler:
    """A request of this API is for group coordinators to answer."""
    return Handler(key, name, lowest, highest, begin, complete)
