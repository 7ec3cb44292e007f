"""DescribeAcls, CreateAcls, DeleteAcls over a whole appliance; and a rule that is gone is gone
everywhere: for who is connected, in a session, in a parked fetch, in a transaction."""

import pytest

from appliance.authorization.operations import (
    ALL,
    ALTER,
    CLUSTER,
    CLUSTER_NAME,
    DESCRIBE,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)  # fmt: skip
from appliance.authorization.standard import DENY, PREFIXED, AclRule
from appliance.base import errors
from appliance.controller.acls import rule_of
from appliance.wire import kraft_records as kraft
from appliance.wire.batch import NewRecord, build_batch
from tests.authorization.refusing import BATCH, SETTINGS, codes
from tests.authorization.secured import Secured, creation, every
from tests.netproc.netproc_world import World

TOPIC_CODE = errors.TOPIC_AUTHORIZATION_FAILED
CLUSTER_CODE = errors.CLUSTER_AUTHORIZATION_FAILED
TRANSACTION_CODE = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.fixture
def one(tmp_path):
    found = Secured(tmp_path)
    yield found
    found.close()


def produce(one, name, *topics, batch=BATCH, transactional_id=None):
    rows = [{"name": t, "partition_data": [{"index": 0, "records": batch}]} for t in topics]
    told = one.asked(
        name, 0, 9, transactional_id=transactional_id, acks=-1, timeout=9999, topic_data=rows
    )
    return [row["partition_responses"][0]["error_code"] for row in told["responses"]]


def fetching(topic, offset, max_wait=0, session=(0, -1)):
    row = {
        "partition": 0, "current_leader_epoch": -1, "fetch_offset": offset, "log_start_offset": -1,
        "partition_max_bytes": 1000, "last_fetched_epoch": -1,
    }  # fmt: skip
    return {
        "replica_id": -1, "max_wait": max_wait, "min_bytes": 1, "isolation_level": 0,
        "session_id": session[0], "session_epoch": session[1], "forgotten_topics_data": [],
        "rack_id": "", "max_bytes": 10**6,
        "topics": [{"topic": topic, "partitions": [row]}] if topic else [],
    }  # fmt: skip


def fetched(told):
    """(code, bytes of records) of each partition."""
    return [
        (row["error_code"], len(row["records"] or b""))
        for topic in told["responses"]
        for row in topic["partitions"]
    ]


def joined(told):
    """The codes of partitions that were to join a transaction."""
    topics = told["results_by_topic_v3_and_below"]
    return {row["partition_error_code"] for one in topics for row in one["results_by_partition"]}


# The three APIs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_made_is_described_and_can_be_removed(one, version):
    made = [
        creation("anna", READ, "orders"),
        creation("anna", READ, "orders"),
        creation("anna", WRITE, "orders"),
        creation("bert", ALL, "o", resource_pattern_type=PREFIXED, permission_type=DENY),
    ]
    told = one.asked("root", 30, version, creations=made)
    assert [row["error_code"] for row in told["results"]] == [0] * 4
    told = one.asked("root", 29, version, **every())
    assert told["error_code"] == 0 and told["error_message"] == ""
    assert [(row["resource_name"], row["pattern_type"]) for row in told["resources"]] == [
        ("o", 4), ("orders", 3),
    ]  # fmt: skip
    assert len(told["resources"][1]["acls"]) == 2, "what is made twice is there once"
    told = one.asked("root", 31, version, filters=[every(operation=READ), every()])
    assert [len(row["matching_acls"]) for row in told["filter_results"]] == [1, 3]
    assert one.asked("root", 29, version, **every())["resources"] == []


