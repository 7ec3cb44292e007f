"""The barrier around what control decides and does by the clock: an exception costs one answer, or
one run of a chore.

It goes on where memory and disk may differ by then, because an append or a vote has not come to its
end. The process ends, and its successor reads what is on the disk. So do a failed file
(`StorageFailed`), a cause that is told to the operator (`CannotServe`) and a snapshot of another
node (`BeginAgain`). Called by `shell.py`.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from appliance.base.errors import CannotServe, StorageFailed
from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.control.quorum.served_requests import QuorumServer
from appliance.control.quorum.snapshot_fetch import BeginAgain
from appliance.peers.link import Link
from appliance.shell.bugs import Bugs
from appliance.shell.loop import FileHandler

T = TypeVar("T")
_MEANT: Final = (StorageFailed, CannotServe, BeginAgain)
"""Exceptions that end the process on purpose."""


class ControlBarrier:
    """bugs: tells exceptions. quorum, served: what may stop halfway."""

    __slots__ = ("_quorum", "_served", "bugs")

    def __init__(self, bugs: Bugs, quorum: MetadataQuorum, served: QuorumServer) -> None:
        self.bugs = bugs
        self._quorum = quorum
        self._served = served

    def caught(self, where: str, bug: Exception) -> None:
        """Tell an exception. where: what control was doing. Raises it where the state cannot be
        trusted any more, and where it is meant to end the process."""
        if isinstance(bug, _MEANT):
            raise bug
        self.bugs.report(where, bug)
        if self._quorum.changing or self._served.acting:
            raise bug

    def hang_up(self, handler: FileHandler, bug: Exception) -> None:
        """An exception of a descriptor's handler: a link to another node is hung up, and whoever
        asked by it hears that it is gone. Raises that of any other handler, and as `caught`."""
        if not isinstance(handler, Link):
            raise bug
        self.caught(f"an answer by {handler}", bug)
        self.run_chore("hanging up", handler.close, None)

    def run_chore(self, where: str, chore: Callable[[], T], otherwise: T) -> T:
        """Returns the chore's result, or `otherwise` when it raised. Raises as `caught`."""
        try:
            return chore()
        except Exception as bug:
            self.caught(where, bug)
            return otherwise
