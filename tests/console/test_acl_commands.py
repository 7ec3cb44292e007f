"""`penstock acl`: what is added is listed, decides, and can be removed."""

import json

import pytest

from appliance.authorization.standard import ALLOW, DENY, LITERAL, PREFIXED, AclRule
from appliance.config.acl_checks import STANDARD
from console.model.access.acls import Policy, Target, can, check_applies, operation_of, who_can
from console.model.asking.failure import FAILED, NEGATIVE, OK, USAGE, Failure
from penstock.local import Appliance
from tests.console_process import typing

TOPIC, CLUSTER = 2, 4
READ, WRITE, CREATE, DESCRIBE = 3, 4, 5, 8
ORDERS = Target(TOPIC, "orders")


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """Commands against an appliance with an authorizer; whoever types is a super user."""
    folder = tmp_path_factory.mktemp("secured") / "data"
    with Appliance(folder) as one:
        one.restart(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS;User:CN=root,O=x")
        yield typing(one.bootstrap)


def listed(run, *words):
    done = run("acl", *words, "-o", "json")
    return json.loads(done.stdout)


def test_what_is_added_is_listed_decides_and_can_be_removed(secured):
    made = listed(secured, "add", "loader", "--producer", "--topic", "orders")
    assert {row["operation"] for row in made} == {"write", "describe", "create"}
    assert {row["status"] for row in made} == {"added"}
    again = listed(secured, "add", "loader", "write", "read", "--topic", "orders", "--dry-run")
    assert [row["status"] for row in again] == ["exists", "would be added"]
    secured("acl", "can", "loader", "write", "--topic", "orders", code=OK)
    asked = ("acl", "can", "loader", "read", "--topic", "orders", "-o", "json")
    denied = secured(*asked, code=NEGATIVE)
    assert json.loads(denied.stdout)["why"] == "no rule allows it"
    holders = listed(secured, "who-can", "write", "--topic", "orders")
    assert [one["principal"] for one in holders] == [
        "User:ANONYMOUS", "User:CN=root,O=x", "Owner:local", "User:loader",
    ]  # fmt: skip
    listed(
        secured, "add", "loader", "read", "-t", "or", "--prefixed", "--deny", "--host", "1.2.3.4"
    )
    assert len(listed(secured, "list", "--topic", "orders")) == 4
    assert len(listed(secured, "list", "--topic", "or", "--prefixed")) == 1
    assert listed(secured, "list", "nobody") == []
    planned = listed(secured, "remove", "loader", "write", "--topic", "orders", "--dry-run")
    assert [row["status"] for row in planned] == ["would be removed"]
    assert "--yes" in secured("acl", "remove", "loader", code=USAGE).stderr
    assert len(listed(secured, "list", "loader")) == 4
    assert len(listed(secured, "remove", "loader", "--yes")) == 4
    assert listed(secured, "list", "loader") == []


def test_acls_about_users_and_their_tokens(secured):
    made = listed(secured, "add", "scheduler", "create-tokens", "--user", "loader")
    made += listed(secured, "add", "scheduler", "describe", "--delegation-token", "an-id")
    about = [(row["operation"], row["resource"], row["name"]) for row in made]
    assert about == [
        ("create-tokens", "user", "User:loader"), ("describe", "delegation-token", "an-id"),
    ]  # fmt: skip
    assert len(listed(secured, "list", "--user-principal", "User:loader")) == 1
    secured("acl", "can", "scheduler", "create-tokens", "--user", "loader", code=OK)
    secured("acl", "can", "scheduler", "create-tokens", "--user", "other", code=NEGATIVE)
    assert secured("acl", "add", "scheduler", "read", "--user", "loader", code=USAGE).stderr
    assert len(listed(secured, "remove", "scheduler", "--yes")) == 2


def test_the_acls_of_a_user_go_with_it_unless_they_are_to_stay(secured):
    for name in ("gone", "stays"):
        secured("user", "add", name, "--can", "write:orders")
    planned = secured("user", "remove", "gone", "--dry-run").stderr
    assert "would be removed: allow write to User:gone on topic orders" in planned
    assert len(listed(secured, "list", "gone")) == 1
    said = secured("user", "remove", "gone", "--yes").stderr
    assert "removed: allow write to User:gone on topic orders" in said
    assert listed(secured, "list", "gone") == []
    secured("user", "remove", "stays", "--keep-acls", "--yes")
    assert (
        len(
            listed(
                secured,
                "list",
                "stays",
            )
        )
        == 1
    )
    assert "stays" not in secured("user", "list").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", "anna", "fly", "--topic", "t"), "no operation"),
        (("add", "anna", "read"), "on what?"),
        (("add", "anna", "--topic", "t"), "what may it do?"),
        (("add", "User:", "read", "--topic", "t"), "no principal"),
        (("add", "anna", "write", "--group", "g"), "nothing that one does with a group"),
        (("add", "anna", "--producer", "--group", "g"), "--producer matches nothing"),
        (("add", "anna", "--producer", "--deny", "--topic", "t"), "name the operations"),
        (("can", "anna", "read", "--topic", "t", "--topic", "u"), "name one resource"),
        (("list", "--topic", ""), "a name is empty"),
    ],
)
def test_a_mistake_is_told_with_its_remedy(secured, words, told):
    assert told in secured("acl", *words, code=USAGE).stderr


