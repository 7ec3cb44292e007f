"""Requests that are decided in parts, one part in a turn: those whose rows have results of their
own and may be many.

Each part is a decision of its own, with records of its own, and waits for them as others do; the
request is answered when all parts are. What comes behind it waits, so that requests keep their
order. Caller: `paced_requests.py`.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from appliance.base.errors import NONE, UNKNOWN_SERVER_ERROR
from appliance.control.requests.pending_answers import Body, Decision, Unencoded
from appliance.handlers.admin import AdminContext

PARTS: Final = -2
"""The index of the network process that stands for requests in parts."""

Values = Mapping[str, Any]
DecidePart = Callable[[Any, AdminContext, bool], Decision]
"""(part, context, whether this node leads) → the decision, with an answer that is not encoded."""
JoinAnswers = Callable[[Sequence[Values]], tuple[int, Body]]
"""Answers of all parts → error code and answer of the request."""


class InParts(NamedTuple):
    """A request that is decided in parts."""

    parts: Sequence[Any]
    decide: DecidePart
    join: JoinAnswers

    @classmethod
    def of(cls, key: int, version: int, parts: Sequence[Any], decide: DecidePart) -> "InParts":
        """A request of this API, with the parts of it."""
        return cls(parts, decide, lambda told: (NONE, Unencoded(key, version, joined(told))))

    def enclosed_in(self, enclose: Callable[[Unencoded], tuple[int, Body]]) -> "InParts":
        """The same request, whose answer `enclose` puts into another one."""

        def join(told: Sequence[Values]) -> tuple[int, Body]:
            code, body = self.join(told)
            assert isinstance(body, Unencoded), "of an API with parts"
            return (code, body) if code != NONE else enclose(body)

        return self._replace(join=join)


def joined(answers: Sequence[Values]) -> Values:
    """One answer of those of all parts: rows in their order, the longest throttle time."""
    first = answers[0]
    whole: dict[str, Any] = {}
    for name, value in first.items():
        if isinstance(value, list | tuple):
            whole[name] = [row for one in answers for row in one[name]]
        elif name == "throttle_time":
            whole[name] = max(one[name] for one in answers)
        else:
            whole[name] = value
    return whole


class _Asked(NamedTuple):
    """A request under way. told: the answers of its first parts, in their order."""

    netproc: int
    token: int
    what: InParts
    told: list[Values]


class PartedRequests:
    """decide: decides on a part. wait: keeps a decision until it may be said. reply: answers a
    request. caught: is told of an exception."""

    __slots__ = ("_asked", "_caught", "_decide", "_left", "_next", "_reply", "_wait")

    def __init__(
        self,
        decide: Callable[[InParts, Any], Decision],
        wait: Callable[[int, int, Decision], None],
        reply: Callable[[int, int, int, Body], None],
        caught: Callable[[str, Exception], None],
    ) -> None:
        self._decide = decide
        self._wait = wait
        self._reply = reply
        self._caught = caught
        self._next = 0
        self._left: deque[tuple[int, Any]] = deque()  # number of the request, part
        self._asked: dict[int, _Asked] = {}

    @property
    def undecided(self) -> bool:
        """True while a request has parts that are not decided."""
        return bool(self._left)

    def begin_parts(self, netproc: int, token: int, what: InParts) -> None:
        """Decide on this request in the next turns."""
        assert not self._left and what.parts, "one request after the other"
        self._next += 1
        self._asked[self._next] = _Asked(netproc, token, what, [])
        self._left.extend((self._next, part) for part in what.parts)

    def decide_next(self) -> None:
        """Decide on one part, if there is one."""
        if not self._left:
            return
        number, part = self._left.popleft()
        try:
            self._wait(PARTS, number, self._decide(self._asked[number].what, part))
        except Exception as bug:
            self._caught("a part of a request", bug)
            self._end(number, UNKNOWN_SERVER_ERROR)

    def put_answer(self, number: int, code: int, body: Body) -> None:
        """The answer to the next part of this request may be said."""
        asked = self._asked.get(number)
        if asked is None:
            return  # its netproc died, or it has failed
        if code != NONE:
            self._end(number, code)
            return
        assert isinstance(body, Unencoded), "of a part"
        asked.told.append(body.values)
        if len(asked.told) < len(asked.what.parts):
            return
        del self._asked[number]
        self._reply(asked.netproc, asked.token, *self._join(asked))

    def _join(self, asked: _Asked) -> tuple[int, Body]:
        try:
            return asked.what.join(asked.told)
        except Exception as bug:
            self._caught("an answer in parts", bug)
            return UNKNOWN_SERVER_ERROR, b""

    def _end(self, number: int, code: int) -> None:
        """A part has failed: the others are not decided."""
        asked = self._asked.pop(number)
        self._left = deque(row for row in self._left if row[0] != number)
        self._reply(asked.netproc, asked.token, code, b"")

    def forget_netproc(self, netproc: int) -> None:
        """It died: nobody waits for what it asked."""
        gone = {number for number, one in self._asked.items() if one.netproc == netproc}
        self._left = deque(row for row in self._left if row[0] not in gone)
        for number in gone:
            del self._asked[number]
