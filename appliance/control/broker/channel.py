"""Asks the active controller, wherever it is: another node over a connection, or this one without.

Invariant: whoever asks is told once, by an answer or by a PeerError; when another controller
becomes the active one, everybody who waits for the one before is told NOT_CONTROLLER first. Called
by `node.py`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from appliance.base.errors import (
    NOT_CONTROLLER,
    UNKNOWN_SERVER_ERROR,
    CannotServe,
    PeerError,
    StorageFailed,
)
from appliance.peers.conversation import NEVER, Done
from appliance.quorum.messages import NOBODY
from appliance.shell.bugs import Bugs

Values = Mapping[str, Any]
Own = Callable[[int, int, Values, Done], None]
"""Decides here: API key, version, the request's values by kio's names, who is told."""


class NodeLink(Protocol):
    """A connection to one node: `peers.link.Link`."""

    def ask_peer(
        self,
        api_key: int,
        version: int,
        message: Values,
        done: Done,
        timeout_ms: int,
        lowest: int = 0,
    ) -> None: ...

    def run_once(self) -> int: ...

    def close(self) -> None: ...


Connect = Callable[[int], NodeLink | None]
"""A connection to the controller of that id, None when its address is not known."""

HIGHEST: Final[dict[int, int]] = {19: 7, 55: 2, 56: 3, 58: 0, 62: 4, 63: 2, 67: 0, 70: 0, 73: 0}
"""API key → the version that we write and read."""


class Channel:
    """node_id: this node's. controller: who is asked, NOBODY while it is not known. bugs: tells
    what callbacks raise."""

    __slots__ = ("_bugs", "_connect", "_link", "_node_id", "_own", "controller")

    def __init__(self, node_id: int, connect: Connect, own: Own, bugs: Bugs) -> None:
        self._bugs = bugs
        self._node_id = node_id
        self._connect = connect
        self._own = own
        self._link: NodeLink | None = None
        self.controller = NOBODY

    @property
    def known(self) -> bool:
        """True if the active controller is known."""
        return self._link is not None or self.controller == self._node_id

    def turn_to(self, controller: int) -> None:
        """This node is the active controller now, or NOBODY."""
        link, self._link = self._link, None
        self.controller = NOBODY
        if link is not None:
            link.close()
        self.controller = controller
        if controller not in (NOBODY, self._node_id):
            self._link = self._connect(controller)

    def ask_controller(self, api_key: int, values: Values, done: Done, timeout_ms: int) -> None:
        """`done` is called in a later turn, or at once when there is nobody to ask. When it raises
        an exception on an answer it is called again with an error, so that nothing waits for
        ever."""
        done = partial(self._told, api_key, done)
        if self._link is not None:
            self._link.ask_peer(api_key, HIGHEST[api_key], values, done, timeout_ms)
        elif self.controller == self._node_id:
            self._own(api_key, HIGHEST[api_key], values, done)
        else:
            done(PeerError(NOT_CONTROLLER, "no controller is known"))

    def _told(self, api_key: int, done: Done, answer: Any) -> None:
        try:
            done(answer)
        except (CannotServe, StorageFailed):
            raise
        except Exception as bug:
            if isinstance(answer, PeerError):
                raise
            self._bugs.report(f"answer to API key {api_key}", bug)
            done(PeerError(UNKNOWN_SERVER_ERROR, "the answer raised an exception"))

    def run_once(self) -> int:
        """Send and receive; in how many ms to come again at the latest."""
        return NEVER if self._link is None else self._link.run_once()
