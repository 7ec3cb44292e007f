"""A quorum goes on whatever strangers send to its voters: no process ends, no epoch comes near the
last one, and all the invariants of elections hold."""

from sim.agreed.invariants import ALL, Invariants, SingleLeader
from sim.agreed.story import Story
from sim.agreed.talk import Ask
from sim.agreed.voter import LIMITS, SHORT
from sim.node import Node
from sim.world import World

from appliance.quorum.epochs import MOST_AHEAD
from tests.seeds import plays
from tests.strangers import DESCRIBE, UPDATE, every

NOT_SERVED_HERE = (DESCRIBE, UPDATE)
FAR = 1 << 40


class Stranger(Node):
    """It sends requests of every kind, `pause_ms` between two, to voters that it picks."""

    pause_ms = 5

    def __init__(self, world, story):
        super().__init__(world, "stranger")
        self.story = story
        self.others = [one for one in story.machines if one.number in story.machines[0].voters]
        self.answers = 0

    def begin(self):
        self.after(self.pause_ms, self.send)

    def send(self):
        if not self.story.clients[0].going_on:
            return
        self.after(self.pause_ms, self.send)
        chosen = self.world.rng.choice(self.others)
        if not chosen.up or chosen.replica is None:
            return
        voters = [one.number for one in self.others]
        asked = every("cluster", chosen.replica.epoch, FAR, voters, chosen.number)
        request = self.world.rng.choice([r for r in asked if r.key not in NOT_SERVED_HERE])
        end = self.world.network.connect(self, chosen.name)
        self.say(f"sends {request.name}")
        end.send(Ask(self.answers, request.key, request.version, request.body))

    def received(self, end, message):
        self.answers += 1
        end.close()

    def lost(self, end):
        pass


class LeadersThatLead(SingleLeader):
    """A stranger's word makes nobody a leader: only those who lead count."""

    def verify(self, one):
        if one.replica.leads:
            super().verify(one)


def watched(story):
    """The story, under every invariant that a lie leaves true."""
    kinds = [LeadersThatLead if kind is SingleLeader else kind for kind in ALL]
    story.world.invariants.clear()
    story.world.invariants.append(Invariants(story, kinds).verify)
    return story


@plays(4, 2)
def test_a_quorum_agrees_while_strangers_send_what_they_like(some):
    for seed in some:
        story = watched(Story(World(seed), limits=SHORT if seed % 2 else LIMITS))
        stranger = Stranger(story.world, story)
        story.world.after(100, stranger.start, node=stranger)
        story.clients[0].pause_ms = 1
        calm(story)
        assert stranger.answers > 50
        assert max(one.replica.epoch for one in story.machines) < MOST_AHEAD


def calm(story):
    """As `Story.play`, with the stranger in its storm only."""
    story.world.run(1500)
    story.faults.stop()
    for client in story.clients:
        client.going_on = False
    story.world.run(3000)
    leaders = [one.number for one in story.machines if one.replica.leads]
    assert len(leaders) == 1, leaders
    for one in story.machines:
        assert one.replica.leader == leaders[0], (one.name, one.replica.role)
        assert one.replica.high_watermark == one.log.end_offset == story.ledger.end, one.name
