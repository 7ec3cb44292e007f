"""Three or five voters and an observer agree on a log, and clients write to it, whatever happens to
machines and links; then all is well and must become so."""

from math import inf

from sim.agreed.invariants import Invariants
from sim.agreed.ledger import Ledger
from sim.agreed.talk import Put
from sim.agreed.voter import LIMITS, SHORT, TIMES, Voter, encoded
from sim.disk import SimDisk
from sim.faults import Faults
from sim.node import Node
from sim.world import World

RARE = {
    "a life ends in the middle of a change": 10,
    "a torn tail is cut off": 20,
    "a snapshot is fetched": 20,
    "a start loads a snapshot": 20,
    "logs part": 20,
    "logs part twice in an epoch": inf,
    "who led before its death resigns": 10,
    "BeginQuorumEpoch is sent again": 10,
    "a leader hands over": 10,
    "a hand-over is refused": 100,
    "a leader hears no majority": 30,
    "two lead, in two epochs": 30,
    "an answer comes too late": 100,
    "a disk is replaced": 100,
}
"""What is to come about in so many seeds; inf: nobody knows in how many."""
STORM_MS = 1500
CALM_MS = 1500
OBSERVER = 9
TWICE = 0.02
"""How often the same is asked for over another connection, too, while the first one lives."""


class Client(Node):
    """One value after the other; where it is not agreed in time it asks elsewhere, again. pause_ms:
    between two of them."""

    pause_ms = 0

    def __init__(self, world, name, ledger, voters, twice):
        """twice: how often it asks over another connection, too."""
        super().__init__(world, name)
        self.ledger = ledger
        self.voters = voters
        self.twice = twice
        self.number = 0
        self.at = None
        self.going_on = True

    def begin(self):
        self.end = None
        self.ask()

    def ask(self, leader=-1):
        if not self.going_on:
            return
        if self.end is not None:
            self.end.close()
        self.at = leader if leader in self.voters else self.world.rng.choice(self.voters)
        self.end = self.world.network.connect(self, f"n{self.at}")
        self.end.send(Put(f"{self.name}:{self.number}"))
        if self.twice and self.world.rng.random() < self.twice:
            self.world.network.connect(self, f"n{self.at}").send(Put(f"{self.name}:{self.number}"))
        self.after(100, self.wait, self.end)

    def wait(self, end):
        if end is self.end:
            self.ask()

    def lost(self, end):
        if end is self.end:
            self.after(20, self.wait, end)

    def received(self, end, message):
        if end is not self.end:
            return
        if not message.agreed:
            self.after(20, self.wait_for, end, message.leader)
            return
        self.ledger.shown[f"{self.name}:{self.number}"] = message.offset
        self.number += 1
        if self.pause_ms:
            self.after(self.pause_ms, self.wait_for, end, self.at)
        else:
            self.ask(self.at)

    def wait_for(self, end, leader):
        if end is self.end:
            self.ask(leader)


class Story:
    def __init__(
        self, world, *, size=3, voter=Voter, disk=SimDisk, limits=LIMITS, first=None, wipes=False
    ):
        """first: the node that votes alone at the beginning. wipes: whether disks are replaced."""
        self.world = world
        self.ledger = Ledger()
        ids = tuple(range(size))
        self.machines = [
            voter(world, number, ids, self.ledger, disk(world.rng), limits, first=first)
            for number in (*ids, OBSERVER)
        ]
        self.by_number = {machine.number: machine for machine in self.machines}
        for machine in self.machines:
            machine.disk.mkdir("/data")
            machine.disk.sync_dir("/")
            machine.format()
        asked = ids if first is None else (*ids, OBSERVER)  # whoever may come to lead
        twice = TWICE if first is None else 0
        self.clients = [Client(world, f"c{n}", self.ledger, asked, twice) for n in range(3)]
        for node in (*self.machines, *self.clients):
            world.after(world.rng.random(), node.start, node=node)
        self.faults = Faults(world, self.machines)
        self.faults.kinds += [self.hand_over, self.leave_the_leader]
        if wipes:
            self.faults.kinds += [self.replace_a_disk] * 6
        world.invariants.append(Invariants(self).verify)

    def hand_over(self):
        """Who leads is asked to lead no more."""
        for one in self.machines:
            if one.up and one.replica is not None and one.replica.leads:
                self.world.say(one.name, "is to hand over")
                self.world.reached("a leader hands over")
                self.world.after(0, one.hand_over, node=one)

    def replace_a_disk(self):
        """Of somebody who is away."""
        away = [one for one in self.machines if not one.up and one.replica is not None]
        if away:
            one = self.world.rng.choice(away)
            if self.may_lose(one):
                one.replace_disk()

    def may_lose(self, one):
        """Whether the log and the vote of this one may be lost. A static quorum knows its voters by
        numbers alone: whoever comes back with an empty disk may vote again in an epoch in which it
        has voted, and is counted for what it had. That is harmless only while all the others know
        one leader of the newest epoch, and have all that stands in its log: operators have to see
        to that."""
        others = [self.by_number[number] for number in one.voters if number != one.number]
        if not all(other.up and other.replica is not None for other in others):
            return False
        leading = [other for other in others if other.replica.leads]
        epochs = {other.replica.epoch for other in others}
        known = {other.replica.leader for other in others}
        if len(leading) != 1 or len(epochs | {leading[0].replica.epoch}) != 1 or len(known) != 1:
            return False
        end = leading[0].log.end_offset
        level = all(other.held >= end for other in others)
        return level and end >= self.ledger.end and one.replica.epoch <= max(epochs)

    def leave_the_leader(self):
        """Whoever leads hears nobody, until it gives up."""
        for one in self.machines:
            if one.up and one.replica is not None and one.replica.leads:
                self.world.say(one.name, "is left alone")
                for other in self.machines:
                    if other is not one:
                        self.world.network.block(one.name, other.name)
                        self.world.network.block(other.name, one.name)
                self.faults.hold(TIMES.check_quorum + TIMES.fetch_timeout)

    def play(self):
        self.world.run(STORM_MS)
        self.faults.stop()
        self.world.run(CALM_MS)
        for client in self.clients:
            client.going_on = False
        self.world.run(CALM_MS)
        self.world.check(self.all_is_well)
        return self.world

    def all_is_well(self):
        """One leads, all have the same, and what clients were told is there."""
        leaders = [one.number for one in self.machines if one.replica.leads]
        assert len(leaders) == 1, leaders
        for one in self.machines:
            replica = one.replica
            assert replica.leader == leaders[0], (one.name, replica.role, replica.leader)
            assert replica.high_watermark == one.log.end_offset == self.ledger.end, one.name
            assert one.quorum.images.committed == self.machines[0].quorum.images.committed
            assert one.published == one.quorum.committed == self.ledger.end, one.name
        values = self.ledger.values()
        for name, offset in self.ledger.shown.items():
            assert values.get(offset) == encoded(name), (offset, name, values.get(offset))
        assert len(self.ledger.shown) >= 10, "nothing was agreed"


def play(seed, **planted):
    """The story of this seed; the world as it was left. Raises Broken."""
    options = {
        "size": 3 if seed % 2 == 0 else 5,
        "limits": SHORT if seed % 4 < 2 else LIMITS,
        "wipes": seed % 5 == 4,
    }
    return Story(World(seed), **options | planted).play()
