"""Three or five brokers, a controller and clients, whatever happens to machines and links; then all
is well and must become so.

With `durable` the disk is a replica (docs/decisions/0002): any number of machines may lose power.
Without it the page caches are what holds, and power is cut where somebody else who may lead has
everything.
"""

from sim.faults import Faults
from sim.replicas.broker import Broker
from sim.replicas.clients import Careless, Producer, Reader
from sim.replicas.controller import TOPIC, Controller
from sim.replicas.ledger import Ledger
from sim.replicas.talk import Key
from sim.world import World

RARE = {
    "a log is cut": 10,
    "a log is cut twice in an epoch": 1000,
    "a log starts over": 20,
    "a fetch is given up": 10,
    "a record comes again": 10,
    "who registers lost what it had": 20,
    "decisions are lost": 200,
    "somebody is eligible": 10,
    "nobody is in sync": 20,
    "an eligible one is elected": 20,
    "the last known leader is elected": 300,
    "a reassignment ends": 60,
    "an end is in order": 10,
    "a disk is replaced": 60,
    "a change of the ISR is refused": 20,
}
"""What is to come about in so many seeds."""
STORM_MS = 500
CALM_MS = 900
PARTITIONS = 2


class Story:
    """wipes: whether disks are replaced by empty ones, under the same broker id."""

    def __init__(
        self, world, *, size=3, durable=True, wipes=False, broker=Broker, controller=Controller
    ):
        self.world = world
        world.moved = True  # more is shown, a log is shorter, the metadata is other
        numbers = tuple(range(1, size + 1))
        replicas = [
            tuple(numbers[(at + step) % size] for step in range(3)) for at in range(PARTITIONS)
        ]
        self.controller = controller(world, numbers, replicas, 2)
        keys = [Key(((1).to_bytes(16, "big"), at)) for at in range(PARTITIONS)]
        self.ledgers = {key: Ledger(key) for key in keys}
        self.brokers = [
            broker(world, number, self.controller, self.ledgers, durable=durable)
            for number in numbers
        ]
        self.clients = []
        for at, ledger in enumerate(self.ledgers.values()):
            self.clients += [
                Producer(world, 2 * at, ledger, numbers),
                Producer(world, 2 * at + 1, ledger, numbers),
                Careless(world, f"q{at}", ledger, numbers),
                Reader(world, f"r{at}", ledger, numbers),
            ]
        self.controller.start()
        for node in self.brokers:
            world.after(world.rng.random(), node.start, node=node)
        while TOPIC not in self.controller.agreed.topics_by_name:
            world.run(10)
        for client in self.clients:
            world.after(world.rng.random(), client.start, node=client)
        self.faults = Faults(world, self.brokers, every_ms=25)
        self.faults.kinds = [
            self.faults.kill,
            self.faults.kill,
            self.faults.cut_power,
            self.faults.cut_power,
            self.faults.part,
            self.faults.isolate,
            self.faults.slow,
            self.faults.heal,
            self.faults.heal,
            self.faults.reset,
            self.end_in_order,
            self.controller.becomes_another,
            self.reassign,
        ]
        if wipes:
            self.faults.kinds += [self.wipe] * 6
        world.invariants.append(self.in_sync_means_in_sync)

    def reassign(self):
        """A partition is to be on three of them, whoever lives."""
        rng = self.world.rng
        numbers = [broker.number for broker in self.brokers]
        self.controller.reassign(rng.randrange(PARTITIONS), rng.sample(numbers, 3))

    def wipe(self):
        away = [broker for broker in self.brokers if not broker.up]
        if away:
            self.world.rng.choice(away).wipe()

    def end_in_order(self):
        up = [broker for broker in self.brokers if broker.up]
        if up:
            self.world.rng.choice(up).ends_in_order()

    def play(self):
        self.world.run(STORM_MS)
        self.faults.stop()
        for client in self.clients:
            client.going_on = False
        self.world.run(CALM_MS)
        self.world.check(self.all_is_well)
        return self.world

    def in_sync_means_in_sync(self):
        """Whoever is in sync or eligible (KIP-966) has all that was ever shown, whether it lives or
        not, so that any of them can lead (leader completeness); nobody shows more than a leader
        did."""
        if not self.world.moved:
            return
        self.world.moved = False
        for key, ledger in self.ledgers.items():
            partition = self.controller.partition(key[1])
            end = ledger.end
            isr, eligible = partition.isr, partition.eligible_leader_replicas
            assert not set(isr) & set(eligible), partition
            for broker in self.brokers:
                replica = broker.replicas.get(key)
                if replica is None:
                    continue
                log = replica.log
                if broker.up:
                    assert replica.progress.log_end == log.end
                    assert replica.progress.high_watermark <= end
                has = log.synced if broker.durable else log.end
                if has >= end or broker.unclean:
                    continue
                assert broker.number not in isr, f"in sync: {replica} has {has} of {end}"
                beside = f"eligible beside {isr}" if isr else "eligible"
                assert broker.number not in eligible, f"{beside}: {replica} has {has} of {end}"

    def all_is_well(self):
        """The replicas are the same, and hold what was acknowledged: once, in order."""
        for key, ledger in self.ledgers.items():
            partition = self.controller.partition(key[1])
            assert sorted(partition.isr) == sorted(partition.replicas), partition
            assert len(partition.replicas) == 3 and not partition.adding_replicas, partition
            for broker in self.brokers:
                if broker.number in partition.replicas:
                    replica = broker.replicas[key]
                    shown = replica.progress.high_watermark
                    assert shown == replica.log.end == ledger.end, (str(replica), shown, ledger.end)
                    ledger.has_all(replica)
        for client in self.clients:
            if isinstance(client, Producer):
                assert not client.waits, f"{client.name} still waits for an answer"
                numbers = [e.number for e in client.ledger.entries if e.who == client.who]
                assert numbers == list(range(client.number)), f"of {client.name}: {numbers}"


def play(seed, **planted):
    """The story of this seed; the world as it was left. Raises Broken."""
    options = {
        "size": 5 if seed % 3 == 2 else 3,
        "durable": seed % 2 == 0,
        "wipes": seed % 5 == 4,
    }
    return Story(World(seed), **options | planted).play()
