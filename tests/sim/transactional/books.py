"""What was promised to the clients of transactions, and what must hold between the processes.

For ever after: what was answered as committed is there, in every partition and as an offset of the
group; what was not asked to be committed is never read; of each id every number is read once and in
order; a last stable offset does not go back; who was taken over writes nothing more. After each
turn: a transaction that is open in a partition is known to its coordinator, and one that is decided
is being ended.
"""

from collections import defaultdict

from sim.transactional.copier import goes_to
from sim.transactional.machine import OUTPUTS, PARTITIONS
from sim.transactional.reader import outcomes

from appliance.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from appliance.coordinators.runtime.shard import ACTIVE
from appliance.coordinators.transactions.states import ONGOING, PREPARED
from appliance.coordinators.transactions.transaction import LAST_EPOCH


class Books:
    """asked: attempt → (id, numbers, whether it was to be committed; None: it never was to end).
    done: of each id the numbers below which all is committed, by what was answered. numbers_read:
    (id, place) → the last. stable: the highest last stable offset of each row. fences: (row,
    producer id) → the epoch that took over, and the log end then."""

    def __init__(self, world):
        self.world = world
        self.asked = {}
        self.done = defaultdict(int)
        self.numbers_read = {}
        self.stable = dict.fromkeys(range(len(PARTITIONS)), 0)
        self.ends = dict.fromkeys(range(len(PARTITIONS)), 0)
        self.fences = {}
        self.committed = self.aborted = 0
        self.machine = None

    # What clients say and are told ----------------------------------------------------------------

    def begins(self, name, numbers):
        """The number of this attempt."""
        attempt = len(self.asked)
        self.asked[attempt] = [name, numbers, None]
        return attempt

    def ends_by(self, attempt, *, commit):
        """The client asks for that, from now on."""
        self.asked[attempt][2] = commit

    def ended(self, attempt, *, commit):
        """So it was told."""
        name, numbers, _ = self.asked[attempt]
        if commit:
            self.committed += 1
            self.done[name] = max(self.done[name], numbers.stop)
        else:
            self.aborted += 1
            self.world.reached("a transaction is aborted")

    def fetched(self, name, position, least):
        """The offset that was committed for it. least: what was done when it was asked."""
        assert position >= least, f"{name} was told that {least} is committed, and now {position}"
        asked = {(one, numbers.stop) for one, numbers, commit in self.asked.values() if commit}
        known = position == 0 or (name, position) in asked
        assert known, f"nobody asked to commit {position} for {name}"

    def life_of(self, partition):
        """Which one the I/O process that serves it has, or had last."""
        home = self.machine.home(*partition)
        return home.life - (not home.up)

    def took_over(self, producer):
        """A producer was given this id and epoch: older ones write nothing more."""
        producer_id, epoch = producer
        if epoch == 0 and any(known > LAST_EPOCH - 9 for known, _ in self.fences.values()):
            self.world.reached("the epochs of an id are used up")
        for row in range(len(PARTITIONS)):
            known = self.fences.get((row, producer_id), (-1, 0))
            self.fences[row, producer_id] = max(known, (epoch, self.ends[row]))

    def told(self, place, stable):
        """A reader heard of this last stable offset."""
        row = PARTITIONS.index(OUTPUTS[place])
        self.stable[row] = max(self.stable[row], stable)

    def read(self, place, value):
        """A reader with read_committed was given this value."""
        name, *rest = value.decode().split(":")
        number, attempt = map(int, rest)
        assert self.asked[attempt][2], f"{value} of an attempt that nobody asked to commit"
        due = next_of(self.numbers_read.get((name, place), -1), place)
        assert number == due, f"{name} wrote {number} into {OUTPUTS[place]}, {due} was next"
        self.numbers_read[name, place] = number

    def refused(self, ending, partition, code):
        """A home refused a marker."""

    # What must hold -------------------------------------------------------------------------------

    def opened(self, home):
        """A life of an I/O process begins: nothing that was shown is gone."""
        for row, partition in home.core.partitions.items():
            end = self.ends[row] = partition.log.end_offset
            for key, (epoch, before) in self.fences.items():
                if key[0] == row:
                    self.fences[key] = epoch, min(before, end)
        self.check(home)

    def turned(self, home):
        """An I/O process has had a turn."""
        for row, partition in home.core.partitions.items():
            self.ends[row] = partition.log.end_offset
        self.check(home)
        self.check_decided(home)
        self.check_open()

    def check(self, home):
        for row, partition in home.core.partitions.items():
            stable, high = partition.last_stable_offset, partition.high_watermark
            assert self.stable[row] <= stable <= high <= partition.log.end_offset, f"{partition}"
            self.stable[row] = stable
            producers = partition.log.producers.producers
            for producer_id, known in producers.items():
                epoch, end = self.fences.get((row, producer_id), (-1, 0))
                if known.epoch < epoch and known.batches:
                    assert known.batches[-1][1] < end, f"{producer_id} was fenced in {partition}"

    def check_decided(self, home):
        """Whatever is decided is on its way into the log, or into its partitions."""
        host, endings = home.hosts[TRANSACTIONS_TOPIC], home.endings
        for led in host._led.values():
            shard = led.shard
            if shard.phase != ACTIVE:
                continue
            under_way = {one.number for one in led.endings}
            under_way |= {one.number for *_, found in led.decided for one in found}
            under_way |= {carried.ending.number for carried in endings._of.get(shard, ())}
            for name, known in shard.state.known.items():
                if known.transaction.state in PREPARED:
                    assert known.unmarked and known.ending in under_way, f"nobody ends {name}"

    def check_open(self):
        """What is open in a partition can be ended by somebody."""
        known = self.transactions()
        if known is None:
            return
        for home in self.homes():
            for partition in home.core.partitions.values():
                place = partition.topic, partition.index
                for producer_id in partition.log.producers.open:
                    found = known.get(producer_id)
                    assert found is not None, f"{producer_id} hangs in {partition}"
                    assert found.state == ONGOING or found.state in PREPARED, (found, place)
                    assert place in found.partitions, f"{found} does not know of {place}"

    def homes(self):
        """The I/O processes that live."""
        found = list(self.machine.processes.values())[:-1]
        return [home for home in found if home.up and home.core is not None]

    def transactions(self):
        """Producer id → its transaction; None while some coordinator is not there."""
        found = {}
        for topic, index in PARTITIONS:
            if topic == TRANSACTIONS_TOPIC:
                shard = self.shard(topic, index)
                if shard is None:
                    return None
                for known in shard.state.known.values():
                    found[known.transaction.producer_id] = known.transaction
        return found

    def shard(self, topic, index):
        """The coordinator that serves this partition, if one does."""
        home = self.machine.home(topic, index)
        if not home.up or home.core is None:
            return None
        led = home.hosts[topic]._led.get(PARTITIONS.index((topic, index)))
        return led.shard if led is not None and led.shard.phase == ACTIVE else None

    # At the end -----------------------------------------------------------------------------------

    def all_is_well(self, readers):
        """Everybody lives, nothing goes wrong any more, and enough time has passed."""
        for home in self.homes():
            assert not home.endings.under_way
            for partition in home.core.partitions.values():
                end = partition.log.end_offset
                assert partition.high_watermark == partition.last_stable_offset == end
        known = self.transactions()
        assert known is not None
        assert all(found.state not in (ONGOING, *PREPARED) for found in known.values()), known
        groups = self.shard(OFFSETS_TOPIC, 0).state
        assert not groups.pending.by_group
        names = sorted({name for name, _, _ in self.asked.values()})
        for name in names:
            committed = groups.offsets.find_offset(name, "t", 0)
            offset = 0 if committed is None else committed.offset
            assert offset >= self.done[name]
            for place in range(len(OUTPUTS)):
                last = self.numbers_read.get((name, place), -1)
                assert next_of(last, place) >= offset > last, f"{name}: {last} in {place}, {offset}"
        for reader in readers:
            partition = self.partition(*OUTPUTS[reader.place])
            assert reader.offset == partition.log.end_offset
            values, open_, idle = outcomes(partition.log)
            assert not open_
            for _ in range(idle):
                self.world.reached("a marker is written twice")
            written = [value.decode().split(":") for value in values]
            for name in names:
                numbers = [int(number) for one, number, _ in written if one == name]
                last = self.numbers_read.get((name, reader.place), -1)
                assert numbers == [n for n in range(last + 1) if reader.place in goes_to(n)]

    def partition(self, topic, index):
        """As its home has it."""
        row = PARTITIONS.index((topic, index))
        return self.machine.home(topic, index).core.partitions[row]


def next_of(number, place):
    """The first number above this one of which a copy goes into this output."""
    number += 1
    while place not in goes_to(number):
        number += 1
    return number
