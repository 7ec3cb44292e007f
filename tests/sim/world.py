"""A world in one process, all of it from one seed: a clock, machines with disks, a network, and
what happens to them.

Events wait in a queue ordered by (time, sequence); one happens after the other, and after each one
every invariant is checked. All chance is drawn from `World.rng`, nothing iterates over sets of
anything but numbers, nothing reads a real clock: a seed gives the same trace, to the byte, whenever
and wherever it runs. `World.digest` is the hash of that trace.
"""

from collections import Counter, deque
from hashlib import blake2b
from heapq import heappop, heappush
from random import Random

from sim.clock import SimClock
from sim.disk import PowerCut
from sim.network import Network

from appliance.base.errors import StorageFailed

TAIL = 80
"""Lines of the trace that are shown when something breaks."""


class World:
    """invariants: called after every event; what they raise breaks the world. events: how many
    have happened. acted: the node that the last one was of, the network, None: any. rare: how often
    which rare thing came about (`reached`)."""

    def __init__(self, seed, **network):
        self.seed = seed
        self.rng = Random(seed)
        self.clock = SimClock()
        self.nodes = {}
        self.network = Network(self, **network)
        self.invariants = []
        self.events = 0
        self.acted = None
        self.rare = Counter()
        self._queue = []
        self._sequence = 0
        self._hash = blake2b(digest_size=8)
        self._tail = deque(maxlen=TAIL)

    @property
    def digest(self):
        return self._hash.hexdigest()

    def say(self, who, text):
        """A line of the trace."""
        line = f"{self.clock.now_ns:>14,} {who:<12} {text}"
        self._hash.update(line.encode())
        self._tail.append(line)

    def reached(self, name):
        """Something rare came about, which the story declares: seeds in which nothing of the kind
        happens prove little. The trace does not tell."""
        self.rare[name] += 1

    def after(self, ms, what, *args, node=None):
        """Call `what(*args)` in so many ms; for a node: unless this life of it is over by then."""
        self._sequence += 1
        at = self.clock.now_ns + round(ms * 1_000_000)
        life = node.life if node else 0
        heappush(self._queue, (at, self._sequence, node, life, what, args))

    def step(self):
        """The next event, then the invariants."""
        at, _, node, life, what, args = heappop(self._queue)
        self.clock.to(at)
        if node is not None and node.life != life:
            return
        self.events += 1
        self.acted = node
        try:
            what(*args)
        except PowerCut:
            node.stop(power=node.doomed)
        except StorageFailed as failure:
            if node is None or not node.ends_with_storage:
                raise
            self.say(node.name, f"ends: {failure}")
            node.stop(power=False)
        for invariant in self.invariants:
            invariant()

    def run(self, ms):
        """Everything that happens in so many ms from now. Raises Broken, with the seed and the end
        of the trace, when anything raises."""
        until = self.clock.now_ns + round(ms * 1_000_000)
        try:
            while self._queue and self._queue[0][0] <= until:
                self.step()
        except Exception as cause:
            raise self.broken(cause) from cause
        self.clock.to(until)

    def check(self, validation):
        """What must hold now, at the end of a phase. Raises Broken."""
        try:
            validation()
        except Exception as cause:
            raise self.broken(cause) from cause

    def broken(self, cause):
        tail = "\n".join(self._tail)
        return Broken(
            f"{type(cause).__name__}: {cause}\n"
            f"in the world of seed {self.seed}, after {self.events} events, trace {self.digest};"
            f" again with SIM_SEED={self.seed} SIM_RUNS=1\n{tail}"
        )


class Broken(AssertionError):
    """An invariant does not hold; the text has all that is needed to see it again."""
