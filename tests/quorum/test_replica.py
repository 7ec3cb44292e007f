"""A few replicas that talk at once, by a clock that moves when a test says so."""

import pytest
import quorum_world

from appliance.quorum.messages import (
    NOBODY,
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    QuorumState,
    Vote,
    Voted,
)
from appliance.quorum.peer import parting
from appliance.quorum.replica import Replica
from appliance.quorum.role import Role
from appliance.quorum.times import Times
from appliance.quorum.voters import ANY

TIMES = Times()
A, B, C, OBSERVER = 1, 2, 3, 7


def mute(quorum):
    """Who does not live is silent from now on, instead of closing connections."""
    for replica in quorum.replicas.values():
        replica.lost = lambda peer, now: None


def numbered(voters):
    """Those of a static quorum."""
    return dict.fromkeys(voters, ANY)


class Log:
    """Of records of which only the epochs count."""

    start_offset = start_epoch = 0

    def __init__(self, epochs=()):
        self.epochs = list(epochs)

    @property
    def end_offset(self):
        return len(self.epochs)

    @property
    def last_epoch(self):
        return self.epochs[-1] if self.epochs else 0

    def end_of(self, epoch):
        found = max((one for one in self.epochs if one <= epoch), default=0)
        return found, sum(one <= found for one in self.epochs)


class Quorum:
    """hears: those that live."""

    def __init__(self, logs, known=None, observer=False):
        self.now = 0
        self.logs = {one: Log(epochs) for one, epochs in logs.items()}
        self.hears = dict.fromkeys(self.logs)
        voters = [one for one in self.logs if one != OBSERVER]
        self.replicas = {
            one: Replica(
                one, numbered(voters), (known or {}).get(one, QuorumState()), log, lambda most: 0, 0
            )
            for one, log in self.logs.items()
        }

    def __getitem__(self, one):
        return self.replicas[one]

    def at(self, ms):
        """Everything that happens until then."""
        while True:
            self.talk()
            due = min((self[one].deadline, one) for one in self.hears)
            if due[0] > ms:
                break
            self.now = max(self.now, due[0])
            self[due[1]].tick(self.now)
        self.now = ms

    def talk(self):
        busy = True
        while busy:
            busy = False
            for one in list(self.hears):
                self.lead(one)
                for target, what in self[one].take_effects()[1]:
                    busy = True
                    if target in self.hears:
                        self.tell(one, self[target], what)
                    else:
                        self[one].lost(target, self.now)

    def lead(self, one):
        """The first record of a new leader."""
        if self[one].leads and self.logs[one].last_epoch != self[one].epoch:
            self.logs[one].epochs.append(self[one].epoch)
            self[one].durable(self.logs[one].end_offset)

    def tell(self, sender, target, what):
        if isinstance(what, Vote):
            self[sender].voted_by(target.node_id, target.vote(what, self.now), self.now)
        elif isinstance(what, BeginEpoch):
            target.begin_epoch(what, self.now)
        elif isinstance(what, EndEpoch):
            target.end_epoch(what, self.now)
        else:
            self.fetch(self[sender], target, what)

    def fetch(self, follower, leader, what):
        mine, its = self.logs[follower.node_id], self.logs[leader.node_id]
        answer = leader.fetched_by(what, self.now)
        cut = follower.fetched(answer, self.now)
        if cut < 0:
            return
        changed = cut < mine.end_offset
        del mine.epochs[cut:]
        if answer.parts is None:
            changed = changed or its.end_offset > what.end
            mine.epochs += its.epochs[what.end :]
        follower.durable(mine.end_offset)
        follower.take_over(answer)
        if changed:
            follower.fetch()

    def leader(self):
        (found,) = [one for one in self.hears if self[one].leads]
        return found


def test_one_voter_leads_at_once():
    one = Quorum({A: []})
    one.at(0)
    assert one[A].leads and one[A].epoch == 1 and one[A].high_watermark == 1


def test_a_leader_is_elected_and_what_it_says_is_agreed_by_a_majority():
    three = Quorum({A: [], B: [], C: []})
    three.at(1000)
    leader = three.leader()
    assert three[leader].epoch == 1
    assert [three[one].leader for one in (A, B, C)] == [leader] * 3
    assert three[leader].high_watermark == 1


