"""One resource is refused: every API answers that with Kafka's error for exactly it, serves the
rest, and does not tell whether there is what it refuses."""

from uuid import UUID

import pytest

from appliance.authorization.operations import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID
from appliance.base import errors
from appliance.handlers import registry
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.metadata.trash import decode_kept
from tests.authorization.refusing import (
    ABSENT,
    BATCH,
    HIDDEN,
    MINE,
    TRANSACTIONAL_BATCH,
    Refusing,
    about,
    below,
    codes,
    commit,
    heartbeat,
    mentions,
    no_id,
    renamed,
)
from tests.authorization.secured import creation, every

HANDLERS = registry.handlers(FetchSessions(0, lambda: 1))
TOPIC_CODE, GROUP_CODE = errors.TOPIC_AUTHORIZATION_FAILED, errors.GROUP_AUTHORIZATION_FAILED
CLUSTER_CODE = errors.CLUSTER_AUTHORIZATION_FAILED
OPEN = {17, 18, 36, 60, 71, 72, 38, 39, 40, 41}
"""Logins, ApiVersions, DescribeCluster and those of clients' metrics need nothing; whoever may not
see a delegation token is told of none (tests/handlers/test_token_requests.py)."""


@pytest.fixture
def one(tmp_path):
    found = Refusing(tmp_path)
    yield found
    found.close()


def versions(*keys):
    """The first and the last one of each."""
    return [
        (key, version)
        for key in keys
        for version in sorted({HANDLERS[key].lowest, HANDLERS[key].highest})
    ]


# Lists of topics ----------------------------------------------------------------------------------


def produce(names, ids):
    data = [{"index": 0, "records": BATCH}]
    topics = [{"name": n, "topic_id": ids(n), "partition_data": data} for n in names]
    return {"transactional_id": None, "acks": -1, "timeout": 9999, "topic_data": topics}


def fetch(names, ids):
    row = {
        "partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "log_start_offset": -1,
        "partition_max_bytes": 1000, "last_fetched_epoch": -1,
    }  # fmt: skip
    return {
        "replica_id": -1, "max_wait": 0, "min_bytes": 0, "isolation_level": 0, "session_id": 0,
        "session_epoch": -1, "forgotten_topics_data": [], "rack_id": "", "max_bytes": 10**6,
        "topics": [{"topic": n, "topic_id": ids(n), "partitions": [row]} for n in names],
    }  # fmt: skip


def listed(names, ids):
    row = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
    topics = [{"name": n, "partitions": [row]} for n in names]
    return {"replica_id": -1, "isolation_level": 0, "topics": topics, "timeout": 0}


