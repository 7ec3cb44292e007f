"""One I/O process under clients, while processes die, power goes, syncs fail and connections break.

What an acknowledgement of acks=all and a reader were told is true for ever after (docs/decisions/
0002): no record of it is lost, moved or changed, the high watermark never goes back, and what an
idempotent producer wrote is there once and in order.
"""

from sim.disk import PAGE, SimDisk
from sim.faults import Faults
from sim.served.clients import Careless, Consumer, Producer, batches, values_of
from sim.served.home import PARTITIONS, Home
from sim.world import World

RARE = {
    "a life ends in the middle of a change": 20,
    "a torn tail is cut off": 20,
    "a sync fails": 40,
    "the disk is full": 20,
    "a batch out of order is refused": 1000,
    "batches are sent again": 10,
    "a batch is sent over two connections": 10,
    "a partition is offline": 20,
}
"""What is to come about in so many seeds."""
STORM_MS = 1000
CALM_MS = 500


class Ledger:
    """By partition, offset → value: safe is what was read, or acknowledged with acks=all; written
    what was with acks=1, which lives until power is cut or a sync fails. high: the highest high
    watermark that was told."""

    def __init__(self, *, syncs_fail):
        self.syncs_fail = syncs_fail
        self.written = {index: {} for index in PARTITIONS}
        self.safe = {index: {} for index in PARTITIONS}
        self.high = dict.fromkeys(PARTITIONS, 0)

    def acknowledged(self, message, base):
        if message.acks == -1:
            self.note(message.partition, base, message.batch)
        elif message.acks == 1 and not self.syncs_fail:
            self.written[message.partition].update(enumerate(values_of(message.batch), base))

    def lost_power(self):
        for values in self.written.values():
            values.clear()

    def shown(self, index, high_watermark, data):
        assert high_watermark >= self.high[index], "a high watermark went back"
        self.high[index] = high_watermark
        for header, batch in batches(data):
            assert header.last_offset < high_watermark
            self.note(index, header.base_offset, batch)

    def note(self, index, base, batch):
        for offset, value in enumerate(values_of(batch), base):
            was = self.safe[index].setdefault(offset, value)
            assert was == value, f"offset {offset} of {index} is another record now"

    def opened(self, home):
        """A life begins: everything that was promised is there, and visible."""
        for partition in home.partitions.values():
            high = self.high[partition.index]
            assert partition.high_watermark >= high, (partition.high_watermark, high)
            stored = records_of(partition.log)
            promised = self.safe[partition.index] | self.written[partition.index]
            for offset, value in promised.items():
                assert stored.get(offset) == value, f"offset {offset} of {partition} is lost"


def records_of(log):
    """offset → value of everything in a log."""
    found, offset = {}, log.log_start_offset
    while (place := log.locate(offset, 1 << 20, log.end_offset)) is not None:
        base, position, length, _ = place
        file = log.disk.open_file(f"{log.path}/{base:020d}.log")
        data = file.pread(length, position)
        file.close()
        for header, batch in batches(data):
            found.update(enumerate(values_of(batch), header.base_offset))
            offset = header.last_offset + 1
    return found


class Served:
    """The story. failing: the chance that a sync fails, which takes a partition offline until the
    next life."""

    def __init__(self, world, *, failing=0.0, home=Home, disk=SimDisk):
        self.world = world
        self.failing = failing
        self.ledger = Ledger(syncs_fail=failing > 0)
        self.home = home(world, "home", disk(world.rng), self.ledger)
        self.producers = [Producer(world, f"p{n}", n % 2, n) for n in range(3)]
        self.writers = [*self.producers, *(Careless(world, f"q{n}") for n in range(2))]
        self.consumers = [Consumer(world, f"c{index}", index) for index in PARTITIONS]
        for node in (self.home, *self.writers, *self.consumers):
            world.after(world.rng.random(), node.start, node=node)
        self.faults = Faults(world, [self.home])
        self.faults.kinds += [self.fill, self.make_room, self.make_room]

    def fill(self):
        """Other programs take nearly all of the disk."""
        disk = self.home.disk
        disk.foreign = disk.capacity - disk.used() - self.world.rng.randint(0, 20) * PAGE
        self.world.say("disk", f"has {disk.free()} bytes left")

    def make_room(self):
        self.home.disk.foreign = 0

    def play(self):
        self.home.disk.failing = self.failing
        self.world.run(STORM_MS)
        self.faults.stop()
        self.make_room()
        self.home.disk.failing = 0.0
        if self.home.up:
            self.home.stop(power=False)  # what is offline comes back with a start
        for writer in self.writers:
            writer.going_on = False
        self.world.run(CALM_MS)
        self.world.check(self.all_is_well)
        return self.world

    def all_is_well(self):
        assert self.home.up
        stored = {}
        for partition in self.home.partitions.values():
            assert partition.broken is None
            assert partition.high_watermark == partition.log.end_offset
            stored[partition.index] = records_of(partition.log)
            assert self.consumers[partition.index].offset == partition.high_watermark
        self.ledger.opened(self.home)
        for producer in self.producers:
            assert not producer.unacknowledged, f"{producer.name} still waits"
            mine = [value.split(b":", 2) for value in stored[producer.partition].values()]
            numbers = [int(number) for name, number, _ in mine if name == producer.name.encode()]
            assert numbers == list(range(producer.sequence)), f"of {producer.name}: {numbers}"


def play(seed, **planted):
    """The story of this seed; the world as it was left. Raises Broken."""
    options = {"failing": 0.03 if seed % 3 == 2 else 0.0}
    return Served(World(seed), **options | planted).play()