def test_who_has_more_of_the_log_is_elected():
    three = Quorum(
        {A: [1], B: [1, 2], C: [1]}, {A: QuorumState(2), B: QuorumState(2), C: QuorumState(2)}
    )
    three.hears = {A: None, B: None}
    three.at(5000)
    assert three.leader() == B
    assert three.logs[A].epochs[:2] == [1, 2]


def test_logs_part_and_come_together():
    logs = {A: [1, 1, 2, 2], B: [1, 1, 3], C: [1, 1, 3]}
    three = Quorum(logs, {one: QuorumState(3) for one in logs})
    three.at(5000)
    assert three.leader() in (B, C)
    assert three.logs[A].epochs == three.logs[B].epochs == three.logs[C].epochs == [1, 1, 3, 4]


def test_a_process_that_died_is_followed_by_the_next_leader_at_once():
    three = Quorum({A: [], B: [], C: []})
    three.at(1500)
    dead = three.leader()
    del three.hears[dead]
    for one in three.hears:
        three[one].lost(dead, three.now)
    three.at(1500 + TIMES.lost)
    assert three[three.leader()].epoch == 2
    assert three[three.leader()].silent == NOBODY, "it is gone"


def test_a_new_leader_knows_whose_silence_it_waited_out():
    quorum = Quorum({A: [], B: [], C: []})
    quorum.at(100)
    first = quorum.leader()
    del quorum.hears[first]
    mute(quorum)
    quorum.at(100 + 2 * TIMES.fetch_timeout)
    next_one = quorum[quorum.leader()]
    assert next_one.silent == first
    next_one.vote(Vote(1, first, 0, 0, False), quorum.now)
    assert next_one.silent == NOBODY, "it was heard"


def test_who_was_refused_while_others_heard_the_leader_asks_again_when_they_do_not():
    """Who of them asks then has less of the log, and is not elected."""
    three = Quorum({A: [], B: [], C: []})
    three.at(100)
    first = three.leader()
    full, less = (one for one in three.hears if one != first)
    del three.hears[first]
    mute(three)
    three.logs[full].epochs.append(1)
    three[full].durable(three.logs[full].end_offset)
    three[less].goes_on(three.now + 400)  # it hears the leader a little longer
    three.at(three[less].deadline)
    assert three.leader() == full


def test_a_connection_that_breaks_deposes_nobody():
    three = Quorum({A: [], B: [], C: []})
    three.at(1500)
    leader = three.leader()
    for one in (A, B, C):
        three[one].lost(leader, three.now)
    three.at(1500 + TIMES.lost)
    assert three.leader() == leader and three[leader].epoch == 1


def test_who_was_alone_disturbs_nobody():
    """It never got a newer epoch: pre-votes (KIP-996)."""
    three = Quorum({A: [], B: [], C: []})
    three.at(1500)
    leader = three.leader()
    alone = next(one for one in (A, B, C) if one != leader)
    del three.hears[alone]
    for ms in range(1500, 9000, 500):
        three.at(ms)
        for one in three.hears:
            three[one].fetch()
        three[alone].tick(ms)
        three[alone].take_effects()
    three.hears[alone] = None
    three.at(12000)
    assert three[leader].epoch == 1 and three.leader() == leader


def test_a_leader_that_nobody_fetches_from_gives_up():
    three = Quorum({A: [], B: [], C: []})
    three.at(1500)
    leader = three.leader()
    three.hears = {leader: None}
    three.at(1500 + 2 * TIMES.check_quorum)
    assert three[leader].role is not Role.LEADER
    assert three[leader].high_watermark == 1


def test_who_is_asked_to_gives_up_and_its_first_successor_leads():
    three = Quorum({A: [], B: [], C: []})
    three.at(1500)
    old = three.leader()
    three[old].resign(three.now)
    three.at(1500)
    assert three[old].role is not Role.LEADER
    new = three.leader()
    assert new != old and three[new].epoch == 2
    assert three[old].leader == new


