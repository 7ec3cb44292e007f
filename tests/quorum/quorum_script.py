"""Scenarios of a quorum as text: what machines do, line by line, and what comes of it.

    voters A B C | observers O           who there is; A is the quickest to stand, then B
    A has 1 1 2 | A knows 2 [voted B]    before all starts: epochs of its log; its quorum-state
    A stands                             its time is over: it asks whether it would be elected
    tick 500                             so many ms pass, and letters arrive at once
    deliver A>B | settle                 the oldest letter from A to B; all, until there is none
    cut A>B | cut A | heal               a link, one way; all of a machine; none any more
    A appends [2] | A names A B C        records of a leader; a record that names the voters
    A waits | A syncs                    its disk syncs when it is told to; it does
    A compacts 5                         a snapshot has what is below
    A hands-over | A dies | A loses-power   it resigns; connections close; nobody hears
    A starts                             again
    expect A ROLE [epoch 2] [high 3] [start 0] [end 4] [log 1 1 2] [voted B] [voters A B]
    expect A may-change | may-not-change whether it may let others vote now
    expect - somebody-leads 2            one of them, in this epoch, whoever it is
    expect A>B WORDS                     the oldest letter from A to B, `nothing`: there is none

ROLE is any of `leads`, `follows B`, `waits` (nobody is known to lead), `asks` (whether it would be
elected), `stands`, `resigned`, `is dead`; `-`: whatever it is. Letters are written as
`quorum_world.told` has them: `vote 2 log 3@1` is a log that ends at 3 in epoch 1.
"""

from itertools import pairwise

from quorum_world import World, told

from appliance.quorum.messages import QuorumState
from appliance.quorum.role import Role

ROLES = {
    Role.UNATTACHED: "waits",
    Role.PROSPECTIVE: "asks",
    Role.CANDIDATE: "stands",
    Role.LEADER: "leads",
    Role.RESIGNED: "resigned",
}
FACTS = ("epoch", "high", "start", "end", "log", "voted", "voters")


class Script:
    def __init__(self, text):
        self.lines = text.splitlines()
        self.voters, self.observers = [], []
        self.world = None
        self.started = False
        self.seen = {}

    def run(self):
        for number, line in enumerate(self.lines, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            try:
                self.step(words)
                self.check()
            except AssertionError as cause:
                raise AssertionError(f"line {number}: {line.strip()}\n{cause}") from cause

    def step(self, words):
        if words[0] in ("voters", "observers"):
            setattr(self, words[0], words[1:])
            self.world = World(self.voters, self.observers)
        elif words[1:2] == ["has"]:
            self.world[words[0]].log.entries = [(int(word), None) for word in words[2:]]
        elif words[1:2] == ["knows"]:
            voted = self.world[words[4]].number if "voted" in words else -1
            self.world[words[0]].known = QuorumState(int(words[2]), voted=voted)
        else:
            self.go_on(words)

    def go_on(self, words):
        world = self.world
        if not self.started:
            self.started = True
            world.start()
        if words[0] in ("tick", "deliver", "settle", "cut", "heal", "expect"):
            getattr(self, words[0])(*words[1:])
        else:
            getattr(self, words[1].replace("-", "_"))(world[words[0]], *words[2:])
            world.collect()

    def check(self):
        """What holds in every scenario: one leader in an epoch, what is agreed stays so."""
        leaders = self.seen.setdefault("leaders", {})
        for one in self.world.machines.values() if self.started else ():
            if one.replica is None:
                continue
            if one.replica.leads:
                first = leaders.setdefault(one.replica.epoch, one.name)
                assert first == one.name, f"{first} and {one.name} lead {one.replica.epoch}"
            agreed = self.seen.setdefault("agreed", {})
            for offset in range(one.log.start_offset, one.replica.high_watermark):
                entry = one.log.entries[offset - one.log.start_offset]
                assert agreed.setdefault(offset, entry) == entry, f"{one.name} at {offset}"

    # The world ------------------------------------------------------------------------------------

    def tick(self, ms):
        self.world.pass_time(int(ms))

    def settle(self):
        self.world.settle()

    def deliver(self, link):
        letter = self.oldest(link)
        assert letter is not None, "there is none"
        self.world.deliver(letter)

    def oldest(self, link):
        source, target = link.split(">")
        found = [one for one in self.world.letters if (one.source, one.target) == (source, target)]
        return found[0] if found else None

    def cut(self, *links):
        for link in links:
            if ">" in link:
                self.world.cut.add(tuple(link.split(">")))
            else:
                others = [one for one in self.world.names if one != link]
                self.world.cut |= {pair for one in others for pair in ((link, one), (one, link))}

    def heal(self):
        self.world.cut.clear()

    # A machine ------------------------------------------------------------------------------------

    def stands(self, one):
        self.world.now_ms = max(self.world.now_ms, one.replica.deadline)
        one.replica.tick(self.world.now_ms)

    def appends(self, one, count="1"):
        assert one.replica.leads, f"{one.name} does not lead"
        one.writes([(one.replica.epoch, None)] * int(count))

    def names(self, one, *voters):
        assert one.replica.may_change, f"{one.name} may not change who votes"
        voters = tuple(self.world[name].number for name in voters)
        one.writes([(one.replica.epoch, voters)])

    def waits(self, one):
        one.lazy = True

    def syncs(self, one):
        one.lazy = False
        one.syncs()

    def compacts(self, one, end):
        assert int(end) <= one.replica.high_watermark, "only what is agreed"
        one.log.begins_at(int(end))

    def hands_over(self, one):
        one.replica.resign(self.world.now_ms)

    def dies(self, one):
        self.world.dies(one.name)

    def loses_power(self, one):
        self.world.dies(one.name, silently=True)

    def starts(self, one):
        self.world.off.discard(one.name)
        one.starts(self.world.now_ms)

    # What is expected -----------------------------------------------------------------------------

    def expect(self, whom, *words):
        if ">" in whom:
            letter = self.oldest(whom)
            got = told(self.world, letter) if letter is not None else "nothing"
            assert got == " ".join(words), f"it is: {got}"
            return
        at = [n for n, word in enumerate(words) if word in FACTS]
        if words[0] == "somebody-leads":
            replicas = [one.replica for one in self.world.machines.values() if one.replica]
            led = [one.epoch for one in replicas if one.leads]
            assert led == [int(words[1])], f"led: {led}"
            return
        if words[0] in ("may-change", "may-not-change"):
            may = self.world[whom].replica.may_change
            assert may is (words[0] == "may-change"), f"it {'may' if may else 'may not'}"
            return
        role, facts = " ".join(words[: at[0] if at else None]), pairwise([*at, len(words)])
        got = self.facts(self.world[whom])
        assert role in ("-", got["role"]), f"it {got['role']}"
        for first, behind in facts:
            wanted = " ".join(words[first + 1 : behind])
            assert got[words[first]] == wanted, f"{words[first]}: {got[words[first]]}"

    def facts(self, one):
        replica, log, world = one.replica, one.log, self.world
        if replica is None:
            return {"role": "is dead"}
        follows = f"follows {world.name(replica.leader)}"
        return {
            "role": ROLES.get(replica.role, follows),
            "epoch": str(replica.epoch),
            "high": str(replica.high_watermark),
            "start": str(log.start_offset),
            "end": str(log.end_offset),
            "log": " ".join(map(str, log.epochs)),
            "voted": world.name(replica.voted),
            "voters": " ".join(map(world.name, replica.voters)),
        }
