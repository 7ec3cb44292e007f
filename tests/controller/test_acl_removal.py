"""DeleteAcls decides by names and principals first: the same rules go as when every filter is
compared with every rule, and one request costs what it may cost."""

import itertools
import random
from types import SimpleNamespace

import pytest

from appliance.authorization.standard import ALLOW, ANY_NAME, DENY, LITERAL, PREFIXED, AclRule
from appliance.base import errors
from appliance.controller import acls
from appliance.controller.acls import ANY, MATCH, AclFilter, remove

TOPIC, GROUP = 2, 3
READ, WRITE = 3, 4
EVERY = AclFilter(ANY, ANY, None, None, None, ANY, ANY)


def image(*rules):
    return SimpleNamespace(
        kept={n: acls._record(n.to_bytes(16), rule) for n, rule in enumerate(rules)}
    )


def rule(number, name=None, principal=None):
    return AclRule(
        TOPIC, LITERAL, name or f"t{number}", principal or f"User:{number}", "*", READ, ALLOW
    )


def some_rules(chance, count):
    every = [
        AclRule(*parts)
        for parts in itertools.product(
            (TOPIC, GROUP), (LITERAL, PREFIXED), ("a", "ab", ANY_NAME), ("User:a", "User:b"),
            ("*", "10.0.0.1"), (READ, WRITE), (ALLOW, DENY),
        )
    ]  # fmt: skip
    return chance.sample(every, count)


def some_filter(chance):
    return AclFilter(
        chance.choice((ANY, TOPIC, GROUP)), chance.choice((ANY, MATCH, LITERAL, PREFIXED)),
        chance.choice((None, "a", "ab", "abc", ANY_NAME)),
        chance.choice((None, "User:a", "User:b", "User:c")), chance.choice((None, "*")),
        chance.choice((ANY, READ)), chance.choice((ANY, DENY)),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(10))
def test_every_filter_removes_what_it_matches(seed):
    chance = random.Random(seed)
    rules = some_rules(chance, 60)
    filters = [some_filter(chance) for _ in range(40)]
    records, results = remove(image(*rules), filters)
    want = [[one for one in rules if some.matches(one)] for some in filters]
    assert [(told.code, gone) for told, gone in results] == [(errors.NONE, gone) for gone in want]
    assert sorted(one.id for one in records) == [
        n.to_bytes(16) for n, one in enumerate(rules) if any(some.matches(one) for some in filters)
    ]


def exact(one):
    return AclFilter(*one)


def test_filters_that_name_something_are_as_many_as_a_request_holds():
    rules = [rule(number) for number in range(3000)]
    records, results = remove(image(*rules), [exact(one) for one in rules] * 4)
    assert len(records) == 3000
    assert all(told.code == errors.NONE and len(gone) == 1 for told, gone in results)
    whose = EVERY._replace(principal="User:7")
    _, results = remove(image(*rules), [whose] * 12_000)
    assert all(gone == [rules[7]] for _, gone in results)


def test_what_takes_too_many_comparisons_is_refused_and_removes_nothing(monkeypatch):
    monkeypatch.setattr(acls, "COMPARISONS", 250)
    rules = [rule(number) for number in range(100)]
    hosts = [EVERY._replace(host="10.0.0.9"), EVERY._replace(host="10.0.0.8"), EVERY]
    records, results = remove(image(*rules), [*hosts, exact(rules[0])])
    assert not records
    assert [told.code for told, _ in results] == [errors.NONE] * 2 + [errors.INVALID_REQUEST] * 2
    assert "250 comparisons" in results[2][0].message


def test_an_answer_names_a_bounded_number_of_rules(monkeypatch):
    monkeypatch.setattr(acls, "TOLD", 25)
    rules = [rule(number) for number in range(10)]
    records, results = remove(image(*rules), [EVERY] * 3)
    assert len(records) == 10
    assert [len(gone) for _, gone in results] == [10, 10, 0]
    assert results[2][0].code == errors.INVALID_REQUEST
    assert "more than 25 ACLs" in results[2][0].message


def test_more_rules_than_kafka_removes_at_once_are_refused(monkeypatch):
    monkeypatch.setattr(acls, "MOST", 5)
    rules = [rule(number, principal=f"User:{number % 2}") for number in range(8)]
    by = [EVERY._replace(principal=f"User:{one}") for one in (0, 0, 1)]
    records, results = remove(image(*rules), by)
    assert len(records) == 4
    assert [told.code for told, _ in results] == [errors.NONE] * 2 + [errors.INVALID_REQUEST]
