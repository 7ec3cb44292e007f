"""The network of a simulated world: connections as TCP makes them, between machines that come and
go, over links that are slow, cut in one direction or in both.

Within a connection what arrives arrives in order and once; between connections there is no order.
A lost packet is a long delay, as it is with TCP. While a link is cut what is sent waits, and
arrives when it heals, unless an end of the connection is gone by then. A process that dies closes
its connections behind what it had sent; a machine without power says nothing, and what it had sent
last arrives or not. Who sends to a process that is no more hears that the connection is lost; who
sends to a machine that is off hears nothing: only a timer helps.

Messages are named tuples that nobody changes.
"""

from collections import deque
from zlib import crc32

from sim.node import OFF

CLOSED = object()
"""In flight: the end of a connection."""


class End:
    """One end of a connection. node: who has it. life: of that node, -1 before it has heard of the
    connection. peer: the other end."""

    def __init__(self, network, number, node, life):
        self._network = network
        self.number = number
        self.node = node
        self.life = life
        self.peer = None
        self.open = True
        self.flight = deque()
        self.arrives_ns = 0
        self.stalled = 0

    def __str__(self):
        return f"{self.node.name}-{self.peer.node.name}#{self.number}"

    def send(self, message):
        """Nothing happens when the connection is gone; `lost` said so, or will."""
        if self.open:
            self._network.fly(self, message)

    def close(self):
        """The other one hears of it behind all that was sent."""
        if self.open:
            self.open = False
            self._network.fly(self, CLOSED)

    @property
    def living(self):
        """Whether who opened or accepted this end still lives that life and has it."""
        return self.open and self.node.up and self.life == self.node.life

    @property
    def unheard(self):
        """Whether the other side hears nothing of this connection any more."""
        peer = self.peer
        return not peer.open or peer.life not in (-1, peer.node.life)


class Network:
    """least_ms, mean_ms: a message takes the first plus, on average, the second. loss: the chance
    that it is sent again, after `again_ms`. slow: (from, to) → how many times longer it takes.
    blocked: the (from, to) over which nothing goes."""

    def __init__(self, world, least_ms=0.05, mean_ms=0.3, loss=0.01, again_ms=40):
        self._world = world
        self.least_ms, self.mean_ms = least_ms, mean_ms
        self.loss, self.again_ms = loss, again_ms
        self.slow = {}
        self.blocked = {}
        self.ends = {}
        self._number = 0

    def connect(self, node, target):
        """`node` opens a connection to the node called `target`: its end of it."""
        self._number += 1
        mine = End(self, self._number, node, node.life)
        other = End(self, self._number, self._world.nodes[target], -1)
        mine.peer, other.peer = other, mine
        self.ends[mine] = self.ends[other] = None
        return mine

    def fly(self, end, message):
        """Only what is on its way to somebody is in flight; the order of an end is kept."""
        world = self._world
        link = end.node.name, end.peer.node.name
        ms = self.least_ms + world.rng.expovariate(1 / self.mean_ms)
        ms *= self.slow.get(link, 1)
        if world.rng.random() < self.loss:
            ms += self.again_ms
        now = world.clock.now_ns
        end.arrives_ns = max(end.arrives_ns + 1, now + round(ms * 1_000_000))
        end.flight.append(message)
        self._arrive(end)

    def _arrive(self, end):
        ms = (end.arrives_ns - self._world.clock.now_ns) / 1_000_000
        # An event of the receiver, whatever its life: a machine that starts meanwhile gets it, too.
        target = end.peer.node
        self._world.after(ms, self._deliver, end, target.name)

    def _deliver(self, end, name):
        self._world.acted = self  # no machine
        if (end.node.name, name) in self.blocked:
            end.stalled += 1
            return
        if not end.flight:
            return  # a reset took it
        message = end.flight.popleft()
        target, peer = end.peer.node, end.peer
        if message is CLOSED:
            self._tell_lost(peer)
        elif target.state == OFF:
            peer.open = False  # whoever has this address later knows nothing of the connection
        elif end.unheard or not target.up:
            self._tell_lost(end)
        else:
            peer.life = target.life
            target.say(f"<{end.node.name}#{end.number} {show(message)}")
            # As an event of that node's: what ends it in there ends it alone.
            self._world.after(0, target.received, peer, message, node=target)

    def _tell_lost(self, *ends):
        """Who still lives and has not heard yet that this connection is over."""
        hears = [end for end in ends if end.living]
        for end in (ends[0], ends[0].peer):
            end.open = False
            end.flight.clear()
            self.ends.pop(end, None)
        for end in hears:
            self._world.say(end.node.name, f"loses {end}")
            self._world.after(0, end.node.lost, end, node=end.node)

    # What happens to it ---------------------------------------------------------------------------

    def ended(self, node, power):
        """A life of this node is over."""
        for end in [end for end in self.ends if end.node is node and end.open]:
            if end.life == -1:
                continue
            if power:
                end.open = False
                while len(end.flight) > 0 and self._world.rng.random() < 0.5:
                    end.flight.pop()
            else:
                end.close()

    def reset(self, end):
        """Something in between breaks a connection: both ends hear of it, what is in flight is
        lost."""
        self._tell_lost(end, end.peer)

    def block(self, source, target):
        """Nothing goes from one to the other any more."""
        self.blocked[source, target] = None

    def heal(self):
        """Everything goes again, at its usual pace; what waited arrives."""
        self.blocked.clear()
        self.slow.clear()
        for end in list(self.ends):
            waiting, end.stalled = end.stalled, 0
            for _ in range(waiting):
                end.arrives_ns = max(end.arrives_ns + 1, self._world.clock.now_ns)
                self._arrive(end)


def show(message):
    """A message as the trace has it: long bytes as their length and CRC."""
    fields = []
    for name, value in zip(message._fields, message, strict=True):
        if isinstance(value, bytes) and len(value) > 12:
            value = f"{len(value)}B:{crc32(value):08x}"
        fields.append(f"{name}={value}")
    return f"{type(message).__name__} {' '.join(fields)}"
