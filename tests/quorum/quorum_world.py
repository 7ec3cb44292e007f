"""Replicas of a quorum on paper, between which every message waits until somebody delivers it. Each
machine has a log of which epochs and voters count, and what it must know after its death."""

from appliance.quorum.messages import (
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    QuorumState,
    Vote,
    Voted,
)
from appliance.quorum.replica import Replica
from appliance.quorum.times import Times
from appliance.quorum.voters import ANY

TIMES = Times()
WAIT_MS = 500
"""How long a leader keeps a fetch for which it has nothing."""


def numbered(voters):
    return dict.fromkeys(voters, ANY)


class Log:
    """entries: (epoch, voters that this record names, or None). start: the offset of the first one;
    what is before it is in a snapshot: before: the epoch and the voters at its end."""

    def __init__(self, voters):
        self.entries = []
        self.start_offset = 0
        self.before = 0, voters

    @property
    def end_offset(self):
        return self.start_offset + len(self.entries)

    @property
    def epochs(self):
        return [epoch for epoch, _ in self.entries]

    @property
    def last_epoch(self):
        return self.entries[-1][0] if self.entries else self.before[0]

    @property
    def start_epoch(self):
        return self.before[0]

    @property
    def newest_snapshot(self):
        return self.start_offset, self.before[0]

    def end_of(self, epoch):
        found = max((one for one in self.epochs if one <= epoch), default=self.before[0])
        return found, self.start_offset + sum(one <= found for one in self.epochs)

    def named(self, end):
        """(end, voters) by the records below this offset."""
        found = 0, self.before[1]
        for at, (_, voters) in enumerate(self.entries[: end - self.start_offset], 1):
            if voters is not None:
                found = self.start_offset + at, voters
        return found

    def cut(self, end):
        del self.entries[end - self.start_offset :]

    def begins_at(self, end):
        """A snapshot has what is before."""
        epoch = self.entries[end - self.start_offset - 1][0]
        self.before = epoch, self.named(end)[1]
        del self.entries[: end - self.start_offset]
        self.start_offset = end


class Machine:
    """slow: how far its random waits are towards their longest, from 0 to 1. lazy: its disk syncs
    when it is told to. asked: its newest fetch, while it has no answer; late_ms: when it gives
    up."""

    def __init__(self, name, number, voters, slow):
        self.name, self.number, self.slow = name, number, slow
        self.log = Log(voters)
        self.known = QuorumState()
        self.replica = None
        self.lazy = False
        self.asked = None
        self.late_ms = 0

    def starts(self, now_ms):
        _, voters = self.log.named(self.log.end_offset)
        self.replica = Replica(
            self.number, numbered(voters), self.known, self.log, self.chance, now_ms, TIMES,
            self.log.start_offset,
        )  # fmt: skip
        self.asked = None
        self.elects()

    def chance(self, most):
        return int(most * self.slow)

    def expire(self, now_ms):
        """Its fetch had no answer: it asks again."""
        if self.asked is not None and now_ms >= self.late_ms:
            self.asked = None
            self.replica.fetch()

    def elects(self):
        end, voters = self.log.named(self.log.end_offset)
        agreed = self.log.named(self.replica.high_watermark)[1]
        self.replica.elects(numbered(voters), end, numbered(agreed))

    def writes(self, entries):
        self.log.entries += entries
        if any(voters is not None for _, voters in entries):
            self.elects()
        if not self.lazy:
            self.syncs()

    def syncs(self):
        self.replica.durable(self.log.end_offset)


class Letter:
    """A request, or the answer to one. asked: what it answers. entries: with an answer to a
    fetch."""

    def __init__(self, source, target, what, asked=None, entries=()):
        self.source, self.target = source, target
        self.what, self.asked, self.entries = what, asked, entries


