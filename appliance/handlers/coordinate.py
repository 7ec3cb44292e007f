"""Requests for coordinators: passed on to the homes of the partitions of their topic, answers back.

What each partition is asked, and how several answers become one, the kind of coordinator says. The
request is kept until it is answered: a home that dies is answered for here, as Apache Kafka answers
while a coordinator loads, upon which clients ask this node again. Where another node leads the
partition they are told to look for their coordinator.

A long request is cut into parts of few rows (`runtime/request_parts.py`), and each part is asked
when the one before is answered; a transaction's partitions are one part, for which the coordinator
takes several turns. So it never holds a coordinator or a ring for long. Its connection is not read
meanwhile, so requests of one connection keep their order. Few are under way at a time: fifty that
take turns would all be answered at once, after their clients have given up.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from appliance.authorization.apis import ApiRow
from appliance.coordinators.runtime import request_parts
from appliance.coordinators.runtime.call import Call
from appliance.coordinators.runtime.kind import LONG, Kind, Part, RowsOf
from appliance.coordinators.runtime.request_parts import CutPart
from appliance.handlers.exchange import Exchange, Handler, Host
from appliance.handlers.group_changes import Things
from appliance.ring.messages import Message
from appliance.ring.slots import answer_goes_on
from appliance.wire import error_codes, messages
from appliance.wire.plain import encode
from appliance.wire.plain_sliced import encode_in_slices


@dataclass(slots=True)
class Coordinated:
    """One request under way. count: partitions of the topic; 0: there is no such topic, or none of
    those that were to be listed is led here.

    asked: the partitions and what each was asked; `complete` names them by their index here.
    answers: encoded, in the same order, in pieces. more: the handler's own, that asks others too.
    created: topics that control was asked to create for this request, while it waits for that.
    cut: `asked` of a request that was cut; None: it is asked as it came. paused: requests behind it
    on its connection wait until it is answered.
    """

    count: int
    asked: Sequence[Part | CutPart]
    answers: list[list[bytes]] = field(default_factory=list)
    more: Any = None
    created: tuple[str, ...] = ()
    cut: Sequence[CutPart] | None = None
    paused: bool = False


class Coordinate:
    """The plan of every request that one kind of coordinator answers. others: topics of other kinds
    that a decision looks at. changed: tells the audit of each answer.

    The first request has missing topics created, and is answered when they exist or could not be
    created. A listing of everything needs none.
    """

    def __init__(
        self, kind: Kind, others: tuple[str, ...] = (), changed: Things | None = None
    ) -> None:
        self._kind = kind
        self._changed = changed
        self._topic = kind.TOPIC.name.encode()
        self._topics = (kind.TOPIC.name, *others)

    def begin_request(
        self, host: Host, x: Exchange, body: bytes | None = None, created: tuple[str, ...] = ()
    ) -> None:
        """Ask every partition concerned. Raises MalformedRequest. body: of a request that control
        has created topics for; one that was translated is `x.decoded`."""
        if body is None:
            body = x.decoded or bytes(host.memory[x.position : x.end])
        for name in self._topics:
            if name in host.image.topics_by_name or name in created:
                continue
            if x.handler.key != self._kind.LIST:
                x.state = Coordinated(0, [(0, body)], [[]], created=(*created, name))
                host.ensure_topic(x, 0, name)
                return
        topic = host.image.topics_by_name.get(self._kind.TOPIC.name)
        count = 0 if topic is None else len(topic.partitions)
        if len(body) >= LONG and self._begin_in_parts(host, x, body, count):
            return
        asked = self._kind.parts(x.handler.key, x.version, body, count) if count else [(0, body)]
        if count and x.handler.key == self._kind.LIST:
            asked = [part for part in asked if host.route(self._topic, part[0], by_id=False)]
            if not asked:  # other nodes coordinate all of them
                count, asked = 0, [(0, body)]
        state = x.state = Coordinated(count, asked, [[] for _ in asked])
        if len(body) >= LONG and self._kind.takes_turns(x.handler.key):
            state.paused = True  # or what is short would overtake it
            host.pause(x)
        for index, (partition, part) in enumerate(asked):
            route = host.route(self._topic, partition, by_id=False) if count else None
            if route is None:
                state.answers[index] = [self._unserved(host, x, state, index)]
            else:
                host.coordinate(x, index, route, part)
        if not x.pending:
            self._finish(host, x)

    # Long requests --------------------------------------------------------------------------------

    def _begin_in_parts(self, host: Host, x: Exchange, body: bytes, count: int) -> bool:
        """False for a request that is asked as it came."""
        cut: list[CutPart] = []
        steps = self._cut(x, body, count, cut)
        if steps is None and count and x.handler.key == self._kind.LIST:
            steps = self._cut_listing(host, body, count, cut)
        if steps is not None:
            self._begin_long(host, x, count, cut, steps)
        return steps is not None

    def _cut(
        self, x: Exchange, body: bytes, count: int, asked: list[CutPart]
    ) -> Generator[None, None, None] | None:
        """Steps that add the parts of a request to `asked`; None: it is asked as it came. They
        raise MalformedRequest."""
        key, version = x.handler.key, x.version
        is_whole, rows = self._kind.is_whole(key), self._kind.rows(key, version)
        if not is_whole and rows is None:
            return None
        if not count:
            return _split(_nowhere(body), asked)
        if is_whole:
            return _split(self._kind.cut_whole(version, body, count), asked)
        assert rows is not None
        if rows.split is not None:
            return _split(rows.split(version, body, count), asked)
        only = None
        if rows.name is None:
            ((partition, _),) = self._kind.parts(key, version, body, count)
            only = partition, body
        return _cut(x, body, count, rows, only, asked)

    def _cut_listing(
        self, host: Host, body: bytes, count: int, asked: list[CutPart]
    ) -> Generator[None, None, None] | None:
        """The same for a request that goes to all partitions: one after the other, since each is
        told all of it. None: no partition is led here."""
        here = [p for p in range(count) if host.route(self._topic, p, by_id=False)]
        asked += [CutPart(partition, body) for partition in here]
        return _nothing() if here else None

    def _begin_long(
        self,
        host: Host,
        x: Exchange,
        count: int,
        asked: list[CutPart],
        steps: Generator[None, None, None],
    ) -> None:
        def ask_first() -> None:
            x.state = Coordinated(count, asked, [[] for _ in asked], cut=asked)
            host.pause(x)
            self._ask_next(host, x, 0)

        host.work_in_line(x, steps, ask_first)

    def _ask_next(self, host: Host, x: Exchange, index: int) -> None:
        """Ask this part; one that nobody serves is answered in steps, then those behind it."""
        state: Coordinated = x.state
        assert state.cut is not None
        if index < len(state.cut):
            part = state.cut[index]
            route = host.route(self._topic, part.partition, by_id=False)
            if route is not None:
                host.coordinate(x, index, route, part.body)
                return
            self._refuse_part(host, x, index)
            return
        host.unpause(x)
        self._finish(host, x)

    def _refuse_part(self, host: Host, x: Exchange, index: int) -> None:
        steps = self._unserved_in_slices(host, x, index)
        host.work(x, steps, partial(self._ask_next, host, x, index + 1))

    def complete(
        self, host: Host, x: Exchange, index: int, message: Message | None, payload: bytes
    ) -> None:
        """A piece of one partition's answer, or a topic is there. message None: its home died."""
        state: Coordinated = x.state
        if state.created:
            self.begin_request(host, x, state.asked[0][1], state.created)
        elif message is None and state.cut is not None:
            state.answers[index].clear()
            self._refuse_part(host, x, index)
            return
        elif message is None:
            state.answers[index] = [self._unserved(host, x, state, index)]
        elif message.flags == 1:
            state.answers[index].append(payload)
        else:
            host.hang_up(x, f"the coordinator did not answer: error {message.flags - 1}")
            return
        if self._changed is not None and state.count and message is not None:
            self._audit(host, x, state, index, message)
        if x.pending or x.answer is not None:
            return
        if state.cut is not None:
            self._ask_next(host, x, index + 1)
        else:
            self._finish(host, x)

    def _audit(
        self, host: Host, x: Exchange, state: Coordinated, index: int, message: Message
    ) -> None:
        """Tells what a partition's answer says that it has changed, when all of that is there."""
        if answer_goes_on(message) or self._changed is None:
            return
        key, version = x.handler.key, x.version
        _, body, *_ = state.asked[index]
        answer = messages.decode_response(key, version, b"".join(state.answers[index]))
        if things := self._changed(messages.decode_request(key, version, body), answer):
            host.audit_change(x, things)

    def _unserved(self, host: Host, x: Exchange, state: Coordinated, index: int) -> bytes:
        """The answer of a partition that is not served: the topic does not exist yet, or its ioproc
        died.
        """
        key, version = x.handler.key, x.version
        partition, body, *_ = state.asked[index]
        request = messages.decode_request(key, version, body)
        call = Call(key, version, 0, x.rights)
        is_led = self._is_led(host, state, partition)
        values = self._kind.unserved(call, request, partition, state.count, is_led=is_led)
        for code in error_codes.collect_codes(key, version, values):
            host.failed(x, code)
        return encode(key, version, values)

    def _is_led(self, host: Host, state: Coordinated, partition: int) -> bool:
        return bool(state.count) and host.route(self._topic, partition, by_id=False) is not None

    def _unserved_in_slices(
        self, host: Host, x: Exchange, index: int
    ) -> Generator[None, None, None]:
        state: Coordinated = x.state
        key, version = x.handler.key, x.version
        partition, body, *_ = state.asked[index]
        request = yield from messages.decode_in_slices(key, version, body)
        call = Call(key, version, 0, x.rights)
        is_led = self._is_led(host, state, partition)
        values = self._kind.unserved(call, request, partition, state.count, is_led=is_led)
        yield
        for code in (yield from error_codes.told_in_slices(key, version, values)):
            host.failed(x, code)
        answer = yield from encode_in_slices(key, version, values)
        state.answers[index] = [answer]

    def _finish(self, host: Host, x: Exchange) -> None:
        state: Coordinated = x.state
        if state.paused:
            host.unpause(x)
        if len(state.answers) == 1:
            host.finish(x, list(state.answers[0]))
            return
        answers = [b"".join(pieces) for pieces in state.answers]
        key, version = x.handler.key, x.version
        rows = None if state.cut is None else self._kind.rows(key, version)
        if rows is None or state.cut is None:
            host.finish(x, [self._kind.splice(key, version, answers)])
        else:
            host.finish(x, [request_parts.join(rows, key, version, state.cut, answers)])


def _cut(
    x: Exchange, body: bytes, count: int, rows: RowsOf, only: Part | None, asked: list[CutPart]
) -> Generator[None, None, None]:
    """Steps that cut a request, and add its parts to `asked`. Raises MalformedRequest."""
    request = yield from messages.decode_in_slices(x.handler.key, x.version, body)
    asked += yield from request_parts.cut(rows, request, count, only)


def _nothing() -> Generator[None, None, None]:
    yield


def _nowhere(body: bytes) -> Generator[None, None, list[Part]]:
    yield
    return [(0, body)]


def _split(
    parts: Generator[None, None, list[Part]], asked: list[CutPart]
) -> Generator[None, None, None]:
    found = yield from parts
    asked += [CutPart(*one) for one in found]


def handler(
    kind: Kind, row: ApiRow, others: tuple[str, ...] = (), changed: Things | None = None
) -> Handler:
    """A request of this API is for coordinators of this kind to answer. others, changed: as of
    Coordinate."""
    assert row.key in kind.APIS, f"{row.name} ({row.key}) is none of {kind.TOPIC.name}"
    plan = Coordinate(kind, others, changed)
    return Handler(*row[:4], plan.begin_request, plan.complete, in_order=row.in_order)
