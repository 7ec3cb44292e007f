"""One replica of a KRaft quorum: KIP-595, with pre-votes (KIP-996) and leaders that give up when
no majority fetches from them.

    UNATTACHED ─ nobody leads ─▶ PROSPECTIVE ─ would be elected ─▶ CANDIDATE ─ elected ─▶ LEADER
        ▲                         ▲      ▲                            │                    │
        │ a newer epoch           │      └──────── not elected ───────┘        no majority,│
        │                         │                                            or asked to ▼
     any role         FOLLOWER ─ the leader is silent                                  RESIGNED

It has no log, no disk and no clock. Times come in, in ms; `log` says where the log ends; what is
to be written and sent waits in `take`. The driver's duties:

- what `take` gives first (`Known`) is on the disk before the messages are sent;
- a new leader's first record is appended at once, in its epoch (LeaderChangeMessage);
- `durable` is told whenever more of the log is on the disk, `appended` is not needed;
- a follower that took what was fetched, and synced it, calls `fetch` again.

Invariants: an epoch has one leader; the high watermark never goes back; a leader commits only what
is behind the beginning of its own epoch (Raft §5.4.2); nobody cuts off what is committed.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final, Protocol

from appliance.quorum.majority import held_by_majority, needed
from appliance.quorum.messages import (
    NOBODY,
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    Known,
    Message,
    Vote,
    Voted,
)
from appliance.quorum.times import Times


class Role(Enum):
    """What a replica is in its epoch."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


_MOVES: Final = {
    Role.UNATTACHED: (Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER),
    Role.PROSPECTIVE: (Role.PROSPECTIVE, Role.UNATTACHED, Role.CANDIDATE, Role.FOLLOWER),
    Role.CANDIDATE: (Role.UNATTACHED, Role.PROSPECTIVE, Role.LEADER, Role.FOLLOWER),
    Role.LEADER: (Role.UNATTACHED, Role.RESIGNED, Role.FOLLOWER),
    Role.FOLLOWER: (Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER),
    Role.RESIGNED: (Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER),
}


