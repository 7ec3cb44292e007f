"""Metadata, API key 3, versions 0 to 13.

4: whether a missing topic may be created. 8: authorized operations. 9: flexible. 10: topic ids. 12:
topics may be asked for by id. 13: a code for the whole answer. A topic that is created because
somebody asks for it is answered when it exists, so that clients need no second round.

Brokers are told as `nodes.py` says, and of those that are fenced only who was not a moment ago.
"""

from collections.abc import Collection
from dataclasses import field
from typing import Any, Final

from appliance.authorization.apis import declared
from appliance.authorization.needs import CREATE_TOPIC, DESCRIBE_TOPIC
from appliance.authorization.operations import TOPIC
from appliance.authorization.rights import Rights
from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.ids import INTERNAL_TOPICS
from appliance.base.ids import ZERO_TOPIC_ID as NO_ID
from appliance.handlers import describe, gather, nodes
from appliance.handlers.exchange import Exchange, Handler, Host, Steps
from appliance.handlers.gather import Values
from appliance.metadata.image import TopicImage
from appliance.ring.messages import Message

MOST: Final = "penstock.topic.auto.create.max.per.minute"


@dataclass(slots=True)
class MetadataState:
    request: Any
    missing: list[str]  # topics being created; `complete` names them by their index
    refused: dict[str, int]  # those that could not be created, with the error code
    topics: list[Values] = field(default_factory=list)  # of the answer
    partitions: int = 0  # of those


