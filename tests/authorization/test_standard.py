"""The authorizer of ACLs decides what Apache Kafka's does; its index answers what a loop would."""

import os
import random

import pytest

from appliance.authorization.needs import (
    CREATE_TOPIC,
    DESCRIBE_TOPIC,
    READ_TOPIC,
    WRITE_IDEMPOTENTLY,
    WRITE_TOPIC,
)
from appliance.authorization.operations import (
    ALL,
    ALTER,
    CLUSTER,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    SUPPORTED,
    TOPIC,
    WRITE,
    Resource,
)  # fmt: skip
from appliance.authorization.rights import Callers, Rights
from appliance.authorization.standard import (
    ALLOW,
    DENY,
    LITERAL,
    PREFIXED,
    AclRule,
    Denial,
    StandardAuthorizer,
)  # fmt: skip
from appliance.base import errors
from appliance.base.caller import Principal
from tests.authorization import naive_authorizer as naive
from tests.callers import caller

QUESTIONS = int(os.environ.get("ACL_QUESTIONS", "10000"))
REFUSED = errors.TOPIC_AUTHORIZATION_FAILED


def rule(operation=READ, name="orders", *, who="User:anna", host="*", allow=True, **more):
    permission = ALLOW if allow else DENY
    kind, pattern = more.get("kind", TOPIC), more.get("pattern", LITERAL)
    return AclRule(kind, pattern, name, who, host, operation, permission)


def loaded(*rules, **options):
    one = StandardAuthorizer(("User:root",), **options)
    one.load({str(number): rule for number, rule in enumerate(rules)})
    return one


def of(authorizer, name="anna", address="127.0.0.1"):
    return Rights(caller(principal=Principal("User", name), address=address), authorizer)


def test_without_a_rule_it_is_refused():
    assert of(loaded()).refusal(READ_TOPIC, "orders") == REFUSED
    assert of(loaded(rule())).refusal(READ_TOPIC, "orders") == errors.NONE
    assert of(loaded(rule())).refusal(WRITE_TOPIC, "orders") == REFUSED
    assert of(loaded(rule())).refusal(READ_TOPIC, "other") == REFUSED
    assert of(loaded(rule()), "bert").refusal(READ_TOPIC, "orders") == REFUSED
    assert of(loaded(rule(kind=GROUP))).refusal(READ_TOPIC, "orders") == REFUSED


def test_what_denies_wins_whatever_allows():
    for deny in (
        rule(allow=False),
        rule(allow=False, name="*"),
        rule(allow=False, name="or", pattern=PREFIXED),
        rule(allow=False, who="User:*"),
        rule(ALL, allow=False),
        rule(allow=False, host="127.0.0.1"),
    ):
        assert of(loaded(rule(), deny)).refusal(READ_TOPIC, "orders") == REFUSED, deny
    assert of(loaded(rule(), rule(allow=False, host="10.0.0.1"))).may(READ_TOPIC, "orders")


def test_super_users_may_do_everything_whatever_the_rules_and_before_there_are_any():
    denies = loaded(rule(ALL, "*", who="User:*", allow=False))
    for authorizer in (denies, StandardAuthorizer(("User:root",))):
        assert of(authorizer, "root").everything
        assert of(authorizer, "root").refusal(READ_TOPIC, "orders") == errors.NONE
        assert not of(authorizer, "Root").everything


def test_until_the_rules_are_read_everything_is_refused():
    one = StandardAuthorizer(open_unnamed=True)
    one.add("a", rule())
    rights = of(one)
    assert not rights.may(READ_TOPIC, "orders") and not rights.may(READ_TOPIC, "unnamed")
    assert rights.operations(TOPIC, "orders") == 0 and not rights.some(READ_TOPIC)
    one.load({"a": rule()})
    assert rights.may(READ_TOPIC, "orders") and rights.may(READ_TOPIC, "unnamed")


def test_names_by_how_they_begin_and_all():
    one = of(loaded(rule(name="or", pattern=PREFIXED), rule(WRITE, name="*")))
    assert one.may(READ_TOPIC, "or") and one.may(READ_TOPIC, "orders")
    assert not one.may(READ_TOPIC, "o") and not one.may(READ_TOPIC, "Orders")
    assert one.may(WRITE_TOPIC, "anything")
    star = of(loaded(rule(name="*", pattern=PREFIXED)))
    assert not star.may(READ_TOPIC, "orders"), "a beginning is no wildcard"


def test_describe_comes_with_what_implies_it_unless_that_is_denied():
    for operation in (READ, WRITE, DELETE, ALTER):
        assert of(loaded(rule(operation))).may(DESCRIBE_TOPIC, "orders")
        described = loaded(rule(DESCRIBE), rule(operation, allow=False))
        assert of(described).may(DESCRIBE_TOPIC, "orders"), "denying implies nothing"
    assert not of(loaded(rule(CREATE))).may(DESCRIBE_TOPIC, "orders")
    assert not of(loaded(rule(DESCRIBE_CONFIGS))).may(DESCRIBE_TOPIC, "orders")


