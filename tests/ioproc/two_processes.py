"""Two I/O processes over one disk, with rings to each other: process 0 coordinates, and both have
partitions that its transaction writes to. Either of them, or both, or the power may end at any
step: within or before any change of the disk, and at the end of any turn.
"""

from itertools import count

from core_world import NOW_MS, World, batch
from sim.disk import SimDisk
from test_coordinating import NoEvents, image_with
from test_transactions_end import ADD, END, INIT, PRODUCER, Ends

from appliance.base import errors
from appliance.base.home import home_of
from appliance.base.ids import TRANSACTIONS_TOPIC
from appliance.config.log_config import LogConfig
from appliance.coordinators.transactions.states import NAMES
from appliance.ioproc.coordination.marker_sender import LONGEST_REST_MS
from appliance.ioproc.coordination.orphaned_transactions import OrphanedTransactions
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.partitions.partition import Partition
from appliance.metadata.log_dirs import LogDirs
from appliance.ring.counters import Counters
from appliance.ring.partition_table import PartitionTable
from appliance.ring.ring import RingReader, RingWriter, clear_ring, ring_bytes
from appliance.wire import markers
from appliance.wire.batch_header import read_header

DATA = "/d"
EPOCH = 4
PROCESSES = 2
SLOW = 4
GROUP = LogConfig(flush_policy="group")
STATE = LogConfig(flush_policy="group", compact=True, delete=False)


def id_at(name, home):
    """An id that gives partition 0 of this topic that home."""
    found = (name.encode()[:15].ljust(15, b"\0") + bytes([one]) for one in range(256))
    return next(one for one in found if home_of(one, 0, PROCESSES) == home)


IDS = {
    TRANSACTIONS_TOPIC: id_at(TRANSACTIONS_TOPIC, 0),
    **{name: id_at(name, home) for name, home in (("a", 0), ("b", 1), ("c", 1))},
}
TOPICS = ("a", "b", "c")


class Process(Ends):
    """One life of one of them. heard: what it reads of the other one's ring."""

    def __init__(self, both, me):
        memory = memoryview(bytearray(ring_bytes(1024, 4096)))
        self.ring = RingReader(memory, 1), RingWriter(memory, 1)
        self.events = NoEvents()
        memory = memoryview(bytearray(Counters.bytes_needed(1, 1)))
        self.counters = Counters(memory, ioprocs=1, netprocs=1)
        self.ids = both.ids
        self.known = both.image
        self.me, self.other = me, 1 - me
        self.turns = 0
        self.writer, self.heard = both.ends_of(me)
        World.__init__(
            self, DATA, disk=both.disk, netprocs=1, table=both.table, me=me,
            others={self.other: self.writer},
        )  # fmt: skip
        self.now_ns = both.now_ns
        self.rows.update(both.rows)
        writers = {me: self.own.writer, self.other: self.writer}
        parts = self.core.appends, self.core.partitions, lambda: self.known, self.rows, self.events
        self.left = self.arrivals._left = OrphanedTransactions(me, writers, self.host, *parts)
        self.endings.follow(self.known)
        left = JournalRecovery(both.disk, [DATA], me, PROCESSES, clean=False)
        assert left.read_journals() == {}
        opener = PartitionOpener(both.disk, LogDirs.of(DATA), both.table, left, clean=False)
        for (topic_id, index), handle in both.rows.items():
            if home_of(topic_id, index, PROCESSES) == me:
                name = self.known.topics_by_id[topic_id].name
                config = STATE if name == TRANSACTIONS_TOPIC else GROUP
                log, *_ = opener.open_log(name, index, topic_id, handle, config, NOW_MS)
                self.core.add(Partition(handle, name, index, topic_id, log, EPOCH), self.now_ns)
        left.remove_served(lambda topic_id: False)
        self.state = self.core.partitions.get(both.rows[IDS[TRANSACTIONS_TOPIC], 0])

    def work(self, now_ns):
        """A turn, and what its threads do meanwhile; the coordinator's are the slower ones."""
        self.now_ns = now_ns
        self.turns += 1
        asker = self.served.siblings[self.other]
        self.arrivals.handle(asker, self.heard.drain(), self.now_ms)
        if self.left.due_ms <= self.now_ms:
            self.left.ask_due(self.now_ms)
        self.turn(ms=0)
        self.writer.publish()
        if self.me or self.turns % SLOW == 0:
            self.threads.run_all()
            self.journal_writes.run_all()


