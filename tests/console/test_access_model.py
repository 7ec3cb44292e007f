"""What the console knows of users, rights and the audit, over values and files."""

import json

import pytest

from appliance.authorization.standard import ALLOW, DENY, LITERAL, PREFIXED, AclRule
from appliance.history.audit_log import FILE
from console.model.access.access import AccessSeen, people, question, question_of
from console.model.access.access_changes import words_of
from console.model.access.acls import Policy, Target, can, who_can
from console.model.access.audit_memory import MOST, AuditMemory, LastLogin
from console.model.access.users import User
from console.model.asking.failure import Failure
from console.screens.access.audit import denied
from console.screens.places import ACLS, CAN, NoPlace, Place, jump

TOPIC, CLUSTER = 2, 4
ALL, READ, WRITE, ALTER, ACTION = 2, 3, 4, 7, 9
CLUSTERS = Target(CLUSTER, "kafka-cluster")
ORDERS = Target(TOPIC, "orders")
NODE = "User:OU=nodes"


def rule(who="User:anna", operation=READ, name="orders", kind=TOPIC, **more):
    pattern, permission = more.get("pattern", LITERAL), more.get("permission", ALLOW)
    return AclRule(kind, pattern, name, who, more.get("host", "*"), operation, permission)


# Nodes and the owner ------------------------------------------------------------------------------


def test_a_node_may_do_everything_by_its_certificate():
    found = Policy((), (), False, (NODE,))
    for operation, target in ((ACTION, CLUSTERS), (READ, ORDERS)):
        verdict = can(found, NODE, "*", operation, target)
        assert verdict.allowed and "penstock.node.principals" in verdict.why
        assert "SSL" in verdict.why  # a login by that name is no node
        assert [one.principal for one in who_can(found, operation, target)] == [NODE]
    assert not can(found, "User:anna", "*", ACTION, CLUSTERS).allowed


def test_without_an_authorizer_nodes_alone_act_as_nodes():
    found = Policy((), (), False, (NODE,), has_acls=False)
    assert can(found, "User:anna", "*", READ, ORDERS).allowed
    refused = can(found, "User:anna", "*", ACTION, CLUSTERS)
    assert not refused.allowed and "penstock.node.principals" in refused.why
    assert [one.principal for one in who_can(found, ACTION, CLUSTERS)] == [NODE]
    assert [one.principal for one in who_can(found, READ, ORDERS)] == [NODE, "User:*"]


def test_the_owner_is_named_once_with_the_way_in():
    found = Policy((rule("Owner:local"),), ("User:root",), False, (), has_owner=True)
    holders = [(one.principal, one.why) for one in who_can(found, READ, ORDERS)]
    assert holders == [
        ("User:root", "one of super.users"),
        ("Owner:local", "the owner of the data folder, by penstock.sock"),
    ]


# Questions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "text", "flags"),
    [
        ("loader write topic orders", "User:loader write topic orders",
         ("User:loader", "write", "--topic", "orders")),
        ("loader write topic orders 10.0.0.5", "User:loader write topic orders 10.0.0.5",
         ("User:loader", "write", "--topic", "orders", "--host", "10.0.0.5")),
        ("admin ALTER cluster", "User:admin alter cluster", ("User:admin", "alter", "--cluster")),
        ("'User:CN=a b' read group 'my group'", "'User:CN=a b' read group 'my group'",
         ("User:CN=a b", "read", "--group", "my group")),
    ],
)  # fmt: skip
def test_a_question_is_read_and_written_as_it_is_typed(typed, text, flags):
    asked = question(typed)
    assert asked.text == text and asked.flags == flags
    assert question(asked.text) == asked
    assert jump(f"can {typed}") == Place(CAN, text)


@pytest.mark.parametrize(
    "wrong",
    [
        "", "loader", "loader write", "loader write topic", "loader fly topic orders",
        "loader write group g", "loader write table t", "loader write topic a 1.2.3.4 more",
        "loader 'write topic orders", "loader read topic ''", "User: read topic t",
    ],
)  # fmt: skip
def test_what_is_no_question_says_what_is(wrong):
    with pytest.raises(Failure):
        question(wrong)
    with pytest.raises(NoPlace):
        jump(f"can {wrong}")