def test_addresses_are_compared_as_addresses():
    one = loaded(rule(host="10.0.0.1"), rule(WRITE, host="0:0:0:0:0:0:0:1"))
    assert of(one, address="10.0.0.1").may(READ_TOPIC, "orders")
    assert of(one, address="::ffff:10.0.0.1").may(READ_TOPIC, "orders")
    assert not of(one, address="10.0.0.10").may(READ_TOPIC, "orders")
    assert of(one, address="::1").may(WRITE_TOPIC, "orders")


def test_a_right_on_the_cluster_does_as_well():
    one = of(loaded(rule(CREATE, CLUSTER_NAME, kind=CLUSTER)))
    assert one.may(CREATE_TOPIC, "orders") and not one.may(WRITE_TOPIC, "orders")


def test_who_may_write_somewhere_may_do_so_idempotently():
    assert of(loaded(rule(WRITE))).some(WRITE_TOPIC)
    assert not of(loaded(rule(READ))).some(WRITE_TOPIC)
    assert not of(loaded(rule(WRITE), rule(WRITE, allow=False))).some(WRITE_TOPIC)
    assert not of(loaded(rule(WRITE))).may(WRITE_IDEMPOTENTLY)


def test_what_no_rule_names_may_be_open():
    one = of(loaded(rule(who="User:bert"), open_unnamed=True))
    assert one.may(READ_TOPIC, "unnamed")
    assert not one.may(READ_TOPIC, "orders"), "somebody's rule names it"


def test_a_rule_less_is_seen_by_rights_that_are_there_already():
    authorizer = loaded(rule())
    known = Callers(authorizer)
    who = caller(principal=Principal("User", "anna")).encode()
    mine, theirs = of(authorizer), known.of(who)
    before = mine.generation
    assert mine.may(READ_TOPIC, "orders") and theirs.may(READ_TOPIC, "orders")
    authorizer.drop("0")
    assert not mine.may(READ_TOPIC, "orders") and not theirs.may(READ_TOPIC, "orders")
    assert mine.generation != before
    authorizer.add("1", rule())
    assert mine.may(READ_TOPIC, "orders") and known.of(who) is theirs
    authorizer.drop("none such")


def test_each_refusal_that_somebody_asked_for_is_told():
    authorizer, told = loaded(), []
    of(authorizer).refusal(READ_TOPIC, "orders")
    authorizer.on_denial = told.append
    one = of(authorizer)
    for _ in range(2):
        one.refusal(READ_TOPIC, "orders")
    one.may(READ_TOPIC, "quiet")
    one.operations(TOPIC, "quiet")
    of(authorizer, "root").refusal(READ_TOPIC, "orders")
    assert told == [Denial("User:anna", "127.0.0.1", READ, TOPIC, "orders")] * 2


NAMES = ("a", "ab", "abc", "b", "*", "hardcode", "h")
PEOPLE = ("User:anna", "User:bert", "Group:anna")
HOSTS = ("10.0.0.1", "10.0.0.2")


def some_rule(chance):
    kind = chance.choice((TOPIC, GROUP))
    return AclRule(
        kind, chance.choice((LITERAL, PREFIXED)), chance.choice(NAMES),
        chance.choice((*PEOPLE, "User:*")), chance.choice((*HOSTS, "*")),
        chance.choice((ALL, *SUPPORTED[kind])), chance.choice((ALLOW, ALLOW, DENY)),
    )  # fmt: skip


@pytest.mark.parametrize("open_unnamed", [False, True])
def test_random_rules_are_decided_as_a_loop_decides(open_unnamed):
    chance = random.Random(open_unnamed)
    asked = 0
    while asked < QUESTIONS // 2:
        authorizer = loaded(open_unnamed=open_unnamed)
        rules = {}
        rights = {}
        for step in range(40):
            if rules and chance.random() < 0.3:
                gone = chance.choice(list(rules))
                del rules[gone]
                authorizer.drop(gone)
            else:
                rules[str(step)] = some_rule(chance)
                authorizer.add(str(step), rules[str(step)])
            who, host = chance.choice(PEOPLE), chance.choice(HOSTS)
            if (who, host) not in rights:
                someone = caller(principal=Principal(*who.split(":")), address=host)
                rights[who, host] = Rights(someone, authorizer)
            one = rights[who, host]
            kind = chance.choice((TOPIC, GROUP))
            name = chance.choice((*NAMES, "abcd", "ha"))
            bits = one.operations(kind, name)
            told = list(rules.values())
            for operation in SUPPORTED[kind]:
                asked += 1
                expected = naive.allows(told, who, host, operation, kind, name, open_unnamed)
                assert bool(bits >> operation & 1) == expected, (told, who, host, operation, name)
                resource = Resource(kind, name)
                assert authorizer.allows(one.caller, operation, resource) == expected
            operation = chance.choice(SUPPORTED[kind])
            some = naive.allows_some(told, who, host, operation, kind, open_unnamed)
            assert authorizer.allows_some(one.caller, operation, kind) == some, (told, who, kind)
