"""The barrier around each exchange: an exception costs one connection, not the process.

The connection is closed, because nobody knows what its client was to be told. The exchange ends.
An exchange whose body an I/O process may still read stays in flight as a shell without a handler,
until the last completion comes, so that its slab is not written over. The requests that stand in
line with it end too, because the line is kept by their handlers.
"""

from typing import Final

from appliance.base.errors import UNKNOWN_SERVER_ERROR
from appliance.handlers.exchange import Exchange, Handler, Host, Line
from appliance.netproc.connections.connection import Connection
from appliance.netproc.in_flight.exchanges import NO_NUMBER, Exchanges
from appliance.netproc.in_flight.outbox import NOBODY_HOME
from appliance.ring.messages import Message
from appliance.shell.bugs import Bugs


def _begin(host: Host, x: Exchange) -> None:
    raise AssertionError("an exchange that has failed does not begin again")


def _complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """An answer to what was asked before the failure has no one to go to."""


def _failed(handler: Handler) -> Handler:
    """Stands for this one in an exchange that has failed."""
    return Handler(
        handler.key, handler.name, handler.lowest, handler.highest, _begin, _complete,
        keeps_body=True,
    )  # fmt: skip


_UNANSWERED: Final = "an exchange that holds memory waits for completions"


class ExchangeBarrier:
    """exchanges: those in flight. bugs: tells exceptions."""

    __slots__ = ("_host", "bugs", "exchanges")

    def __init__(self, host: Host, exchanges: Exchanges, bugs: Bugs) -> None:
        self._host = host
        self.exchanges = exchanges
        self.bugs = bugs

    def fail(self, x: Exchange, bug: Exception, where: str = "") -> None:
        """A hook of its handler has raised `bug`: end it, with its connection. where: the hook."""
        connection: Connection = x.connection
        what = f"{x.handler.name} v{x.version}{where}"
        self.bugs.report(what, bug, peer=connection.address)
        self._host.failed(x, UNKNOWN_SERVER_ERROR)
        line: Line | None = connection.line
        if line is not None and x in line.under_way:
            for other in line.under_way:
                if other is not x:
                    self._end(other)
            line.under_way.clear()
            line.asking = None
        self._end(x)
        connection.close()

    def _end(self, x: Exchange) -> None:
        if x.number == NO_NUMBER:
            assert x.slab is None, _UNANSWERED
            return
        if not x.handler.keeps_body:
            self._host.cancel(x)
            self.exchanges.forget_exchange(x)
            return
        pending = x.pending
        for index in [index for index, home in pending.items() if home == NOBODY_HOME]:
            del pending[index]
        x.handler = _failed(x.handler)
        x.answer = []
        self.exchanges.end_if_done(x)
