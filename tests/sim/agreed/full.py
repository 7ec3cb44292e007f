"""Disks of voters are full, one at a time: somebody who has room leads, and what clients ask for is
agreed all the same."""

import errno
from types import SimpleNamespace

from sim.agreed.story import Story
from sim.agreed.talk import Done
from sim.agreed.voter import DATA, LIMITS, Voter, recorded
from sim.world import World

from appliance.base.errors import DiskFull
from appliance.control.quorum.new_leader import Leading
from appliance.metadata.identity import Identity

FULL_MS = 3600
SERVED_MS = 2400
"""By then somebody leads who has room: a second until it is believed, and an election."""
SLACK = 3
ELECTED_MS = 1000
ALL_FULL_MS = 7_000
STORM_MS = 5_000
PAUSE_MS = 60
TICK_MS = 50
CAPACITY = 64 << 20


class Small(Voter):
    """A voter that leads as control does (`Leading`)."""

    leading = None

    def begin(self):
        self.leading = None
        super().begin()
        self.tick()

    def tick(self):
        self.turn()
        self.after(TICK_MS, self.tick)

    def fill(self):
        self.disk.foreign = 0
        self.disk.foreign = self.disk.free()
        self.say("has no room")

    def make_room(self):
        self.disk.foreign = 0
        self.say("has room")

    def turn(self):
        leads = self.leading is not None and not self.turning and self.up
        if leads and self.leading.again(self.world.clock.now_ns, self.now_ms):
            self.make_way()
        super().turn()

    def make_way(self):
        self.driver.make_way()

    def led(self):
        self.ledger.elected(self)
        seat = SimpleNamespace(
            data_dir=DATA, config=self.config, run_id=bytes(16), ports=(), clean=True, generation=1
        )
        identity = Identity("cluster", self.number, self.directory)
        rng = self.world.rng
        self.leading = Leading(seat, self.disk, self.quorum, identity, rng.randbytes, None, self)
        self.leading.lead(self.now_ms)

    def lost(self, end=None):
        if end is None and self.leading is not None:
            self.leading.resign()
            self.leading = None
        super().lost(end)

    def put(self, end, message):
        if self.leading is None:
            super().put(end, message)
            return
        offset = self.quorum.replayed_end
        try:
            with self.leading.deciding():
                self.quorum.append([recorded(message.name)], self.now_ms)
        except DiskFull:
            end.send(Done(False, self.number, -1))
        else:
            self.puts.append((offset, end))


class FullDisks(Story):
    def __init__(self, world, *, voter=Small, **options):
        super().__init__(world, voter=voter, limits=LIMITS, **options)
        for one in self.machines:
            one.disk.capacity = CAPACITY
        self.faults.kinds = [self.fill, self.fill_leader, self.fill_leader, self.hand_over]
        for one in self.clients:
            one.pause_ms = PAUSE_MS

    def fill_leader(self):
        leading = [one for one in self.machines if one.up and one.replica and one.replica.leads]
        self.fill(leading[0] if leading else None)

    def fill(self, victim=None):
        victim = victim or self.world.rng.choice(self.machines)
        victim.fill()
        self.faults.hold(FULL_MS)
        self.world.after(SERVED_MS, self.look)
        self.world.after(FULL_MS - 100, victim.make_room)

    def look(self):
        """From now on much is to be decided: little has room in the last page of a log."""
        self.world.after(FULL_MS - SERVED_MS - 200, self.compare, len(self.ledger.shown))

    def compare(self, before):
        assert len(self.ledger.shown) > before + SLACK, "nothing is decided any more"

    def play(self):
        self.world.run(STORM_MS)
        self.faults.stop()
        self.world.run(FULL_MS + SERVED_MS)
        for client in self.clients:
            client.going_on = False
        self.world.run(1000)
        self.world.check(self.all_is_well)
        return self.world


class AllFull(Story):
    """All of them at once; what is kept for votes is there."""

    def __init__(self, world):
        super().__init__(world, voter=Small, limits=LIMITS)
        self.faults.stop()
        for one in self.clients:
            one.pause_ms = PAUSE_MS

    def play(self):
        self.world.run(ELECTED_MS)
        before = self.epoch()
        for one in self.machines:
            one.disk.refusing[".log", "write"] = errno.ENOSPC
        self.world.run(ALL_FULL_MS)
        self.world.check(lambda: self.somebody_stays(before))
        for one in self.machines:
            one.disk.refusing.clear()
        self.world.run(SERVED_MS)
        for client in self.clients:
            client.going_on = False
        self.world.run(1000)
        self.world.check(self.all_is_well)

    def epoch(self):
        return max(one.replica.epoch for one in self.machines)

    def somebody_stays(self, before):
        """Each makes way once."""
        assert sum(one.replica.leads for one in self.machines) == 1
        assert before < self.epoch() <= before + 4


def play(seed, **planted):
    """The story of this seed; the world as it was left. Raises Broken."""
    options = {"size": 3 if seed % 2 == 0 else 5}
    return FullDisks(World(seed), **options | planted).play()