class QuorumLog(Protocol):
    """The log as a replica sees it."""

    @property
    def start_offset(self) -> int:
        """Its first offset."""

    @property
    def end_offset(self) -> int:
        """What the next record gets."""

    @property
    def last_epoch(self) -> int:
        """Of its last record, 0 when there is none."""

    @property
    def newest_snapshot(self) -> tuple[int, int]:
        """(end, epoch) of what a log that begins later than at 0 has a snapshot of."""

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` that it has, and the offset behind its last record
        (KIP-279)."""


class Peer:
    """Another replica as its leader sees it. held: what it has on its disk, -1 when it never
    fetched. fetched_ms: when it last did. level_ms: when it last had all that the leader had, -1:
    never."""

    __slots__ = ("_goal", "fetched_ms", "held", "level_ms")

    def __init__(self, now_ms: int) -> None:
        self.held = self.level_ms = -1
        self.fetched_ms = now_ms
        self._goal = -1  # where the leader's log ended at its last fetch

    def has(self, end: int, leaders_end: int, now_ms: int) -> None:
        """It fetches from `end` on, so it has what is below."""
        if end >= leaders_end:
            self.level_ms = now_ms
        elif 0 <= self._goal <= end:
            self.level_ms = max(self.level_ms, self.fetched_ms)
        self.held, self._goal, self.fetched_ms = end, leaders_end, now_ms


class Replica:
    """Read the attributes, never write them.

    voters: the ids of those who elect; who is not among them observes. leader: of `epoch`, NOBODY
    when it is not known. high_watermark: what is below is agreed. peers: while it leads, who
    fetches. deadline: when `tick` has something to do, in ms.
    """

    def __init__(
        self,
        node_id: int,
        voters: Iterable[int],
        known: Known,
        log: QuorumLog,
        chance: Callable[[int], int],
        now_ms: int,
        times: Times | None = None,
        agreed: int = 0,
    ) -> None:
        """known: from the disk. log: all of which is on the disk now. chance: a number from 0 to
        what it is given. agreed: what is below is known to be."""
        self.node_id = node_id
        self.voters = tuple(sorted(voters))
        self.epoch = known.epoch
        self.leader = known.leader
        self.voted = known.voted
        self.high_watermark = max(log.start_offset, agreed)
        self.peers: dict[int, Peer] = {}
        self.deadline = 0
        self._log = log
        self._chance = chance
        self._times = times or Times()
        self._held = log.end_offset
        self._began = 0
        self._answers: dict[int, bool] = {}
        self._voted_ms = now_ms
        self._tries = 0  # elections lost, one after the other
        self._is_silent = False  # the leader, since it was last heard
        self._fetches = False
        self._out: list[tuple[int, Message]] = []
        self._written = known
        if self.leader == node_id:  # what it had sent may be lost: it leads this epoch no more
            self.role = Role.RESIGNED
        else:
            self.role = Role.UNATTACHED if self.leader == NOBODY else Role.FOLLOWER
        self._wait(now_ms)
        if self.role is Role.FOLLOWER:
            self.fetch()
        elif self.votes:  # a pre-vote disturbs nobody, and nobody may lead at all
            self.deadline = now_ms + chance(self._times.lost)
        if self.voters == (node_id,):
            self.deadline = now_ms  # there is nobody to wait for

    @property
    def votes(self) -> bool:
        """Whether it is one of those who elect."""
        return self.node_id in self.voters

    @property
    def leads(self) -> bool:
        """Whether it leads its epoch."""
        return self.role is Role.LEADER

    @property
    def granted(self) -> tuple[int, ...]:
        """Who has voted for it, in the election that it stood for last."""
        return tuple(sorted(one for one, yes in self._answers.items() if yes))

    def take(self) -> tuple[Known | None, Sequence[tuple[int, Message]]]:
        """What is to be on the disk, or None, before these messages are sent: (to whom, what)."""
        now = Known(self.epoch, self.leader, self.voted)
        known = None if now == self._written else now
        self._written = now
        if self._fetches and self.role is Role.FOLLOWER and self._held == self._log.end_offset:
            self._fetches = False
            self._out.append((self.leader, self._fetch()))
        out, self._out = self._out, []
        return known, out

    # Time and death -------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Time has passed."""
        if now_ms < self.deadline:
            return
        if self.role is Role.LEADER:
            self._look_around(now_ms)
        elif not self.votes:
            self._seek(now_ms)
        elif self.role is Role.PROSPECTIVE and self._knows_leader:
            self._follow(now_ms)
        else:
            self._is_silent = True
            self._ask_whether(now_ms)

    def lost(self, peer: int, now_ms: int) -> None:
        """The connection to this one was closed from there, or not taken."""
        if self.role is Role.FOLLOWER and peer == self.leader:
            self._is_silent = True
            self.deadline = min(self.deadline, now_ms + self._chance(self._times.lost))
        elif self.role in (Role.PROSPECTIVE, Role.CANDIDATE) and peer in self.voters:
            self._answers.setdefault(peer, False)
            self._count(now_ms)
        elif self.role is Role.UNATTACHED and not self.votes:
            self._seek_soon(now_ms)

    def resign(self, now_ms: int) -> None:
        """Lead no more, and say who should: who has most of the log first."""
        if self.role is not Role.LEADER:
            return
        voters = [one for one in self.voters if one in self.peers]
        order = sorted(voters, key=lambda one: (-self.peers[one].held, one))
        for peer in voters:
            self._out.append((peer, EndEpoch(self.epoch, self.node_id, tuple(order))))
        self._move(Role.RESIGNED, now_ms)

    def _look_around(self, now_ms: int) -> None:
        """Whether a majority still fetches; who does not may not know who leads."""
        since = now_ms - self._times.check_quorum
        heard = sum(self.peers[one].fetched_ms > since for one in self.voters if one in self.peers)
        if heard + self.votes < needed(len(self.voters)):
            self.resign(now_ms)
            return
        late = now_ms - self._times.fetch_timeout // 2
        for voter in self.voters:
            if voter in self.peers and self.peers[voter].fetched_ms <= late:
                self._out.append((voter, BeginEpoch(self.epoch, self.node_id)))
        self.deadline = now_ms + self._times.fetch_timeout // 2

    def _seek(self, now_ms: int) -> None:
        """An observer asks any voter who leads."""
        if self.role is Role.FOLLOWER:
            self.leader = NOBODY
            self._move(Role.UNATTACHED, now_ms)
        voter = self.voters[self._chance(len(self.voters) - 1)]
        self._out.append((voter, self._fetch()))
        self.deadline = now_ms + self._times.fetch_timeout

    def _seek_soon(self, now_ms: int) -> None:
        """Who was asked does not know who leads, or is not there."""
        self.deadline = min(self.deadline, now_ms + 1 + self._chance(2 * self._times.lost))

    # Elections ------------------------------------------------------------------------------------

    def _ask_whether(self, now_ms: int) -> None:
        """Whether it would be elected, which disturbs nobody (KIP-996)."""
        self._move(Role.PROSPECTIVE, now_ms)
        self._ask(now_ms, pre_vote=True)

    def _stand(self, now_ms: int) -> None:
        """Stand for election, in an epoch that nobody had."""
        self.epoch += 1
        self.leader = NOBODY
        self.voted = self.node_id
        self._voted_ms = now_ms
        self._move(Role.CANDIDATE, now_ms)
        self._ask(now_ms, pre_vote=False)

    def _ask(self, now_ms: int, *, pre_vote: bool) -> None:
        log = self._log
        self._answers = {self.node_id: True}
        vote = Vote(self.epoch, self.node_id, log.last_epoch, log.end_offset, pre_vote)
        self._out += [(one, vote) for one in self.voters if one != self.node_id]
        self._count(now_ms)

    def vote(self, ask: Vote, now_ms: int) -> Voted:
        """Somebody asks for a vote: the answer."""
        if ask.epoch > self.epoch:
            self._newer(ask.epoch, now_ms)
        granted = False
        if ask.epoch == self.epoch:
            granted = self._would_grant(ask, now_ms) if ask.pre_vote else self._grant(ask, now_ms)
        return Voted(self.epoch, self._says_leader, granted, ask.pre_vote)

    def _is_level(self, ask: Vote) -> bool:
        """Whether its log has all that this one has (Raft §5.4.1)."""
        return (ask.last_epoch, ask.end) >= (self._log.last_epoch, self._log.end_offset)

    def _would_grant(self, ask: Vote, now_ms: int) -> bool:
        """Not while a leader answers this one: it hears what `ask.candidate` does not hear. Nor
        right after a vote for somebody else, who may have been elected and not have said so yet."""
        hears = self.role is Role.FOLLOWER and not self._is_silent
        if self.role is Role.LEADER or hears or not self._is_level(ask):
            return False
        other = self.leader == NOBODY and self.voted not in (NOBODY, ask.candidate)
        return not other or now_ms >= self._voted_ms + self._times.election_timeout // 4

    def _grant(self, ask: Vote, now_ms: int) -> bool:
        """One vote in an epoch, and none where somebody leads."""
        if self.leader != NOBODY:
            return False
        if self.voted == NOBODY and self._is_level(ask):
            self.voted = ask.candidate
            self._voted_ms = now_ms
            self._move(Role.UNATTACHED, now_ms)
        return self.voted == ask.candidate

    def voted_by(self, voter: int, answer: Voted, now_ms: int) -> None:
        """The answer to a vote that was asked for."""
        self._hear(voter, answer.epoch, answer.leader, now_ms)
        asks = Role.PROSPECTIVE if answer.pre_vote else Role.CANDIDATE
        if self.role is asks and answer.epoch == self.epoch and voter in self.voters:
            self._answers[voter] = answer.granted
            self._count(now_ms)

    def _count(self, now_ms: int) -> None:
        yes = sum(self._answers.values())
        no = len(self._answers) - yes
        if yes >= needed(len(self.voters)):
            if self.role is Role.PROSPECTIVE:
                self._stand(now_ms)
            else:
                self._lead(now_ms)
        elif no > len(self.voters) - needed(len(self.voters)):
            self._not_elected(now_ms)

    def _not_elected(self, now_ms: int) -> None:
        """Too many said no: ask again later, each time later."""
        if self.role is Role.PROSPECTIVE and self._knows_leader:
            self._follow(now_ms)
            return
        self._tries += 1
        most = min(self._times.lost << min(self._tries, 16), self._times.election_backoff)
        self.deadline = now_ms + 1 + self._chance(most)

    def _lead(self, now_ms: int) -> None:
        self.leader = self.node_id
        self._began = self._log.end_offset
        self._tries = 0
        assert self._began >= self.high_watermark, "who leads has all that is agreed"
        self.peers = {one: Peer(now_ms) for one in self.voters if one != self.node_id}
        self._move(Role.LEADER, now_ms)
        self._out += [(one, BeginEpoch(self.epoch, self.node_id)) for one in self.peers]

    # Who leads ------------------------------------------------------------------------------------

    def begin_epoch(self, said: BeginEpoch, now_ms: int) -> None:
        """Somebody says that it leads."""
        self._hear(said.leader, said.epoch, said.leader, now_ms)

    def end_epoch(self, said: EndEpoch, now_ms: int) -> None:
        """Somebody says that it leads no more: its first successor asks for votes at once, the
        others give it time."""
        self._hear(NOBODY, said.epoch, said.leader, now_ms)
        if self.role is Role.FOLLOWER and (self.epoch, self.leader) == (said.epoch, said.leader):
            self._is_silent = True
            place = said.successors.index(self.node_id) if self.node_id in said.successors else 9
            self.deadline = now_ms + place * self._times.lost

    @property
    def _says_leader(self) -> int:
        """Who resigned does not call itself the leader."""
        mine = self.leader == self.node_id and self.role is not Role.LEADER
        return NOBODY if mine else self.leader

    @property
    def _knows_leader(self) -> bool:
        return self.leader not in (NOBODY, self.node_id)

    def _hear(self, sender: int, epoch: int, leader: int, now_ms: int) -> None:
        """`sender` says who leads this epoch, or that it does not know."""
        if epoch > self.epoch:
            self._newer(epoch, now_ms)
        if epoch < self.epoch or leader in (NOBODY, self.node_id):
            return
        if self.leader == NOBODY:
            self.leader = leader
            self._is_silent = False
            self._follow(now_ms)
        assert self.leader == leader, f"{self.leader} and {leader} lead epoch {epoch}"
        if sender == leader:
            self._is_silent = False
            if self.role is Role.PROSPECTIVE:
                self._follow(now_ms)

    def _follow(self, now_ms: int) -> None:
        self._move(Role.FOLLOWER, now_ms)
        self._tries = 0
        self.fetch()

    def _newer(self, epoch: int, now_ms: int) -> None:
        assert epoch > self.epoch
        self.epoch, self.leader, self.voted = epoch, NOBODY, NOBODY
        self._move(Role.UNATTACHED, now_ms)

    def _move(self, role: Role, now_ms: int) -> None:
        assert role in _MOVES[self.role], f"{self.role.name} → {role.name}"
        assert role is not Role.LEADER or self.leader == self.node_id
        if role is not Role.LEADER:
            self.peers = {}
        self.role = role
        self._wait(now_ms)

    def _wait(self, now_ms: int) -> None:
        """How long this role waits."""
        times = self._times
        if self.role is Role.FOLLOWER:
            ms = times.fetch_timeout
        elif self.role is Role.LEADER:
            ms = times.fetch_timeout // 2
        elif not self.votes:
            ms = 1 + self._chance(times.lost)  # until it asks who leads
        else:
            ms = times.election_timeout + self._chance(times.election_timeout)
        self.deadline = now_ms + ms

    # The log --------------------------------------------------------------------------------------

    def durable(self, end: int) -> None:
        """The log is on the disk below `end`."""
        assert end <= self._log.end_offset
        self._held = end
        if self.role is Role.LEADER:
            self._commit()

    def fetch(self) -> None:
        """Ask the leader for what follows, as soon as all that stands in the log is on the disk.
        Only the answer to the newest fetch counts."""
        self._fetches = True

    def _fetch(self) -> Fetch:
        return Fetch(self.epoch, self.node_id, self._log.end_offset, self._log.last_epoch)

    def fetched_by(self, ask: Fetch, now_ms: int) -> Fetched:
        """Somebody fetches: the answer, to which whoever carries it adds the records from
        `ask.end` on, unless the logs part or a snapshot is needed."""
        if ask.epoch > self.epoch:
            self._newer(ask.epoch, now_ms)
        if self.role is not Role.LEADER or ask.epoch != self.epoch:
            return Fetched(self.epoch, self._says_leader)
        log = self._log
        parts = snapshot = None
        if ask.end < log.start_offset:
            snapshot = log.newest_snapshot
        elif (ask.end, ask.last_epoch) != (log.start_offset, 0):
            epoch, end = log.end_of(ask.last_epoch)
            if epoch != ask.last_epoch or end < ask.end:
                parts = epoch, end
        if ask.replica >= 0:  # or somebody who only looks
            peer = self.peers.setdefault(ask.replica, Peer(now_ms))
            if parts is None and snapshot is None:
                peer.has(ask.end, log.end_offset, now_ms)
                self._commit()
            peer.fetched_ms = now_ms
        return Fetched(self.epoch, self.node_id, True, self.high_watermark, parts, snapshot)

    def hear_of(self, replica: int, now_ms: int) -> None:
        """It fetches a snapshot."""
        if replica in self.peers:
            self.peers[replica].fetched_ms = now_ms

    def goes_on(self, now_ms: int) -> None:
        """The leader sends a snapshot."""
        if self.role is Role.FOLLOWER:
            self._wait(now_ms)

    def fetched(self, answer: Fetched, now_ms: int) -> int:
        """The answer to a fetch. Where this log must end before what came with it is appended: -1
        when the answer is nothing to go by. Truncated or not, `take_over` follows."""
        leads = answer.leader if answer.leads else NOBODY
        self._hear(leads, answer.epoch, answer.leader, now_ms)
        if not self.votes and self.leader == NOBODY:
            self._seek_soon(now_ms)
        if self.role is not Role.FOLLOWER or answer.epoch != self.epoch:
            return -1
        if not answer.leads:
            if answer.leader == NOBODY:
                self.lost(self.leader, now_ms)  # it resigned
            return -1
        self._wait(now_ms)
        if answer.parts is None:
            return self._log.end_offset
        epoch, end = answer.parts
        mine, my_end = self._log.end_of(epoch)
        cut = min(end, my_end) if mine == epoch else my_end
        assert cut >= self.high_watermark, "what is agreed is in every leader's log"
        assert cut < self._log.end_offset, "the logs part before their end"
        self._held = min(self._held, cut)
        return cut

    def take_over(self, answer: Fetched) -> None:
        """What came with this answer is in the log: so is what is agreed of it."""
        assert answer.leads
        agreed = min(answer.high_watermark, self._log.end_offset)
        if answer.parts is None and answer.snapshot is None and agreed > self.high_watermark:
            self.high_watermark = agreed

    def _commit(self) -> None:
        """What a majority has, once that has a record of this epoch."""
        held = {one: peer.held for one, peer in self.peers.items()}
        held[self.node_id] = self._held
        agreed = held_by_majority([held.get(one, -1) for one in self.voters])
        if agreed > max(self._began, self.high_watermark):
            self.high_watermark = agreed
