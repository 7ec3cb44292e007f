"""Producers, one coordinator and three partitions under one seed. What the coordinator decides is
committed later; before, it may die, and its log ends anywhere behind what was committed. Markers
are on their way for a while, also those of a coordinator that is dead. Producers ask again when
nobody answers, are taken over by others with the same id, or stop in the middle.

The partitions are the log store's own `ProducerStates`. A transaction has a label; at the end each
label must have the same fate wherever it was written, and the one that its producer was told.
"""

from dataclasses import dataclass, field
from random import Random

from transaction_world import CONCURRENT, FENCED, MAPPING, TIMEOUT_MS, World

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.logstore.producer_state import ProducerStates
from appliance.wire.batch_header import TRANSACTIONAL_BIT, BatchHeader
from appliance.wire.markers import Marker

PARTITIONS = 3
AGAIN = (CONCURRENT, errors.COORDINATOR_LOAD_IN_PROGRESS, None)
"""Answers, None among them, upon which a producer asks again."""
OVER = (FENCED, MAPPING, errors.INVALID_PRODUCER_EPOCH, errors.INVALID_TXN_STATE)


def header(producer, sequence=-1, transactional=True):
    bits = TRANSACTIONAL_BIT if transactional else 0
    return BatchHeader(0, 100, 0, 2, 0, bits, 0, 7, 7, *producer, sequence, 1)


class Partition:
    """open: labels that have no marker, by producer id. fates: label → committed."""

    def __init__(self):
        self.states = ProducerStates()
        self.end = 0
        self.open: dict[int, set[str]] = {}
        self.fates: dict[str, bool] = {}

    def write(self, producer, sequence, label) -> bool:
        one = header(producer, sequence)
        if self.states.check(one) < 0:
            self.states.update(one, self.end, 0)
            self.open.setdefault(producer[0], set()).add(label)
            self.end += 1
        return True

    def mark(self, ending) -> None:
        marker = Marker(ending.committed, ending.coordinator_epoch)
        self.states.check_end(ending.producer_id, ending.epoch, marker, ending.version)
        self.states.end_transaction(header((ending.producer_id, ending.epoch)), self.end, 0, marker)
        self.end += 1
        for label in self.open.pop(ending.producer_id, ()):
            assert label not in self.fates
            self.fates[label] = ending.committed


@dataclass
class Producer:
    """stage: init, write, end or over. told: what the producer knows of each of its labels."""

    name: str
    rises: bool
    patience: float
    stage: str = "init"
    identity: tuple[int, int] = (-1, -1)
    label: str = ""
    commit: bool = True
    left: int = 0
    number: int = 0
    sequences: dict[tuple[tuple[int, int], int], int] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    told: dict[str, bool] = field(default_factory=dict)