def test_every_record_says_its_rule_and_has_an_id_of_its_own(one):
    one.allow("anna", READ, "orders")
    one.allow("anna", WRITE, "orders")
    kept = one.world.follower.image.kept
    assert len({record.id for record in kept.values()}) == 2
    record = next(iter(kept.values()))
    assert isinstance(record, kraft.AccessControlEntryRecord)
    assert rule_of(record) == AclRule(TOPIC, 3, "orders", "User:anna", "*", READ, 3)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"resource_name": ""}, "Invalid empty resource name"),
        (
            {"resource_type": CLUSTER},
            f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}",
        ),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 99}, "Invalid patternType UNKNOWN"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission_type": 99}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "anna"},
            "Could not parse principal from `anna` (no colon is present separating the principal"
            " type from the principal name)",
        ),
    ],
)
def test_a_rule_that_cannot_be_is_refused_and_those_beside_it_are_made(one, change, text):
    rows = [creation("anna", READ, "orders") | change, creation("anna", READ, "orders")]
    told = one.asked("root", 30, 3, creations=rows)
    assert [(row["error_code"], row["error_message"]) for row in told["results"]] == [
        (errors.INVALID_REQUEST, text), (errors.NONE, ""),
    ]  # fmt: skip


def test_filters_go_by_the_pattern_or_by_what_it_matches(one):
    one.allow("anna", READ, "orders")
    one.allow("anna", READ, "or", resource_pattern_type=PREFIXED)
    one.allow("anna", READ, "*")

    def names(name, pattern):
        told = one.asked(
            "root", 29, 3, **every(resource_name_filter=name, pattern_type_filter=pattern)
        )
        return {row["resource_name"] for row in told["resources"]}

    assert names("orders", 3) == names("orders", 1) == {"orders"}
    assert names("orders", 2) == {"orders", "or", "*"}
    assert names("or", 4) == {"or"} and names("or", 3) == set()
    assert names(None, 4) == {"or"} and names(None, 2) == {"orders", "or", "*"}


def test_rules_are_seen_and_made_by_who_may_do_so_with_the_cluster(one):
    row = creation("anna", READ, "orders")
    assert codes(one.asked("anna", 29, 3, **every())) == {CLUSTER_CODE}
    assert codes(one.asked("anna", 30, 3, creations=[row, row])) == {CLUSTER_CODE}
    assert codes(one.asked("anna", 31, 3, filters=[every()])) == {CLUSTER_CODE}
    one.allow("anna", DESCRIBE, CLUSTER_NAME, CLUSTER)
    assert codes(one.asked("anna", 29, 3, **every())) == {0}
    assert codes(one.asked("anna", 30, 3, creations=[row])) == {CLUSTER_CODE}
    one.allow("anna", ALTER, CLUSTER_NAME, CLUSTER)
    assert codes(one.asked("anna", 30, 3, creations=[row])) == {0}
    assert codes(one.asked("anna", 31, 3, filters=[every()])) == {0}
    assert codes(one.asked("anna", 29, 3, **every())) == {CLUSTER_CODE}, "its own rules are gone"


def test_without_an_authorizer_there_is_nothing_to_ask(tmp_path):
    world = World(tmp_path, SETTINGS)
    client = world.client()
    told = [
        client.ask(29, 3, **every()),
        client.ask(30, 3, creations=[creation("anna", READ, "orders")]).results[0],
        client.ask(31, 3, filters=[every()]).filter_results[0],
    ]
    for one in told:
        assert one.error_code == errors.SECURITY_DISABLED
        assert one.error_message.startswith("No Authorizer is configured")
    world.close()


# A rule that is gone ------------------------------------------------------------------------------


def test_each_batch_of_a_request_is_asked_about(one):
    one.allow("anna", WRITE, "orders")
    assert produce(one, "anna", "orders", "other") == [0, TOPIC_CODE]
    assert produce(one, "anna", "other", "orders") == [TOPIC_CODE, 0]
    assert one.forbid("anna") == 1
    assert produce(one, "anna", "orders") == [TOPIC_CODE], "on a connection that was there before"
    assert produce(one, "root", "orders", "other") == [0, 0]


def test_a_fetch_that_waits_is_told_nothing_any_more(one):
    one.allow("anna", READ, "orders")
    one.send("anna", 1, 12, **fetching("orders", 0, max_wait=20_000))
    for _ in range(3):
        one.turn()
    assert one.client("anna").answer() is None, "it waits"
    one.forbid("anna")
    produce(one, "root", "orders")
    assert fetched(one.answer("anna")) == [(TOPIC_CODE, 0)]