def test_a_rule_leads_to_the_question_that_it_decides():
    assert question_of(rule(operation=WRITE)).text == "User:anna write topic orders"
    assert question_of(rule(operation=ALL)).text == "User:anna read topic orders"
    assert question_of(rule(kind=7)) is None  # of users only the broker knows
    assert jump("acls loader") == Place(ACLS, "User:loader")


def test_a_denial_leads_to_the_question_that_was_answered_with_no():
    entry = {
        "time": "2026-11-28T15:04:05.123Z", "event": "access-denied", "principal": "User:anna",
        "address": "10.0.0.7", "operation": "WRITE", "resource": "TOPIC", "name": "orders",
    }  # fmt: skip
    assert denied(entry).text == "User:anna write topic orders 10.0.0.7"
    assert denied({**entry, "event": "login"}) is None
    for field in ("operation", "resource", "name", "principal"):
        assert denied({**entry, field: ""}) is None
        assert denied({key: value for key, value in entry.items() if key != field}) is None


# People -------------------------------------------------------------------------------------------


def test_everybody_is_known_who_has_credentials_rules_or_a_login():
    seen = AccessSeen(
        (User("bert", {"SCRAM-SHA-512": 4096}),),
        Policy((rule(), rule(operation=WRITE)), ("User:root",), False),
    )
    logins = {"User:CN=c": LastLogin("2026-11-28T15:04:05.123Z", "10.0.0.7", "SSL")}
    found = {one.principal: one for one in people(seen, logins)}
    assert list(found) == ["User:bert", "User:CN=c", "User:anna", "User:root"]
    assert found["User:bert"].user == "bert" and not found["User:root"].user
    assert found["User:anna"].rules == 2 and found["User:root"].everything
    assert found["User:CN=c"].last is logins["User:CN=c"]


def test_the_command_of_rules_is_the_one_that_makes_them():
    rules = [rule(operation=READ, host="10.0.0.1", name="or", pattern=PREFIXED, permission=DENY)]
    words = "acl add User:anna read --topic or --prefixed --host 10.0.0.1 --deny"
    assert words_of(rules, "add") == tuple(words.split())
    both = [rule(), rule(operation=WRITE), rule(who="User:bert")]
    removed = "acl remove User:anna read write --topic orders"
    assert words_of(both, "remove") == tuple(removed.split())
    cluster = [rule(operation=ALTER, name="kafka-cluster", kind=CLUSTER)]
    assert words_of(cluster, "add") == ("acl", "add", "User:anna", "alter", "--cluster")


# The audit ----------------------------------------------------------------------------------------


def line(at, event, who="User:anna", **more):
    entry = {"time": f"2026-11-28T15:04:{at:02}.000Z", "event": event, "principal": who, **more}
    return json.dumps(entry) + "\n"


def test_the_last_login_and_what_failed_since_are_remembered(tmp_path):
    file, memory = tmp_path / FILE, AuditMemory()
    assert memory.read_news(str(tmp_path)).entries == {}
    file.write_text(
        line(1, "login", address="10.0.0.7", mechanism="PLAIN") + line(2, "login-failed")
        + line(3, "login-failed", "User:bert")
    )  # fmt: skip
    seen = memory.read_news(str(tmp_path))
    assert seen.logins["User:anna"] == LastLogin("2026-11-28T15:04:01.000Z", "10.0.0.7", "PLAIN", 1)
    assert seen.logins["User:bert"].time == "" and seen.logins["User:bert"].failed == 1
    with file.open("a") as more:
        more.write(line(4, "login", address="10.0.0.8", mechanism="PLAIN"))
    later = memory.read_news(str(tmp_path))
    assert later.logins["User:anna"] == LastLogin(
        "2026-11-28T15:04:04.000Z", "10.0.0.8", "PLAIN", 0
    )
    assert list(later.entries)[:3] == list(seen.entries), "a line keeps its key"


def test_a_long_audit_takes_no_more_memory_than_its_end(tmp_path):
    (tmp_path / FILE).write_text(line(1, "login-failed") * (MOST + 5))
    seen = AuditMemory().read_news(str(tmp_path))
    assert len(seen.entries) == MOST and next(iter(seen.entries)) == "6"
    assert seen.logins["User:anna"].failed == MOST + 5
