"""That those who watch a tortured cluster would see what may not be: each sees a planted wrong, and
nothing where all is right."""

import re
from random import Random
from types import SimpleNamespace

import confluent_kafka as ck
import pytest

from tests.cluster import hygiene, same, torture
from tests.cluster.hands import PROCESSES, Hands
from tests.cluster.watching import Marks, Member, Pair, Watched, ends

NOBODY = "127.0.0.1:1"


class Message(SimpleNamespace):
    def partition(self):
        return self.at

    def offset(self):
        return self.is_at

    def value(self):
        return b"%d" % self.is_at

    def error(self):
        return None


@pytest.fixture
def watched():
    load = Watched(SimpleNamespace(bootstrap=NOBODY), "t")
    yield load
    load.consumer.close()


@pytest.fixture
def member(watched):
    one = Member(SimpleNamespace(
        bootstrap=NOBODY, group="g", load=watched, told=[], seen=set(), wrong=[],
        stands=lambda *told: Pair.stands(one.pair, *told), floor={}, doubtful={0: set()},
    ), 0)  # fmt: skip
    yield one
    one.client.close()


def test_a_consumer_that_is_not_given_an_offset(watched):
    for offset in (0, 1, 2):
        watched._took(Message(at=0, is_at=offset))
    watched.check_order()
    watched._took(Message(at=0, is_at=4))
    with pytest.raises(AssertionError, match="4 came where 3 was next"):
        watched.check_order()


def test_a_record_whose_offset_the_producer_was_never_told(watched, monkeypatch):
    """librdkafka concludes from a later answer that it was written."""
    watched.acknowledged = {b"0": (0, 0), b"3": (0, None)}
    assert ends(watched.acknowledged) == {0: 1}
    monkeypatch.setattr(watched, "everything", lambda: {(0, 0): b"0", (0, 1): b"3"})
    watched.check_content()
    for wrong in ({(0, 0): b"0"}, {(0, 0): b"0", (1, 1): b"3"}, {(0, 1): b"0", (0, 2): b"3"}):
        monkeypatch.setattr(watched, "everything", lambda wrong=wrong: wrong)
        with pytest.raises(AssertionError, match="1 of 2 lost"):
            watched.check_content()


@pytest.mark.parametrize(
    ("begins", "doubtful", "wrong"), [(7, (), 0), (9, (), 0), (6, (), 1), (6, (6,), 0)]
)
def test_a_group_that_begins_below_what_it_committed(member, begins, doubtful, wrong):
    member.begins = {0: 7}
    member.pair.doubtful[0] = set(doubtful)
    member._took(0, begins)
    assert len(member.pair.wrong) == wrong


def test_a_member_that_is_not_given_an_offset(member):
    member._took(0, 5)
    member._took(0, 6)
    assert not member.pair.wrong
    member._took(0, 8)
    assert "8, where 7 was next" in member.pair.wrong[0]


class Told:
    """A client that hears these ends, one after the other."""

    def __init__(self, *ends):
        self.ends = list(ends)

    def get_watermark_offsets(self, *_, **__):
        if (end := self.ends.pop(0)) is None:
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))
        return 0, end


@pytest.mark.parametrize(
    ("stable", "high", "wrong"),
    [
        ((3, 5), (3, 5), ""),
        ((3, None, 5), (3, 4, 5), ""),
        ((3, 2), (3, 3), "the end was 3, is 2"),
        ((3, 3), (3, 2), "the end was 3, is 2"),
        ((3, 5), (3, 4), "stable to 5, and shown to 4"),
    ],
)
def test_ends_that_go_back_or_part(stable, high, wrong):
    marks = Marks(NOBODY, {"t": 1})
    for client in marks.clients.values():
        client.close()
    marks.clients = {"read_committed": Told(*stable), "read_uncommitted": Told(*high)}
    for _ in high:
        marks.look()
    if not wrong:
        marks.check()
    else:
        with pytest.raises(AssertionError, match=wrong):
            marks.check()


def test_metadata_that_parts():
    log = {at: (at + 5, b"%d" % at) for at in (0, 5, 10)}
    same.hold_the_same({1: log, 2: {at: log[at] for at in (5, 10)}})
    for wrong in ({5: log[5]}, log | {5: (10, b"x")}):
        with pytest.raises(AssertionError, match="the metadata of 1 and 2 part"):
            same.hold_the_same({1: log, 2: wrong})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"files": 90}, ""),
        ({"files": 91}, "91 descriptors"),
        ({"bytes": 165 << 20}, "165 MiB"),
        ({"dead": (7,)}, r"children \(7,\)"),
        ({"shared": ("/dev/shm/x",)}, "/dev/shm/x"),
    ],
)
def test_what_a_node_may_not_keep(more, said):
    before = hygiene.Kept(50, 100 << 20, (), ())
    found = before._replace(**more).wrong(before)
    assert bool(found) == bool(said)
    assert re.search(said, found)


def test_every_kind_is_something_that_hands_do():
    for kind, its in torture.KINDS.items():
        what, _, which = kind.partition(" ")
        assert (
            (what in ("kill", "stop") and which in PROCESSES)
            or callable(getattr(Hands, kind.replace(" ", "_")))
        )  # fmt: skip
        assert its.policies and set(its.who) and its.seconds, kind


def test_stories_ask_for_what_is_promised_alone():
    seen = set()
    for seed in range(1, 7):
        shape = torture.shape(seed)
        seen.add(shape)
        kinds = shape.kinds()
        assert ("power of all" in kinds) == (shape.policy == torture.GROUP)
        assert ("ring" in kinds) == (shape.hosts == 5)
        for step in torture.story(Random(seed), 60, kinds):
            assert {one.kind for one in step} <= set(kinds)
    assert {one.policy for one in seen} == {torture.GROUP, torture.AUTO}
    assert {one.hosts for one in seen} == {3, 5}


def test_the_table_has_a_row_for_each_kind_and_tells_the_load():
    rng = Random(1)
    told = [
        ((torture.fault(rng, kind),), torture.Cost(0.1 * n, 0.2, 12.0, torture.BUSY + 1))
        for n, kind in enumerate(torture.KINDS)
    ]
    assert all(cost.in_time for _, cost in told)
    assert not told[0][1]._replace(load=torture.BUSY).in_time
    lines = torture.table(told).splitlines()
    for kind in torture.KINDS.values():
        assert any(line.startswith(f"| {kind.told} | 1 | ") for line in lines)
    assert f"{len(told)} of {len(told)}" in lines[-1]