def test_who_makes_way_names_others_first_and_stands_when_nobody_else_is_elected():
    three = Quorum({A: [], B: [], C: []})
    three.at(1500)
    old = three.leader()
    first, second = (one for one in (A, B, C) if one != old)
    three[old].holds_back = True
    three[old].resign(three.now, {first})
    three.at(1500)
    assert three.leader() == second, "the other one is as full"
    del three.hears[second]  # its process dies
    three[first].holds_back = True
    late = three.now + TIMES.fetch_timeout + TIMES.reluctance
    three.at(late - 1)
    assert not any(three[one].leads for one in three.hears), "they wait for others"
    three.at(late)
    assert three.leader() == old, "better one without room than none"


def test_nobody_votes_twice_in_an_epoch_whatever_it_forgot():
    log = Log()
    one = Replica(A, numbered((A, B, C)), QuorumState(), log, lambda most: 0, 0)
    assert one.vote(Vote(1, B, 0, 0, False), 0) == Voted(1, NOBODY, True, False)
    known, _ = one.take_effects()
    assert known == QuorumState(1, NOBODY, B)
    again = Replica(A, numbered((A, B, C)), known, log, lambda most: 0, 0)
    assert not again.vote(Vote(1, C, 0, 0, False), 0).granted
    assert again.vote(Vote(1, B, 0, 0, False), 0).granted


def test_who_led_before_its_death_leads_that_epoch_no_more():
    """What it had sent and not synced may stand in other logs."""
    one = Replica(
        A, numbered((A, B, C)), QuorumState(4, leader=A, voted=A), Log([4]), lambda most: 0, 0
    )
    assert one.role is Role.RESIGNED
    answer = one.fetched_by(Fetch(4, B, 1, 4), 0)
    assert not answer.leads and answer.leader == NOBODY


def test_an_observer_finds_the_leader_and_counts_for_nothing():
    four = Quorum({A: [], B: [], C: [], OBSERVER: []})
    four.at(9000)
    assert four[OBSERVER].leader == four.leader()
    assert four[OBSERVER].high_watermark == 1
    followers = [one for one in (A, B, C) if one != four.leader()]
    four.hears = {four.leader(): None, OBSERVER: None}
    leader = four[four.leader()]
    four.logs[leader.node_id].epochs.append(leader.epoch)
    leader.durable(2)
    leader.fetched_by(Fetch(leader.epoch, OBSERVER, 2, leader.epoch), 9000)
    assert leader.high_watermark == 1
    leader.fetched_by(Fetch(leader.epoch, followers[0], 2, leader.epoch), 9000)
    assert leader.high_watermark == 2


def test_an_observer_whose_leader_is_gone_asks_one_voter_after_the_other():
    one = Replica(
        OBSERVER,
        numbered((A, B, C)),
        QuorumState(4, leader=A),
        Log([4]),
        lambda most: most,
        0,
        Times(lost=50),
    )
    assert [who for who, _ in one.take_effects()[1]] == [A]
    one.lost(B, 10)  # it follows somebody else
    assert one.deadline == Times().fetch_timeout
    one.lost(A, 10)
    assert one.deadline == 60
    one.tick(60)
    assert (one.role, one.leader) == (Role.UNATTACHED, NOBODY)
    ((asked, _),) = one.take_effects()[1]
    assert asked == C
    assert one.deadline == 60 + Times().fetch_timeout, "who is slow is not asked again meanwhile"
    assert one.fetched(Fetched(4, NOBODY), 100) == -1  # it does not know either
    assert one.deadline == 201
    one.tick(201)
    assert len(one.take_effects()[1]) == 1
    one.lost(C, 210)
    assert one.deadline == 311
    one.tick(311)
    assert one.fetched(Fetched(5, B), 320) == -1
    assert (one.role, one.leader, one.epoch) == (Role.FOLLOWER, B, 5)
    assert [who for who, _ in one.take_effects()[1]] == [C, B]


def test_an_observer_asks_seeds_too_because_voters_may_have_moved():
    """What it took over as a snapshot may say of voters where they were then, or nothing."""
    chances = iter(range(10))

    def chance(most):
        return next(chances) % (most + 1)

    known, voters = QuorumState(3, leader=A), numbered((A, B))
    one = Replica(OBSERVER, voters, known, Log([3]), chance, 0, seeds=(-2,))
    one.take_effects()
    asked = []
    for _ in range(3):
        one.tick(one.deadline)
        asked += [target for target, _ in one.take_effects()[1]]
    assert sorted(asked) == [-2, A, B]


