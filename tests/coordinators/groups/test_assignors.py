"""Assignors against what can be said about them without knowing how they work."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.coordinators.groups.assignors import ASSIGNORS, Subscriber

TOPICS = {bytes([65 + number]) * 16: 2 * number + 1 for number in range(4)}
NAMES = sorted(TOPICS)


@st.composite
def groups(draw, *, alike: bool):
    """Members with subscriptions and with targets that an earlier assignment could have left."""
    same = frozenset(draw(st.sets(st.sampled_from(NAMES), min_size=1)))
    count = draw(st.integers(1, 6))
    free = [(topic, one) for topic in NAMES for one in range(TOPICS[topic] + 2)]
    owners = draw(st.lists(st.integers(-1, count - 1), min_size=len(free), max_size=len(free)))
    members = []
    for number in range(count):
        topics = same if alike else frozenset(draw(st.sets(st.sampled_from(NAMES))))
        before: dict[bytes, frozenset[int]] = {}
        for (topic, one), owner in zip(free, owners, strict=True):
            if owner == number:
                before[topic] = before.get(topic, frozenset()) | {one}
        instance = draw(st.sampled_from((None, f"i{9 - number}")))
        members.append(Subscriber(f"m{number}", instance, topics, before))
    return members


def partitions_of(members):
    return {topic: TOPICS[topic] for topic in NAMES if any(topic in m.topics for m in members)}


def places(target):
    return {(topic, one) for topic, held in target.items() for one in held}


def check_complete(members, targets):
    """Everything that somebody reads has one owner, who reads it."""
    assert set(targets) == {one.member_id for one in members}
    given_away = [place for target in targets.values() for place in places(target)]
    wanted = {(t, one) for t, count in partitions_of(members).items() for one in range(count)}
    assert len(given_away) == len(set(given_away))
    assert set(given_away) == wanted
    for member in members:
        assert set(targets[member.member_id]) <= member.topics
        assert all(targets[member.member_id].values()), "no empty topics"


@pytest.mark.parametrize("name", ["uniform", "range"])
@given(members=groups(alike=False) | groups(alike=True))
def test_everything_is_given_away_once(name, members) -> None:
    targets = ASSIGNORS[name](members, partitions_of(members))
    check_complete(members, targets)
    again = ASSIGNORS[name](members[::-1], partitions_of(members))
    assert again == targets, "the order of members must not matter"


@given(members=groups(alike=True))
def test_uniform_is_even_and_keeps_what_evenness_allows(members) -> None:
    targets = ASSIGNORS["uniform"](members, partitions_of(members))
    sizes = [len(places(targets[one.member_id])) for one in members]
    assert max(sizes) - min(sizes) <= 1
    wanted = {(t, one) for t, count in partitions_of(members).items() for one in range(count)}
    kept = sum(len(places(targets[m.member_id]) & places(m.before)) for m in members)
    assert kept == most_that_can_stay([len(places(m.before) & wanted) for m in members], sizes)


def most_that_can_stay(before, sizes):
    """By trying: the best way to hand the sizes out to the members."""
    least, bigger = min(sizes), sum(sizes) - min(sizes) * len(sizes)
    gains = sorted((min(one, least + 1) - min(one, least) for one in before), reverse=True)
    return sum(min(one, least) for one in before) + sum(gains[:bigger])


@given(members=groups(alike=False))
def test_uniform_leaves_no_move_that_would_even_things_out(members) -> None:
    targets = ASSIGNORS["uniform"](members, partitions_of(members))
    sizes = {one.member_id: len(places(targets[one.member_id])) for one in members}
    for owner in members:
        for topic in targets[owner.member_id]:
            for other in members:
                if topic in other.topics:
                    assert sizes[owner.member_id] - sizes[other.member_id] <= 1


@settings(max_examples=30)
@given(members=groups(alike=False) | groups(alike=True))
def test_uniform_moves_nothing_twice(members) -> None:
    partitions = partitions_of(members)
    targets = ASSIGNORS["uniform"](members, partitions)
    settled = [
        Subscriber(m.member_id, m.instance_id, m.topics, targets[m.member_id]) for m in members
    ]
    assert ASSIGNORS["uniform"](settled, partitions) == targets


def test_uniform_moves_one_share_to_a_newcomer() -> None:
    topic = b"T" * 16
    old = [
        Subscriber(f"m{n}", None, frozenset((topic,)), {topic: frozenset(range(4 * n, 4 * n + 4))})
        for n in range(3)
    ]
    new = Subscriber("a", None, frozenset((topic,)), {})
    targets = ASSIGNORS["uniform"]([*old, new], {topic: 12})
    assert [len(targets[one][topic]) for one in ("a", "m0", "m1", "m2")] == [3, 3, 3, 3]
    for one in old:
        assert targets[one.member_id][topic] < one.before[topic]


def test_range_gives_the_same_numbers_of_every_topic_and_minds_instances() -> None:
    one, two = b"1" * 16, b"2" * 16
    both = frozenset((one, two))
    members = [
        Subscriber("a", None, both, {}),
        Subscriber("b", "z", both, {}),
        Subscriber("c", "y", both, {}),
    ]
    targets = ASSIGNORS["range"](members, {one: 4, two: 4})
    assert targets == {
        "c": {one: frozenset((0, 1)), two: frozenset((0, 1))},
        "b": {one: frozenset((2,)), two: frozenset((2,))},
        "a": {one: frozenset((3,)), two: frozenset((3,))},
    }
