"""A machine whose processes die alone: what is in its memory outlives each of them, what is on its
disk outlives all."""

from itertools import product

from sim.disk import SimDisk
from sim.node import OFF, Node

from appliance.base.home import home_of
from appliance.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from appliance.config.log_config import LogConfig
from appliance.coordinators.runtime.kind import partition_of
from appliance.coordinators.transactions.record_bytes import key_bytes, value_bytes
from appliance.coordinators.transactions.transaction import LAST_EPOCH, first
from appliance.handlers.exchange import Route
from appliance.logstore.log import PartitionLog
from appliance.metadata.image import MetadataImage
from appliance.ring.counters import Counters
from appliance.ring.partition_table import PartitionTable
from appliance.ring.ring import RingReader, RingWriter, clear_ring, ring_bytes
from appliance.wire import kraft_records as kraft
from appliance.wire.batch_header import read_header
from appliance.wire.own_batch import build

DATA = "/data"
IOPROCS = 2
NET = IOPROCS
"""The number of the network process, behind those of the I/O processes."""
STATE_PARTITIONS = 2
TOPICS = {
    TRANSACTIONS_TOPIC: (b"s" * 16, STATE_PARTITIONS),
    OFFSETS_TOPIC: (b"o" * 16, 1),
    "t": (b"t" * 16, 2),
    "u": (b"u" * 16, 1),
}
"""Of each its id and how many partitions it has."""
PARTITIONS = [(name, index) for name, (_, count) in TOPICS.items() for index in range(count)]
"""The place of each is its row."""
OUTPUTS = [("t", 0), ("t", 1), ("u", 0)]
ARENA = 1 << 20
CAPACITY, PAYLOAD = 256, 1 << 16
IDS_IN_A_BLOCK = 3

assert {home_of(TOPICS[name][0], index, IOPROCS) for name, index in OUTPUTS} == {0, 1}


class Ring:
    """From one process to another one. Both ends are made anew when either process dies."""

    def __init__(self):
        self._memory = memoryview(bytearray(ring_bytes(CAPACITY, PAYLOAD)))
        self._generation = 0
        self.writer = RingWriter(self._memory, 0, capacity=CAPACITY)
        self.reader = RingReader(self._memory, 0, capacity=CAPACITY)

    def clear(self):
        self._generation += 1
        clear_ring(self._memory, CAPACITY)
        self.writer.reset(self._generation)
        self.reader.reset(self._generation)


class Machine:
    """processes: by number. unheard: of a dead process, the living ones that do not know yet.
    given: how many producer ids; control has that in its log."""

    def __init__(self, world, version, disk=SimDisk):
        self.world = world
        self.disk = disk(world.rng)
        self.disk.mkdir(DATA)
        self.disk.sync_dir("/")
        self.image = image_at(version)
        self.processes = {}
        self.unheard = {}
        self.rings = {(a, b): Ring() for a, b in product(range(NET + 1), repeat=2) if a != b}
        self.arena = memoryview(bytearray(ARENA))
        self.rows = {(TOPICS[name][0], n): row for row, (name, n) in enumerate(PARTITIONS)}
        self.routes = {
            (topic, index): Route(
                self.rows[topic_id, index], home_of(topic_id, index, IOPROCS), name, topic_id,
                index, 0,
            )
            for name, (topic_id, count) in TOPICS.items()
            for topic, index in product((name.encode(), topic_id), range(count))
        }  # fmt: skip
        memory = memoryview(bytearray(Counters.bytes_needed(1, 1)))
        self.counters = Counters(memory, ioprocs=1, netprocs=1)
        self.given = 0
        self.begin()

    def begin(self):
        """Memory as it is after power came."""
        size = len(PARTITIONS)
        self.table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(size))), size)
        for topic_id, index in self.rows:
            self.table.add(topic_id, index)
        self.unheard.clear()
        for ring in self.rings.values():
            ring.clear()

    def home(self, topic, index):
        """The process that serves a partition."""
        return self.processes[home_of(TOPICS[topic][0], index, IOPROCS)]

    def take_ids(self):
        """The first of a block of producer ids."""
        self.given += IDS_IN_A_BLOCK
        return self.given - IDS_IN_A_BLOCK

    def grow_old(self, name):
        """Before all begins: the epochs of this transactional id are nearly used up."""
        index, now_ms = partition_of(name, STATE_PARTITIONS), self.world.clock.wall_ms()
        epoch = LAST_EPOCH - self.world.rng.randint(2, 6)
        old = first(self.take_ids(), 1, now_ms)._replace(epoch=epoch)
        batch = build([(key_bytes(name), value_bytes(old))], now_ms)
        path, topic_id = f"{DATA}/{TRANSACTIONS_TOPIC}-{index}", TOPICS[TRANSACTIONS_TOPIC][0]
        log = PartitionLog.create(self.disk, path, topic_id, LogConfig(), now_ms=now_ms)
        log.stage(memoryview(batch), read_header(batch), 0, now_ms)
        log.commit()
        log.close()

    # Death ----------------------------------------------------------------------------------------

    def died(self, dead):
        """Every living process lets go of what it had asked the dead one, when it hears of it."""
        for others in self.unheard.values():
            others.pop(dead.number, None)
        others = [one for one in self.processes.values() if one.up]
        self.unheard[dead.number] = dict.fromkeys(one.number for one in others)
        for one in others:
            one.after(self.world.rng.uniform(0.1, 3), self._heard, one, dead.number)

    def _heard(self, one, dead):
        del self.unheard[dead][one.number]
        one.say(f"hears that process {dead} is dead")
        self.rings[dead, one.number].reader.close()
        self.rings[one.number, dead].writer.close()
        one.changed(dead, up=False)

    def may_start(self, process):
        """All have let go of its predecessor."""
        if self.unheard.get(process.number):
            return False
        for pair, ring in self.rings.items():
            if process.number in pair:
                ring.clear()
        return True

    def started(self, process):
        self.unheard.pop(process.number, None)
        for one in self.processes.values():
            if one.up and one is not process:
                one.changed(process.number, up=True)

    def cut_power(self):
        """Of all processes at once."""
        for process in self.processes.values():
            process.end(power=True)
        self.disk.power_cut()
        self.begin()


