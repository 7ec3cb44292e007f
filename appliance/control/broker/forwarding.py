"""Requests of clients that only the active controller decides, while this node is not it (KIP-590).

    put ─▶ waiting ─ a controller is known ─▶ sent ─ answered ─▶ reading ─ this node knows ─▶ said
              ▲ └─ its time is up: refused      │                          as much, or waits
              └──── no controller any more ─────┘                          too long

Who is answered finds at this node what the answer speaks of: the controller is asked how far it is,
and this node reads up to there first. Invariant: each request is answered once, as the controller
decided it or by what it is refused with; none is given up before its time is up. Called by
`node.py`; times are ms of a clock that never goes back.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from appliance.base import errors
from appliance.base.caller import Caller
from appliance.base.dataclass import dataclass
from appliance.base.errors import MalformedRequest, PeerError
from appliance.base.ids import METADATA_TOPIC
from appliance.control.broker.channel import Values
from appliance.control.broker.lifecycle import NEVER
from appliance.control.requests.pending_answers import Answer
from appliance.controller.topics import NewTopic
from appliance.peers.conversation import Done
from appliance.wire.build import build
from appliance.wire.envelope import (
    ENVELOPE,
    disclose_answer,
    enclose,
    encode_address,
    encode_principal,
)
from appliance.wire.messages import decode_response, encode_request, request_type

CREATE_TOPICS: Final = 19
DESCRIBE_QUORUM: Final = 55
_AGAIN_MS: Final = 50
"""Wait before the same controller is asked again."""
_READ_MS: Final = 1_000
"""Who was answered waits so long for this node to read what the answer speaks of."""
_VERSION: Final = 7  # of CreateTopics
_OTHERWISE: Final = {
    errors.TOPIC_ALREADY_EXISTS: errors.NONE,
    errors.KAFKA_STORAGE_ERROR: errors.LEADER_NOT_AVAILABLE,  # which every client asks again after
    errors.THROTTLING_QUOTA_EXCEEDED: errors.UNKNOWN_TOPIC_OR_PARTITION,  # who asks again finds it
}
_FAR: Final = {"topics": [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]}

Refuse = Callable[[int], Answer]
"""What is answered to a request that failed with this error code."""


class ControllerChannel(Protocol):
    """`channel.Channel`."""

    @property
    def known(self) -> bool: ...

    def ask_controller(self, api_key: int, values: Values, done: Done, timeout_ms: int) -> None: ...


class ControllerRequest(NamedTuple):
    """A request to the controller. read: its answer → (error code, body); raises
    MalformedRequest.
    """

    api_key: int
    values: Values
    read: Callable[[Any], Answer]


class NoController(Exception):
    """Raised when the answering node is not the active controller."""


@dataclass(slots=True, eq=False)
class _Forwarded:
    """until_ms: when its time is up; then: when this node need not read on any more. answer: what
    the controller decided. behind: where this node must have read to, -1: not known yet."""

    netproc: int
    token: int
    question: ControllerRequest
    refuse: Refuse
    until_ms: int
    answer: Answer = (errors.NONE, b"")
    behind: int = -1


class Forwarding:
    """The requests that are on their way."""

    __slots__ = ("_again_ms", "_asks", "_done", "_now_ms", "_reading", "_sent", "_waiting")

    def __init__(self, asks: ControllerChannel) -> None:
        self._asks = asks
        self._now_ms = self._again_ms = 0
        self._waiting: deque[_Forwarded] = deque()
        self._sent: list[_Forwarded] = []
        self._reading: list[_Forwarded] = []
        self._done: deque[tuple[_Forwarded, Answer]] = deque()

    def forward_request(
        self, netproc: int, token: int, question: ControllerRequest, refuse: Refuse, until_ms: int
    ) -> None:
        """A netproc asks; it is answered by `release`."""
        self._waiting.append(_Forwarded(netproc, token, question, refuse, until_ms))

    def forget_netproc(self, netproc: int) -> None:
        """This process is dead: nobody hears what it asked for, which is done all the same."""
        self._waiting = deque(one for one in self._waiting if one.netproc != netproc)
        self._sent = [one for one in self._sent if one.netproc != netproc]
        self._reading = [one for one in self._reading if one.netproc != netproc]
        self._done = deque(one for one in self._done if one[0].netproc != netproc)

    def found(self) -> None:
        """There is another controller, or one again."""
        self._again_ms = 0

    def run_once(self, now_ms: int) -> int:
        """Ask for those that wait, give up those whose time is up. When to come again."""
        self._now_ms = now_ms
        while self._waiting and self._asks.known and now_ms >= self._again_ms:
            one = self._waiting.popleft()
            self._sent.append(one)
            left = max(1, one.until_ms - now_ms)
            question = one.question
            self._asks.ask_controller(
                question.api_key, question.values, partial(self._heard, one), left
            )
        for waits in (self._waiting, self._sent):
            for one in [one for one in waits if one.until_ms <= now_ms]:
                waits.remove(one)
                self._done.append((one, one.refuse(errors.REQUEST_TIMED_OUT)))
        for one in [one for one in self._reading if one.until_ms <= now_ms]:
            self._reading.remove(one)
            self._done.append((one, one.answer))
        return self._due_ms()

    def release(self, committed: int) -> Iterator[tuple[int, int, int, bytes]]:
        """(netproc, token, code, body) of each that may be said now. committed: exclusive end of
        the metadata that this node has read."""
        for one in [one for one in self._reading if 0 <= one.behind <= committed]:
            self._reading.remove(one)
            self._done.append((one, one.answer))
        while self._done:
            one, (code, body) = self._done.popleft()
            yield one.netproc, one.token, code, body

    def _due_ms(self) -> int:
        ends = [one.until_ms for part in (self._waiting, self._sent, self._reading) for one in part]
        if self._waiting and self._asks.known:
            ends.append(self._again_ms)
        return min(ends, default=NEVER)

    # What the controller says ---------------------------------------------------------------------

    def _heard(self, one: _Forwarded, answer: Any) -> None:
        if one not in self._sent:
            return  # its time was up, or who asked is dead
        self._sent.remove(one)
        try:
            if isinstance(answer, PeerError):
                raise _judged(answer)
            one.answer = one.question.read(answer)
        except NoController:
            self._waiting.appendleft(one)
            self._again_ms = self._now_ms + _AGAIN_MS
        except (PeerError, MalformedRequest) as cause:
            code = cause.code if isinstance(cause, PeerError) else errors.UNKNOWN_SERVER_ERROR
            self._done.append((one, one.refuse(code)))
        except Exception:
            self._done.append((one, one.refuse(errors.UNKNOWN_SERVER_ERROR)))
            raise
        else:
            one.until_ms = min(one.until_ms, self._now_ms + _READ_MS)
            self._reading.append(one)
            self._asks.ask_controller(DESCRIBE_QUORUM, _FAR, partial(self._far, one), _READ_MS)

    def _far(self, one: _Forwarded, answer: Any) -> None:
        """How far the controller is, or that it cannot be asked any more."""
        one.behind = 0
        if not isinstance(answer, PeerError):
            ends = [row.high_watermark for topic in answer.topics for row in topic.partitions]
            one.behind = max([0, *ends])


def _judged(error: PeerError) -> Exception:
    """NoController for errors that are worth a retry, else the error itself."""
    again = (errors.NETWORK_EXCEPTION, errors.NOT_CONTROLLER, errors.REQUEST_TIMED_OUT)
    return NoController() if error.code in again else error


def creation_code(code: int) -> int:
    """The error code for a topic that a client asked for, by the code of CreateTopics."""
    return _OTHERWISE.get(code, code)


def enveloped(api_key: int, version: int, caller: Caller, body: bytes) -> ControllerRequest:
    """A client's request as it came, for its caller."""
    read = partial(_opened, api_key, version)
    return ControllerRequest(ENVELOPE, _envelope(api_key, version, caller, body), read)