class World:
    """letters: on their way, oldest first. parked: fetches that a leader keeps: (letter, until
    when, what it knew). cut: (from, to) over which nothing goes; it is lost. off: who has no power,
    and does not even say that nobody is there."""

    def __init__(self, voters, observers):
        names = [*voters, *observers]
        self.names = names
        self.now_ms = 0
        self.letters, self.parked, self.cut, self.off = [], [], set(), set()
        last = max(len(names) - 1, 1)
        numbers = tuple(range(1, len(voters) + 1))
        self.machines = {
            name: Machine(name, at + 1, numbers, at / last) for at, name in enumerate(names)
        }

    def __getitem__(self, name):
        return self.machines[name]

    def name(self, number):
        return self.names[number - 1] if number > 0 else "nobody"

    def lives(self, name):
        return self.machines[name].replica is not None

    def start(self):
        for one in self.machines.values():
            if one.replica is None:
                one.starts(self.now_ms)
        self.collect()

    # Letters --------------------------------------------------------------------------------------

    def collect(self):
        """What all have to say now is on its way; a new leader's first record is in its log."""
        for one in self.machines.values():
            if one.replica is None:
                continue
            if one.replica.leads and one.log.last_epoch != one.replica.epoch:
                one.writes([(one.replica.epoch, None)])
            known, messages = one.replica.take_effects()
            one.known = known or one.known
            for number, what in messages:
                if isinstance(what, Fetch):
                    one.asked, one.late_ms = what, self.now_ms + TIMES.fetch_timeout
                self.letters.append(Letter(one.name, self.name(number), what))
        for kept in self.parked[:]:
            letter, until_ms, knew = kept
            if not self.lives(letter.target):
                self.parked.remove(kept)
            elif self.now_ms >= until_ms or knew != self.knows(letter.target):
                self.parked.remove(kept)
                self.answer_fetch(letter)

    def knows(self, name):
        one = self[name]
        return one.log.end_offset, one.replica.high_watermark, one.replica.epoch, one.replica.role

    def deliver(self, letter):
        self.letters.remove(letter)
        lost = (letter.source, letter.target) in self.cut
        if not lost and self.lives(letter.target):
            if letter.asked is None:
                self.ask(letter)
            else:
                self.hear(letter)
        elif letter.target in self.off or not self.lives(letter.source):
            pass
        elif not lost and letter.asked is None:
            number = self[letter.target].number
            self[letter.source].replica.lost(number, self.now_ms)
        self.collect()

    def settle(self):
        for _ in range(2000):
            if not self.letters:
                return
            self.deliver(self.letters[0])
        raise AssertionError("it never ends")

    def ask(self, letter):
        target, what = self[letter.target].replica, letter.what
        if isinstance(what, Vote):
            self.answer(letter, target.vote(what, self.now_ms))
        elif isinstance(what, BeginEpoch):
            target.begin_epoch(what, self.now_ms)
        elif isinstance(what, EndEpoch):
            target.end_epoch(what, self.now_ms)
        else:
            self.answer_fetch(letter, may_wait=True)

    def answer(self, letter, what, entries=()):
        self.letters.append(Letter(letter.target, letter.source, what, letter.what, entries))

    def answer_fetch(self, letter, *, may_wait=False):
        leader, what = self[letter.target], letter.what
        said = leader.replica.fetched_by(what, self.now_ms)
        entries = ()
        if said.leads and said.parts is None and said.snapshot is None:
            entries = tuple(leader.log.entries[what.end - leader.log.start_offset :])
            shown = self[letter.source].replica.high_watermark
            if may_wait and not entries and said.high_watermark <= shown:
                knew = self.knows(letter.target)
                self.parked.append((letter, self.now_ms + WAIT_MS, knew))
                return
        self.answer(letter, said, entries)

    def hear(self, letter):
        one, what = self[letter.target], letter.what
        if isinstance(what, Voted):
            one.replica.voted_by(self[letter.source].number, what, self.now_ms)
        elif letter.asked is one.asked:
            one.asked = None
            self.take(one, self[letter.source], letter)

    def take(self, one, leader, letter):
        """The answer to a fetch: what the driver of a replica does with it."""
        what, replica, log = letter.what, one.replica, one.log
        end = replica.fetched(what, self.now_ms)
        if end < 0:
            return
        if what.snapshot is not None:
            self.load(one, leader, what)
            return
        if end < log.end_offset:
            named = log.named(log.end_offset)
            log.cut(end)
            if named != log.named(end):
                one.elects()
        one.writes(list(letter.entries))
        replica.take_over(what)
        replica.fetch()

    def load(self, one, leader, what):
        """The leader's snapshot, and a new start with it."""
        one.log = Log(leader.log.before[1])
        one.log.start_offset, one.log.before = leader.log.start_offset, leader.log.before
        assert what.snapshot == one.log.newest_snapshot
        one.starts(self.now_ms)

    # Time, life and death -------------------------------------------------------------------------

    def pass_time(self, ms):
        """Everything that happens until then, letters at once."""
        until_ms = self.now_ms + ms
        while True:
            self.settle()
            timers = [
                (one.replica.deadline, one.number, one.replica.tick)
                for one in self.machines.values() if one.replica is not None
            ]  # fmt: skip
            timers += [
                (one.late_ms, one.number, one.expire)
                for one in self.machines.values() if one.replica is not None and one.asked
            ]  # fmt: skip
            timers += [(until, 0, lambda now_ms: None) for _, until, _ in self.parked]
            due_ms, _, tick = min(timers, key=lambda timer: timer[:2])
            if due_ms > until_ms:
                break
            self.now_ms = max(self.now_ms, due_ms)
            tick(self.now_ms)
            self.collect()
        self.now_ms = until_ms

    def dies(self, name, *, silently=False):
        """Its process; the others hear that their connections are closed, or nothing."""
        self[name].replica = None
        self.off |= {name} if silently else set()
        self.letters = [one for one in self.letters if one.target != name]
        self.parked = [kept for kept in self.parked if kept[0].source != name]
        for one in self.machines.values():
            if one.replica is not None and not silently:
                one.replica.lost(self[name].number, self.now_ms)
        self.collect()


def told(world, letter):
    """A letter as a line of a scenario has it."""
    what = letter.what
    if isinstance(what, Vote):
        kind = "pre-vote" if what.pre_vote else "vote"
        return f"{kind} {what.epoch} log {what.end}@{what.last_epoch}"
    if isinstance(what, Voted):
        return f"{'yes' if what.granted else 'no'} {what.epoch}"
    if isinstance(what, BeginEpoch):
        return f"begin {what.epoch}"
    if isinstance(what, EndEpoch):
        return " ".join((f"end {what.epoch} then", *map(world.name, what.successors)))
    if isinstance(what, Fetch):
        return f"fetch {what.end}@{what.last_epoch}"
    assert isinstance(what, Fetched)
    if not what.leads:
        return f"ask {world.name(what.leader)} {what.epoch}"
    for kind, found in (("part", what.parts), ("snapshot", what.snapshot)):
        if found is not None:
            epoch, end = found if kind == "part" else reversed(found)
            return f"{kind} {end}@{epoch}"
    return f"records {len(letter.entries)} high {what.high_watermark}"