def test_a_session_whose_partitions_have_no_news_is_told_so_once_and_served_no_more(one):
    one.allow("anna", READ, "orders")
    told = one.asked("anna", 1, 12, **fetching("orders", 0, session=(0, 0)))
    session = told["session_id"]
    assert session and fetched(told) == [(0, 0)]
    assert fetched(one.asked("anna", 1, 12, **fetching(None, 0, session=(session, 1)))) == []
    one.forbid("anna")
    told = one.asked("anna", 1, 12, **fetching(None, 0, session=(session, 2)))
    assert fetched(told) == [(TOPIC_CODE, 0)]
    produce(one, "root", "orders")
    told = one.asked("anna", 1, 12, **fetching(None, 0, session=(session, 3)))
    assert fetched(told) == [(TOPIC_CODE, 0)]
    one.allow("anna", READ, "orders")
    told = one.asked("anna", 1, 12, **fetching(None, 0, session=(session, 4)))
    assert fetched(told) == [(0, len(BATCH))]


def test_a_session_tells_nobody_else_what_is_read_in_it(one):
    """Who guesses its id and epoch neither hears of its topics, refused or not, nor ends it."""
    one.allow("anna", READ, "orders")
    session = one.asked("anna", 1, 12, **fetching("orders", 0, session=(0, 0)))["session_id"]
    produce(one, "root", "orders")
    for epoch in (1, 2):
        told = one.asked("mallory", 1, 12, **fetching(None, 0, session=(session, epoch)))
        assert (told["error_code"], told["responses"]) == (errors.FETCH_SESSION_ID_NOT_FOUND, [])
    for epoch in (0, -1):
        told = one.asked("mallory", 1, 12, **fetching(None, 0, session=(session, epoch)))
        assert (told["error_code"], told["responses"]) == (0, [])
    told = one.asked("anna", 1, 12, **fetching(None, 0, session=(session, 1)))
    assert fetched(told) == [(0, len(BATCH))]


def test_a_transaction_ends_no_more(one):
    one.allow("anna", WRITE, "t", TRANSACTIONAL_ID)
    one.allow("anna", WRITE, "orders")
    told = one.asked(
        "anna", 22, 4, transactional_id="t", transaction_timeout=60_000, producer_id=-1,
        producer_epoch=-1,
    )  # fmt: skip
    assert told["error_code"] == 0
    who = {"producer_id": told["producer_id"], "producer_epoch": told["producer_epoch"]}
    partitions = [{"name": "orders", "partitions": [0]}]
    join = {"v3_and_below_transactional_id": "t", "v3_and_below_topics": partitions}
    named = {f"v3_and_below_{key}": value for key, value in who.items()}
    assert joined(one.asked("anna", 24, 3, **join, **named)) == {0}
    batch = build_batch([NewRecord(1, None, b"v")], **who, base_sequence=0, transactional=True)
    assert produce(one, "anna", "orders", batch=batch, transactional_id="t") == [0]
    one.forbid("anna")
    one.allow("anna", WRITE, "orders")
    more = build_batch([NewRecord(1, None, b"w")], **who, base_sequence=1, transactional=True)
    assert produce(one, "anna", "orders", batch=more, transactional_id="t") == [TRANSACTION_CODE]
    assert joined(one.asked("anna", 24, 3, **join, **named)) == {TRANSACTION_CODE}
    ended = one.asked("anna", 26, 3, transactional_id="t", committed=True, **who)
    assert ended["error_code"] == TRANSACTION_CODE
    ended = one.asked("root", 26, 3, transactional_id="t", committed=False, **who)
    assert ended["error_code"] == 0


def test_a_coordinator_asks_by_the_rules_of_now(one):
    one.allow("anna", READ, "g", GROUP)
    heartbeat = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
    unknown = {errors.UNKNOWN_MEMBER_ID}
    assert codes(one.asked("anna", 12, 4, **heartbeat)) == unknown
    one.forbid("anna")
    assert codes(one.asked("anna", 12, 4, **heartbeat)) == {errors.GROUP_AUTHORIZATION_FAILED}
    one.allow("anna", READ, "g", GROUP)
    assert codes(one.asked("anna", 12, 4, **heartbeat)) == unknown
