"""Who votes changes at any instant, while machines die and links are cut."""

import itertools
from math import inf

from sim.agreed.story import RARE as AGREED
from sim.agreed.story import Story
from sim.world import World

from appliance.quorum import voters as electing
from appliance.quorum.majority import needed

RARE = dict.fromkeys(AGREED, inf) | {
    "a life ends in the middle of a change": inf,
    "a voter comes": 20,
    "a voter goes": 60,
    "who leads lets itself go": 60,
    "a change of voters is taken back": inf,
    "one alone votes": inf,
}
"""What is to come about in so many seeds; inf: not in all stories of this file, or nobody knows."""
FEWEST, CROSSED = 1, 4
ELECTED_MS = 700
"""Until somebody else leads, as a rule."""


class Changing(Story):
    """One node votes at the beginning. Whoever leads is asked now and then to let another one vote
    that has caught up, or to let one of the voters go, itself as well."""

    def __init__(self, world, *, size=4, **options):
        super().__init__(world, size=size, first=0, **options)
        self.epochs = set()  # whose leader has been seen
        self.crossed = None  # who has a change that nobody has heard of
        self.faults.kinds.remove(self.leave_the_leader)  # to others than it chooses
        self.faults.kinds += [self.change] * 4 + [self.leave_observers, self.leave_one] * 2
        world.invariants += [self.one_at_a_time, self.begins]

    def change(self):
        for one in self.machines:
            if one.up and one.replica is not None and one.quorum.active:
                self.world.after(0, self.ask, one, node=one)

    def begins(self):
        """Who has just been elected is asked at once, too."""
        for one in self.machines if self.faults.going_on else ():
            if one.up and one.replica is not None and one.replica.leads:
                epoch = one.replica.epoch
                if epoch not in self.epochs:
                    self.epochs.add(epoch)
                    self.world.after(self.world.rng.uniform(0, 5), self.ask, one, node=one)
                    self._cross(one)

    def leave_observers(self):
        """Whoever leads is cut off from who votes; who does not vote hears it."""
        for one in self._leading():
            voters = one.quorum.electing.latest
            self._part(one, [other for other in self.machines if voters.find_voter(other.number)])

    def leave_one(self):
        """Whoever leads is asked for a change, and cut off from all but one, voter or not."""
        for one in self._leading():
            self.world.after(0, self.ask, one, node=one)
            others = [other for other in self.machines if other is not one]
            others.remove(self.world.rng.choice(others))
            self._part(one, others)

    def cross(self):
        """Whoever leads is asked for a change that nobody hears of; whoever is elected next is
        asked for another, which one hears of, and the first one is back among the rest."""
        for one in self._leading():
            self.world.network.heal()
            self._part(one, self.machines)
            self.world.after(0, self.ask, one, node=one)
            self.crossed = one
            self.faults.hold(ELECTED_MS)

    def _cross(self, leader):
        before, self.crossed = self.crossed, None
        if before in (None, leader):
            self.crossed = before
            return
        self.world.network.heal()
        self.faults.hold(ELECTED_MS)
        others = [one for one in self.machines if one not in (before, leader)]
        second = self.world.rng.choice(others)
        for one in (leader, second):
            self._part(one, [other for other in self.machines if other not in (leader, second)])

    def _leading(self):
        return [one for one in self.machines if one.up and one.replica and one.replica.leads]

    def _part(self, one, others):
        self.world.say(one.name, f"hears nothing of {[other.name for other in others]}")
        for other in others:
            if other is not one:
                self.world.network.block(one.name, other.name)
                self.world.network.block(other.name, one.name)

    def ask(self, leader):
        """What `handlers/voter_changes.py` and its callers do, in short."""
        quorum, rng = leader.quorum, self.world.rng
        if not quorum.active or not leader.may_change():
            return
        now = quorum.electing.latest
        others = [one for one in self.machines if now.find_voter(one.number) is None]
        ready = [
            one for one in others if (one.number, one.directory) in quorum.replica.peers
            and quorum.replica.peers[one.number, one.directory].level_ms >= 0
        ]  # fmt: skip
        if ready and (len(now.voters) == 1 or rng.random() < 0.6):
            new = rng.choice(ready)
            then = now.with_voter(electing.Voter(new.number, new.directory, new.own))
        elif len(now.voters) > FEWEST:
            then = now.without(rng.choice(now.voters).node_id)
            if not self.may_elect(then):
                return
        else:
            return
        self.note(leader, now, then)
        self.world.say(leader.name, f"{sorted(now.keys)} become {sorted(then.keys)}")
        leader.elect(then)

    def may_elect(self, voters):
        """True if enough of these voters are left to elect a leader. Whoever removes voters of whom
        the others have only just a majority sees to that, as with Apache Kafka."""
        return True

    def note(self, leader, now, then):
        reached = self.world.reached
        reached("a voter comes" if len(then.voters) > len(now.voters) else "a voter goes")
        if then.find_voter(leader.number) is None:
            reached("who leads lets itself go")
        if len(then.voters) == 1:
            reached("one alone votes")

    def one_at_a_time(self):
        """Of what is agreed, no change adds or removes more than one, whoever says so."""
        acted = self.world.acted  # nobody else's log is another one since the event before
        for one in self.machines if acted is None else (acted,):
            if one in self.by_number.values() and one.up and one.quorum is not None:
                said = [keys for _, keys in one.electorates()]
                for before, after in itertools.pairwise(said):
                    apart = set(before.items()) ^ set(after.items())
                    assert len(apart) <= 1, (one.name, before, after)

    def all_is_well(self):
        super().all_is_well()
        assert len({tuple(one.quorum.electing.latest.keys) for one in self.machines}) == 1


