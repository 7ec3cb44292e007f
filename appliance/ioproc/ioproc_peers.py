"""The I/O processes for each other: each coordinates transactions that end in everybody's
partitions.

To itself a process has a ring too, in its own memory: its own partitions are no exception.
Called by the shell.
"""

from collections.abc import Callable, Mapping
from mmap import mmap

from appliance.ioproc.coordination.marker_sender import MarkerSender
from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.ring.messages import Message
from appliance.ring.ring import RingReader, RingWriter, ring_bytes


class Loopback:
    """The ring of a process to itself. Where writer.head is not reader.tail something is there."""

    __slots__ = ("reader", "writer")

    def __init__(self) -> None:
        memory = memoryview(mmap(-1, ring_bytes()))  # pages that are never used take no room
        self.writer = RingWriter(memory, 0)
        self.reader = RingReader(memory, 0)

    def arrived(self) -> list[Message]:
        """Returns the messages pushed since the last call."""
        self.writer.publish()
        return self.reader.drain()


class IoprocPeers:
    """me: index of this process. askers: by index, this process among them. handle: takes what
    they ask and answer, with the time in ms."""

    __slots__ = ("_endings", "_handle", "_me", "_own", "askers")

    def __init__(
        self,
        me: int,
        own: Loopback,
        askers: Mapping[int, NetprocPeer],
        endings: MarkerSender,
        handle: Callable[[NetprocPeer, list[Message], int], None],
    ) -> None:
        self._me = me
        self._own = own
        self.askers = askers
        self._endings = endings
        self._handle = handle
        endings.changed(me, up=True)

    def run_once(self, now_ms: int) -> None:
        """Handles this process's messages to itself, and due markers."""
        me = self.askers[self._me]
        self._handle(me, self._own.arrived(), now_ms)
        if self._endings.is_due(now_ms):
            self._endings.send_due(now_ms)
            self._handle(me, self._own.arrived(), now_ms)
