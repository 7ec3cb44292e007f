"""Transactions under faults: all or nothing, in every partition, as their producers were told; and
what happens when a rule that this needs is broken on purpose."""

import os

import pytest
from transaction_simulation import Simulation

from appliance.base.errors import PeerError
from appliance.coordinators.transactions import shard, state, transaction, transaction_end
from appliance.logstore.producer_state import ProducerStates

RUNS = int(os.environ.get("SIM_RUNS", "0")) or 40
EVENTS = 600


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_is_whole_or_not_there(version):
    done = 0
    for seed in range(RUNS):
        one = Simulation(seed, version)
        try:
            one.run(EVENTS)
        except (AssertionError, PeerError) as broken:
            raise AssertionError(f"seed {seed}, transaction.version {version}") from broken
        done += sum(len(partition.fates) for partition in one.partitions)
    assert done > 10 * RUNS


class Hasty(Simulation):
    """Markers are written before what decided them is committed."""

    def take(self):
        super().take()
        for _, one in self.endings:
            self.markers += [(one, int(index)) for _, index in one.partitions]
        self.endings.clear()


def break_endings(monkeypatch):
    """A coordinator that loads leaves what its predecessor decided."""
    monkeypatch.setattr(shard.transaction_end, "hand_out", lambda turn, known: None)


def break_fence(monkeypatch):
    """Who is fenced keeps its epoch."""

    def fenced(self, now_ms):
        return self._to(transaction.PREPARE_EPOCH_FENCE, now_ms)

    monkeypatch.setattr(transaction.Transaction, "fenced", fenced)


def break_numbers(monkeypatch):
    """Any word of a marker counts."""

    def marked(turn, one, where):
        known = turn.state.known.get(one.transactional_id)
        if known and known.transaction.state in transaction_end.PREPARED:
            known.unmarked.difference_update(where)
            if not known.unmarked:
                transaction_end._complete(turn, known)

    monkeypatch.setattr(transaction_end, "marked", marked)


def break_last_marker(monkeypatch):
    """One marker is enough."""

    def marked(turn, one, where):
        known = turn.state.known.get(one.transactional_id)
        if (
            known
            and known.ending == one.number
            and known.transaction.state in transaction_end.PREPARED
        ):
            transaction_end._complete(turn, known)

    monkeypatch.setattr(transaction_end, "marked", marked)


def break_partition(monkeypatch):
    """A partition takes every marker."""
    monkeypatch.setattr(ProducerStates, "check_end", lambda *_: None)


def break_deadlines(monkeypatch):
    """An open transaction may take for ever."""
    monkeypatch.setattr(state.TransactionalId, "deadline_ms", lambda *_: state.NEVER)


def break_pending(monkeypatch):
    """Who is being ended may begin anew."""

    def of(self, transactional_id, producer_id):
        known = self.known.get(transactional_id)
        if known is None or known.transaction.producer_id != producer_id:
            raise PeerError(state.INVALID_PRODUCER_ID_MAPPING, "")
        return known

    monkeypatch.setattr(state.TransactionsState, "of", of)


@pytest.mark.interpreted("compiled modules keep their functions")
@pytest.mark.parametrize(
    "broken",
    [
        None,
        break_endings,
        break_fence,
        break_numbers,
        break_last_marker,
        break_partition,
        break_deadlines,
        break_pending,
    ],
    ids=lambda one: one.__name__ if one else "hasty",
)
def test_a_broken_rule_is_found(broken, monkeypatch):
    if broken:
        broken(monkeypatch)
    kind = Simulation if broken else Hasty
    for seed in range(60):
        for version in (2, 0):
            try:
                kind(seed, version).run(EVENTS)
            except (AssertionError, PeerError):
                return
    raise AssertionError("nothing was found")
