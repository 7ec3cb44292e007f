"""Questions about manifests, answered over a store in memory."""

from dataclasses import replace

import pytest

from appliance.ioproc.remote.manifest_steps import (
    ManifestAnswers,
    ask_claim,
    ask_newer,
    ask_publish,
    ask_start,
    ask_sweep,
    entries_in,
    snapshot_in,
)
from appliance.remotelog.journal import decode_entries, encode_entries, update_of
from appliance.remotelog.manifests import (
    NO_TERM,
    ManifestDamaged,
    RemoteManifests,
    Term,
    make_segment_id,
)
from appliance.remotelog.objects import LOG, PRODUCER_SNAPSHOT, RemoteFilesMissing
from appliance.remotelog.records import SegmentLeaderEpoch
from appliance.remotelog.segments import RemoteSegments
from appliance.remotelog.states import COPY_SEGMENT_FINISHED
from tests.ioproc.remote.tiering_world import Store
from tests.remotelog.test_remote_objects import ONE, TOPIC_ID, pieces

KEY = TOPIC_ID, 0
CHANCE = b"12345678"


class Answers:
    def __init__(self):
        self.store = Store()
        self.steps = ManifestAnswers(self.store.objects, RemoteManifests(self.store)).by_name

    def ask(self, question):
        return self.steps[question["op"]](question)

    def copy(self, one, snapshot=b"s"):
        parts = {**pieces(), PRODUCER_SNAPSHOT: [snapshot], LOG: [b"x"]}
        self.store.objects.copy_segment(one, parts)
        return one

    def ids(self):
        names = self.store.of_segments()
        return {name.rpartition("/")[2].partition(".")[0].partition("-")[2] for name in names}


@pytest.fixture
def answers():
    return Answers()


def segment(start, end, term, epoch=0):
    named = replace(ONE.remote_log_segment_id, id=make_segment_id(term, CHANCE))
    epochs = (SegmentLeaderEpoch(leader_epoch=epoch, offset=start),)
    return replace(
        ONE, remote_log_segment_id=named, start_offset=start, end_offset=end,
        segment_leader_epochs=epochs,
    )  # fmt: skip


def entries_of(*finished, unfinished=()):
    known = RemoteSegments(*KEY)
    for one in (*finished, *unfinished):
        known.replay(one)
    for one in finished:
        known.replay(update_of(one, COPY_SEGMENT_FINISHED, 0))
    return encode_entries(known)


def test_the_first_claim_takes_what_the_journal_has(answers):
    one = answers.copy(segment(0, 9, Term(0, 1)))
    told = answers.ask(ask_claim(KEY, [1, 2], 3, entries_of(one)))
    assert (told["term"], entries_in(told)) == (Term(3, 2), entries_of(one))
    later = answers.ask(ask_claim(KEY, [1, 2], 4, entries_of()))
    assert entries_in(later) == entries_of(one), "then the manifest counts"
    assert answers.ask(ask_newer(KEY, None, later["term"])) == {"term": later["term"]}
    assert entries_in(answers.ask(ask_newer(KEY, None, NO_TERM))) == entries_of(one)


def test_a_claim_removes_what_no_record_knows_and_keeps_what_is_to_be_removed(answers):
    known = answers.copy(segment(0, 9, Term(1, 1)))
    begun = answers.copy(segment(10, 19, Term(1, 2)))
    lost = answers.copy(segment(10, 19, Term(1, 3)))
    told = answers.ask(ask_claim(KEY, [1, 2], 3, entries_of(known, unfinished=(begun,))))
    found, _ = decode_entries(entries_in(told), *KEY)
    assert [one.start_offset for one in found.unfinished()] == [10]
    kept = {one.remote_log_segment_id.id.hex() for one in (known, begun)}
    assert answers.ids() == kept, lost


def test_a_sweep_never_takes_what_a_later_leader_copies(answers):
    mine = answers.ask(ask_claim(KEY, [1, 2], 3, b""))["term"]
    left = answers.copy(segment(0, 9, Term(3, 1)))
    later = answers.copy(segment(0, 9, Term(4, 1)))
    assert answers.ask(ask_sweep(KEY, [1, 2], mine, b""))["objects"] == 6
    assert answers.ids() == {later.remote_log_segment_id.id.hex()}, left


def test_a_start_has_the_producers_of_the_segment_before_it(answers):
    """With several segments, of the one that ends there, or of the newest epoch."""
    wide = answers.copy(segment(0, 29, Term(1, 1), epoch=1), b"wide")
    ends = answers.copy(segment(10, 19, Term(1, 2), epoch=1), b"ends")
    newer = answers.copy(segment(5, 24, Term(2, 1), epoch=2), b"newer")
    with pytest.raises(RemoteFilesMissing, match="has not written"):
        answers.ask(ask_start(KEY, 1, 20))
    term = answers.ask(ask_claim(KEY, [1, 2], 3, entries_of(wide, newer, ends)))["term"]
    term = answers.ask(ask_publish(KEY, term, entries_of(wide, newer, ends)))["term"]
    told = answers.ask(ask_start(KEY, 1, 20))
    assert (snapshot_in(told), Term(*told["term"])) == (b"ends", term)
    assert snapshot_in(answers.ask(ask_start(KEY, 1, 15))) == b"newer"
    assert snapshot_in(answers.ask(ask_start(KEY, 1, 30))) == b"wide"
    with pytest.raises(RemoteFilesMissing, match="offset 30 is in no remote segment"):
        answers.ask(ask_start(KEY, 1, 31))


def test_entries_of_another_partition_are_damage(answers):
    manifests = RemoteManifests(answers.store)
    manifests.publish(TOPIC_ID, 1, manifests.claim(TOPIC_ID, 1, 0).term, entries_of(ONE))
    with pytest.raises(ManifestDamaged, match="is another partition"):
        answers.ask(ask_newer((TOPIC_ID, 1), None, NO_TERM))


def test_replicas_that_need_the_objects_are_noted(answers):
    """By their nodes; a leader forgets those of nodes that have no replica any more."""

    def holders():
        return sorted(name.rpartition("/")[2] for name in answers.store.held if "/holders/" in name)

    answers.ask(ask_newer(KEY, 3, NO_TERM))
    answers.ask(ask_newer(KEY, None, NO_TERM))
    term = answers.ask(ask_claim(KEY, [2, 1], 3, b""))["term"]
    assert holders() == ["2"]
    answers.ask(ask_newer(KEY, 1, NO_TERM))
    answers.ask(ask_sweep(KEY, [2, 1], term, b""))
    assert holders() == ["1", "2"]
    answers.ask(ask_sweep(KEY, [2], term, b""))
    assert holders() == ["2"]
