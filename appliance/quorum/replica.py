"""One replica of a KRaft quorum: KIP-595, with pre-votes (KIP-996) and leaders that give up when
no majority fetches from them.

    UNATTACHED ─ nobody leads ─▶ PROSPECTIVE ─ would be elected ─▶ CANDIDATE ─ elected ─▶ LEADER
        ▲                         ▲      ▲                            │                    │
        │ a newer epoch           │      └──────── not elected ───────┘        no majority,│
        │                         │                                            or asked to ▼
     any role         FOLLOWER ─ the leader is silent                                  RESIGNED

It has no log, no disk and no clock. Times come in, in ms; `log` says where the log ends; what is
to be written and sent waits in `take`. The driver's duties:

- what `take` gives first (`QuorumState`) is on the disk before the messages are sent;
- a new leader's first record is appended at once, in its epoch (LeaderChangeMessage);
- `durable` is told whenever more of the log is on the disk, `appended` is not needed;
- `elects` is told at once whenever the end of the log names other voters, agreed or not;
- a follower that took what was fetched, and synced it, calls `fetch` again.

Voters change one at a time (KIP-853), so that majorities before and behind a change share one:
when a record of the leader's own epoch and the change before are agreed (`may_change`). Whoever is
asked votes, whether it knows itself for a voter or not: the others may have read further.

Invariants: an epoch has one leader; the high watermark never goes back; a leader commits only what
is behind the beginning of its own epoch (Raft §5.4.2); nobody cuts off what is committed.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final

from appliance.quorum.epochs import LAST, EpochBudget, is_out_of_reach
from appliance.quorum.majority import held_by_majority, needed
from appliance.quorum.messages import (
    NOBODY,
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    Message,
    QuorumState,
    Vote,
    Voted,
)
from appliance.quorum.peer import QuorumLog, ReplicaPeer, key_of, parting
from appliance.quorum.replica_state import ReplicaState
from appliance.quorum.role import MOVES, Role
from appliance.quorum.times import Times
from appliance.quorum.voters import ANY

_MOST_PEERS: Final = 1_000
"""A leader keeps no more replicas that fetch, whatever ids strangers name."""


class Replica(ReplicaState):
    """Read the attributes, never write them, but for `holds_back`.

    voters: those who elect, node id → directory id, by ascending ids; who is not among them
    observes. leader: of `epoch`, NOBODY when it is not known. high_watermark: what is below is
    agreed. peers: while it leads, who fetches, by (node id, directory id): ANY of those voters that
    have none. silent: the leader before, if it did not answer for a whole fetch timeout and was not
    heard since, else NOBODY. holds_back: it votes, and stands where nobody is elected for long.
    deadline: when `tick` has something to do, in ms.
    """

    def __init__(
        self,
        node_id: int,
        voters: Mapping[int, bytes],
        known: QuorumState,
        log: QuorumLog,
        chance: Callable[[int], int],
        now_ms: int,
        times: Times | None = None,
        agreed: int = 0,
        directory: bytes = ANY,
        seeds: Sequence[int] = (),
    ) -> None:
        """voters: that the end of the log names. known: from the disk. log: all of which is on the
        disk now. chance: a number from 0 to what it is given. agreed: what is below is known to be.
        directory: id of this node's folder. seeds: whom it asks beside while it knows no leader."""
        self.node_id, self.directory = node_id, directory
        self.voters = dict(sorted(voters.items()))
        self.epoch, self.leader = known.epoch, known.leader
        self.voted, self.voted_directory = known.voted, known.voted_directory
        self.silent, self.deadline, self.holds_back = NOBODY, 0, False
        self.high_watermark = max(log.start_offset, agreed)
        self.peers: dict[tuple[int, bytes], ReplicaPeer] = {}
        self._log, self._seeds = log, tuple(seeds)
        self._elected_end = 0  # behind the record that names the voters
        self._voted_before = False  # as far as is agreed for sure
        self._chance, self._times = chance, times or Times()
        self._held, self._began = log.end_offset, 0
        self._answers: dict[int, bool] = {}
        self._voted_ms, self._tries = now_ms, 0  # elections lost, one after the other
        self._is_silent = self._fetches = False  # the leader, since it was last heard; this one
        self._hearsay = False  # others say who leads: it was not heard yet
        self._out: list[tuple[int, Message]] = []
        self._written = known
        self._budget = EpochBudget()
        assert 0 <= self.epoch <= LAST, f"no replica begins in epoch {self.epoch}"
        if self.leader == node_id:  # what it had sent may be lost: it leads this epoch no more
            self.role = Role.RESIGNED
        else:
            self.role = Role.UNATTACHED if self.leader == NOBODY else Role.FOLLOWER
        self._wait(now_ms)
        if self.role is Role.FOLLOWER:
            self.fetch()
        elif self.votes:  # a pre-vote disturbs nobody, and nobody may lead at all
            self.deadline = now_ms + chance(self._times.lost)
        if self.alone:
            self.deadline = now_ms  # there is nobody to wait for

    def take_effects(self) -> tuple[QuorumState | None, Sequence[tuple[int, Message]]]:
        """Returns the state to sync first, or None, and then to send: (receiver, message)."""
        now = self.known
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
        elif not self.stands:
            self._seek(now_ms)
        elif self.role is Role.PROSPECTIVE and self._knows_leader:
            self._follow(now_ms)
        else:
            if self.role is Role.FOLLOWER and not self._is_silent:
                self.silent = self.leader
            self._is_silent = True
            self._ask_whether(now_ms)

    def lost(self, peer: int, now_ms: int) -> None:
        """The connection to this one was closed from there, or not taken."""
        if self.role is Role.FOLLOWER and peer == self.leader:
            self._is_silent = True
            soon = now_ms + self._chance(self._times.lost) + self._later
            self.deadline = min(self.deadline, soon)
        elif self.role in (Role.PROSPECTIVE, Role.CANDIDATE) and peer in self.voters:
            self._answers.setdefault(peer, False)
            self._count(now_ms)
        elif self.role is Role.UNATTACHED and not self.votes:
            self._seek_soon(now_ms)

    @property
    def _later(self) -> int:
        """By how much, in ms, than others it stands."""
        return self._times.reluctance if self.holds_back and self.stands else 0

    def resign(self, now_ms: int, last: Container[int] = ()) -> None:
        """Lead no more, and say who should: who has most of the log first. last: who should only
        where nobody else can."""
        if self.role is not Role.LEADER:
            return
        held = {one: peer.held for one, peer in self._electing()}
        order = sorted(held, key=lambda one: (one in last, -held[one], one))
        for one in held:
            self._out.append((one, EndEpoch(self.epoch, self.node_id, tuple(order))))
        self._move(Role.RESIGNED, now_ms)

    def _electing(self) -> list[tuple[int, ReplicaPeer]]:
        """The other voters, as this leader sees them."""
        return [(one, self.peers[key]) for one, key in self._others() if key in self.peers]

    def _others(self) -> list[tuple[int, tuple[int, bytes]]]:
        return [(one, (one, key)) for one, key in self.voters.items() if one != self.node_id]

    def _look_around(self, now_ms: int) -> None:
        """Resigns if no majority has fetched lately; announces the leader to late voters."""
        since = now_ms - self._times.check_quorum
        others = self._electing()
        heard = sum(peer.fetched_ms > since for _, peer in others)
        gone = not self.votes and min(self.high_watermark, self._held) >= self._elected_end
        if gone or heard + self.votes < needed(len(self.voters)):
            self.resign(now_ms)
            return
        late = now_ms - self._times.fetch_timeout // 2
        for voter, peer in others:
            if peer.fetched_ms <= late:
                self._out.append((voter, BeginEpoch(self.epoch, self.node_id)))
        pause = self._times.fetch_timeout // 2 if self.votes else self._times.lost
        self.deadline = now_ms + pause

    def _seek(self, now_ms: int) -> None:
        """An observer asks any voter who leads, or a seed: its log may know of no way to voters."""
        if self.role is Role.FOLLOWER:
            self.leader = NOBODY
            self._move(Role.UNATTACHED, now_ms)
        known = [*(one for one in self.voters if one != self.node_id), *self._seeds]
        if known:
            self._out.append((known[self._chance(len(known) - 1)], self._fetch()))
        self.deadline = now_ms + self._times.fetch_timeout

    def _seek_soon(self, now_ms: int) -> None:
        """Looks for the leader again soon: the node asked does not know it, or is not there."""
        self.deadline = min(self.deadline, now_ms + 1 + self._chance(2 * self._times.lost))

    # Voters ---------------------------------------------------------------------------------------

    def elects(self, voters: Mapping[int, bytes], end: int, agreed: Mapping[int, bytes]) -> None:
        """The log names these voters below its offset `end`, or does again, because it was cut
        off. agreed: the last ones that are agreed for sure."""
        assert end <= self._log.end_offset
        self.voters, self._elected_end = dict(sorted(voters.items())), end
        self._voted_before = agreed.get(self.node_id) in (ANY, self.directory)
        if self.role is Role.LEADER:
            for _, key in self._others():  # who is new has until the next look around at least
                self.peers.setdefault(key, ReplicaPeer(self.deadline))
            self.deadline *= self.votes
            self._commit()

    # Elections ------------------------------------------------------------------------------------

    def _ask_whether(self, now_ms: int) -> None:
        """Starts a pre-vote, which disturbs no leader (KIP-996)."""
        self._move(Role.PROSPECTIVE, now_ms)
        self._ask(now_ms, pre_vote=True)

    def _stand(self, now_ms: int) -> None:
        """Stand for election, in an epoch that nobody had."""
        assert self.epoch < LAST, "requests cannot have moved it so far"
        self.epoch += 1
        self.leader = NOBODY
        self.voted, self.voted_directory = self.node_id, self.directory
        self._voted_ms = now_ms
        self._move(Role.CANDIDATE, now_ms)
        self._ask(now_ms, pre_vote=False)

    def _ask(self, now_ms: int, *, pre_vote: bool) -> None:
        log = self._log
        self._answers = {self.node_id: True} if self.votes else {}
        ends = log.last_epoch, log.end_offset
        vote = Vote(self.epoch, self.node_id, *ends, pre_vote, self.directory)
        self._out += [(one, vote) for one in self.voters if one != self.node_id]
        self._count(now_ms)

    def vote(self, ask: Vote, now_ms: int) -> Voted:
        """Somebody asks for a vote: the answer."""
        granted = False
        if not self.admits(ask.epoch, now_ms):
            return Voted(self.epoch, self._says_leader, granted, ask.pre_vote)
        self.silent = NOBODY if ask.candidate == self.silent else self.silent
        self._asked_in(ask.epoch, now_ms)
        if ask.epoch == self.epoch:
            granted = self._would_grant(ask, now_ms) if ask.pre_vote else self._grant(ask, now_ms)
            if self.role is Role.PROSPECTIVE and self.stands and not self._is_level(ask):
                self._ask(now_ms, pre_vote=True)  # who asks hears nobody either, and has less
        return Voted(self.epoch, self._says_leader, granted, ask.pre_vote)

    def _is_level(self, ask: Vote) -> bool:
        """True if the candidate's log is at least as up to date as this one (Raft §5.4.1)."""
        return (ask.last_epoch, ask.end) >= (self._log.last_epoch, self._log.end_offset)

    def _would_grant(self, ask: Vote, now_ms: int) -> bool:
        """Not while a leader answers this one: it hears what `ask.candidate` does not hear. Nor
        right after a vote for somebody else, who may have been elected and not have said so yet."""
        hears = self.role is Role.FOLLOWER and not (self._is_silent or self._hearsay)
        if self.role is Role.LEADER or hears or not self._is_level(ask):
            return False
        said = self.leader != NOBODY and not self._hearsay
        mine = said or self.voted in (NOBODY, ask.candidate)
        return mine or now_ms >= self._voted_ms + self._times.election_timeout // 4

    def _grant(self, ask: Vote, now_ms: int) -> bool:
        """One vote in an epoch, and none where somebody leads."""
        if self.leader != NOBODY:
            return False
        if not self._is_level(ask):
            return False  # whatever somebody has asked in its name before
        if self.voted == NOBODY:
            self.voted, self.voted_directory = ask.candidate, ask.directory
            self._voted_ms = now_ms
            self._move(Role.UNATTACHED, now_ms)
        return self.voted == ask.candidate and self.voted_directory in (ANY, ask.directory)

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
        assert self.stands, "observers are elected by nobody"
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
        self.deadline = now_ms + 1 + self._chance(most) + self._later

    def _lead(self, now_ms: int) -> None:
        self.leader = self.node_id
        self._began = self._log.end_offset
        self._tries = 0
        assert self._began >= self.high_watermark, "who leads has all that is agreed"
        self.peers = {key: ReplicaPeer(now_ms) for _, key in self._others()}
        self._move(Role.LEADER, now_ms)
        self._out += [(one, BeginEpoch(self.epoch, self.node_id)) for one, _ in self._others()]

    # Who leads ------------------------------------------------------------------------------------

    def admits(self, epoch: int, now_ms: int) -> bool:
        """Returns whether a request may speak of this epoch: not one before the first or behind
        the last, and not one too far ahead of this replica's own."""
        ahead = epoch - self.epoch
        return 0 <= epoch <= LAST and (ahead <= 0 or self._budget.covers(ahead, now_ms))

    def _asked_in(self, epoch: int, now_ms: int) -> None:
        """Takes an epoch that `admits` has let in."""
        if epoch > self.epoch:
            self._budget.spend(epoch - self.epoch)
            self._newer(epoch, now_ms)

    def begin_epoch(self, said: BeginEpoch, now_ms: int) -> None:
        """Somebody says that it leads."""
        if not self.admits(said.epoch, now_ms):
            return
        self._asked_in(said.epoch, now_ms)
        self._hear(said.leader, said.epoch, said.leader, now_ms)

    def end_epoch(self, said: EndEpoch, now_ms: int) -> None:
        """Somebody says that it leads no more: its first successor asks for votes at once, the
        others give it time."""
        if not self.admits(said.epoch, now_ms):
            return
        self._asked_in(said.epoch, now_ms)
        self._hear(NOBODY, said.epoch, said.leader, now_ms)
        if self.role is Role.FOLLOWER and (self.epoch, self.leader) == (said.epoch, said.leader):
            self._is_silent = True
            place = said.successors.index(self.node_id) if self.node_id in said.successors else 9
            self.deadline = now_ms + place * self._times.lost + self._later

    @property
    def _says_leader(self) -> int:
        """The leader to name in answers: none if this replica led this epoch and has resigned."""
        mine = self.leader == self.node_id and self.role is not Role.LEADER
        return NOBODY if mine else self.leader

    @property
    def _knows_leader(self) -> bool:
        return self.leader not in (NOBODY, self.node_id)

    def _hear(self, sender: int, epoch: int, leader: int, now_ms: int) -> None:
        """`sender` says who leads this epoch, or that it does not know."""
        if is_out_of_reach(epoch, self.epoch):
            return
        if sender in (self.silent, leader):
            self.silent = NOBODY
        if epoch > self.epoch:
            self._newer(epoch, now_ms)
        if epoch < self.epoch or leader in (NOBODY, self.node_id):
            return
        if self.leader == NOBODY:
            self.leader, self._is_silent, self._hearsay = leader, False, True
            self._follow(now_ms)
        if self.leader != leader:
            self._doubt(now_ms)
        elif sender == leader:
            self._is_silent = self._hearsay = False
            if self.role is Role.PROSPECTIVE:
                self._follow(now_ms)

    def _doubt(self, now_ms: int) -> None:
        """Two were named as leaders of this epoch, so one of them by a stranger or a broken node:
        a follower believes neither before it hears again. A leader knows better."""
        if self.role is not Role.LEADER and self.leader != self.node_id:
            self.leader = NOBODY
            self._move(Role.UNATTACHED, now_ms)

    def _follow(self, now_ms: int) -> None:
        self._move(Role.FOLLOWER, now_ms)
        self._tries = 0
        self.fetch()

    def _newer(self, epoch: int, now_ms: int) -> None:
        assert self.epoch < epoch <= LAST
        self.epoch, self.leader = epoch, NOBODY
        self.voted, self.voted_directory = NOBODY, ANY
        self._move(Role.UNATTACHED, now_ms)

    def _move(self, role: Role, now_ms: int) -> None:
        assert role in MOVES[self.role], f"{self.role.name} → {role.name}"
        assert role is not Role.LEADER or self.leader == self.node_id
        if role is not Role.LEADER:
            self.peers = {}
        self.role = role
        self._wait(now_ms)

    def _wait(self, now_ms: int) -> None:
        """How long this role waits."""
        ms = self._times.patience(self.role, self._chance, stands=self.stands)
        self.deadline = now_ms + ms + self._later * (not self.leads)

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
        log = self._log
        return Fetch(self.epoch, self.node_id, log.end_offset, log.last_epoch, self.directory)

    def fetched_by(self, ask: Fetch, now_ms: int) -> Fetched:
        """Somebody fetches: the answer, to which whoever carries it adds the records from
        `ask.end` on, unless the logs part or a snapshot is needed."""
        if self.role is not Role.LEADER or ask.epoch != self.epoch:
            return Fetched(self.epoch, self._says_leader)
        log = self._log
        parts, snapshot = parting(log, ask.end, ask.last_epoch)
        if ask.replica >= 0:  # or somebody who only looks
            key = key_of(self.voters, ask.replica, ask.directory)
            if key not in self.peers and len(self.peers) < _MOST_PEERS:
                self.peers[key] = ReplicaPeer(now_ms)
            peer = self.peers.get(key)
            if peer is not None and parts is None and snapshot is None:
                peer.has(ask.end, log.end_offset, now_ms)
                self._commit()
            if peer is not None:
                peer.fetched_ms = now_ms
        return Fetched(self.epoch, self.node_id, True, self.high_watermark, parts, snapshot)

    def hear_of(self, replica: int, directory: bytes, now_ms: int) -> None:
        """It fetches a snapshot."""
        peer = self.peers.get(key_of(self.voters, replica, directory))
        if peer is not None:
            peer.fetched_ms = now_ms

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
        """Raises the high watermark to the leader's, after this answer's records are appended."""
        assert answer.leads
        agreed = min(answer.high_watermark, self._log.end_offset)
        if answer.parts is None and answer.snapshot is None and agreed > self.high_watermark:
            self.high_watermark = agreed

    def _commit(self) -> None:
        """Commits what a majority has, once that includes a record of this epoch."""
        held = [peer.held for _, peer in self._electing()] + [self._held] * self.votes
        agreed = held_by_majority(held + [-1] * (len(self.voters) - len(held)))
        if agreed > max(self._began, self.high_watermark):
            self.high_watermark = agreed
