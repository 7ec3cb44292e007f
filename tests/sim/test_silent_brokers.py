"""Whom the active controller believes to be silent, in worlds where links are cut and processes
hang: a broker that one of two processes speaks for is never silent, one that is cut off soon is."""

import pytest
from sim.clock import DRIFT, OwnClock
from sim.seeds import first_broken
from sim.world import World

from appliance.base.errors import REQUEST_TIMED_OUT, PeerError
from appliance.control.broker.broker_liveness import BrokerLiveness
from appliance.metadata.parts import BrokerImage
from appliance.peers.conversation import NEVER
from tests.seeds import plays

SILENCE_MS, BEAT_MS = 2500, 2000
SLOW_MS, HANGS_MS, AWAY_MS = 300, 9000, 4000
LOOKS_MS = 50
RARE = {
    "a broker is told of as silent": 10,
    "a broker answers and does not beat": 10,
    "a broker beats and does not answer": 10,
    "a controller hears late what was said": 10,
}
"""What is to come about in so many seeds."""
SOONEST_MS = (SILENCE_MS - 1000) * (1 - 2 * DRIFT) - 2 * SLOW_MS
"""It was heard a second before it was cut off, as a rule, and what it said then took its time."""


class Broker:
    """Two processes: one beats, one answers. At most one of them hangs, or the host is cut off."""

    def __init__(self, story, number):
        self.story, self.world = story, story.world
        self.clock = OwnClock(self.world.clock, self.world.rng)
        self.image = BrokerImage(
            broker_id=number, incarnation_id=bytes(16), epoch=1, endpoints=(), fenced=False
        )
        self.number = number
        self.connected = True
        self.unanswered = []
        self.cut_ms = None
        self.beats = self.answers = True

    def start(self):
        self.beat()
        self.wait()

    def wait(self):
        self.world.after(self.world.rng.uniform(1000, 6000), self.suffer)

    def suffer(self):
        what = self.world.rng.choice(("cut", "no beats", "no answers"))
        self.world.say(self.number, what)
        if what == "cut":
            self.cut_ms = self.story.now
            soon_ms = (SILENCE_MS + SLOW_MS + LOOKS_MS) * (1 + 2 * DRIFT)
            self.world.after(soon_ms, self.story.noticed, self, self.cut_ms)
        self.beats, self.answers = what == "no answers", what == "no beats"
        if self.beats or self.answers:
            ways = ("beats", "answer") if self.beats else ("answers", "beat")
            self.world.reached("a broker {} and does not {}".format(*ways))
        self.world.after(self.world.rng.uniform(100, HANGS_MS), self.recover)

    def recover(self):
        self.cut_ms, self.beats, self.answers = None, True, True
        for done in self.unanswered[:]:
            self.answer(done)
        self.wait()

    def beat(self):
        if self.beats:
            self.story.hears(self.story.beaten, self.number)
        pause_ms = BEAT_MS + self.world.rng.uniform(0, SLOW_MS)
        self.world.after(pause_ms / self.clock.rate, self.beat)

    # The connection (`watching.Watched`) ----------------------------------------------------------

    def ask_peer(self, _key, _version, _message, done, timeout_ms):
        self.unanswered.append(done)
        self.connected = True
        self.world.after(self.world.rng.uniform(0, SLOW_MS), self.answer, done)
        self.world.after(timeout_ms / self.story.clock.rate, self.expire, done)

    def answer(self, done):
        if self.answers and done in self.unanswered:
            self.unanswered.remove(done)
            self.story.hears(done, object())

    def expire(self, done):
        if done in self.unanswered:
            self.unanswered.remove(done)
            self.connected = False
            self.story.hears(done, PeerError(REQUEST_TIMED_OUT, "no answer in time"))

    def run_once(self):
        return NEVER

    def close(self):
        pass