class Crossing(Changing):
    """As soon as an even number votes, two changes cross, over and over: only then two majorities
    need not share anybody (Raft's first rules for single changes were wrong so)."""

    def __init__(self, world, **options):
        super().__init__(world, **options)
        self.faults.kinds = [self.grow_or_cross]

    def grow_or_cross(self):
        for one in self._leading():
            if len(one.quorum.electing.latest.voters) == CROSSED:
                self.cross()
            else:
                self.ask(one)


class Watching(Changing):
    """Three vote, others look on; now and then only these hear who leads, until he dies."""

    def __init__(self, world, **options):
        super().__init__(world, **options)
        self.faults.kinds = [self.grow_or_leave]

    def grow_or_leave(self):
        for one in self._leading():
            if len(one.quorum.electing.latest.voters) < 3:
                self.ask(one)
            else:
                self.world.network.heal()
                self.leave_observers()
                self.faults.hold(2 * ELECTED_MS)
                self.world.after(ELECTED_MS // 4, self._end, one, node=one)

    def _end(self, leader):
        leader.stop(power=False)


class Replacing(Changing):
    """Disks are replaced, too: whoever comes back with an empty one is another voter, or none, and
    the one that it was never answers again. As long as a majority of voters is left."""

    def __init__(self, world, **options):
        super().__init__(world, wipes=True, **options)

    def may_lose(self, one):
        (leader,) = self._leading() if len(self._leading()) == 1 else (None,)
        if leader is None or not leader.may_change() or one.number == one.first:
            return False
        return self.may_elect(leader.quorum.electing.latest, without=one.number)

    def may_elect(self, voters, *, without=-1):
        left = [
            number for number, directory in voters.keys.items()
            if number != without and self.by_number[number].directory == directory
        ]  # fmt: skip
        return len(left) >= needed(len(voters.keys))


def play_replacing(seed, **planted):
    """The story of this seed."""
    return Replacing(World(seed), **planted).play()


def play_watching(seed, **planted):
    """The story of this seed."""
    return Watching(World(seed), **planted).play()


def play_crossing(seed, **planted):
    """The story of this seed."""
    return Crossing(World(seed), **planted).play()


def play(seed, **planted):
    """The story of this seed; the world as it was left. Raises Broken."""
    return Changing(World(seed), **planted).play()
