"""The planned end of a network process whose successor takes its connections: nobody is hung up on.

What was asked is answered first, fetches that wait for records with what there is by now; then each
connection goes to the supervisor (`shell/handed_connection.py`), which gives it to the successor.
Who was handed over is served by nobody meanwhile: so the end does not begin while a request waits
for what may take long, other members of its group for example, unless that lasts for ever. Whose
transport stays, because OpenSSL's state cannot be handed over, is hung up on when it is answered,
and connects again; so is who has not come to the end of a login.
"""

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from appliance.handlers.exchange import Exchange, Handler
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.receivers import HandoverTarget
from appliance.shell import handed_connection
from appliance.shell.handed_connection import HandedConnection
from appliance.shell.log import INFO, WARNING, Log

FETCH: Final = 1
LONGEST_NS: Final = 10_000_000_000
"""How long it waits for a moment without long requests."""
_WITH_OTHERS: Final = (11, 14)
"""JoinGroup and SyncGroup, which wait for other members: for some that are connected here, too."""
_LONG_NS: Final = 100_000_000
ANSWERS_NS: Final = 1_000_000_000
"""How long answers may still come, once nobody is read any more."""


class HandoverSource(HandoverTarget[Connection]):
    """over: a socket to the supervisor. doorbell: wakes it. handed: connections that went over;
    lost: those that could not, which are closed. protocol: of a listener, by its number. serves: by
    listener, where it is another appliance that goes on with them, and nothing is waited for."""

    def __init__(
        self,
        over: socket.socket,
        doorbell: int,
        protocol: Callable[[int], str],
        log: Log,
        now_ns: int,
    ) -> None:
        self._over = over
        self._protocol = protocol
        self._doorbell = doorbell
        self._log = log
        self._latest_ns = now_ns + LONGEST_NS
        self._full = False  # the supervisor has not read what came before
        self.handed = self.lost = 0
        self.serves: list[str] = []

    def may_begin(self, asked: Iterable[Exchange], now_ns: int) -> bool:
        """True if all requests in flight will be answered soon, or LONGEST_NS is over."""
        return (
            bool(self.serves)
            or now_ns >= self._latest_ns
            or not any(
                x.answer is None and _is_long(x.handler.key, now_ns - x.started_ns) for x in asked
            )
        )

    def try_again(self) -> None:
        """A new turn: perhaps there is room for more."""
        self._full = False

    def takes(self, connection: Connection) -> bool:
        session = connection.session
        if connection.transport.stays or not (session is None or session.known):
            self.lost += 1  # its client connects again
            return True
        if self._full:
            return False
        habits = connection.habits
        guest = HandedConnection(
            connection.transport.sock,
            connection.address,
            connection.listener,
            connection.software,
            connection.client_id,
            connection.pause_until_ns,
            habits.roles,
            *habits.remembered(),
            connection.framing.received(),
            self.serves[connection.listener] if self.serves else "",
            self._protocol(connection.listener),
            (connection.principal.type, connection.principal.name),
            None if session is None else (session.mechanism, session.expires_ns),
            session is not None and session.by_token,
        )
        try:
            if not handed_connection.send_connection(self._over, guest):
                self._full = True
                return False
        except OSError as problem:
            self.lost += 1
            self._log.event_seldom(WARNING, "connection-not-handed-over", cause=str(problem))
        else:
            self.handed += 1
        os.eventfd_write(self._doorbell, 1)
        return True

    def report_left(self, left: int) -> None:
        """It is over. left: connections that still wait for an answer."""
        lost = self.lost + left
        self._log.event(INFO, "connections-handed-over", connections=self.handed, closed=lost)


def serves(handlers: Mapping[int, Handler]) -> str:
    """API keys and versions that clients were told, for `covers` of another version."""
    return ",".join(f"{key}:{one.lowest}:{one.highest}" for key, one in sorted(handlers.items()))


def covers(handlers: Mapping[int, Handler], told: str) -> bool:
    """True if every version in `told`, which `serves` made, is served here too."""
    for one in told.split(","):
        key, lowest, highest = map(int, one.split(":"))
        ours = handlers.get(key)
        if ours is None or not ours.lowest <= lowest <= highest <= ours.highest:
            return False
    return True


def _is_long(key: int, taken_ns: int) -> bool:
    return key in _WITH_OTHERS or (key != FETCH and taken_ns > _LONG_NS)