def begin_metadata(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    if x.version in (10, 11) and _names_ids(request):
        _refuse(host, x, request)
        return
    x.state = MetadataState(request, [], {})
    asked = request.topics or ()
    may_create = getattr(request, "allow_auto_topic_creation", True)
    if not may_create or not host.config.bool("auto.create.topics.enable"):
        asked = ()
    gather.in_turns(host, x, len(asked), _look_for(host, x, asked), lambda: _create(host, x))


def _look_for(host: Host, x: Exchange, asked: Collection[Any]) -> Steps:
    """Which of these topics are to be created: of those that the client may have created as many as
    it may at a time, and one for which control tells it that these are too many."""
    missing: dict[str, None] = {}
    most = 0
    for number, item in enumerate(asked):
        if number % gather.MANY == gather.MANY - 1:
            yield
        if not x.rights.everything and _hidden(x, item.name):
            continue
        if item.name in host.image.topics_by_name:
            host.asks_for(x, item.name)
        elif item.name is not None:
            most = most or host.config.int(MOST) + 1
            if len(missing) == most:
                continue
            if not x.rights.everything and (code := _uncreatable(x, item.name)):
                x.state.refused[item.name] = code
            else:
                missing[item.name] = None
    x.state.missing = list(missing)


def _create(host: Host, x: Exchange) -> None:
    missing = x.state.missing
    if not missing:
        _finish(host, x)
        return
    steps = gather.rows_of(enumerate(missing), lambda row: host.ensure_topic(x, *row))
    gather.in_turns(host, x, len(missing), steps, lambda: _finish_if_complete(host, x))


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    state: MetadataState = x.state
    code = errors.LEADER_NOT_AVAILABLE if message is None else message.flags - 1
    if code in (errors.NONE, errors.TOPIC_ALREADY_EXISTS):
        host.asks_for(x, state.missing[index])
    else:
        state.refused[state.missing[index]] = code
    _finish_if_complete(host, x)


def _finish_if_complete(host: Host, x: Exchange) -> None:
    if not x.pending:
        _finish(host, x)


def _finish(host: Host, x: Exchange) -> None:
    state: MetadataState = x.state
    request = state.request
    with_operations = getattr(request, "include_topic_authorized_operations", False)
    rights = x.rights if with_operations else None
    view = describe.View(host, x)
    if request.topics is None or (x.version == 0 and not request.topics):
        steps = _all(x, list(host.image.topics_by_name.values()), rights, view)
    else:
        steps = _named(host, x, request.topics, rights, view)
    gather.in_slices(host, x, steps, lambda: _answer(host, x, view))


def _all(
    x: Exchange, images: list[TopicImage], rights: Rights | None, view: describe.View
) -> Steps:
    rows = 0
    for image in images:
        if x.rights.may(DESCRIBE_TOPIC, image.name):
            x.state.partitions += len(image.partitions)
            partitions = yield from view.partitions(image.partitions, only_living=not x.version)
            x.state.topics.append(view.topic(image, rights, partitions))
        rows += 1 + len(image.partitions)
        if rows >= gather.MANY:
            rows = 0
            yield


def _named(
    host: Host, x: Exchange, asked: Collection[Any], rights: Rights | None, view: describe.View
) -> Steps:
    """A topic that is named twice is answered once, with whatever ids its name comes."""
    rows, seen = 0, set()
    for item in asked:
        key = item.name if item.name is not None else item.topic_id
        if key not in seen:
            seen.add(key)
            found = _asked(host, x, item, rights)
            if isinstance(found, TopicImage):
                rows += len(found.partitions)
                x.state.partitions += len(found.partitions)
                if len(found.partitions) <= gather.MANY and x.version:
                    found = view.topic(found, rights)
                else:
                    made = yield from view.partitions(found.partitions, only_living=not x.version)
                    found = view.topic(found, rights, made)
            x.state.topics.append(found)
        rows += 1
        if rows >= gather.MANY:
            rows = 0
            yield


def _answer(host: Host, x: Exchange, view: describe.View) -> None:
    request, topics = x.state.request, x.state.topics
    cluster_operations = getattr(request, "include_cluster_authorized_operations", False)
    values = {
        "throttle_time": 0,
        "brokers": view.brokers(besides=nodes.just_left(host) if host.left else ()),
        "cluster_id": host.cluster_id,
        "controller_id": nodes.controller(host),
        "topics": topics,
        "cluster_authorized_operations": describe.cluster_operations(x.rights)
        if cluster_operations
        else describe.NOT_ASKED_FOR,
        "error_code": errors.NONE,
    }
    gather.reply_in_turns(host, x, values, len(topics) + x.state.partitions)


def _names_ids(request: Any) -> bool:
    return any(item.name is None or item.topic_id is not None for item in request.topics or ())


def _refuse(host: Host, x: Exchange, request: Any) -> None:
    """Versions 10 and 11 have a field for ids, and may not be asked by them (KAFKA-10774)."""
    topics: list[Values] = []

    def add_topic(item: Any) -> None:
        topic_id = item.topic_id.bytes if item.topic_id else NO_ID
        topics.append(describe.unknown_topic(errors.INVALID_REQUEST, item.name or "", topic_id))

    values = {
        "throttle_time": 0,
        "brokers": [],
        "cluster_id": None,
        "controller_id": -1,
        "topics": topics,
        "cluster_authorized_operations": describe.NOT_ASKED_FOR,
    }
    asked = dict.fromkeys(request.topics)
    steps = gather.rows_of(asked, add_topic)
    gather.in_turns(
        host, x, len(asked), steps, lambda: gather.reply_in_turns(host, x, values, len(topics))
    )


def _hidden(x: Exchange, name: str | None) -> int:
    """The error code for who may not see the topic of this name, be there one or not."""
    return errors.NONE if name is None else x.rights.refusal(DESCRIBE_TOPIC, name)


def _uncreatable(x: Exchange, name: str) -> int:
    """The error code for who may not have a topic of this name created; internal ones everybody
    needs."""
    return errors.NONE if name in INTERNAL_TOPICS else x.rights.refusal(CREATE_TOPIC, name)


def _asked(host: Host, x: Exchange, item: Any, rights: Rights | None) -> TopicImage | Values:
    """The topic, or an answer that says why it is not told."""
    topic_id = getattr(item, "topic_id", None)
    limited = not x.rights.everything
    found: TopicImage | None
    if item.name is None:
        key = topic_id.bytes if topic_id is not None else b""
        found = host.image.topics_by_id.get(key)
        if found is None:
            return describe.unknown_topic(errors.UNKNOWN_TOPIC_ID, None, key or NO_ID)
        if limited and (code := _hidden(x, found.name)):
            return describe.unknown_topic(code, None, key)
    else:
        if limited and (code := _hidden(x, item.name)):
            return describe.unknown_topic(code, item.name)
        found = host.image.topics_by_name.get(item.name)
        if found is None:
            code = x.state.refused.get(item.name) or describe.unknown_code(item.name)
            if rights is None or code == errors.TOPIC_AUTHORIZATION_FAILED:
                return describe.unknown_topic(code, item.name)
            operations = rights.operations(TOPIC, item.name)
            return describe.unknown_topic(code, item.name, operations=operations)
    return found


HANDLER = Handler(*declared(3), begin_metadata, complete, slices=True)
