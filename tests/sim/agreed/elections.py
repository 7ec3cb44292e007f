"""Who votes changes at any instant, while machines die and links are cut."""

import itertools

from sim.agreed.story import Story
from sim.world import World

from appliance.quorum import voters as electing

FEWEST = 1


class Changing(Story):
    """One node votes at the beginning. Whoever leads is asked now and then to let another one vote
    that has caught up, or to let one of the voters go, itself as well."""

    def __init__(self, world, *, size=4, **options):
        super().__init__(world, size=size, first=0, **options)
        self.changes = 0
        self.faults.kinds += [self.change] * 4
        world.invariants.append(self.one_at_a_time)

    def change(self):
        for one in self.machines:
            if one.up and one.replica is not None and one.quorum.active:
                self.world.after(0, self.ask, one, node=one)

    def ask(self, leader):
        """What `handlers/electing.py` and its callers do, in short."""
        quorum, rng = leader.quorum, self.world.rng
        if not quorum.active or not leader.may_change():
            return
        now = quorum.electing.latest
        others = [one for one in self.machines if now.find(one.number) is None]
        ready = [
            one for one in others if (one.number, one.directory) in quorum.replica.peers
            and quorum.replica.peers[one.number, one.directory].level_ms >= 0
        ]  # fmt: skip
        if ready and (len(now.voters) == 1 or rng.random() < 0.6):
            new = rng.choice(ready)
            then = now.put(electing.Voter(new.number, new.directory, new.own))
        elif len(now.voters) > FEWEST:
            then = now.without(rng.choice(now.voters).node_id)
        else:
            return
        self.world.say(leader.name, f"{sorted(now.keys)} become {sorted(then.keys)}")
        self.changes += 1
        leader.elect(then)

    def one_at_a_time(self):
        """Of what is agreed, no change adds or removes more than one, whoever says so."""
        for one in self.machines:
            if one.up and one.quorum is not None:
                said = [keys for _, keys in one.electorates()]
                for before, after in itertools.pairwise(said):
                    apart = set(before.items()) ^ set(after.items())
                    assert len(apart) <= 1, (one.name, before, after)

    def all_is_well(self):
        super().all_is_well()
        assert self.changes, "nobody came or went"
        assert len({tuple(one.quorum.electing.latest.keys) for one in self.machines}) == 1


def play(seed, **planted):
    """The story of this seed; the world as it was left. Raises Broken."""
    return Changing(World(seed), **planted).play()