def test_without_an_authorizer_it_says_that_everybody_may_do_everything(run):
    assert "authorizer.class.name" in run("acl", "list", code=FAILED).stderr


def rule(operation, name="orders", who="User:anna", *, allow=True, **more):
    place = more.get("kind", TOPIC), more.get("pattern", LITERAL)
    return AclRule(*place, name, who, more.get("host", "*"), operation, ALLOW if allow else DENY)


def policy(*rules, **more):
    return Policy(rules, more.get("users", ()), more.get("open_unnamed", False))


@pytest.mark.parametrize(
    ("found", "operation", "allowed", "why"),
    [
        (policy(rule(READ)), READ, True, "allow read to User:anna on topic orders"),
        (policy(rule(READ)), DESCRIBE, True, "allow read to User:anna on topic orders"),
        (policy(rule(READ), rule(READ, allow=False)), READ, False, "deny read to User:anna on "),
        (policy(rule(2, "or", "User:*", pattern=PREFIXED)), WRITE, True, "on topic or…"),
        (policy(rule(READ, host="10.0.0.1")), READ, False, "no rule allows it"),
        (policy(rule(READ, who="User:bert")), READ, False, "no rule allows it"),
        (policy(users=("User:anna",)), READ, True, "super.users"),
        (policy(open_unnamed=True), READ, True, "no rule names it"),
        (policy(rule(CREATE, "kafka-cluster", kind=CLUSTER)), CREATE, True, "on cluster"),
    ],
)
def test_a_verdict_names_what_decides(found, operation, allowed, why):
    verdict = can(found, "User:anna", "*", operation, ORDERS)
    assert verdict.allowed is allowed and why in verdict.why


def test_holders_are_named_once_and_by_address_only_where_that_matters():
    found = policy(
        rule(READ), rule(READ, host="10.0.0.1"), rule(READ, who="User:bert", host="10.0.0.2"),
        rule(READ, who="User:carl"), rule(READ, who="User:carl", allow=False),
        users=("User:root",),
    )  # fmt: skip
    assert [(one.principal, one.host) for one in who_can(found, READ, ORDERS)] == [
        ("User:root", "*"), ("User:anna", "*"), ("User:bert", "10.0.0.2"),
    ]  # fmt: skip


def test_operations_are_words_of_kafka():
    assert operation_of("describe-configs") == operation_of("DESCRIBE_CONFIGS") == 10
    for word in ("any", "unknown", ""):
        with pytest.raises(Failure):
            operation_of(word)
    with pytest.raises(Failure, match="nothing that one does"):
        check_applies(WRITE, Target(CLUSTER, "kafka-cluster"))