class Simulation:
    """held: answers and endings of turns that are not committed, with the log's length behind."""

    def __init__(self, seed: int, version: int) -> None:
        self.random = Random(seed)
        self.world = World(version)
        self.world.check_up_to = 0
        self.version = version
        self.partitions = [Partition() for _ in range(PARTITIONS)]
        self.producers: list[Producer] = []
        self.markers: list[tuple] = []  # (ending, partition) on their way
        self.words: list[tuple] = []  # of markers that are written, back to the coordinator
        self.committed = 0
        self.endings: list[tuple[int, object]] = []
        self.number = 0
        self.faulty = True

    # The coordinator's shell ----------------------------------------------------------------------

    def ask(self, request):
        """What the coordinator says, or None when the answer does not come: it is decided, all the
        same."""
        answer = request()
        self.take()
        lost = self.faulty and self.random.random() < 0.2
        if not lost:
            self.commit()
        return None if lost else answer

    def take(self) -> None:
        world = self.world
        self.endings += [(len(world.log), ending) for ending in world.endings]
        world.endings.clear()

    def commit(self) -> None:
        """All of the log is committed: endings begin."""
        self.committed = len(self.world.log)
        for _, ending in self.endings:
            self.markers += [(ending, int(index)) for _, index in ending.partitions]
        self.endings.clear()

    def die(self) -> None:
        """A part of what was not committed may be there all the same."""
        kept = self.random.randint(self.committed, len(self.world.log))
        self.endings.clear()
        self.world.restart(kept)
        self.take()

    # What happens ---------------------------------------------------------------------------------

    def deliver(self) -> None:
        """A marker reaches its partition."""
        if not self.markers:
            return
        at = self.random.randrange(len(self.markers)) if self.faulty else 0
        ending, index = self.markers.pop(at)
        try:
            self.partitions[index].mark(ending)
        except PeerError:
            if ending.coordinator_epoch == self.world.epoch:
                raise
            return
        self.words += [(ending, index)] * (2 if self.faulty and self.random.random() < 0.2 else 1)

    def hear(self) -> None:
        """The coordinator, perhaps another one, hears of a marker that is written."""
        if self.words:
            at = self.random.randrange(len(self.words)) if self.faulty else 0
            ending, index = self.words.pop(at)
            where = (("t", index),)
            self.world.carry_out(self.world.shard.marked(ending, where, self.world.now))
            self.take()

    def step(self, one: Producer) -> None:
        getattr(self, one.stage)(one)

    def init(self, one: Producer) -> None:
        got = self.ask(lambda: self.world.init(one.name))
        if isinstance(got, tuple):
            one.identity = got
            self.begin(one)

    def begin(self, one: Producer) -> None:
        one.number += 1
        self.number += 1
        one.label = f"{one.name}/{self.number}"
        one.commit = self.random.random() < 0.7
        one.left = self.random.randint(0 if one.rises else 1, 4)
        one.stage = "write" if one.left else "end"
        if one.rises and not one.left:
            one.commit = False  # nothing was written: only an abort is allowed

    def write(self, one: Producer) -> None:
        index = self.random.randrange(PARTITIONS)
        version = 5 if one.rises else 3
        got = self.ask(lambda: self.world.add(one.identity, index, name=one.name, version=version))
        code = got[0] if got else None
        if code in AGAIN:
            return
        if code in OVER:
            one.stage = "over"
            return
        assert code == errors.NONE, code
        if one.rises and self.faulty and self.random.random() < 0.1:
            self.idle()  # what was allowed comes late
        place = one.identity, index
        sequence = one.sequences.get(place, 0)
        try:
            self.partitions[index].write(one.identity, sequence, one.label)
        except PeerError as refused:
            if refused.code not in OVER:
                raise
            one.stage = "over"
            return
        one.sequences[place] = sequence + 1
        one.left -= 1
        if not one.left:
            one.stage = "end"

    def end(self, one: Producer) -> None:
        if one.commit:
            one.asked.add(one.label)
        version = 5 if one.rises else 3
        got = self.ask(
            lambda: self.world.end(one.identity, one.commit, name=one.name, version=version)
        )
        if got in AGAIN:
            return
        if got in OVER:
            one.stage = "over"
            return
        one.told[one.label] = one.commit
        if one.rises:
            assert isinstance(got, tuple), got
            one.identity = got
        else:
            assert got == errors.NONE, got
        self.begin(one)

    def over(self, one: Producer) -> None:
        """Another instance of it begins, in time."""
        if self.random.random() < 0.3:
            self.arrive(one.name)
            one.stage = "gone"

    def gone(self, one: Producer) -> None:
        pass

    def arrive(self, name: str) -> None:
        rises = self.version >= 2 and self.random.random() < 0.6
        self.producers.append(Producer(name, rises, self.random.random()))

    def idle(self) -> None:
        """Time passes: those that do nothing are aborted."""
        self.world.now += self.random.choice((10, 1000, TIMEOUT_MS))
        self.world.tick()
        self.take()

    def event(self) -> None:
        chance = self.random.random()
        if chance < 0.55 and self.producers:
            self.step(self.random.choice(self.producers))
        elif chance < 0.7:
            self.deliver()
        elif chance < 0.85:
            self.hear()
        elif chance < 0.9:
            self.commit()
        elif chance < 0.93:
            self.die()
        elif chance < 0.95:
            self.idle()
        elif chance < 0.97 and len(self.producers) < 12:
            self.arrive(self.random.choice("xyz"))
        elif self.random.random() < 0.02:
            known = self.world.shard.state.known
            for name in list(known):  # its epochs are used up soon
                found = known[name].transaction
                if found.state == 0 and found.epoch < 30_000:
                    self.world.jump(32_760, name)
                    self.take()

    def run(self, events: int) -> None:
        for name in "xyz":
            self.arrive(name)
        for _ in range(events):
            self.event()
        self.faulty = False
        self.quiet()
        self.verify()

    def quiet(self) -> None:
        """No faults, and nobody begins anything: what is open ends by its timeout."""
        for _ in range(10):
            self.commit()
            while self.markers or self.words:
                self.deliver()
                self.hear()
            self.world.now += TIMEOUT_MS
            self.world.tick()
            self.take()

    def verify(self) -> None:
        fates: dict[str, bool] = {}
        for partition in self.partitions:
            assert partition.states.open == {}, "a transaction hangs"
            assert not any(partition.open.values())
            for label, committed in partition.fates.items():
                assert fates.setdefault(label, committed) == committed, f"{label} is torn"
        for one in self.producers:
            for label, committed in one.told.items():
                assert fates.get(label, committed) == committed, f"{label} was told otherwise"
        asked = {label for one in self.producers for label in one.asked}
        for label, committed in fates.items():
            assert not committed or label in asked, f"nobody asked to commit {label}"
        states = {found.state for found in self.world.transactions().values()}
        assert states <= {0, 4, 5}
