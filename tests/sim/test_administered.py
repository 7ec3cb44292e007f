"""The control process under clients that change metadata, whatever ends its lives and its
leaderships; and the same with a bug planted, which must be found."""

import pytest
from sim.metadata.node import Metadata
from sim.metadata.story import play
from sim.seeds import first_broken

from appliance.control.requests.pending_answers import WaitingAnswers
from appliance.shell.flusher import Done
from tests.seeds import plays


@plays(30)
def test_what_was_answered_is_true_for_ever_after(some):
    for seed in some:
        play(seed)


# Bugs that must be found --------------------------------------------------------------------------


class SyncIsBelieved(Metadata):
    """A sync that did not happen counts."""

    def run(self, tag, job):
        kind, _ = tag
        return super().run(tag, job) if kind else Done(tag, None, 0)


class AtOnce(WaitingAnswers):
    def release(self, committed):
        return super().release(1 << 60)


class AnswersAtOnce(Metadata):
    """Before what is answered is durable."""

    def made(self, control):
        control._waiting = AtOnce()
        return control


class RefusesNobody(Metadata):
    """Whoever waits when leadership is lost goes on waiting, for what may never be."""

    def made(self, control):
        control._refuse = lambda why: None
        return control


@pytest.mark.parametrize("node", [SyncIsBelieved, AnswersAtOnce, RefusesNobody])
def test_a_planted_bug_is_found(node):
    assert first_broken(lambda seed: play(seed, node=node), 40), "no seed shows it"
