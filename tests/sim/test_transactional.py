"""Transactions between processes, whatever ends their lives; and the same with a bug planted, which
must be found."""

import pytest
from sim.seeds import first_broken
from sim.test_served import LiesAboutJournals
from sim.transactional.books import Books
from sim.transactional.front import Front, SimHost
from sim.transactional.home import SMALL, Home
from sim.transactional.story import play

from appliance.base.ids import OFFSETS_TOPIC
from appliance.config.log_config import LogConfig
from appliance.coordinators.groups.kind import GROUPS
from appliance.coordinators.transactions.kind import TransactionsKind
from appliance.coordinators.transactions.shard import TransactionShard
from appliance.ioproc.coordination.marker_sender import MarkerSender
from appliance.ring.messages import ABORTED, APPEND, TRUSTED
from tests.alone import alone
from tests.seeds import plays

pytestmark = pytest.mark.interpreted("stands in the place of the network process's host")


@plays(100)
def test_transactions_are_whole_whatever_ends_a_life(some):
    for seed in some:
        play(seed)


# Bugs that must be found --------------------------------------------------------------------------


class SkipsAMarker(MarkerSender):
    """One partition of an ending is taken as done."""

    def begin_ending(self, ending, owner, tell):
        super().begin_ending(ending, owner, tell)
        for queued in self._queued.values():
            if len(ending.partitions) > 1 and queued and queued[-1].carried.ending is ending:
                self._written(queued.pop())
                return


class ForgetsWhatWasSent(MarkerSender):
    """What a dead home did not answer is not asked again."""

    def changed(self, home, *, up):
        self._sent[home] = {}
        super().changed(home, up=up)


class WithEndings(Home):
    def make_endings(self, writers):
        machine = self.machine
        return self.endings_of(writers, machine.image, machine.rows, self.books.refused, alone())


class SkippingHome(WithEndings):
    endings_of = SkipsAMarker


class ForgettingHome(WithEndings):
    endings_of = ForgetsWhatWasSent


class EndsNothingAnew(TransactionShard):
    """A start does not go on with what is decided."""

    def loaded(self, turn):
        super().loaded(turn)
        self.state.endings.clear()


class ForgetsDeadlines(TransactionShard):
    """A start does not abort what its producer has left behind."""

    def loaded(self, turn):
        for known in self.state.known.values():
            known.transaction = known.transaction._replace(timeout_ms=1 << 30)
        super().loaded(turn)


class Planted(TransactionsKind):
    def __init__(self, shard):
        self.of = shard

    def shard(self, place, config, image, lent):
        made = super().shard(place, config, image, lent)
        state = made.state
        epoch, settings = state.epoch, state.settings
        return self.of(place.partition, epoch, settings, image, lent.take_producer_id)


class NotAnew(Home):
    kinds = (GROUPS, Planted(EndsNothingAnew))


class NoDeadlines(Home):
    kinds = (GROUPS, Planted(ForgetsDeadlines))


class MarkersLost(Front):
    """A client does not learn what was aborted."""

    def drained(self, source, found):
        super().drained(source, [message for message in found if message.op != ABORTED])


class TrustsAll(SimHost):
    """Nothing is verified."""

    def ask_home(self, x, index, route, op, flags, a, b, e, f):
        flags |= TRUSTED if op == APPEND else 0
        super().ask_home(x, index, route, op, flags, a, b, e, f)


class Trusting(Front):
    def make_host(self):
        return TrustsAll(self)


class LooksAtLogsAlone(Books):
    """What is open may hang, and offsets may be any; who was fenced is found by what it wrote."""

    def check_open(self):
        """Without the coordinator."""

    def fetched(self, name, position, least):
        """Without the group."""


class PageCacheCounts(Home):
    """What is in the page cache is acknowledged."""

    output = LogConfig(**SMALL, flush_policy="os")


class OffsetsStayPending(Home):
    """Groups do not hear how a transaction ended."""

    def turn(self):
        for partition in self.core.partitions.values():
            if partition.topic == OFFSETS_TOPIC:
                partition.on_marker = None
        super().turn()


@pytest.mark.parametrize(
    "planted",
    [
        {"home": SkippingHome},
        {"home": ForgettingHome},
        {"home": NotAnew},
        {"home": NoDeadlines},
        {"home": PageCacheCounts},
        {"home": OffsetsStayPending},
        {"front": MarkersLost},
        {"front": Trusting},
        {"front": Trusting, "books": LooksAtLogsAlone},
        {"disk": LiesAboutJournals},
    ],
    ids=lambda planted: "+".join(one.__name__ for one in planted.values()),
)
def test_a_planted_bug_is_found(planted):
    assert first_broken(lambda seed: play(seed, **planted), 60), "no seed shows it"
