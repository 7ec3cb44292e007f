"""Three replicas of one partition, their controller and their clients, in a simulated world.

A broker is today's `PartitionLog` and `Progress` on a simulated disk; what drives them is a test's,
and is how Kafka does it: the leader appends and answers fetches, a follower asks where its newest
epoch ended with the leader (OffsetsForLeaderEpoch, KIP-101 and KIP-279), truncates to where they
part, and fetches from there on; where it fetches from says what it has. The controller never fails:
it says who leads in which epoch and who is in sync (AlterPartition, KIP-497), and knows each life
of each broker by its number (KIP-903).

With `durable` the disk is a replica (docs/decisions/0002): a leader counts what is synced, a
follower syncs what it took before it fetches what follows, and any number of machines may lose
power. Without it the page caches of those in sync are what holds, and at least one of them keeps
its power.
"""

from math import inf

from sim.disk import SimDisk
from sim.faults import Faults
from sim.replicated.broker import LEAST_IN_SYNC, Broker
from sim.replicated.clients import Careless, Producer, Reader
from sim.replicated.controller import Controller
from sim.replicated.ledger import Ledger
from sim.world import World

from appliance.wire.batch import iter_records

RARE = {
    "a life ends in the middle of a change": 10,
    "a torn tail is cut off": 20,
    "a sync fails": 40,
    "a log is cut": 10,
    "where logs part is asked again": 300,
    "a log starts over": 30,
    "logs part below a log start": inf,
    "a record comes again": 20,
}
"""What is to come about in so many seeds."""
STORM_MS = 1500
CALM_MS = 1500


class Cluster:
    """The whole story: three brokers, a controller, five clients; faults for a while, then none,
    and everything must be well again. failing: the chance that a sync fails, which ends a life."""

    def __init__(self, world, *, durable, failing=0.0, broker=Broker, disk=SimDisk):
        self.world = world
        self.failing = failing if durable else 0.0  # a sync that fails loses what page caches had
        self.ledger = Ledger(world, ("a", "b", "c"))
        least = 1 if durable else LEAST_IN_SYNC
        self.controller = Controller(world, "controller", least_in_sync=least)
        self.brokers = [
            broker(world, name, disk(world.rng), durable=durable, ledger=self.ledger)
            for name in self.ledger.names
        ]
        self.writers = [
            *(Producer(world, f"p{number}", self.ledger, number) for number in range(2)),
            *(Careless(world, f"q{number}", self.ledger) for number in range(2)),
        ]
        reader = Reader(world, "reader", self.ledger)
        for node in (self.controller, *self.brokers, *self.writers, reader):
            world.after(world.rng.random(), node.start, node=node)
        self.faults = Faults(world, self.brokers)
        world.invariants.append(self.in_sync_means_in_sync)

    def play(self):
        for broker in self.brokers:
            broker.disk.failing = self.failing
        self.world.run(STORM_MS)
        self.faults.stop()
        for broker in self.brokers:
            broker.disk.failing = 0.0
        for writer in self.writers:
            writer.going_on = False
        self.world.run(CALM_MS)
        self.world.check(self.all_is_well)
        return self.world

    def in_sync_means_in_sync(self):
        """Whoever is in sync has all that was ever shown, whether it lives or not, so that any of
        them can lead (leader completeness); nobody shows more than a leader did."""
        end, in_sync = self.ledger.end, self.controller.told.in_sync
        for broker in self.brokers:
            log = broker.log
            if log is None:
                continue  # it never lived
            if broker.up:
                assert broker.progress.log_end == log.end_offset
                assert broker.progress.high_watermark <= end
            if broker.name in in_sync and not broker.unclean:
                has = broker.progress.held if broker.durable else log.end_offset
                assert has >= end, f"{broker.name} is in sync and has {has}; {end} was shown"

    def all_is_well(self):
        """The replicas are the same, and hold what was acknowledged: once, in order."""
        told, end = self.controller.told, self.ledger.end
        assert sorted(told.in_sync) == sorted(self.ledger.names), told
        for broker in self.brokers:
            shown = broker.progress.high_watermark
            assert shown == broker.log.end_offset == end, (broker.name, shown, end)
            self.ledger.has_all(broker)
        found = {}
        for batch in self.ledger.by_base.values():
            for record in iter_records(batch):
                name, number, _ = record.value.split(b":", 2)
                found.setdefault(name.decode(), []).append(number)
        for writer in self.writers:
            if isinstance(writer, Producer):
                assert writer.batch is None, f"{writer.name} still waits for an answer"
                numbers = [int(number) for number in found.get(writer.name, [])]
                assert numbers == list(range(writer.sequence)), f"of {writer.name}: {numbers}"


def play(seed, **planted):
    """The story of this seed; the world as it was left. Raises Broken."""
    options = {"durable": seed % 2 == 0, "failing": 0.02 if seed % 4 == 0 else 0.0}
    return Cluster(World(seed), **options | planted).play()
