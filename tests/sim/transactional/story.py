"""Transactions in one world: a machine with two I/O processes and a network process, copiers that
fence each other, readers; and whatever ends a life, a connection, or all of it."""

from contextlib import suppress

from sim.disk import PAGE, SimDisk
from sim.faults import Faults
from sim.transactional.books import Books
from sim.transactional.copier import Copier
from sim.transactional.front import Front
from sim.transactional.home import Home
from sim.transactional.machine import IOPROCS, NET, OUTPUTS, Machine
from sim.transactional.reader import Reader
from sim.world import World

RARE = {
    "a life ends in the middle of a change": 20,
    "a torn tail is cut off": 50,
    "a sync fails": 60,
    "the disk is full": 200,
    "a transaction is aborted": 10,
    "a producer is fenced": 10,
    "a marker is written twice": 100,
    "the epochs of an id are used up": 50,
    "a program abandons its transaction": 10,
    "an answer is given up": 10,
}
"""What is to come about in so many seeds."""
STORM_MS = 500
CALM_MS = 50
MOST_CALMS = 60
IDS = ("c0", "c1")
LONELY = "c2"
"""Of an id with one instance, which is killed: its transaction can end by its timeout alone."""


class Transactional:
    """The story. failing: the chance that a sync fails, which takes a partition offline until the
    next life. fills: whether other programs take the room. home, front, disk, books: what these
    are."""

    def __init__(
        self, world, *, failing=0.0, fills=False, home=Home, front=Front, disk=SimDisk, books=Books
    ):
        self.world = world
        rng = world.rng
        version = rng.choice((0, 1, 2, 2, 2, 2))
        self.books = books(world)
        machine = self.machine = self.books.machine = Machine(world, version, disk)
        self.homes = [home(world, f"io{n}", machine, n, self.books) for n in range(IOPROCS)]
        self.front = front(world, "net", machine, NET)
        self.readers = [Reader(world, f"r{n}", n, self.books) for n in range(len(OUTPUTS))]
        self.copiers = []
        for name in IDS:
            for twin in "ab":
                rising = version == 2 and rng.random() < 0.7
                made = Copier(world, name + twin, name, self.books, rising=rising)
                self.copiers.append(made)
        self.lonely = Copier(world, LONELY, LONELY, self.books, rising=version == 2)
        for name in IDS:
            if rng.random() < 0.2:
                machine.grow_old(name)
        for process in (*self.homes, self.front):
            process.start()
        self.lonely.start()
        for copier in self.copiers:
            late = 0 if copier.name.endswith("a") else rng.uniform(20, 200)
            world.after(late, copier.start, node=copier)
        for reader in self.readers:
            world.after(rng.uniform(0, 20), reader.start, node=reader)
        self.faults = Faults(world, [*self.homes, self.front])
        self.faults.kinds += [self.faults.heal] * 4
        self.failing = failing
        if fills:
            self.faults.kinds += [self.fill, self.make_room, self.make_room]

    def fill(self):
        """Other programs take nearly all of the disk."""
        disk = self.machine.disk
        disk.foreign = disk.capacity - disk.used() - self.world.rng.randint(0, 20) * PAGE
        self.world.say("disk", f"has {disk.free()} bytes left")

    def make_room(self):
        self.machine.disk.foreign = 0

    def play(self):
        disk = self.machine.disk
        disk.failing = self.failing
        self.world.run(STORM_MS)
        self.faults.stop()
        self.make_room()
        disk.failing = 0.0
        for home in self.homes:
            if home.up and self.failing:
                home.stop(power=False)  # what is offline comes back with a start
        self.lonely.drop()
        for copier in self.copiers:
            copier.careful = True
            copier.going_on = copier.name.endswith("a")
        done = dict(self.books.done)
        self.run_until(lambda: self.goes_on(done))
        for copier in self.copiers:
            copier.going_on = False
        self.run_until(self.all_is_well)
        return self.world

    def run_until(self, validation):
        """It need not hold at once, but soon."""
        for _ in range(MOST_CALMS):
            self.world.run(CALM_MS)
            with suppress(AssertionError):
                validation()
                return
        self.world.check(validation)

    def goes_on(self, done):
        """Who has its transactional id for itself commits one transaction after the other."""
        for name in IDS:
            assert self.books.done[name] > done.get(name, 0), f"{name} does not get on"

    def all_is_well(self):
        assert all(process.up for process in self.machine.processes.values())
        self.books.all_is_well(self.readers)


def play(seed, **planted):
    """The story of this seed; the world as it was left. Raises Broken."""
    options = {"failing": 0.03 if seed % 4 == 3 else 0.0, "fills": seed % 4 == 2}
    return Transactional(World(seed), **options | planted).play()
