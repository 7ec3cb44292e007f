"""Clients of a leader that only its peers cannot reach: they write on elsewhere soon after somebody
else was elected, though that leader goes on telling all that it leads. Nobody is sent away from a
leader whose replicas fetch, or whose controller answers.

The controller is played by times; what is tested is `Isolation`, as every node asks it.
"""

import pytest
from sim.clock import DRIFT, OwnClock
from sim.seeds import first_broken
from sim.world import World

from appliance.replication.isolation import Isolation
from tests.seeds import plays

SILENCE_MS, LEASE_MS, FETCH_MS = 2500, 3000, 1500
BEAT_MS, POLL_MS, LOOK_MS, BACKOFF_MS, SLOW_MS = 2000, 500, 100, 100, 100
NODES = (1, 2, 3)
RARE = {
    "a leader sends its clients away": 10,
    "somebody else leads": 10,
    "there is no controller": 10,
    "a client is refused": 10,
}
"""What is to come about in so many seeds."""
SOON_MS = 3000
"""After others lead, and the leader before has noticed: some tries, each asks anybody who leads."""


class Leader:
    """What a node knows: who leads, in which epoch, and what it hears."""

    def __init__(self, story, number):
        self.story, self.world, self.number = story, story.world, number
        self.clock = OwnClock(self.world.clock, self.world.rng)
        self.leader, self.epoch = 1, 0
        self.isolation = Isolation(LEASE_MS, FETCH_MS)
        self.answered_ms, self.fetched = self.now, False
        self.fetched_ms = self.now
        self.waiting = []

    @property
    def now(self):
        """By its own clock."""
        return self.clock.monotonic_ns() // 1_000_000

    def after(self, ms, what):
        self.world.after(ms / self.clock.rate, what)

    def start(self):
        for what in (self.beat, self.poll, self.look):
            self.world.after(self.world.rng.uniform(0, 500), what)

    def delay(self):
        return self.world.rng.uniform(0, SLOW_MS)

    def beat(self):
        story, left_ms = self.story, self.now
        if story.controls and not story.is_cut(self.number):
            self.world.after(self.delay(), self.answered, left_ms)
            story.heard[self.number] = story.now
        self.after(BEAT_MS, self.beat)

    def answered(self, left_ms):
        if not self.story.is_cut(self.number):
            self.answered_ms = max(left_ms, 1)
            self.leader, self.epoch = self.story.leader, self.story.epoch

    def poll(self):
        """It fetches from whom it takes for the leader, and hears what became of the metadata."""
        story = self.story
        if not story.is_cut(self.number):
            if story.controls:
                self.leader, self.epoch = story.leader, story.epoch
            if self.leader != self.number and not story.is_cut(self.leader):
                self.world.after(self.delay(), story.nodes[self.leader].hear, self.number)
        self.after(POLL_MS, self.poll)

    def hear(self, replica):
        if self.story.is_cut(self.number):
            return
        self.fetched, self.fetched_ms = True, self.now
        if self.leader == self.number and self.story.leader == self.number:
            waiting, self.waiting = self.waiting, []
            for done in waiting:
                done(acknowledged=True)

    def look(self):
        fetched, self.fetched = self.fetched, False
        if self.isolation.is_isolated(self.now, self.answered_ms, fetched=fetched):
            self.story.sent_away(self)
            waiting, self.waiting = self.waiting, []
            for done in waiting:
                done(acknowledged=False)
        self.after(LOOK_MS, self.look)

    def produce(self, done):
        if self.leader != self.number or self.isolation.isolated:
            done(acknowledged=False)
        else:
            self.waiting.append(done)


class Client:
    """As Kafka's: refused, it asks anybody who leads, and believes the newest epoch."""

    def __init__(self, story):
        self.story, self.world = story, story.world
        self.leader, self.epoch = 1, 0
        self.since_ms = 0

    def send(self):
        self.since_ms = self.story.now
        self.again()

    def again(self):
        self.story.nodes[self.leader].produce(self.done)

    def done(self, *, acknowledged):
        if acknowledged:
            self.world.after(self.world.rng.uniform(1, 50), self.send)
            self.since_ms = self.story.now
            return
        self.world.reached("a client is refused")
        told = self.story.nodes[self.world.rng.choice(NODES)]
        if told.epoch >= self.epoch:
            self.leader, self.epoch = told.leader, told.epoch
        self.world.after(BACKOFF_MS, self.again)


