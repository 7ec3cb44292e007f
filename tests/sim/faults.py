"""What goes wrong in a world: at random moments one fault out of a list, until it is told to stop.

A fault is a function without arguments; the story says which there are. `Faults` has those that
every world has: ends of processes and of power, now or in the middle of a change to the disk, links
that are cut in one direction or in both, or slow, and connections that break.
"""

from itertools import permutations


class Faults:
    """every_ms: between two faults, on average. machines: the nodes that may end."""

    def __init__(self, world, machines, every_ms=40):
        self.world = world
        self.machines = machines
        self.every_ms = every_ms
        self.going_on = True
        self._held_ns = 0
        self.kinds = [
            self.kill,
            self.cut_power,
            self.kill_in_a_step,
            self.cut_power_in_a_step,
            self.part,
            self.isolate,
            self.slow,
            self.heal,
            self.heal,
            self.reset,
        ]
        self._next()

    def _next(self):
        self.world.after(self.world.rng.expovariate(1 / self.every_ms), self._happen)

    def _happen(self):
        if self.going_on:
            if self.world.clock.now_ns >= self._held_ns:
                self.world.rng.choice(self.kinds)()
            self._next()

    def hold(self, ms):
        """Nothing else happens for so long: what was begun needs its time."""
        self._held_ns = self.world.clock.now_ns + ms * 1_000_000

    def stop(self):
        """From now on all is well; who is away comes back by itself."""
        self.going_on = False
        for node in self.machines:
            node.disk.crash_at = -1
        self.world.network.heal()

    def _somebody(self):
        up = [node for node in self.machines if node.up]
        return self.world.rng.choice(up) if up else None

    def kill(self):
        node = self._somebody()
        if node:
            node.stop(power=False)

    def cut_power(self):
        node = self._somebody()
        if node:
            node.stop(power=True)

    def kill_in_a_step(self):
        node = self._somebody()
        if node:
            node.doom(power=False, steps=self.world.rng.randint(1, 30))

    def cut_power_in_a_step(self):
        node = self._somebody()
        if node:
            node.doom(power=True, steps=self.world.rng.randint(1, 30))

    def part(self):
        """One direction between two nodes."""
        link = self.world.rng.choice(list(permutations(self.world.nodes, 2)))
        self.world.say("network", f"nothing goes from {link[0]} to {link[1]}")
        self.world.network.block(*link)

    def isolate(self):
        """One machine and all the others."""
        name = self.world.rng.choice(self.machines).name
        self.world.say("network", f"{name} is alone")
        for other in self.world.nodes:
            if other != name:
                self.world.network.block(name, other)
                self.world.network.block(other, name)

    def slow(self):
        link = self.world.rng.choice(list(permutations(self.world.nodes, 2)))
        self.world.network.slow[link] = self.world.rng.choice((5, 30))

    def heal(self):
        self.world.say("network", "heals")
        self.world.network.heal()

    def reset(self):
        ends = list(self.world.network.ends)
        if ends:
            self.world.network.reset(self.world.rng.choice(ends))