def metadata(names, ids):
    return {
        "topics": [{"name": n, "topic_id": bytes(16)} for n in names],
        "allow_auto_topic_creation": True, "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }  # fmt: skip


def create(names, ids):
    topic = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    topics = [{"name": "new" if n == MINE else n, **topic} for n in names]
    return {"topics": topics, "timeout": 0, "validate_only": False}


def delete(names, ids):
    topics = [{"name": n, "topic_id": bytes(16)} for n in names]
    return {"topics": topics, "topic_names": names, "timeout": 0}


def delete_records(names, ids):
    topics = [{"name": n, "partitions": [{"partition_index": 0, "offset": 0}]} for n in names]
    return {"topics": topics, "timeout": 0}


def epochs(names, ids):
    row = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    return {"replica_id": -1, "topics": [{"topic": n, "partitions": [row]} for n in names]}


def resources(kind, **more):
    def values(names, ids):
        rows = [{"resource_type": kind, "resource_name": n, **more} for n in names]
        return {
            "resources": rows, "validate_only": False, "include_synonyms": False,
            "include_documentation": False,
        }  # fmt: skip

    return values


def configs(name, value):
    return {"configs": [{"name": name, "value": value, "config_operation": 0}]}


def partitions(names, ids):
    topics = [{"name": n, "count": 3, "assignments": None} for n in names]
    return {"topics": topics, "timeout": 0, "validate_only": False}


def committed(names, ids):
    return commit(MINE, names, ids)


def fetched(names, ids):
    topics = [{"name": n, "topic_id": ids(n), "partition_indexes": [0]} for n in names]
    group = {"group_id": "reader", "member_id": None, "member_epoch": -1, "topics": topics}
    return {**group, "groups": [group], "require_stable": False}


def forgotten(names, ids):
    topics = [{"name": n, "partitions": [{"partition_index": 0}]} for n in names]
    return {"group_id": "reader", "topics": topics}


def described(names, ids):
    topics = [{"name": n} for n in sorted(names)]
    return {"topics": topics, "response_partition_limit": 100, "cursor": None}


def described_producers(names, ids):
    return {"topics": [{"name": n, "partition_indexes": [0]} for n in names]}


TOPICS = {
    0: produce, 1: fetch, 2: listed, 3: metadata, 8: committed, 9: fetched, 19: create,
    20: delete, 21: delete_records, 23: epochs, 32: resources(2, configuration_keys=None),
    33: resources(2, **configs("retention.ms", "5000")), 37: partitions,
    44: resources(2, **configs("retention.ms", "5000")), 47: forgotten,
    61: described_producers, 75: described,
}  # fmt: skip
BY_ID = {(0, 13), (1, 18), (8, 10), (9, 10)}


@pytest.mark.parametrize(("key", "version"), versions(*TOPICS))
def test_a_topic(one, key, version):
    one.commit("reader", MINE, HIDDEN)
    one.authorizer.kinds = (TOPIC, CLUSTER)
    by_id = (key, version) in BY_ID
    one.produce(MINE)
    one.produce(HIDDEN)
    offset = one.world.table.metadata_offset
    told = one.asked(
        key, version, **TOPICS[key]([MINE, HIDDEN, ABSENT], one.id_of if by_id else no_id)
    )
    named = [(name, UUID(bytes=one.id_of(name))) for name in (MINE, HIDDEN, ABSENT)]
    mine, hidden, absent = (about(told, *names) for names in named)
    served = about(told, "new") if key == 19 else mine
    assert served and codes_of(served) == {errors.NONE}
    assert hidden and codes_of(hidden) == {TOPIC_CODE}
    if by_id:
        assert codes_of(absent) == {errors.UNKNOWN_TOPIC_ID}
        assert not mentions(told, HIDDEN)
    else:
        assert renamed(hidden, *named[1]) == renamed(absent, *named[2])
    assert one.id_of(HIDDEN) != b"?" * 16 and one.id_of(ABSENT) == b"?" * 16
    assert offsets(one, HIDDEN) == (0, 1), "nothing is written or removed"
    if key not in (19, 20, 33, 37, 44):
        assert one.world.table.metadata_offset == offset


def offsets(one, name):
    """Where the log begins and ends."""
    rows = [{"partition_index": 0, "timestamp": at, "current_leader_epoch": -1} for at in (-2, -1)]
    found = []
    for row in rows:
        values = listed([], None) | {"topics": [{"name": name, "partitions": [row]}]}
        found.append(one.done(2, 7, **values)["topics"][0]["partitions"][0]["offset"])
    return tuple(found)


def codes_of(rows):
    return set().union(*map(codes, rows))


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_asked_for_by_its_id_is_not_named(one, version):
    one.authorizer.kinds = (TOPIC, CLUSTER)
    for name in (HIDDEN, MINE):
        told = one.asked(
            3, version, topics=[{"name": None, "topic_id": one.id_of(name)}],
            allow_auto_topic_creation=True, include_topic_authorized_operations=True,
        )  # fmt: skip
        [row] = told["topics"]
        assert row["error_code"] == (TOPIC_CODE if name == HIDDEN else errors.NONE)
        assert row["name"] == (None if name == HIDDEN else MINE)
        assert bool(row["partitions"]) == (name == MINE)
    topics = [{"name": None, "topic_id": one.id_of(HIDDEN)}]
    told = one.asked(20, 6, topics=topics, timeout=0)
    assert codes(told) == {TOPIC_CODE} and not mentions(told, HIDDEN)
    assert one.id_of(HIDDEN) != b"?" * 16


def test_what_one_might_do_with_an_absent_topic_is_told_to_who_may_see_it(one):
    asked = metadata([MINE, "free", HIDDEN], no_id) | {"allow_auto_topic_creation": False}
    one.authorizer.kinds = (TOPIC,)
    told = one.asked(3, 12, **asked)
    bits = {row["name"]: row["topic_authorized_operations"] for row in told["topics"]}
    assert bits["free"] == bits[MINE] > 0 > bits[HIDDEN]


def test_who_may_not_ask_for_reassignments_is_told_what_it_asked_for(one):
    one.authorizer.kinds = (CLUSTER,)
    asked = [{"name": HIDDEN, "partition_indexes": [0, 7]}]
    told = one.asked(46, 0, timeout=0, topics=asked)
    assert codes(told) == {CLUSTER_CODE}
    [row] = told["topics"]
    nothing = {"replicas": [], "adding_replicas": [], "removing_replicas": []}
    assert row == {"name": HIDDEN, "partitions": [
        {"partition_index": index, **nothing} for index in (0, 7)]}  # fmt: skip


@pytest.mark.parametrize("transactional_id", [HIDDEN, ABSENT])
def test_a_transaction(one, transactional_id):
    one.authorizer.kinds = (TRANSACTIONAL_ID,)
    refused = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    values = produce([MINE], no_id) | {"transactional_id": transactional_id}
    assert codes(one.asked(0, 9, **values)) == {errors.NONE}  # its batch is of no transaction
    values["topic_data"][0]["partition_data"] = [{"index": 0, "records": TRANSACTIONAL_BATCH}]
    assert codes(one.asked(0, 9, **values)) == {refused}
    assert codes(one.asked(0, 9, **values | {"transactional_id": None})) == {refused}
    more = {"transaction_timeout": 1000, "producer_id": -1, "producer_epoch": -1}
    told = one.asked(22, 5, transactional_id=transactional_id, **more)
    assert codes(told) == {refused} and told["producer_id"] == -1
    assert codes(one.asked(22, 5, transactional_id=None, **more)) == {errors.NONE}
    told = one.asked(10, 6, key_type=1, coordinator_keys=[transactional_id])
    assert codes(told) == {refused}
    for key, version in versions(*ONE_TRANSACTION):
        told = one.asked(key, version, **ONE_TRANSACTION[key](transactional_id))
        assert codes(told) | partition_codes(told) == {refused}
        told = one.asked(key, version, **ONE_TRANSACTION[key]("free"))
        assert refused not in codes(told) | partition_codes(told)
    told = one.asked(65, 0, transactional_ids=[transactional_id, "free"])
    assert codes(about(told, transactional_id)) == {refused}
    assert codes(about(told, "free")) == {errors.TRANSACTIONAL_ID_NOT_FOUND}


def one_transaction(transactional_id):
    return {"transactional_id": transactional_id, "producer_id": 1, "producer_epoch": 0}


def within(group, names):
    """What TxnOffsetCommit takes of offsets."""
    member = {"generation_id": -1, "member_id": "", "group_instance_id": None}
    row = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
    rows = [row | {"committed_metadata": ""}]
    topics = [{"name": name, "partitions": rows} for name in names]
    return member | {"group_id": group, "topics": topics}


@pytest.mark.parametrize("version", [0, 5])
def test_a_transaction_with_offsets_of_what_one_may_not_see(one, version):
    one.authorizer.kinds = (TOPIC, GROUP)
    named = one_transaction("free")
    told = one.asked(28, version, **named, **within("reader", [MINE, HIDDEN, ABSENT]))
    mine, hidden, absent = (about(told, name) for name in (MINE, HIDDEN, ABSENT))
    assert codes_of(hidden) == {TOPIC_CODE} and TOPIC_CODE not in codes_of(mine)
    assert renamed(hidden, HIDDEN) == renamed(absent, ABSENT)
    for group in (HIDDEN, ABSENT):
        assert codes(one.asked(28, version, **named, **within(group, [MINE]))) == {GROUP_CODE}


def added(transactional_id, topic=MINE):
    topics = [{"name": topic, "partitions": [0]}]
    fields = one_transaction(transactional_id) | {"topics": topics}
    return {f"v3_and_below_{name}": value for name, value in fields.items()}


ONE_TRANSACTION = {
    25: lambda name: one_transaction(name) | {"group_id": "g"},
    26: lambda name: one_transaction(name) | {"committed": True},
    28: lambda name: one_transaction(name) | within("reader", [MINE]),
}
OF_BROKERS = {"transactions": [one_transaction("free") | {"verify_only": True, "topics": []}]}


def partition_codes(node):
    if isinstance(node, dict) and "partition_error_code" in node:
        return {int(node["partition_error_code"])}
    return set().union(*map(partition_codes, below(node)))


@pytest.mark.parametrize("version", [0, 3])
def test_what_is_added_to_a_transaction(one, version):
    one.authorizer.kinds = (TRANSACTIONAL_ID,)
    refused = {errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
    assert partition_codes(one.asked(24, version, **added(HIDDEN))) == refused
    one.authorizer.kinds = (TOPIC,)
    for topic in (HIDDEN, ABSENT):
        assert partition_codes(one.asked(24, version, **added("free", topic))) == {TOPIC_CODE}
    told = partition_codes(one.asked(24, version, **added("free")))
    assert told == {errors.INVALID_PRODUCER_ID_MAPPING}
    one.authorizer.kinds = (GROUP,)
    assert codes(one.asked(25, version, **one_transaction("free"), group_id=HIDDEN)) == {GROUP_CODE}


@pytest.mark.parametrize("version", [4, 5])
def test_only_brokers_ask_about_several_transactions(one, version):
    one.authorizer.kinds = (CLUSTER,)
    assert codes(one.asked(24, version, **OF_BROKERS)) == {CLUSTER_CODE}
    assert codes(one.done(24, version, **OF_BROKERS)) == {errors.NONE}


def test_a_transaction_that_one_may_not_see_is_in_no_list(one):
    more = {"transaction_timeout": 1000, "producer_id": -1, "producer_epoch": -1}
    for name in (HIDDEN, MINE):
        while codes(told := one.done(22, 5, transactional_id=name, **more)) != {errors.NONE}:
            assert codes(told) == {errors.COORDINATOR_LOAD_IN_PROGRESS}
    every = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    assert mentions(one.done(66, 2, **every, transactional_id_pattern=None), HIDDEN)
    one.authorizer.kinds = (TRANSACTIONAL_ID,)
    for version in (0, 2):
        told = one.asked(66, version, **every, transactional_id_pattern=None)
        assert mentions(told, MINE) and not mentions(told, HIDDEN)


def test_a_described_transaction_names_no_topic_that_one_may_not_see(one):
    more = {"transaction_timeout": 1000, "producer_id": -1, "producer_epoch": -1}
    while codes(told := one.done(22, 5, transactional_id="free", **more)) != {errors.NONE}:
        assert codes(told) == {errors.COORDINATOR_LOAD_IN_PROGRESS}
    fields = one_transaction("free") | {
        "producer_id": told["producer_id"],
        "topics": [{"name": name, "partitions": [0]} for name in (MINE, HIDDEN)],
    }
    asked = {f"v3_and_below_{name}": value for name, value in fields.items()}
    assert partition_codes(one.done(24, 3, **asked)) == {errors.NONE}
    assert mentions(one.done(65, 0, transactional_ids=["free"]), MINE, HIDDEN)
    one.authorizer.kinds = (TOPIC,)
    told = one.asked(65, 0, transactional_ids=["free"])
    assert mentions(told, MINE) and not mentions(told, HIDDEN)


# Everything that there is -------------------------------------------------------------------------


def test_what_is_refused_is_in_no_list_of_everything(one):
    one.commit("reader", MINE, HIDDEN)
    one.commit(HIDDEN, MINE)
    all_topics = {
        "topics": None, "allow_auto_topic_creation": True, "response_partition_limit": 100,
        "include_topic_authorized_operations": False, "cursor": None,
    }  # fmt: skip
    group = {"group_id": "reader", "member_id": None, "member_epoch": -1, "topics": None}
    asked = [
        (0, (3, 0), {"topics": []}),
        (0, (3, 13), all_topics),
        (0, (75, 0), {**all_topics, "topics": []}),
        (0, (9, 7), {**group, "require_stable": False}),
        (0, (9, 10), {"groups": [group], "require_stable": False}),
        (1, (16, 5), {"states_filter": [], "types_filter": []}),
    ]  # fmt: skip
    for _, request, values in asked:
        told = one.done(*request, **values)
        assert mentions(told, HIDDEN, UUID(bytes=one.id_of(HIDDEN))), request
    one.authorizer.kinds = (TOPIC, GROUP, CLUSTER)
    for is_group, request, values in asked:
        told = one.asked(*request, **values)
        assert not mentions(told, HIDDEN, UUID(bytes=one.id_of(HIDDEN))), request
        seen = ("reader",) if is_group else (MINE, UUID(bytes=one.id_of(MINE)))
        assert mentions(told, *seen) and codes(told) == {errors.NONE}, request
    one.authorizer.kinds = (GROUP,)
    assert mentions(one.asked(16, 5, states_filter=[], types_filter=[]), HIDDEN), "by the cluster"


def test_pages_of_topics_count_only_what_is_told(one):
    one.authorizer.kinds = (TOPIC,)
    values = {"topics": [], "response_partition_limit": 1, "cursor": None}
    told = one.asked(75, 0, **values)
    assert [row["name"] for row in told["topics"]] == ["__consumer_offsets"]
    cursor = {"topic_name": MINE, "partition_index": 0}
    told = one.asked(75, 0, **values | {"cursor": cursor})
    assert [row["name"] for row in told["topics"]] == [MINE] and told["next_cursor"] is None


def test_a_deleted_topic_is_shown_to_who_might_see_its_settings(one):
    told = one.done(20, 5, topic_names=[MINE, HIDDEN], timeout=0)
    assert codes(told) == {errors.NONE}
    one.authorizer.kinds = (TOPIC,)
    deleted = resources(2, configuration_keys=None)(["penstock:deleted"], None)
    [row] = one.asked(32, 4, **deleted)["results"]
    [shown] = row["configs"]
    assert f'"{MINE}"' in shown["value"]


def test_what_this_node_keeps_of_a_deleted_topic_is_told_to_other_nodes(one):
    asked = resources(2, configuration_keys=None)([f"penstock:deleted:{MINE}"], None)

    def told():
        [row] = one.asked(32, 4, **asked)["results"]
        return row["error_code"], [(entry["name"], entry["value"]) for entry in row["configs"]]

    assert told() == (errors.NONE, [("not yet", "")]), "it is there"
    assert codes(one.done(20, 5, topic_names=[MINE], timeout=0)) == {errors.NONE}
    code, [(_, value)] = told()
    found = decode_kept(value)
    assert (code, found.buried.name, found.held) == (errors.NONE, MINE, {0})
    one.authorizer.kinds = (CLUSTER,)
    assert told() == (CLUSTER_CODE, [])


def test_a_topic_is_created_for_who_asks_for_it_and_may(one):
    one.authorizer.kinds = (TOPIC, CLUSTER)
    names = ["asked-for", ABSENT]
    told = one.asked(3, 7, **metadata(names, no_id))
    assert codes_of(about(told, "asked-for")) == {errors.NONE}
    assert codes_of(about(told, ABSENT)) == {TOPIC_CODE}
    assert one.id_of("asked-for") != b"?" * 16 and one.id_of(ABSENT) == b"?" * 16


# Groups -------------------------------------------------------------------------------------------


def member(**more):
    def values(group):
        return {
            "group_id": group, "generation_id": 1, "member_id": "m", "group_instance_id": None,
            "session_timeout": 10_000, "rebalance_timeout": 10_000, "protocol_type": "consumer",
            "protocol_name": "range", "reason": None, "assignments": [],
            "protocols": [{"name": "range", "metadata": b""}],
            "members": [{"member_id": "m", "group_instance_id": None, "reason": None}], **more,
        }  # fmt: skip

    return values


ONE_GROUP = {
    8: lambda group: commit(group, [MINE]),
    9: lambda group: fetched([MINE], no_id) | {"group_id": group},
    11: member(), 12: member(), 13: member(), 14: member(),
    47: lambda group: forgotten([MINE], None) | {"group_id": group},
    68: lambda group: heartbeat(group, [MINE], subscribed_topic_regex=None),
}  # fmt: skip
GROUP_VERSIONS = [one for one in versions(*ONE_GROUP) if one not in ((8, 10), (9, 10))]


@pytest.mark.parametrize(("key", "version"), [*GROUP_VERSIONS, (8, 9), (9, 7)])
def test_a_group(one, key, version):
    one.commit(HIDDEN, MINE)
    one.commit("reader", MINE)
    one.authorizer.kinds = (GROUP,)
    hidden, absent = (one.asked(key, version, **ONE_GROUP[key](n)) for n in (HIDDEN, ABSENT))
    assert codes(hidden) - {errors.NONE} == {GROUP_CODE}
    assert hidden == absent
    assert GROUP_CODE not in codes(one.asked(key, version, **ONE_GROUP[key]("reader")))


def several_fetched(names):
    topics = [{"name": MINE, "topic_id": bytes(16), "partition_indexes": [0]}]
    groups = [
        {"group_id": n, "member_id": None, "member_epoch": -1, "topics": topics} for n in names
    ]
    return {"groups": groups, "require_stable": False}


SEVERAL_GROUPS = {
    (9, 8): several_fetched,
    (9, 10): several_fetched,
    **{one: lambda names: {"groups": names, "include_authorized_operations": True}
       for one in versions(15)},
    **{one: lambda names: {"groups_names": names} for one in versions(42)},
    **{one: lambda names: {"group_ids": names, "include_authorized_operations": True}
       for one in versions(69)},
    (10, 6): lambda names: {"key_type": 0, "coordinator_keys": names},
    (32, 4): lambda names: resources(32, configuration_keys=None)(names, None),
    (33, 2): lambda names: resources(32, configs=[])(names, None),
    (44, 1): lambda names: resources(32, configs=[])(names, None),
}  # fmt: skip


@pytest.mark.parametrize(("key", "version"), SEVERAL_GROUPS)
def test_one_of_several_groups(one, key, version):
    for group in (HIDDEN, MINE):
        if key == 69:
            one.join_anew(group, MINE)
        else:
            one.commit(group, MINE)
    one.authorizer.kinds = (GROUP,)
    told = one.asked(key, version, **SEVERAL_GROUPS[key, version]([MINE, HIDDEN, ABSENT]))
    mine, hidden, absent = (about(told, name) for name in (MINE, HIDDEN, ABSENT))
    if key == 9:  # the group's answer holds that of its topics
        mine, hidden, absent = ([row for row in told["groups"] if row["group_id"] == name]
                                for name in (MINE, HIDDEN, ABSENT))  # fmt: skip
    assert hidden and codes_of(hidden) == {GROUP_CODE}
    assert renamed(hidden, HIDDEN) == renamed(absent, ABSENT)
    assert mine and GROUP_CODE not in codes_of(mine)
    if key == 42:
        assert HIDDEN in str(one.done(16, 0)) and MINE not in str(one.done(16, 0))


def test_the_coordinator_of_a_group(one):
    one.authorizer.kinds = (GROUP,)
    for name in (HIDDEN, ABSENT):
        told = one.asked(10, 0, key=name)
        assert codes(told) == {GROUP_CODE} and told["port"] == -1
    assert codes(one.asked(10, 0, key=MINE)) == {errors.NONE}


@pytest.mark.parametrize("name", [HIDDEN, ABSENT])
def test_a_member_does_not_subscribe_to_what_it_may_not_see(one, name):
    one.authorizer.kinds = (TOPIC,)
    told = one.asked(68, 0, **heartbeat("group", [MINE, name]))
    assert codes(told) == {TOPIC_CODE}
    told = one.asked(68, 1, **heartbeat("group", [], subscribed_topic_regex=".*"))
    assert codes(told) == {errors.NONE}
    assigned = {str(row["topic_id"]) for row in told["assignment"]["topic_partitions"]}
    assert str(UUID(bytes=one.id_of(MINE))) in assigned
    assert str(UUID(bytes=one.id_of(HIDDEN))) not in assigned


def test_a_group_that_reads_what_one_may_not_see_is_not_described(one):
    one.join_anew("reads-hidden", HIDDEN)
    one.join_anew("reads-mine", MINE)
    one.authorizer.kinds = (TOPIC,)
    names = ["reads-hidden", "reads-mine"]
    told = one.asked(69, 1, group_ids=names, include_authorized_operations=False)
    by_name = {row["group_id"]: row for row in told["groups"]}
    assert codes(by_name["reads-hidden"]) == {TOPIC_CODE}
    assert not by_name["reads-hidden"]["members"] and by_name["reads-mine"]["members"]


# The cluster --------------------------------------------------------------------------------------

REPLICAS = {"partition_index": 0, "replicas": [1]}
QUOTA = {"entity": [{"entity_type": "user", "entity_name": None}],
         "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}]}  # fmt: skip
THE_CLUSTER = {
    22: {"transactional_id": None, "transaction_timeout": 0, "producer_id": -1,
         "producer_epoch": -1},
    27: {"markers": [{"producer_id": 5, "producer_epoch": 0, "transaction_result": True,
                      "coordinator_epoch": 0, "transaction_version": 0,
                      "topics": [{"name": MINE, "partition_indexes": [0]}]}]},
    29: every(),
    30: {"creations": [creation("anna", 3, MINE)]},
    31: {"filters": [every()]},
    32: resources(4, configuration_keys=None)(["1"], None),
    33: resources(4, **configs("log.retention.ms", "5"))(["1"], None),
    34: {"dirs": [{"path": "/", "topics": [{"name": MINE, "partitions": [0]}]}]},
    35: {"topics": None},
    43: {"election_type": 0, "timeout": 0,
         "topic_partitions": [{"topic": MINE, "partitions": [0]}]},
    44: resources(4, **configs("log.retention.ms", "5"))(["1"], None),
    45: {"timeout": 0, "allow_replication_factor_change": True,
         "topics": [{"name": MINE, "partitions": [REPLICAS]}]},
    46: {"timeout": 0, "topics": None},
    48: {"components": [], "strict": False},
    49: {"entries": [QUOTA], "validate_only": False},
    50: {"users": None},
    51: {"deletions": [{"name": "anna", "mechanism": 1}], "upsertions": []},
    55: {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
    57: {"timeout": 0, "validate_only": False, "feature_updates": [
        {"feature": "group.version", "max_version_level": 0, "upgrade_type": 2,
         "allow_downgrade": True}]},
    64: {"broker_id": 7},
    74: {"resource_types": []},
    80: {"cluster_id": None, "timeout": 0, "voter_id": 2, "voter_directory_id": bytes(15) + b"5",
         "listeners": [{"name": "CONTROLLER", "host": "h", "port": 1}], "ack_when_committed": True},
    81: {"cluster_id": None, "voter_id": 2, "voter_directory_id": bytes(15) + b"5"},
}  # fmt: skip


@pytest.mark.parametrize(("key", "version"), versions(*THE_CLUSTER))
def test_the_cluster(one, key, version):
    one.authorizer.kinds = (CLUSTER, TOPIC) if key == 22 else (CLUSTER,)
    before = one.world.table.metadata_offset
    told = one.asked(key, version, **THE_CLUSTER[key])
    silent = key == 35 and version < 3  # no field for it
    assert codes(told) == (set() if silent else {CLUSTER_CODE})
    assert not mentions(told, HIDDEN) and one.world.table.metadata_offset == before
    if key not in (57, 80):  # 80 asks the new voter first, and nobody is there
        allowed = one.done(key, version, **THE_CLUSTER[key])
        assert CLUSTER_CODE not in codes(allowed) and allowed != told


def test_who_may_write_some_topic_may_do_so_idempotently(one):
    one.authorizer.kinds = (CLUSTER,)
    assert codes(one.asked(22, 5, **THE_CLUSTER[22])) == {errors.NONE}


# What one may do ----------------------------------------------------------------------------------


def test_authorized_operations_are_the_authorizer_s(one):
    one.commit(MINE, MINE)
    one.join_anew("anew", MINE)

    def operations():
        values = {"include_cluster_authorized_operations": True}
        groups = {"include_authorized_operations": True}
        topics = [{"name": MINE}]
        metadata = one.asked(
            3, 8, topics=topics, allow_auto_topic_creation=False,
            include_topic_authorized_operations=True, **values,
        )  # fmt: skip
        pages = one.asked(75, 0, topics=topics, response_partition_limit=10, cursor=None)
        classic = one.asked(15, 5, groups=[MINE], **groups)["groups"]
        consumer = one.asked(69, 0, group_ids=["anew"], **groups)["groups"]
        return (
            metadata["topics"][0]["topic_authorized_operations"],
            pages["topics"][0]["topic_authorized_operations"],
            *(row["authorized_operations"] for row in (*classic, *consumer)),
            metadata["cluster_authorized_operations"],
            one.asked(60, 0, **values)["cluster_authorized_operations"],
        )

    topic, group, cluster = 0b1101_1111_1000, 0b1101_0100_1000, 0b1_1111_1010_0000
    assert operations() == (topic, topic, group, group, cluster, cluster)
    one.authorizer.kinds = (CLUSTER,)
    assert operations() == (topic, topic, group, group, 0, 0)
    one.authorizer.allows = lambda caller, operation, resource: operation in (3, 8)
    some = 1 << 3 | 1 << 8
    assert operations() == (some, some, some, some, 1 << 8, 1 << 8)


def test_who_may_create_but_not_see_settings_is_told_no_settings(one):
    one.authorizer.allows = lambda caller, operation, resource: operation != 10
    [row] = one.asked(19, 7, **create([MINE], None))["topics"]
    assert row["error_code"] == errors.NONE and row["topic_config_error_code"] == TOPIC_CODE
    assert (row["num_partitions"], row["replication_factor"], row["configs"]) == (-1, -1, [])


def test_every_advertised_api_is_asked_here():
    asked = {*TOPICS, *ONE_GROUP, *(key for key, _ in SEVERAL_GROUPS), *THE_CLUSTER, 16}
    asked |= {24, 65, 66, *ONE_TRANSACTION}
    assert asked | OPEN == set(HANDLERS)
