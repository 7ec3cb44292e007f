"""Outcomes of requests in flight: completions, answers of control, deaths of asked processes,
deadlines. The request's handler gets each one once, and a finished request ends here.
"""

from typing import Final

from appliance.handlers.exchange import WAITED, Exchange
from appliance.netproc.connections.request_time import Stopwatch
from appliance.netproc.in_flight.exchanges import DEADLINE, Exchanges
from appliance.netproc.in_flight.outbox import Outbox
from appliance.netproc.requests.exchange_barrier import ExchangeBarrier
from appliance.netproc.requests.host import NetprocHost
from appliance.netproc.requests.metadata_replay import MetadataFollowing
from appliance.ring.messages import ANSWERED, GOES_BEFORE, SPENT, Message
from appliance.ring.process_table import CONTROL, IOPROC, Peer
from appliance.ring.slots import answer_goes_on, read_spent

_A_NODE: Final = Peer(IOPROC, -1)
"""Whoever speaks for another node's coordinator here: none of our processes."""


class Completions:
    """Between the rings and the handlers, on the way back. early: what control has said that may be
    told when this process has replayed the metadata. barrier: without one, as in a simulation, an
    exception of a handler ends everything."""

    def __init__(
        self,
        host: NetprocHost,
        exchanges: Exchanges,
        following: MetadataFollowing,
        watch: Stopwatch,
        barrier: ExchangeBarrier | None = None,
        outbox: Outbox | None = None,
    ) -> None:
        self._host = host
        self._exchanges = exchanges
        self._living = exchanges.living
        self._following = following
        self._watch = watch
        self._barrier = barrier
        self._outbox = outbox
        self.early: list[Message] = []

    def handle(self, peer: Peer, arrived: list[Message]) -> None:
        """Completions from an ioproc, answers from control."""
        if peer.kind == CONTROL:
            arrived = self._seen(arrived)
        living = self._living
        for message in arrived:
            x = living.get(message.token >> 32)
            if x is None:
                continue
            index = message.token & 0xFFFFFFFF
            op = message.op
            try:
                if op in GOES_BEFORE or (op == ANSWERED and answer_goes_on(message)):
                    self._go_before(x, index, message)
                elif x.pending.pop(index, None) is not None:
                    if self._watch.running:
                        self._watch.begin_account(x.connection.account)
                    if x.answer is None or x.handler.keeps_body:
                        x.handler.complete(self._host, x, index, message, message.payload)
                    if not x.pending:
                        self._exchanges.end_if_done(x)
            except Exception as bug:
                self._fail(x, bug, ", an answer to it")
        if self._watch.running:
            self._watch.end_account()

    def _go_before(self, x: Exchange, index: int, message: Message) -> None:
        """The exchange waits for more by this index."""
        if message.op == SPENT:
            x.connection.account.spent_ns += read_spent(message).spent_ns
        elif index in x.pending:
            x.handler.complete(self._host, x, index, message, message.payload)

    def take_answers(self, heard: list[tuple[int, Message | None]]) -> None:
        """Take the answers of other nodes, by token. None: there will be no answer."""
        for token, message in heard:
            if message is not None:
                self.handle(_A_NODE, [message])
            else:
                x = self._living.get(token >> 32)
                if x is not None:
                    self._exchanges.lose(x, token & 0xFFFFFFFF)

    def _seen(self, arrived: list[Message]) -> list[Message]:
        """Replay committed metadata, because a change is visible before its answer. Returns the
        answers that may leave now; the others wait in `early`."""
        for message in arrived:
            if self._outbox is not None and not answer_goes_on(message):
                self._outbox.answered(message.token)
        if self._following.follow():
            arrived = [*self.early, *arrived]
            self.early.clear()
            return arrived
        told: list[Message] = []
        for message in arrived:
            x = self._living.get(message.token >> 32)
            at_once = x is not None and x.handler.between_nodes
            (told if at_once else self.early).append(message)
        return told

    def early_tokens(self) -> set[int]:
        """Returns the tokens of what control has answered whole, and is not told yet."""
        return {one.token for one in self.early if not answer_goes_on(one)}

    def tell_early(self) -> None:
        """The metadata is replayed: tell what control has said."""
        self.handle(Peer(CONTROL, 0), [])

    def tell_lost(self) -> None:
        """The asked process has died: the handlers answer with retriable errors."""
        while (lost := self._exchanges.next_lost()) is not None:
            x, index = lost
            if x.answer is None or x.handler.keeps_body:
                self._complete(x, index, None)
            else:
                self._exchanges.end_if_done(x)

    def expire(self, now_ns: int) -> None:
        """Deadlines that were scheduled, and waits."""
        while (due := self._exchanges.next_due(now_ns)) is not None:
            x, index = due
            if index == DEADLINE:
                self._expire(x)
            else:
                self._complete(x, index, WAITED)

    def expire_overdue(self, now_ns: int) -> None:
        """All deadlines, once a second."""
        for x in self._exchanges.overdue(now_ns):
            self._expire(x)

    def hurry(self) -> None:
        """This process ends, and so do waits for what others may do: answered with what there
        is."""
        for x in self._exchanges.take_scheduled():
            self._expire(x)

    def _complete(self, x: Exchange, index: int, message: Message | None) -> None:
        try:
            x.handler.complete(self._host, x, index, message, b"")
            self._exchanges.end_if_done(x)
        except Exception as bug:
            self._fail(x, bug, ", a loss or a wait")

    def _expire(self, x: Exchange) -> None:
        try:
            x.handler.expire(self._host, x)
            self._exchanges.end_if_done(x)
        except Exception as bug:
            self._fail(x, bug, ", its deadline")

    def _fail(self, x: Exchange, bug: Exception, where: str) -> None:
        if self._barrier is None:
            raise bug
        self._barrier.fail(x, bug, where)
