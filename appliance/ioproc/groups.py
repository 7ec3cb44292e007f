"""What the core asks of the group coordinators that live beside it.

Invariant: the core calls these on its own thread and in a turn's order: requests first, then what
they decided is staged, then the answers that a sync covers leave. Called by `core`; `coordinating`
is the implementation.
"""

from typing import Protocol

from appliance.ioproc.asker import Asker
from appliance.ioproc.partition import Partition
from appliance.ring.messages import Message


class Groups(Protocol):
    """The group coordinators of one ioproc: `coordinating.Coordinating`.

    decided: there are records to stage. waiting: there are answers to send.
    """

    decided: bool
    waiting: bool

    def take(self, asker: Asker, message: Message, now_ms: int) -> None:
        """A piece of a request for groups has come."""
        ...

    def stage(self) -> None:
        """Append what was decided in this turn, by `append_own`."""
        ...

    def release(self) -> bool:
        """Send the answers whose records are committed now; False when some wait for room."""
        ...

    def open(self, partition: Partition) -> None:
        """A partition is served from now on."""
        ...

    def close(self, partition: Partition) -> None:
        """It failed, or it is served no more."""
        ...

    def no_room(self, partition: Partition, *, lost: bool) -> None:
        """The disk is full: what was appended is held until there is room, or lost: it was not
        even staged."""
        ...

    def drop(self, peer: int) -> None:
        """The netproc died."""
        ...
