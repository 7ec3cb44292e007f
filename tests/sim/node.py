"""A machine of a simulated world: a disk that outlives everything, and one life after another."""

from sim.clock import OwnClock
from sim.disk import SimDisk

UP, DEAD, OFF = "up", "dead", "off"
"""It lives; its process is dead, the machine answers for it; it has no power."""


class Node:
    """A machine with a disk, and the process that lives on it. A subclass says what that does:
    `begin` at the start of each life, `received(end, message)`, `lost(end)`.

    clock: its own where it `drifts`, by which `after` counts too; else that of the world.
    life: number of the life that is lived or comes next. doomed: whether it is its power that ends
    it at the disk's `crash_at`. away_ms: how long it stays away then, at least and at most.
    ends_with_storage: whether StorageFailed ends its process; else it breaks the world."""

    drifts = False
    ends_with_storage = False
    away_ms = (1, 300)

    def __init__(self, world, name, disk=None):
        self.world = world
        self.name = name
        self.disk = disk or SimDisk(world.rng)
        self.disk.reached = world.reached
        self.clock = OwnClock(world.clock, world.rng) if self.drifts else world.clock
        self.life = 0
        self.state = OFF
        self.doomed = False
        assert name not in world.nodes
        world.nodes[name] = self

    def say(self, text):
        self.world.say(self.name, text)

    def after(self, ms, what, *args):
        """In this life of the node, if it still lives then."""
        self.world.after(ms / self.clock.rate, what, *args, node=self)

    @property
    def now_ms(self):
        """Of its monotonic clock."""
        return self.clock.monotonic_ns() // 1_000_000

    @property
    def up(self):
        return self.state == UP

    def start(self):
        assert not self.up
        self.say(f"starts, life {self.life}")
        self.state = UP
        self.begin()

    def stop(self, *, power):
        """Its process dies, or its power is cut; it comes back by itself."""
        self.say("loses power" if power else "dies")
        self.ended()
        self.life += 1
        if power:
            self.disk.power_cut()
        else:
            self.disk.process_death()
        self.state = OFF if power else DEAD
        self.world.network.ended(self, power)
        self.after(self.world.rng.uniform(*self.away_ms), self.start)

    def doom(self, *, power, steps):
        """It ends at the so-manieth change to its disk from now on, in the middle of it."""
        self.doomed = power
        self.disk.crash_at = self.disk.steps + steps

    def begin(self):
        """A new life, over what the disk has."""

    def ended(self):
        """A life is over; what it knew can still be looked at."""

    def received(self, end, message):
        """A message arrived at an end of a connection."""

    def lost(self, end):
        """A connection is gone; what was sent last may have arrived or not."""