class Story:
    """A controller that is away itself now and then: what was said to it meanwhile it hears a
    moment after it is back."""

    def __init__(self, seed, watching=BrokerLiveness):
        self.world = World(seed)
        self.clock = OwnClock(self.world.clock, self.world.rng)
        self.told = {}
        self.back_ms = 0
        self.unheard = []
        self.brokers = {number: Broker(self, number) for number in (2, 3, 4)}
        self.watching = watching(
            1, lambda one: self.brokers[one.broker_id], self.gone, self.silent, SILENCE_MS
        )
        self.heard = dict.fromkeys(self.brokers, self.mine)
        self.watching.follow({number: one.image for number, one in self.brokers.items()})
        self.due = None
        for one in self.brokers.values():
            one.start()
        self.world.after(5000, self.leave)

    @property
    def now(self):
        return self.world.clock.now_ns // 1_000_000

    @property
    def mine(self):
        """By the controller's clock."""
        return self.clock.monotonic_ns() // 1_000_000

    def leave(self):
        away_ms = self.world.rng.choice((50, 500, AWAY_MS))
        self.world.say("controller", f"away for {away_ms}")
        self.left_ms, self.back_ms = self.now, self.now + away_ms
        self.world.after(away_ms, self.come)
        self.world.after(away_ms + self.world.rng.uniform(100, 9000), self.leave)

    def come(self):
        """Time is looked at before what was said; the longer it was away, the later it reads."""
        self.turn()
        self.world.after((self.now - self.left_ms) / 20, self.read)

    def read(self):
        said, self.unheard = self.unheard, []
        if said:
            self.world.reached("a controller hears late what was said")
        for what, words in said:
            what(*words)
        self.turn()

    def hears(self, what, *words):
        if self.now < self.back_ms or self.unheard:
            self.unheard.append((what, words))
        else:
            what(*words)
            self.turn()

    def beaten(self, number):
        self.heard[number] = self.mine

    def turn(self):
        if self.now < self.back_ms:
            return
        wait_ms = self.watching.check_brokers(self.mine, self.heard.__getitem__)
        if wait_ms < NEVER // 2:
            self.due = self.mine + wait_ms
            self.world.after(max(wait_ms, 1) / self.clock.rate, self.again, self.due)

    def again(self, due):
        if due == self.due:
            self.turn()

    def gone(self, number):
        raise AssertionError(f"nobody refuses, but {number} is gone")

    def silent(self, number):
        self.world.reached("a broker is told of as silent")
        self.world.say("controller", f"{number} is silent")
        cut_ms = self.brokers[number].cut_ms
        assert cut_ms is not None, f"{number} is heard"
        assert self.now - cut_ms >= SOONEST_MS, f"{number} was heard just now"
        self.told[number] = self.now

    def noticed(self, broker, cut_ms):
        """Unless it could not be: it is back, or the controller was away."""
        if broker.cut_ms == cut_ms and self.back_ms < cut_ms:
            assert self.told.get(broker.number, -1) >= cut_ms, f"{broker.number} is silent"


def play(seed, watching=BrokerLiveness):
    story = Story(seed, watching)
    story.world.run(60_000)
    return story.world


@plays(100, 50)
def test_silent_is_who_is_cut_off(some):
    for seed in some:
        play(seed)


class NeverAway(BrokerLiveness):
    """Time in which it did not run counts."""

    def check_brokers(self, now_ms, heard_at):
        self._due_ms = NEVER
        return super().check_brokers(now_ms, heard_at)


class BeatsAlone(BrokerLiveness):
    """An answer is no sign of life."""

    def _heard(self, broker_id, watch, answer):
        super()._heard(broker_id, watch, answer)
        watch.answered = False


class AnswersAlone(BrokerLiveness):
    """A heartbeat is no sign of life."""

    def check_brokers(self, now_ms, heard_at):
        return super().check_brokers(now_ms, lambda _: 0)


class WaitsForASession(BrokerLiveness):
    def __init__(self, *words):
        super().__init__(*words[:-1], 9000)


@pytest.mark.parametrize("watching", [NeverAway, BeatsAlone, AnswersAlone, WaitsForASession])
def test_a_planted_bug_is_found(watching):
    assert first_broken(lambda seed: play(seed, watching), 20), "no seed shows it"
