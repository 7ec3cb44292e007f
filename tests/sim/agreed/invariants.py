"""The seven invariants of Apache Kafka's own simulation of its quorum (RaftEventSimulationTest), by
their names. There the epochs and votes are read from a store in memory, and committed data is
compared at the end; here a machine's disk forgets, and all is checked after every event of a
machine.

Each `verify` is given the machine (`Voter`) that lives and has just acted; what it raises begins
with the invariant's name.
"""

from sim.agreed.voter import DATA

from appliance.metadata.files import snapshots
from appliance.metadata.follower import LOG_FOLDER
from appliance.quorum.majority import needed
from appliance.quorum.messages import NOBODY


class Invariant:
    """story: whose machines are looked at."""

    def __init__(self, story):
        self.story = story

    def holds(self, condition, *why):
        """Raise unless it does."""
        assert condition, ": ".join(map(str, (type(self).__name__, *why)))


class MonotonicHighWatermark(Invariant):
    """What is agreed stays agreed: within a life of anybody, and from one leader to the next, once
    that one knows it by a record of its own epoch."""

    def __init__(self, story):
        super().__init__(story)
        self.seen = {}  # machine → (life, high watermark)
        self.led = (0, 0)  # the newest epoch, and what its leader knew to be agreed

    def verify(self, one):
        high = one.replica.high_watermark
        life, before = self.seen.get(one.name, (-1, 0))
        self.holds(life != one.life or high >= before, one.name, before, high)
        self.seen[one.name] = one.life, high
        epoch, led = self.led
        if one.replica.begun and one.replica.epoch >= epoch:
            self.holds(high >= led, one.name, led, high)
            self.led = one.replica.epoch, high


class MonotonicEpoch(Invariant):
    """Nobody goes back to an older epoch, whatever ends its life; `disks` that were replaced know
    nothing."""

    def __init__(self, story):
        super().__init__(story)
        self.seen = {}

    def verify(self, one):
        key, epoch = (one.name, one.disks), one.replica.epoch
        self.holds(epoch >= self.seen.get(key, 0), one.name, self.seen.get(key), epoch)
        self.seen[key] = epoch


class MajorityReachedHighWatermark(Invariant):
    """What a leader says is agreed is on the disks of a majority of those who voted then, whether
    they live or not, and stays there, as long as these disks are."""

    def __init__(self, story):
        super().__init__(story)
        self.end = 0
        self.voters = ()

    def verify(self, one):
        replica = one.replica
        if replica.begun and replica.high_watermark > self.end:
            self.end = replica.high_watermark
            voters = [self.story.by_number[number] for number in replica.voters]
            self.voters = [(one, one.disks) for one in voters]
        reached = sum(one.disks != disks or one.held >= self.end for one, disks in self.voters)
        if reached < (needed(len(self.voters)) if self.voters else 0):
            held = {one.name: one.held for one, _ in self.voters}
            self.holds(False, self.end, held)


class SingleLeader(Invariant):
    """An epoch has one leader, whoever knows of it."""

    def __init__(self, story):
        super().__init__(story)
        self.leaders = {}

    def verify(self, one):
        replica = one.replica
        if replica.leader != NOBODY:
            first = self.leaders.setdefault(replica.epoch, replica.leader)
            self.holds(first == replica.leader, replica.epoch, first, f"{replica.leader}, too")


class SnapshotAtLogStart(Invariant):
    """A log that does not begin at 0 has a snapshot of all that is missing, of agreed records, and
    knows of which epoch the last of them is."""

    def __init__(self, story):
        super().__init__(story)
        self.seen = {}

    def verify(self, one):
        log = one.log
        now = one.life, log.start_offset, one.snapshots
        if self.seen.get(one.name) == now:
            return
        self.seen[one.name] = now
        found = [
            name for name in snapshots(one.disk, f"{DATA}/{LOG_FOLDER}")
            if name.offset >= log.start_offset
        ]  # fmt: skip
        self.holds(not log.start_offset or found, one.name, f"nothing has what {log.start_offset}")
        for snapshot in found:
            agreed = self.story.ledger.epoch_before(snapshot.offset)
            self.holds(agreed in (None, snapshot.epoch), one.name, snapshot, agreed)


class LeaderNeverLoadSnapshot(Invariant):
    """Who leads has all that is agreed in its image, and never takes a snapshot in its place: only
    a start does, and who starts does not lead."""

    def verify(self, one):
        self.holds(not one.loaded_leading, one.name, one.replica.epoch)


class ConsistentCommittedData(Invariant):
    """What anybody takes for agreed is the same, record by record."""

    def verify(self, one):
        self.story.ledger.agreed(one)


ALL = (
    MonotonicHighWatermark,
    MonotonicEpoch,
    MajorityReachedHighWatermark,
    SingleLeader,
    SnapshotAtLogStart,
    LeaderNeverLoadSnapshot,
    ConsistentCommittedData,
)


class Invariants:
    """All of them, or these kinds, of a story."""

    def __init__(self, story, kinds=ALL):
        self._world = story.world
        self._machines = dict.fromkeys(story.machines)
        self._all = [kind(story).verify for kind in kinds]

    def verify(self):
        """After an event: of whoever acted, or of all when it was nobody's."""
        acted = self._world.acted
        for one in (acted,) if acted is not None else self._machines:
            if one in self._machines and one.up and one.replica is not None:
                for verify in self._all:
                    verify(one)