class Both:
    """table: shared memory, gone with the power or when all die. lives: processes that run. told:
    error codes by API key, answered and not looked at yet."""

    def __init__(self):
        self.disk = SimDisk()
        self.disk.mkdir(DATA)
        self.disk.sync_dir("/")
        self.ids = count(PRODUCER)
        self.image = image_with(*IDS.items())
        self.now_ns = 1_000_000_000
        self.generation = 0
        self.lives = {}
        self.told = {}
        self.start()

    def start(self):
        """All of it, over what is on the disk."""
        size = PartitionTable.bytes_needed(64)
        self.table = PartitionTable(memoryview(bytearray(size)), 64)
        self.rows = {(one, 0): self.table.add(one, 0) for one in IDS.values()}
        self.memory = {me: memoryview(bytearray(ring_bytes())) for me in range(PROCESSES)}
        self.lives = {}
        for me in range(PROCESSES):
            self.lives[me] = Process(self, me)
        for one in self.lives.values():
            one.endings.changed(one.other, up=True)

    def ends_of(self, me):
        """The writing end of one's own ring, the reading end of the other one's, both cleared; the
        living one's ends are opened again."""
        self.generation += 1
        for memory in self.memory.values():
            clear_ring(memory)
        other = self.lives.get(1 - me)
        if other is not None:
            other.writer.reset(self.generation)
            other.heard = RingReader(self.memory[me], self.generation)
        elif me:  # the first life of process 0 has made its ends by itself
            self.generation -= 1
        writer = RingWriter(self.memory[me], self.generation)
        return writer, RingReader(self.memory[1 - me], self.generation)

    # Steps ----------------------------------------------------------------------------------------

    def turn(self, ms=1):
        """A turn of each. Raises PowerCut with `stopped` saying whose step it was."""
        self.now_ns += ms * 1_000_000
        for me, one in self.lives.items():
            self.stopped = me
            one.work(self.now_ns)
            self.disk.change("", "turn")

    def strike(self, steps):
        """The world ends in so many steps; 0: it does not."""
        self.disk.crash_at = self.disk.steps + steps if steps else -1

    def die(self, how, again=0):
        """ "one": whose step it is. "all": all processes. "power": that too, and what was not
        synced. What follows is there at return, or PowerCut: `again` is the step of the next
        death, of all while they are opened."""
        if how == "power":
            self.disk.power_cut()
        else:
            self.disk.process_death()
        if how != "one" or len(self.lives) < PROCESSES:
            self.lives = {}
            self.strike(again)
            self.start()
            return
        dead, other = self.stopped, self.lives[1 - self.stopped]
        del self.lives[dead]
        other.core.drop_sibling(other.served.siblings[dead])
        other.writer.close()
        other.endings.changed(dead, up=False)
        self.turn()
        self.lives[dead] = one = Process(self, dead)
        self.lives = dict(sorted(self.lives.items()))
        for each in (other, one):
            each.endings.changed(each.other, up=True)
        self.strike(again)

    def rest(self, ms=1):
        """Until nothing happens any more; what was answered since it was told last."""
        quiet = 0
        while quiet < SLOW + 3:
            before = self.seen()
            self.turn(ms)
            found = self.lives[0].answered()
            self.told |= found
            quiet = 0 if found or self.seen() != before else quiet + 1
        told, self.told = self.told, {}
        return told

    def seen(self):
        """What changes while something happens."""
        return [
            (one.log.end_offset, one.high_watermark, one.last_stable_offset)
            for life in self.lives.values() for one in life.core.partitions.values()
        ]  # fmt: skip

    # The client -----------------------------------------------------------------------------------

    def begin(self):
        """A transaction with a record in each topic, all of it durable; its epoch."""
        ask = self.lives[0].ask
        ask(INIT, transactional_id="x", transaction_timeout=900_000, producer_id=-1,
            producer_epoch=-1)  # fmt: skip
        assert self.rest() == {INIT: errors.NONE}
        epoch = self.known().epoch
        ask(
            ADD, v3_and_below_transactional_id="x", v3_and_below_producer_id=PRODUCER,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[{"name": name, "partitions": [0]} for name in TOPICS],
        )  # fmt: skip
        assert self.rest() == {ADD: errors.NONE}
        for life in self.lives.values():
            for one in life.core.partitions.values():
                if one is not life.state:
                    self.write(one.topic, PRODUCER, epoch)
        self.rest()
        return epoch

    def write(self, topic, producer, epoch):
        """A record of its transaction."""
        life, one = self.at(topic)
        sent = batch(b"v", producer=(producer, epoch, 0), transactional=True)
        assert life.core.appends.append_own(one, memoryview(bytearray(sent)), NOW_MS)
        life.core.syncing.request_sync(one)

    def at(self, topic):
        """The process that serves a topic, and its partition."""
        return next(
            (life, one) for life in self.lives.values()
            for one in life.core.partitions.values() if one.topic == topic
        )  # fmt: skip

    def end(self, epoch, *, commit):
        self.lives[0].ask(END, transactional_id="x", producer_id=PRODUCER, producer_epoch=epoch,
                          committed=commit)  # fmt: skip

    # What there is --------------------------------------------------------------------------------

    def known(self):
        return self.lives[0].shard.state.known["x"].transaction

    def phase(self):
        return NAMES[self.known().state]

    def markers(self, epoch):
        """Of each topic: what the markers of this epoch say, in their order."""
        found = {}
        for name in TOPICS:
            path = f"{DATA}/{name}-0/{0:020d}.log"
            file = self.disk.open_file(path)
            data, at, said = file.pread(file.size(), 0), 0, []
            file.close()
            while at + 61 <= len(data):
                header = read_header(data, at)
                if header.is_control and header.producer_epoch == epoch:
                    said.append(markers.read(data[at : at + header.size]).committed)
                at += header.size
            found[name] = said
        return found

    def stable(self):
        """Topics whose read-committed readers see all."""
        return {
            one.topic for life in self.lives.values() for one in life.core.partitions.values()
            if one is not life.state and one.last_stable_offset == one.log.end_offset
        }  # fmt: skip

    def settle(self):
        """What rests after a refusal is asked again."""
        told = self.rest()
        for _ in range(3):
            told |= self.rest(LONGEST_REST_MS)
        return told


def steps_of(commit):
    """How many steps an end takes."""
    both = Both()
    epoch = both.begin()
    before = both.disk.steps
    both.end(epoch, commit=commit)
    assert both.rest() == {END: errors.NONE}
    return both.disk.steps - before
