"""Three or five voters and an observer agree on a log, and clients write to it, whatever happens to
machines and links; then all is well and must become so."""

from sim.agreed.ledger import Ledger
from sim.agreed.talk import Put
from sim.agreed.voter import LIMITS, SHORT, Voter, encoded
from sim.disk import SimDisk
from sim.faults import Faults
from sim.node import Node
from sim.world import World

STORM_MS = 1500
CALM_MS = 1500
OBSERVER = 9


class Client(Node):
    """One value after the other; where it is not agreed in time it asks elsewhere, again. pause_ms:
    between two of them."""

    pause_ms = 0

    def __init__(self, world, name, ledger, voters):
        super().__init__(world, name)
        self.ledger = ledger
        self.voters = voters
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
    def __init__(self, world, *, size=3, voter=Voter, disk=SimDisk, limits=LIMITS, first=None):
        """first: the node that votes alone at the beginning."""
        self.world = world
        self.ledger = Ledger()
        ids = tuple(range(size))
        self.machines = [
            voter(world, number, ids, self.ledger, disk(world.rng), limits, first=first)
            for number in (*ids, OBSERVER)
        ]
        for machine in self.machines:
            machine.disk.mkdir("/data")
            machine.disk.sync_dir("/")
            machine.format()
        asked = ids if first is None else (*ids, OBSERVER)  # whoever may come to lead
        self.clients = [Client(world, f"c{n}", self.ledger, asked) for n in range(3)]
        for node in (*self.machines, *self.clients):
            world.after(world.rng.random(), node.start, node=node)
        self.faults = Faults(world, self.machines)
        self.faults.kinds.append(self.hand_over)
        self.highest = {}
        world.invariants.append(self.forward)

    def hand_over(self):
        """Who leads is asked to lead no more."""
        for one in self.machines:
            if one.up and one.replica is not None and one.replica.leads:
                self.world.say(one.name, "is to hand over")
                self.world.after(0, one.hand_over, node=one)

    def forward(self):
        """Within a life neither epochs nor high watermarks go back; an epoch never does."""
        for one in self.machines:
            if one.up and one.replica is not None:
                epoch, life, high = self.highest.get(one.name, (0, -1, 0))
                replica = one.replica
                assert replica.epoch >= epoch or one.log is None, (one.name, replica.epoch, epoch)
                if life == one.life:
                    assert replica.high_watermark >= high
                self.highest[one.name] = replica.epoch, one.life, replica.high_watermark

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
    options = {"size": 3 if seed % 2 == 0 else 5, "limits": SHORT if seed % 4 < 2 else LIMITS}
    return Story(World(seed), **options | planted).play()
