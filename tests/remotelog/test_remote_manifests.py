"""Manifests in the store: what a leader was told to be so, every later leader reads."""

from random import Random

import pytest

from appliance.base.object_store import FolderStore
from appliance.remotelog.manifests import (
    NO_TERM,
    LeaderFenced,
    ManifestDamaged,
    RemoteManifests,
    Term,
    make_segment_id,
    term_of_segment,
)
from tests.ioproc.remote.tiering_world import Store
from tests.seeds import each_seed

KEY = bytes(range(16)), 3
FOLDER = f"{KEY[0].hex()}/3/manifests"


def test_a_leader_claims_and_publishes(tmp_path):
    store = FolderStore(str(tmp_path / "store"))
    manifests = RemoteManifests(store)
    assert manifests.read_newer(*KEY, NO_TERM) is None
    assert manifests.claim(*KEY, 5) == (Term(5, 1), None)
    assert manifests.read_newer(*KEY, NO_TERM) is None, "a claim says nothing"
    term = manifests.publish(*KEY, Term(5, 1), b"first")
    assert (term, manifests.read_newer(*KEY, NO_TERM)) == (Term(5, 2), (Term(5, 2), b"first"))
    assert manifests.read_newer(*KEY, term) is None
    assert list(store.names(FOLDER)) == [f"{FOLDER}/0000000005-0000000002"], "older ones go"
    assert manifests.claim(*KEY, 5) == (Term(5, 3), b"first"), "its next life"
    assert manifests.claim(*KEY, 9) == (Term(9, 1), b"first")
    for fenced in (
        lambda: manifests.publish(*KEY, term, b"late"),
        lambda: manifests.publish(*KEY, Term(5, 3), b"late"),
        lambda: manifests.claim(*KEY, 8),
    ):
        with pytest.raises(LeaderFenced, match="epoch 9 has claimed it, this is epoch"):
            fenced()
    assert manifests.read_newer(*KEY, NO_TERM) is None
    assert manifests.publish(*KEY, Term(9, 1), b"") == Term(9, 2)
    assert manifests.read_newer(*KEY, term) == (Term(9, 2), b""), "nothing is a manifest, too"


def test_a_damaged_manifest_is_refused():
    store = Store()
    manifests = RemoteManifests(store)
    manifests.publish(*KEY, manifests.claim(*KEY, 0).term, b"entries")
    (name,) = store.held
    whole = store.held[name]
    for data in (whole[:-1], whole[:3], b"\2" + whole[1:], whole[:-1] + b"z"):
        store.held[name] = data
        with pytest.raises(ManifestDamaged, match=name):
            manifests.read_newer(*KEY, NO_TERM)


def test_a_segment_id_says_under_which_claim_its_copy_began():
    term = Term(7, 300)
    assert term_of_segment(make_segment_id(term, bytes(8))) == term
    assert len(make_segment_id(term, bytes(8))) == 16


class Interleaved(Store):
    """Between any two requests of one leader others do whole steps of theirs."""

    def __init__(self, rng):
        super().__init__()
        self.rng, self.others, self.depth = rng, (), 0

    def _between(self):
        if self.depth < 4 and self.others and self.rng.random() < 0.4:
            self.depth += 1
            self.rng.choice(self.others)()
            self.depth -= 1

    def names(self, prefix):
        self._between()
        return super().names(prefix)

    def write_object(self, name, pieces):
        self._between()
        super().write_object(name, pieces)

    def read_object(self, name):
        self._between()
        return super().read_object(name)

    def delete(self, name):
        self._between()
        super().delete(name)


class Leader:
    """A node that was elected once, and may not know that it leads no more."""

    def __init__(self, manifests, epoch, confirmed):
        self.manifests, self.epoch, self.confirmed = manifests, epoch, confirmed
        self.term, self.said, self.busy = None, b"", False
        self.known = 0  # so many were confirmed when its claim began

    def step(self, number):
        if self.busy:
            return
        self.busy = True
        try:
            if self.term is None:
                found = self.manifests.claim(*KEY, self.epoch)
                said = found[1] or b""
                assert set(self.confirmed[: self.known]) <= set(said)
                self.term = self.manifests.publish(*KEY, found[0], said)
                self.said = said
            else:
                said = self.said + bytes([number])
                self.term = self.manifests.publish(*KEY, self.term, said)
                self.said = said
                self.confirmed.append(number)
        except LeaderFenced:
            self.term = None
        except KeyError:  # a manifest went while it was read: tried again
            self.term = None
        finally:
            self.busy = False


def play(seed, kind=RemoteManifests):
    rng = Random(seed)
    store = Interleaved(rng)
    manifests, confirmed, leaders = kind(store), [], []
    numbers = iter(range(256))

    def act():
        if len(leaders) < 6 and rng.random() < 0.2:
            leaders.append(Leader(manifests, len(leaders), confirmed))
        if leaders:
            one = rng.choice(leaders[-3:])
            if one.term is None:
                one.known = len(confirmed)
            one.step(next(numbers, 255))

    store.others = (act,)
    for _ in range(60):
        act()
    store.others = ()
    last = Leader(manifests, 99, confirmed)
    last.known = len(confirmed)
    last.step(0)
    assert last.term is not None and set(confirmed) <= set(last.said)
    assert manifests.read_newer(*KEY, NO_TERM).entries == last.said
    assert len(store.held) == 1, "older manifests are gone"


@each_seed(200)
def test_what_was_confirmed_is_read_by_every_later_leader(seed):
    play(seed)


class ReadsFirst(RemoteManifests):
    """Claims behind what it has read."""

    def claim(self, topic_id, partition, epoch):
        found = self.read_newer(topic_id, partition, NO_TERM)
        claim, rest = super().claim(topic_id, partition, epoch)
        return (claim, rest) if found is None else found._replace(term=claim)


class LooksNotBack(RemoteManifests):
    """Believes in a step without looking for later claims."""

    def publish(self, topic_id, partition, term, entries):
        try:
            return super().publish(topic_id, partition, term, entries)
        except LeaderFenced:
            return Term(term.epoch, term.number + 1)


@pytest.mark.parametrize("kind", [ReadsFirst, LooksNotBack])
def test_rules_that_are_broken_are_found_out(kind):
    def play_some():
        for seed in range(200):
            play(seed, kind)

    with pytest.raises(AssertionError):
        play_some()