class Process(Node):
    """One process of the machine. `drain` takes what is in the rings to it, `turn` does the rest;
    after a turn what was pushed is seen by the others."""

    away_ms = (1, 30)

    def __init__(self, world, name, machine, number):
        super().__init__(world, name, machine.disk)
        self.machine = machine
        self.number = number
        machine.processes[number] = self

    def start(self):
        if self.machine.may_start(self):
            self.turning = False
            super().start()
            self.machine.started(self)
        else:
            self.after(1, self.start)

    def stop(self, *, power):
        if power:
            self.machine.cut_power()
        else:
            self.end(power=False)
            self.disk.process_death()
            self.machine.died(self)

    def end(self, *, power):
        """What `Node.stop` does, but to the disk, which is that of all."""
        if self.state == OFF:
            return
        if self.up:
            self.ended()
        self.say("loses power" if power else "dies")
        self.life += 1
        self.state = OFF if power else "dead"
        self.world.network.ended(self, power)
        self.after(self.world.rng.uniform(*self.away_ms), self.start)

    def turn_soon(self, most_ms=0.2):
        if not self.turning:
            self.turning = True
            rng = self.world.rng
            slow = rng.random() < 0.02
            self.after(rng.uniform(0.5, 15) if slow else rng.uniform(0.01, most_ms), self._turn)

    def _turn(self):
        self.turning = False
        for (source, target), ring in self.machine.rings.items():
            if target == self.number and ring.reader.pending():
                self.drained(source, ring.reader.drain())
        self.turn()
        for (source, target), ring in self.machine.rings.items():
            if source == self.number and ring.writer.publish():
                other = self.machine.processes[target]
                if other.up:
                    other.turn_soon()

    def drained(self, source, messages):
        """What came from that process."""
        raise NotImplementedError

    def turn(self):
        raise NotImplementedError

    def changed(self, number, *, up):
        """That process died, or is there again."""
        raise NotImplementedError


def image_at(version):
    """The metadata: the topics, and the finalized transaction.version."""
    image = MetadataImage()

    def apply(record):
        image.apply(image.applied_offset + 1, record)

    apply(kraft.FeatureLevelRecord(name="transaction.version", feature_level=version))
    for name, (topic_id, count) in TOPICS.items():
        apply(kraft.TopicRecord(name=name, topic_id=topic_id))
        for index in range(count):
            apply(
                kraft.PartitionRecord(
                    partition_id=index, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1,
                    leader_epoch=0, partition_epoch=0, directories=(b"d" * 16,),
                )
            )  # fmt: skip
    return image