class Story:
    """cut: the node that its peers cannot reach. controls: somebody does; else nobody is fenced."""

    def __init__(self, seed, isolation=Isolation):
        self.world = World(seed)
        self.cut, self.cut_ms, self.controls = 0, 0, True
        self.leader, self.epoch, self.moved_ms = 1, 0, 0
        self.heard = dict.fromkeys(NODES, 0)
        self.nodes = {number: Leader(self, number) for number in NODES}
        for node in self.nodes.values():
            node.isolation = isolation(LEASE_MS, FETCH_MS)
            node.start()
        self.client = Client(self)
        self.world.after(1000, self.client.send)
        self.world.after(4000, self.suffer)
        self.world.after(LOOK_MS, self.control)

    @property
    def now(self):
        return self.world.clock.now_ns // 1_000_000

    def is_cut(self, number):
        return number == self.cut

    def suffer(self):
        what = self.world.rng.choice(("cut", "cut", "no controller"))
        self.world.say("world", what)
        if what == "cut":
            self.cut, self.cut_ms = self.world.rng.choice(NODES), self.now
        else:
            self.controls = False
            self.world.reached("there is no controller")
        self.world.after(self.world.rng.uniform(500, 20_000), self.recover)

    def recover(self):
        self.world.say("world", "heals")
        self.cut, self.controls = 0, True
        self.heard = dict.fromkeys(NODES, self.now)
        self.moved_ms = self.now
        self.world.after(self.world.rng.uniform(6000, 9000), self.suffer)

    def control(self):
        late = self.now - self.heard[self.leader] >= SILENCE_MS
        if self.controls and self.cut == self.leader and late:
            self.leader = self.leader % len(NODES) + 1
            self.epoch, self.moved_ms = self.epoch + 1, self.now
            self.world.reached("somebody else leads")
            self.world.say("controller", f"{self.leader} leads")
        writes = not self.cut or self.cut != self.leader
        if writes and self.now > 2000:
            since = max(self.client.since_ms, self.moved_ms)
            assert self.now - since < LEASE_MS * (1 + 2 * DRIFT) + SOON_MS, "a client waits"
        self.world.after(LOOK_MS, self.control)

    def sent_away(self, node):
        self.world.reached("a leader sends its clients away")
        self.world.say(node.number, "isolated")
        assert node.now - node.fetched_ms >= FETCH_MS, "its replicas fetch"
        assert node.now - node.answered_ms >= LEASE_MS, "its controller answers"
        if node.leader == node.number == self.leader and self.cut != node.number:
            assert self.now - self.moved_ms < SOON_MS, "it leads, and others hear it"


def play(seed, isolation=Isolation):
    story = Story(seed, isolation)
    story.world.run(120_000)
    return story.world


@plays(100, 50)
def test_clients_of_who_is_cut_off_write_on(some):
    for seed in some:
        play(seed)


class TellsNobody(Isolation):
    """As Apache Kafka: who is cut off goes on."""

    def is_isolated(self, now_ms, answered_ms, *, fetched):
        return False


class ControllerAlone(Isolation):
    """Without a controller nobody is served."""

    def is_isolated(self, now_ms, answered_ms, *, fetched):
        return super().is_isolated(now_ms, answered_ms, fetched=False)


class ReplicasAlone(Isolation):
    """Who leads nothing that others follow is never served."""

    def is_isolated(self, now_ms, answered_ms, *, fetched):
        return super().is_isolated(now_ms, 1, fetched=fetched)


@pytest.mark.parametrize("isolation", [TellsNobody, ControllerAlone, ReplicasAlone])
def test_a_planted_bug_is_found(isolation):
    assert first_broken(lambda seed: play(seed, isolation), 20), "no seed shows it"