def test_what_an_older_leader_left_is_agreed_with_the_first_record_of_this_one():
    """Never alone: another leader could still cut it off (Raft §5.4.2)."""
    three = Quorum({A: [1, 2], B: [1, 2], C: [1]}, {one: QuorumState(2) for one in (A, B, C)})
    three[A].voted_by(B, Voted(2, NOBODY, True, True), 0)  # nobody asked: nothing happens
    three[A].tick(three[A].deadline)
    three[A].voted_by(B, Voted(2, NOBODY, True, True), 0)
    three[A].voted_by(B, Voted(3, NOBODY, True, False), 0)
    assert three[A].leads and three[A].epoch == 3
    three[A].fetched_by(Fetch(3, B, 2, 2), 0)
    assert three[A].high_watermark == 0
    three.logs[A].epochs.append(3)
    three[A].durable(3)
    three[A].fetched_by(Fetch(3, B, 3, 3), 0)
    assert three[A].high_watermark == 3


def test_an_answer_of_another_epoch_is_nothing_to_go_by():
    three = Quorum({A: [], B: [], C: []})
    three.at(1500)
    leader = three[three.leader()]
    answer = leader.fetched_by(Fetch(0, A, 0, 0), 1500)
    assert not answer.leads and answer.epoch == 1 and answer.leader == leader.node_id


@pytest.mark.parametrize("times", [{"lost": 0}, {"election_timeout": 0}])
def test_times_that_make_no_sense_are_refused(times):
    with pytest.raises(AssertionError):
        Times(**times)


def test_who_has_just_voted_grants_nobody_else_a_pre_vote():
    voter = Quorum({A: [], B: [], C: []})[C]
    assert voter.vote(Vote(0, B, 0, 0, True), 0).granted, "nobody has its vote yet"
    assert voter.vote(Vote(1, A, 0, 0, False), 10).granted
    assert not voter.vote(Vote(1, B, 0, 0, True), 20).granted, "A may lead and not have said so"
    assert voter.vote(Vote(1, A, 0, 0, True), 20).granted
    assert voter.vote(Vote(1, B, 0, 0, True), 10 + TIMES.election_timeout // 4).granted


def test_who_was_only_told_of_a_leader_and_never_heard_it_grants_a_pre_vote():
    """A new voter that does not know it: it asks one after the other who leads, and is told of one
    that is gone; those who ask for its vote would never be elected without it."""
    four = numbered((A, B, C))
    new = Replica(OBSERVER, four, QuorumState(1), Log([1]), lambda most: 0, 0)
    assert new.fetched(Fetched(1, A), 10) == -1  # B says so
    assert (new.role, new.leader) == (Role.FOLLOWER, A)
    assert new.vote(Vote(1, B, 1, 1, True), 20).granted
    assert new.fetched(Fetched(1, A, leads=True), 30) == 1
    assert not new.vote(Vote(1, B, 1, 1, True), 40).granted, "it hears A"


def test_who_has_just_voted_grants_no_pre_vote_while_it_was_only_told_of_the_leader():
    voter = Quorum({A: [], B: [], C: []})[C]
    assert voter.vote(Vote(1, A, 0, 0, False), 10).granted
    assert voter.fetched(Fetched(1, A), 20) == -1
    assert not voter.vote(Vote(1, B, 0, 0, True), 30).granted, "A leads, and begins to"


@pytest.mark.parametrize(
    ("end", "last_epoch", "expected"),
    [
        (30, 2, (None, (31, 2))),
        (31, 1, (None, (31, 2))),
        (34, 1, (None, (31, 2))),  # its 31 and what lies before may be of a leader that was deposed
        (31, 2, (None, None)),
        (33, 2, (None, None)),
        (34, 2, ((2, 33), None)),
        (35, 3, (None, None)),
        (36, 3, ((3, 35), None)),
        (36, 4, ((3, 35), None)),
    ],
)
def test_a_log_that_begins_with_a_snapshot_says_nothing_of_older_epochs(end, last_epoch, expected):
    log = quorum_world.Log(())
    log.start_offset, log.before = 31, (2, ())
    log.entries = [(2, None), (2, None), (3, None), (3, None)]
    assert parting(log, end, last_epoch) == expected
