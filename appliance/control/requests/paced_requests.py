"""Requests of clients over several turns: some take half a second, and hundreds may be there.

A request's bytes say roughly what it costs. When a turn has decided on its share the next ones
wait for the next turn, in their order. A long one is decoded in steps before it is decided in one
turn, or in parts (`parts.py`), and its answer is encoded in steps, once it may be said. What other
nodes ask is decided at once: votes, the metadata log's Fetch and heartbeats keep elections from
happening. Caller: `shell.py`.
"""

from collections import deque
from collections.abc import Callable, Generator
from typing import Final

from appliance.base.errors import NETWORK_EXCEPTION, UNKNOWN_SERVER_ERROR
from appliance.control.quorum.wire import SERVED
from appliance.control.requests.control_request import ForgedRequest
from appliance.control.requests.parts import PARTS, InParts, PartedRequests
from appliance.control.requests.pending_answers import Body, Decision, Unencoded
from appliance.control.requests.router import RequestRouter
from appliance.handlers.admin import AdminContext
from appliance.ring.messages import CANCEL, ENSURE_TOPIC, FORWARD, Message
from appliance.ring.process_table import NETPROC
from appliance.ring.slots import read_forward
from appliance.shell.links import Links

BYTES: Final = 16 << 10
"""Of requests that are decided in a turn before the next ones wait: some hundred rows."""
LEAST: Final = 512
"""Bytes for which the shortest request counts: a new topic takes a millisecond, and its name alone
asks for it."""
STEPS: Final = 4
"""Of decoding, and of encoding, in a turn: some hundred rows each."""

Decide = Callable[[int, Message, AdminContext | None], AdminContext | None]
"""(netproc, message, context of the decision before) → context for the next one."""
_AT_ONCE: Final = frozenset(SERVED) | {56, 62, 63, 67, 70, 73, 82}
"""Quorum's APIs; AlterPartition, registrations, BrokerHeartbeat, AllocateProducerIds,
AssignReplicasToDirs, UpdateRaftVoter."""


class PacedRequests:
    """decide: decides on one. caught: is told of an exception in that. answer: answers one. steps:
    decodes and encodes. links: to netprocs, one of which may tell lies. wait: keeps a decision
    until it may be said. late: those that wait for one of the next turns."""

    __slots__ = ("_answer", "_caught", "_decide", "_decoding", "_encoding", "_left", "_links",
                 "_parted", "_steps", "late")  # fmt: skip

    def __init__(
        self,
        decide: Decide,
        caught: Callable[[str, Exception], None],
        answer: Callable[[int, int, int, bytes], None],
        steps: RequestRouter,
        links: Links,
        wait: Callable[[int, int, Decision], None],
    ) -> None:
        self._decide = decide
        self._caught = caught
        self._answer = answer
        self._steps = steps
        self._links = links
        self._decoding: Generator[None, None, None] | None = None  # of the first of `late`
        self._encoding: deque[tuple[int, int, int, Generator[None, None, bytes]]] = deque()
        self._parted = PartedRequests(steps.decide_part, wait, self.reply, caught)
        self._left = BYTES
        self.late: deque[tuple[int, Message]] = deque()

    @property
    def busy(self) -> bool:
        """True if the next turn has something to do here."""
        return bool(self.late or self._encoding or self._parted.undecided)

    def begin_parts(self, netproc: int, token: int, what: InParts) -> None:
        """Decide on this request in parts; whatever comes behind it waits."""
        self._parted.begin_parts(netproc, token, what)

    def decide_all(self, netproc: int, messages: list[Message]) -> None:
        """Decide on what one netproc asks, or keep it for the next turns."""
        context = None
        for message in messages:
            if message.op == FORWARD and read_forward(message).api >> 16 in _AT_ONCE:
                context = self._decide_on(netproc, message, context)
            elif message.op == CANCEL:
                self._drop_request(netproc, message.token)
            elif message.op not in (FORWARD, ENSURE_TOPIC):
                continue
            elif self.late or self._left < 0 or _is_long(message) or self._parted.undecided:
                self.late.append((netproc, message))
            else:
                self._left -= max(read_forward(message).length, LEAST)
                context = self._decide_on(netproc, message, context)

    def run_turn(self) -> None:
        """Decide on what waits, as far as this turn has room."""
        self._left = BYTES
        self._encode()
        self._parted.decide_next()
        context = None
        while self.late and self._left >= 0 and not self._parted.undecided:
            netproc, message = self.late[0]
            if _is_long(message) and not self._is_decoded(netproc, message):
                return
            self.late.popleft()
            self._left -= max(read_forward(message).length, LEAST)
            context = self._decide_on(netproc, message, context)
            self._steps.forget_decoded()

    def _is_decoded(self, netproc: int, message: Message) -> bool:
        """Goes on with decoding this one, the first of those that wait."""
        if self._decoding is None:
            self._decoding = self._steps.decode(netproc, message)
        for _ in range(STEPS):
            try:
                next(self._decoding)
            except StopIteration:
                self._decoding = None
                return True
            except Exception as bug:  # the decision meets it, too, and answers
                self._caught("decoding a long request", bug)
                self._decoding = None
                return True
        return False

    def reply(self, netproc: int, token: int, code: int, body: Body) -> None:
        """Answer a request, now or when that is encoded."""
        if netproc == PARTS:
            self._parted.put_answer(token, code, body)
        elif isinstance(body, Unencoded):
            self._encoding.append((netproc, token, code, self._steps.encode(body)))
        else:
            self._answer(netproc, token, code, body)

    def _encode(self) -> None:
        """Go on with the first answer that is not encoded yet."""
        if not self._encoding:
            return
        netproc, token, code, steps = self._encoding[0]
        body = b""
        try:
            for _ in range(STEPS):
                next(steps)
            return
        except StopIteration as end:
            body = end.value
        except Exception as bug:
            self._caught("a long answer", bug)
            code = UNKNOWN_SERVER_ERROR
        self._encoding.popleft()
        self._answer(netproc, token, code, body)

    def _decide_on(
        self, netproc: int, message: Message, context: AdminContext | None
    ) -> AdminContext | None:
        try:
            return self._decide(netproc, message, context)
        except ForgedRequest as lie:
            self._links.accuse(NETPROC, netproc, str(lie))
            return context
        except Exception as bug:
            api = read_forward(message).api >> 16 if message.op == FORWARD else "a missing topic"
            self._caught(f"request {api}", bug)
            self._answer(netproc, message.token, UNKNOWN_SERVER_ERROR, b"")
            return None

    def _drop_request(self, netproc: int, token: int) -> None:
        """Its connection is gone: while it waits it is not decided any more. The answer tells the
        netproc that its bytes are needed no more."""
        for at, (one, message) in enumerate(self.late):
            if one == netproc and message.token == token and message.op == FORWARD:
                if at == 0 and self._decoding is not None:
                    self._decoding = None
                    self._steps.forget_decoded()
                del self.late[at]
                self._answer(netproc, token, NETWORK_EXCEPTION, b"")
                return

    def drop_netproc(self, netproc: int) -> None:
        """It died: nobody waits for what it asked, and its memory is another one's."""
        if self.late and self.late[0][0] == netproc:
            self._decoding = None
        self.late = deque(row for row in self.late if row[0] != netproc)
        self._parted.forget_netproc(netproc)
        self._encoding = deque(row for row in self._encoding if row[0] != netproc)


def _is_long(message: Message) -> bool:
    return message.op == FORWARD and read_forward(message).length > BYTES
