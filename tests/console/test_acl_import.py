"""`penstock acl import`: what Apache Kafka's tool lists comes back whole, or not at all."""

import json

import pytest

from appliance.config.acl_checks import STANDARD
from benchmarks import kafka
from console.model.access.acl_listing import read_rules
from console.model.asking.failure import OK, USAGE, Failure
from penstock.local import Appliance
from tests import java_tools
from tests.console_process import typing

HEAD = "Current ACLs for resource `ResourcePattern(resourceType={}, name={}, patternType={})`: \n"
RULE = " \t(principal={}, host={}, operation={}, permissionType={})\n"
GIVEN = (
    HEAD.format("TOPIC", "orders", "LITERAL")
    + RULE.format("User:CN=loader, host=x,O=Example", "*", "WRITE", "ALLOW")
    + RULE.format("User:*", "10.0.0.5", "ALL", "DENY")
    + "\n"
    + HEAD.format("GROUP", "a, patternType=LITERAL)` b", "PREFIXED")
    + RULE.format("User:anna", "*", "READ", "ALLOW")
    + "\n"
    + HEAD.format("CLUSTER", "kafka-cluster", "LITERAL")
    + RULE.format("User:*", "*", "DESCRIBE", "ALLOW")
    + "\n"
    + HEAD.format("USER", "User:bert", "LITERAL")
    + RULE.format("User:scheduler", "*", "CREATE_TOKENS", "ALLOW")
)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """An appliance with an authorizer; whoever types is a super user."""
    with Appliance(tmp_path_factory.mktemp("imported") / "data") as one:
        one.restart(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS")
        yield one


def statuses(done):
    return [one["status"] for one in json.loads(done.stdout)]


def test_what_kafka_acls_lists_comes_back_after_it_is_confirmed(secured, tmp_path):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    run = typing(secured.bootstrap)
    file = tmp_path / "acls.txt"
    file.write_text(GIVEN)
    asked = run("acl", "import", str(file), code=USAGE).stderr
    for words in ("This adds 5 ACLs of 4 principals, 1 of them deny", "1 allow everybody (User:*)"):
        assert words in asked
    assert "--yes" in asked and json.loads(run("acl", "list", "-o", "json").stdout) == []
    planned = run("acl", "import", str(file), "--dry-run", "-o", "json")
    assert statuses(planned) == ["would be added"] * 5
    assert statuses(run("acl", "import", str(file), "--yes", "-o", "json")) == ["added"] * 5
    listed = java_tools.tool(
        "org.apache.kafka.tools.AclCommand", "--bootstrap-server", secured.bootstrap, "--list"
    )
    assert listed.returncode == 0 and set(read_rules(listed.stdout)) == set(read_rules(GIVEN))
    file.write_text(listed.stdout)
    again = run("acl", "import", str(file), "-o", "json", code=OK)
    assert statuses(again) == ["exists"] * 5, "nothing to ask about"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no ACL in it"),
        (GIVEN + "User:eve has Allow permission\n", "line 13 is no ACL: 'User:eve has"),
        (RULE.format("User:a", "*", "READ", "ALLOW"), "line 1 is no ACL"),
        (GIVEN.replace("ALLOW", "ANY"), "line 2: ANY is not known here"),
        (GIVEN.replace("WRITE", "FLY"), "line 2: FLY is not known here"),
        (GIVEN.replace("GROUP", "ANY"), "line 5: ANY is not known here"),
        (GIVEN.replace("READ", "WRITE"), "line 6: write is nothing that one does with a group"),
    ],
)
def test_a_line_that_is_no_acl_is_told_and_nothing_is_taken(text, told):
    with pytest.raises(Failure) as failure:
        read_rules(text)
    assert told in str(failure.value)
