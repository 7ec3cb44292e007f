"""Denials are told with their cause, once a second each, and listings that merely leave out are
quiet."""

import pytest

from appliance.authorization.operations import CLUSTER, CLUSTER_NAME, DESCRIBE, GROUP, READ, TOPIC
from appliance.authorization.standard import Denial
from appliance.shell.denials import MOST, DenialLog
from tests.authorization.secured import Secured

SECOND_NS = 1_000_000_000
METADATA = {
    "allow_auto_topic_creation": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": True,
}
DENIAL = Denial("User:anna", "10.0.0.1", READ, TOPIC, "orders")


class Lines:
    trail = None

    def __init__(self):
        self.told = []

    def event(self, priority, event, **fields):
        assert event == "access-denied"
        self.told.append(fields)


@pytest.fixture
def now():
    return [0]


@pytest.fixture
def lines():
    return Lines()


@pytest.fixture
def tell(lines, now):
    return DenialLog(lines, lambda: now[0]).tell_denial


def test_a_cause_is_told_once_a_second_with_what_was_left_out(tell, lines, now):
    for _ in range(5):
        tell(DENIAL)
    tell(DENIAL._replace(address="10.0.0.2"))
    assert lines.told == [
        {
            "principal": "User:anna", "operation": "READ", "resource": "TOPIC orders",
            "address": "10.0.0.1",
        },
        {
            "principal": "User:anna", "operation": "READ", "resource": "TOPIC orders",
            "address": "10.0.0.2", "lines_left_out": 4,
        },
    ]  # fmt: skip
    now[0] = SECOND_NS - 1
    tell(DENIAL)
    assert len(lines.told) == 2
    now[0] = SECOND_NS
    tell(DENIAL._replace(kind=CLUSTER, name=CLUSTER_NAME, operation=DESCRIBE))
    assert lines.told[2]["resource"] == "CLUSTER" and lines.told[2]["lines_left_out"] == 1


def test_a_second_has_so_many_lines_whatever_is_asked_for(tell, lines):
    for number in range(1000):
        tell(DENIAL._replace(name=str(number) * 1000))
    assert len(lines.told) == MOST
    assert max(len(one["resource"]) for one in lines.told) < 300


@pytest.fixture
def one(tmp_path):
    found = Secured(tmp_path)
    yield found
    found.close()


def test_listings_leave_out_quietly_and_what_is_named_is_told(one):
    told = []
    for seat in (one.world.seat, one.world.io_seat):
        seat.authorizer.on_denial = told.append
    one.allow("anna", READ, "orders")
    listed = one.asked("anna", 3, 9, topics=None, **METADATA)
    assert [row["name"] for row in listed["topics"]] == ["orders"]
    one.asked("anna", 16, 4, states_filter=[])
    assert told == []
    one.asked("anna", 3, 9, topics=[{"name": "other"}], **METADATA)
    one.asked("anna", 12, 4, group_id="g", generation_id=1, member_id="m", group_instance_id=None)
    causes = [(two.principal, two.operation, two.kind, two.name) for two in told]
    assert list(dict.fromkeys(causes)) == [
        ("User:anna", DESCRIBE, TOPIC, "other"), ("User:anna", READ, GROUP, "g"),
    ]  # fmt: skip
