"""Registrations and heartbeats that come late, twice or never, of lives of a broker that are over:
whoever lives in the end is who serves, and nobody leads who is fenced."""

import random
from itertools import count

import pytest
from brokers import CLUSTER, FEATURES, Brokers, doors, folder

from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.control.broker.lifecycle import Lifecycle, Register, State
from appliance.controller import broker_states
from appliance.controller.broker_registration import Registering, register_broker
from appliance.controller.broker_states import Heartbeat
from tests.seeds import each_seed

TIMEOUT_MS, LATE_MS = 300, 4000
ONE = 1


class Life:
    """One start of broker 1. asked: the number of the request in flight, and when it is over."""

    def __init__(self, incarnation, previous):
        self.incarnation, self.previous = incarnation, previous
        self.lifecycle = Lifecycle(100)
        self.asked, self.until = 0, 0
        self.over = False


class History:
    """Broker 1 dies and starts again behind a network that keeps messages; 2 and 3 are well."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.cluster = Brokers(3)
        self.cluster.create("t", [1, 2, 3])
        self.cluster.create("u", [2, 1])
        self.flying = []  # (when, number, life, what), and answers (when, number, life, None, …)
        self.answers = []
        self.numbers = count(1)
        self.late = True
        self.epochs = [self.cluster.epochs[ONE]]
        self.codes = set()
        self.life = None
        self.start()

    def delay(self):
        if not self.late:
            return 1
        return self.rng.choice((1, 5, 20, 200, 1000, LATE_MS))

    def start(self):
        if self.life is not None:
            self.life.over = True
        clean = self.rng.random() < 0.3
        previous = self.rng.choice(self.epochs) if clean else -1
        self.life = Life(self.cluster.new_id(), previous)

    def pass_time(self, ms):
        for _ in range(0, ms, 20):
            self.step(20)

    def step(self, ms):
        cluster, rng = self.cluster, self.rng
        cluster.tick(ms)
        for broker in (2, 3):
            cluster.beat(broker)
        life, now = self.life, cluster.now
        if life.asked and now >= life.until:
            life.asked = 0
            life.lifecycle.failed(now)
        if not life.asked:
            what = life.lifecycle.next_request(now, cluster.image.applied_offset, True)
            if what is not None:
                life.asked, life.until = next(self.numbers), now + TIMEOUT_MS
                times = rng.choice((0, 1, 1, 1, 2)) if self.late else 1
                for _ in range(times):
                    self.flying.append((now + self.delay(), life.asked, life, what))
        due = [one for one in self.flying if one[0] <= now]
        self.flying = [one for one in self.flying if one[0] > now]
        for _, number, sender, what in due:
            self.answers.append((now + self.delay(), number, sender, self.decide(sender, what)))
        heard = [one for one in self.answers if one[0] <= now]
        self.answers = [one for one in self.answers if one[0] > now]
        for _, number, receiver, answer in heard:
            if receiver.over or receiver.asked != number:
                continue  # nobody waits for it any more
            receiver.asked = 0
            self.hear(receiver.lifecycle, answer)
        self.check()

    def decide(self, life, what):
        """What the controller answers: an epoch, (fenced, may go), or a code."""
        cluster = self.cluster
        try:
            if isinstance(what, Register):
                asked = Registering(
                    broker_id=ONE, cluster_id=CLUSTER, incarnation_id=life.incarnation,
                    endpoints=(doors(9000 + ONE),), features=FEATURES, rack=None,
                    log_dirs=(folder(ONE),), previous_epoch=life.previous,
                )  # fmt: skip
                records, epoch = register_broker(
                    cluster.situation, cluster.heartbeats, asked, CLUSTER, cluster.now
                )
                cluster.replay(records)
                self.epochs.append(epoch)
                return epoch
            beat = Heartbeat(
                broker_id=ONE, epoch=what.epoch, offset=what.offset,
                want_fence=what.want_fence, want_shut_down=what.want_shut_down,
            )  # fmt: skip
            before = cluster.image.brokers[ONE]
            records, told = broker_states.heartbeat(
                cluster.situation, cluster.heartbeats, beat, cluster.now
            )
            assert before.epoch == what.epoch, "a beat of another epoch counts for nothing"
            cluster.replay(records)
        except PeerError as refused:
            self.codes.add(refused.code)
            return errors, refused.code
        return told.is_fenced, told.should_shut_down

    def hear(self, lifecycle, answer):
        now = self.cluster.now
        if isinstance(answer, int):
            lifecycle.registered(answer, now)
        elif answer[0] is errors:
            lifecycle.refused(answer[1], now)
        else:
            lifecycle.beaten(*answer, now)

    def check(self):
        image = self.cluster.image
        assert image.brokers[ONE].epoch <= image.applied_offset
        for name in "tu":
            found = self.cluster.partition(name)
            assert found.isr or found.leader == -1
            if found.leader >= 0:
                assert not image.brokers[found.leader].fenced, "who is fenced leads"
                assert found.leader in found.isr

    def end(self):
        """The network is well, and everybody lives."""
        self.late = False
        self.pass_time(2 * LATE_MS + 12_000)
        assert self.life.lifecycle.state is State.RUNNING
        assert self.codes <= {errors.STALE_BROKER_EPOCH, errors.DUPLICATE_BROKER_REGISTRATION}
        broker = self.cluster.image.brokers[ONE]
        assert broker.incarnation_id == self.life.incarnation and not broker.fenced
        assert broker.epoch == self.life.lifecycle.epoch


@each_seed(2000)
def test_who_lives_in_the_end_serves(seed):
    history = History(seed)
    for _ in range(history.rng.randrange(1, 6)):
        history.pass_time(history.rng.choice((20, 100, 400, 2000, 10_000)))
        if history.rng.random() < 0.8:
            history.start()
    history.end()


@pytest.mark.parametrize("late_ms", [40, 400])
def test_a_registration_of_a_life_that_is_over_costs_the_living_one_a_beat(late_ms):
    history = History(0)
    history.late = False
    history.pass_time(200)
    former = history.life
    history.start()
    history.pass_time(200)
    assert history.life.lifecycle.state is State.RUNNING
    history.flying.append((history.cluster.now + late_ms, 10**6, former, Register()))
    history.pass_time(late_ms + 40)
    history.pass_time(400)
    assert history.life.lifecycle.state is State.RUNNING
    broker = history.cluster.image.brokers[ONE]
    assert broker.incarnation_id == history.life.incarnation and not broker.fenced
