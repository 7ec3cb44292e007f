"""The states of a connection, what can happen to it, and every move from one state to another.

Invariant: what is not in `MOVES` cannot happen, and an assert says so. Who changes a connection's
state asks `move`; README.md draws the table.
"""

from typing import Final

HANDSHAKE: Final = 0
"""Its transport has not agreed with the client yet: no request can come."""
OPEN: Final = 1
"""Read from, and every request served as it comes."""
MUTED: Final = 2
"""Its client is over a quota: not read until the pause is over."""
STARVING: Final = 3
"""Not read: too many answers wait, a ring is full, or the arena has no room. Each turn looks."""
DRAINING: Final = 4
"""The process ends: not read any more, closed when what was asked is answered and sent."""
CLOSED: Final = 5
"""For ever."""
FINISHING: Final = 6
"""The client sends nothing more and may still read: closed when what was asked is answered."""

AUTHENTICATING: Final = 7
"""Read from, and only what a login takes is served."""
CHECKING: Final = 8
"""A login is being decided, or its refusal is held back: not read."""

READ_FROM: Final = (OPEN, AUTHENTICATING)
"""States in which requests are taken."""

NAMES: Final = (
    *("handshake", "open", "muted", "starving", "draining", "closed", "finishing"),
    *("authenticating", "checking"),
)

AGREED: Final = 0
"""The transport carries requests from now on."""
MUTE: Final = 1
"""An answer has told the client to pause."""
PAUSE_OVER: Final = 2
FULL: Final = 3
"""One more request, or one more byte, cannot be taken now."""
ROOM: Final = 4
"""It may be taken now."""
DRAIN: Final = 5
CLOSE: Final = 6
"""The client has hung up, or is hung up on."""
END: Final = 7
"""All that the client sent is read, and it has said that nothing follows (TCP's FIN)."""

STRANGER: Final = 8
"""The transport carries requests from now on, and the client has to say who it is."""
ASKED: Final = 9
"""What it said takes time to be decided, or to be told."""
UNDECIDED: Final = 10
"""Its mechanism wants more of it."""
KNOWN: Final = 11
"""It has proved who it is."""
AGAIN: Final = 12
"""It has to say anew who it is, or is still to say it."""
DISMISS: Final = 13
"""It is told that it is not let in, and hung up on."""

EVENTS: Final = (
    *("agreed", "mute", "pause over", "full", "room", "drain", "close", "end"),
    *("stranger", "asked", "undecided", "known", "again", "dismiss"),
)

MOVES: Final[dict[tuple[int, int], int]] = {
    (HANDSHAKE, AGREED): OPEN,
    (HANDSHAKE, STRANGER): AUTHENTICATING,
    (HANDSHAKE, CLOSE): CLOSED,
    (OPEN, MUTE): MUTED,
    (OPEN, FULL): STARVING,
    (OPEN, DRAIN): DRAINING,
    (OPEN, AGAIN): AUTHENTICATING,
    (OPEN, CLOSE): CLOSED,
    (OPEN, END): FINISHING,
    (MUTED, MUTE): MUTED,  # another answer says so, too: the later end holds
    (MUTED, PAUSE_OVER): OPEN,
    (MUTED, DRAIN): DRAINING,
    (MUTED, CLOSE): CLOSED,
    (STARVING, MUTE): MUTED,
    (STARVING, ROOM): OPEN,
    (STARVING, DRAIN): DRAINING,
    (STARVING, CLOSE): CLOSED,
    (DRAINING, MUTE): DRAINING,  # it is not read as it is
    (DRAINING, CLOSE): CLOSED,
    (FINISHING, MUTE): FINISHING,  # it is not read as it is
    (FINISHING, DRAIN): FINISHING,  # nothing is left to hand over
    (FINISHING, CLOSE): CLOSED,
    (AUTHENTICATING, MUTE): AUTHENTICATING,  # an answer to what it asked before it began again
    (AUTHENTICATING, FULL): STARVING,
    (AUTHENTICATING, ASKED): CHECKING,
    (AUTHENTICATING, KNOWN): OPEN,
    (AUTHENTICATING, DISMISS): DRAINING,
    (AUTHENTICATING, CLOSE): CLOSED,
    (CHECKING, MUTE): CHECKING,
    (CHECKING, UNDECIDED): AUTHENTICATING,
    (CHECKING, KNOWN): OPEN,
    (CHECKING, DISMISS): DRAINING,
    (CHECKING, CLOSE): CLOSED,
}


def next_state(state: int, event: int) -> int:
    """The state after this event."""
    after = MOVES.get((state, event), -1)
    assert after >= 0, f"{EVENTS[event]} cannot happen to a connection that is {NAMES[state]}"
    return after
