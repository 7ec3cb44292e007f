"""Requests of a network process to others: pushed to their rings, or kept in order while one is
full.

Invariant: while anything is kept for a peer, everything later for it is kept behind that, so each
peer sees requests in the order in which they were made. A connection is not read while something
that it asked is kept, so each connection keeps at most one request; the others go on. Control is
asked only a bounded number of requests at a time, because a slow one costs it milliseconds.
"""

from collections import deque
from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.handlers.exchange import Exchange
from appliance.ring.messages import FORWARD, Message
from appliance.ring.process_table import CONTROL, IOPROC
from appliance.ring.ring import PIECES
from appliance.ring.slots import Slot
from appliance.shell.links import Links

CONTROL_HOME: Final = -1
"""Stands for control where an ioproc has its index."""
NOBODY_HOME: Final = -2
"""Stands there for what waits in this process."""

_TOKEN: Final = Message._fields.index("token")

Kept = tuple[Slot, bytes | None, Exchange | None]
"""A message, its payload, and the request that it belongs to; None: nobody waits for it."""


class Outbox:
    """The writing ends of one network process. fresh: something was pushed since who publishes
    has put it back. kept: by home, none of them empty. unanswered: what control was asked and has
    not answered, by token; what other nodes ask of it is not counted."""

    __slots__ = (
        "_at_once", "_by_home", "_links", "_piece", "_stale", "fresh", "kept", "unanswered",
        "writers",
    )  # fmt: skip

    def __init__(self, links: Links, ioprocs: int, config: BrokerConfig) -> None:
        self._links = links
        self._at_once = config.int("penstock.control.max.requests")
        self._stale = False  # something may be kept whose connection is closed
        self.unanswered: dict[int, Exchange] = {}
        self.writers = [links.writer(IOPROC, n) for n in range(ioprocs)]
        self._by_home = dict(enumerate(self.writers)) | {CONTROL_HOME: links.writer(CONTROL, 0)}
        self._piece = [writer.max_payload // PIECES for writer in self.writers]
        self.fresh = False
        self.kept: dict[int, deque[Kept]] = {}

    def is_up(self, home: int) -> bool:
        """True if that process lives."""
        if home == CONTROL_HOME:
            return self._links.is_up(CONTROL, 0)
        return self._links.is_up(IOPROC, home)

    def is_control_busy(self) -> bool:
        """True if control has as many requests to answer as it may have."""
        return len(self.unanswered) >= self._at_once

    def push(self, home: int, fields: Slot, payload: bytes | None, x: Exchange | None) -> bool:
        """Push a message to a process. False when messages are kept for it, its ring is full or it
        is dead. x: the request that the message belongs to."""
        if home in self.kept:
            return False
        counted = home == CONTROL_HOME and x is not None and not x.handler.between_nodes
        if counted and len(self.unanswered) >= self._at_once:
            return False
        self.fresh = True
        writer = self._by_home[home]
        if payload is None:
            pushed = writer.push(*fields)
        else:
            pushed = writer.push_with_payload(*fields, payload=payload)
        if counted and pushed:
            token = fields[_TOKEN]
            assert x is not None and token not in self.unanswered, "control is asked this already"
            self.unanswered[token] = x
            x.connection.forwarded += 1
        return pushed

    def queue_message(
        self, home: int, fields: Slot, payload: bytes | None, x: Exchange | None
    ) -> None:
        """Queue a message until there is room, behind those that wait already."""
        if home not in self.kept:
            self.kept[home] = deque()
        self.kept[home].append((fields, payload, x))
        if x is not None:
            x.connection.kept += 1

    def pieces(self, home: int, caller: bytes, body: bytes) -> list[tuple[int, int, bytes]]:
        """A request that may be too long for the ring: (1 while more follow, bytes of the caller's
        name at the start of this piece, the piece)."""
        size = self._piece[home]
        whole = caller + body
        if len(whole) <= size:
            return [(0, len(caller), whole)]
        return [
            (int(at + size < len(whole)), 0 if at else len(caller), whole[at : at + size])
            for at in range(0, len(whole), size)
        ]

    def push_kept(self) -> list[Exchange]:
        """Try again in order. The requests that are given up, because their connections are closed
        and control has not been asked."""
        given_up = self._give_up() if self._stale else []
        for home in list(self.kept):
            waiting = self.kept.pop(home)
            while waiting and self.push(home, *waiting[0]):
                self._let_go(waiting.popleft())
            if waiting:
                self.kept[home] = waiting
        return given_up

    def drop(self, homes: set[int]) -> None:
        """These processes died: nothing is kept for them, and nothing of theirs is unanswered."""
        for home in homes & self.kept.keys():
            for one in self.kept.pop(home):
                self._let_go(one)
        if CONTROL_HOME in homes:
            for token in list(self.unanswered):
                self.answered(token)

    def answered(self, token: int) -> None:
        """Control has answered this, or never will."""
        x = self.unanswered.pop(token, None)
        if x is not None:
            x.connection.forwarded -= 1

    def abandoned(self) -> None:
        """A connection is closed: what it wanted of control is given up if it was not asked yet."""
        self._stale = CONTROL_HOME in self.kept

    def _give_up(self) -> list[Exchange]:
        """Forwarded requests of closed connections; of all else parts were pushed, perhaps."""
        self._stale = False
        waiting = self.kept.pop(CONTROL_HOME, deque())
        living: deque[Kept] = deque()
        given_up: list[Exchange] = []
        for one in waiting:
            fields, _, x = one
            if fields[0] == FORWARD and x is not None and x.connection.closed:
                self._let_go(one)
                given_up.append(x)
            else:
                living.append(one)
        if living:
            self.kept[CONTROL_HOME] = living
        return given_up

    def _let_go(self, one: Kept) -> None:
        x = one[2]
        if x is not None:
            x.connection.kept -= 1
            assert x.connection.kept >= 0, "a connection keeps less than nothing"
