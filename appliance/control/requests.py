"""What netprocs send to control, decoded where it lies and decided: `Requests.answer`.

Decides over the replayed image and appends; says nothing to the peer before the records are synced,
so it returns the answer for the shell to keep until then.
"""

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from appliance.base import errors
from appliance.base.errors import DiskFull, MalformedRequest, PeerError
from appliance.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC
from appliance.controller.decision import NO_LIMIT, Record
from appliance.controller.topics import NewTopic, create_topics, offsets_topic
from appliance.handlers.admin import AdminContext, Answer
from appliance.handlers.admin_apis import APIS
from appliance.ring.messages import Message
from appliance.wire.build import response
from appliance.wire.messages import decode_request, encode_response

Append = Callable[[list[Record]], None]
Report = Callable[[str, str], None]
"""(event, cause), for the log."""


class Requests:
    """append: stages and replays records. report: logs what should not happen. blocked_ms: for how
    long a name must not be created just because a consumer goes on asking for it. full: what to say
    when append raised DiskFull: then nothing of the records is there."""

    __slots__ = ("_append", "_blocked_ms", "_full", "_report")

    def __init__(
        self,
        append: Append,
        report: Report,
        blocked_ms: Callable[[str], int],
        full: Callable[[], str],
    ) -> None:
        self._append = append
        self._full = full
        self._report = report
        self._blocked_ms = blocked_ms

    def forwarded(
        self, message: Message, arena: memoryview, context: AdminContext
    ) -> tuple[int, bytes]:
        """Answer a FORWARD: (error code, encoded body). A code other than NONE has no body: the
        netproc closes the connection."""
        key, version = message.b >> 16, message.b & 0xFFFF
        api = APIS.get(key)
        if api is None or not api.lowest <= version <= api.highest:
            self._report("not-served", f"API key {key} version {version}")
            return errors.UNSUPPORTED_VERSION, b""
        body = bytes(arena[message.a : message.a + message.e])
        try:
            request = decode_request(key, version, body)
        except MalformedRequest as cause:
            self._report("malformed-request", f"{api.name}: {cause}")
            return errors.INVALID_REQUEST, b""
        try:
            answer: Answer = api.decide(request, version, context)
            if context.situation.permit.pause_ms:
                answer.values["throttle_time"] = context.situation.permit.pause_ms
            encoded = encode_response(response(key, version, answer.values))
        except Exception:  # nothing was changed yet: one request must not end the process
            self._report("bug", f"{api.name} v{version}: {traceback.format_exc()}")
            return errors.UNKNOWN_SERVER_ERROR, b""
        if answer.records:
            try:
                self._append(answer.records)
            except DiskFull:
                self._report("disk-full", f"{api.name} refused: {self._full()}")
                values = refused(answer.values, self._full())
                return errors.NONE, encode_response(response(key, version, values))
        return errors.NONE, encoded

    def ensure_topic(self, message: Message, context: AdminContext) -> tuple[int, bytes]:
        """Answer an ENSURE_TOPIC: (error code, the topic's name)."""
        name, _, asker = message.payload.partition(b"\0")
        try:
            text = name.decode()
        except UnicodeDecodeError:
            return errors.INVALID_TOPIC_EXCEPTION, name
        return self._ensure(text, asker, context, left_over=message.a == 1), name

    def _ensure(self, name: str, asker: bytes, context: AdminContext, *, left_over: bool) -> int:
        situation = context.situation
        if name in situation.image.topics_by_name:
            return errors.NONE
        if name == OFFSETS_TOPIC:  # groups need it, whatever is allowed to clients
            topic = offsets_topic(situation)
            situation.permit = NO_LIMIT
        elif name in INTERNAL_TOPICS or not situation.config.bool("auto.create.topics.enable"):
            return errors.UNKNOWN_TOPIC_OR_PARTITION
        elif left_over and (blocked_ms := self._blocked_ms(name)):
            self._report("topic-not-created", _why_not(name, asker, blocked_ms))
            return errors.UNKNOWN_TOPIC_OR_PARTITION
        else:
            topic = NewTopic(name)
        try:
            records, [(_, result, _)] = create_topics(situation, [topic])
        except PeerError as error:
            return error.code
        if result.code == errors.KAFKA_STORAGE_ERROR:
            return errors.LEADER_NOT_AVAILABLE  # which every client asks again after
        if result.code == errors.NONE:
            try:
                self._append(records)
            except DiskFull:
                return errors.LEADER_NOT_AVAILABLE
            if name == OFFSETS_TOPIC:
                self._say_fewer(topic, context)
        if result.code == errors.THROTTLING_QUOTA_EXCEEDED:
            return errors.UNKNOWN_TOPIC_OR_PARTITION  # a client that asks again will find it
        return result.code

    def _say_fewer(self, topic: NewTopic, context: AdminContext) -> None:
        """An internal topic never asks for more replicas than there can be."""
        wanted = context.situation.config.int("offsets.topic.replication.factor")
        if topic.replication_factor < wanted:
            self._report(
                "fewer-replicas",
                f"{topic.name} has a replication factor of {topic.replication_factor}, not"
                f" offsets.topic.replication.factor={wanted}: there are no more brokers",
            )


def refused(values: Mapping[str, Any], text: str) -> dict[str, Any]:
    """An answer of which nothing came true: whatever had no error has one that can be retried."""

    def told(key: str, value: Any, row: Mapping[str, Any]) -> Any:
        if key == "error_code" and value == errors.NONE:
            return errors.KAFKA_STORAGE_ERROR
        if key == "error_message" and row.get("error_code") == errors.NONE:
            return text
        if isinstance(value, Mapping):
            return refused(value, text)
        if isinstance(value, list | tuple):
            return [refused(one, text) if isinstance(one, Mapping) else one for one in value]
        return value

    return {key: told(key, value, values) for key, value in values.items()}


def _why_not(name: str, asker: bytes, blocked_ms: int) -> str:
    """asker: address, zero byte, client id."""
    address, _, client = asker.partition(b"\0")
    return (
        f"{name} was deleted and {address.decode('utf-8', 'replace')}, client id"
        f" {client.decode('utf-8', 'replace')[:200]!r}, goes on asking for it: that does not make"
        f" it for another {-(-blocked_ms // 1000)} s; a producer makes it, a new connection, and"
        " CreateTopics"
    )