def creation(topic: NewTopic, caller: Caller | None) -> ControllerRequest:
    """CreateTopics of one topic because a client asked for it: in its name, or in our own when the
    caller is None. The answer is for an ENSURE_TOPIC."""
    values = {"topics": [_wanted(topic)], "timeout": _READ_MS, "validate_only": False}
    if caller is None:
        return ControllerRequest(CREATE_TOPICS, values, partial(_created, topic.name))
    message = build(request_type(CREATE_TOPICS, _VERSION), values)
    envelope = _envelope(CREATE_TOPICS, _VERSION, caller, encode_request(message))
    return ControllerRequest(ENVELOPE, envelope, partial(_created_within, topic.name))


def _envelope(api_key: int, version: int, caller: Caller, body: bytes) -> Values:
    return {
        "request_data": enclose(api_key, version, caller.client_id, body),
        "request_principal": encode_principal(*caller.principal, caller.by_token),
        "client_host_address": encode_address(caller.address),
    }


def _opened(api_key: int, version: int, answer: Any) -> Answer:
    if answer.error_code == errors.NOT_CONTROLLER:
        raise NoController
    if answer.error_code != errors.NONE:
        raise PeerError(int(answer.error_code), "The controller does not take the request.")
    return errors.NONE, disclose_answer(api_key, version, answer.response_data or b"")


def _wanted(topic: NewTopic) -> Values:
    return {
        "name": topic.name,
        "num_partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "assignments": (),
        "configs": [{"name": name, "value": value} for name, value in topic.configs.items()],
    }


def _created_within(name: str, answer: Any) -> Answer:
    _, body = _opened(CREATE_TOPICS, _VERSION, answer)
    return _created(name, decode_response(CREATE_TOPICS, _VERSION, body))


def _created(name: str, answer: Any) -> Answer:
    code = int(next((row.error_code for row in answer.topics), errors.UNKNOWN_SERVER_ERROR))
    if code == errors.NOT_CONTROLLER:
        raise NoController
    return creation_code(code), name.encode()
