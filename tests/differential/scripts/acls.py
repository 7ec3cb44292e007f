"""DescribeAcls, CreateAcls, DeleteAcls; and what every API answers to who is denied something.

Everybody is User:ANONYMOUS and may do what no rule names: a rule about a name of the script is for
that script alone.
"""

from tests.differential.records import batch
from tests.differential.registry import script

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = range(2, 8)
UNKNOWN, ANY, MATCH, LITERAL, PREFIXED = range(5)
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = range(2, 9)
DESCRIBE_CONFIGS, ALTER_CONFIGS = 10, 11
DENY, ALLOW = 2, 3
ME = "User:ANONYMOUS"


def rule(name, operation=READ, kind=TOPIC, **more):
    return {
        "resource_type": kind, "resource_name": name, "resource_pattern_type": LITERAL,
        "principal": "User:anna", "host": "*", "operation": operation, "permission_type": ALLOW,
        **more,
    }  # fmt: skip


def every(**less):
    return {
        "resource_type_filter": ANY, "resource_name_filter": None, "pattern_type_filter": ANY,
        "principal_filter": None, "host_filter": None, "operation": ANY, "permission_type": ANY,
        **less,
    }  # fmt: skip


def make(s, *rules):
    """In force when this returns."""
    answer = s.call("CreateAcls", creations=list(rules))
    assert all(row["error_code"] == "NONE" for row in answer["results"]), answer
    wanted = {(one["resource_name"], one["operation"]) for one in rules}
    s.until(lambda told: wanted <= shown(told), "DescribeAcls", **every())


def unmake(s, name):
    s.call("DeleteAcls", filters=[every(resource_name_filter=name)])
    s.until(lambda told: not told["resources"], "DescribeAcls", **every(resource_name_filter=name))


def shown(told):
    return {(row["resource_name"], acl["operation"]) for row in told["resources"]
            for acl in row["acls"]}  # fmt: skip


@script("CreateAcls")
def create_acls(s):
    name = s.name("resource")
    s.ask("good", creations=[rule(name), rule(name, WRITE, permission_type=DENY)])
    s.ask("there already", creations=[rule(name), rule(name)])
    s.ask("none", creations=[])
    s.ask("no name", creations=[rule("")])
    s.ask("no cluster", creations=[rule(name, ALTER, CLUSTER)])
    s.ask("unknown numbers", creations=[
        rule(name, kind=99), rule(name, 99), rule(name, resource_pattern_type=99),
        rule(name, permission_type=99), rule(name, DELETE),
    ])  # fmt: skip
    s.ask("no principal", creations=[rule(name, principal="anna"), rule(name, principal="")])
    s.ask("other principals", creations=[
        rule(name, principal=":"), rule(name, principal="Group:g"), rule(name, host=""),
        rule(name, host="no address"),
    ])  # fmt: skip
    for word, more in (("kind", {"kind": ANY}), ("operation", {"operation": ANY}),
                       ("pattern", {"resource_pattern_type": ANY}),
                       ("match", {"resource_pattern_type": MATCH}),
                       ("permission", {"permission_type": ANY})):  # fmt: skip
        s.ask(f"any {word}", creations=[rule(name), rule(name, **more)])
    s.ask("an operation that it has not", creations=[rule(name, 13)])
    unmake(s, name)


@script("DescribeAcls")
def describe_acls(s):
    name, group = s.name("resource"), s.name("group")
    start = name[:-1]
    make(s, rule(name), rule(name, WRITE, permission_type=DENY), rule(group, READ, GROUP),
         rule(start, ALTER, resource_pattern_type=PREFIXED, host="10.0.0.1"))  # fmt: skip
    for step, less in (
        ("by name", {}), ("literal", {"pattern_type_filter": LITERAL}),
        ("prefixed", {"pattern_type_filter": PREFIXED}),
        ("matching", {"pattern_type_filter": MATCH}),
        ("kind", {"resource_type_filter": TOPIC}), ("no such", {"resource_type_filter": 5}),
        ("operation", {"operation": WRITE}), ("permission", {"permission_type": DENY}),
        ("principal", {"principal_filter": "User:anna"}),
        ("principal that nobody is", {"principal_filter": "User:bert"}),
        ("host", {"host_filter": "10.0.0.1"}), ("any host", {"host_filter": "*"}),
    ):  # fmt: skip
        s.ask(step, **every(resource_name_filter=name) | less)
    s.ask("another kind", **every(resource_name_filter=group))
    s.ask("beginning", **every(resource_name_filter=start))
    s.ask("unknown kind", **every(resource_name_filter=name, resource_type_filter=99))
    for one in (name, group, start):
        unmake(s, one)


@script("DeleteAcls")
def delete_acls(s):
    name = s.name("resource")
    make(s, rule(name), rule(name, WRITE), rule(name, READ, GROUP))
    one = every(resource_name_filter=name)
    s.ask("none", filters=[])
    s.ask("nothing such", filters=[one | {"operation": DELETE}])
    s.ask("unknown numbers", filters=[
        one | {"resource_type_filter": 99}, one | {"pattern_type_filter": 99},
        one | {"operation": 99}, one | {"permission_type": 99},
    ])  # fmt: skip
    s.ask("one", filters=[one | {"operation": WRITE}])
    of_topics = one | {"resource_type_filter": TOPIC}
    s.ask("two filters for the same", filters=[of_topics, of_topics])
    s.ask("the last one", filters=[one])
    s.ask("gone", filters=[one])


@script("Metadata", versions=(9, 13))
def denied_metadata(s):
    topic = s.topic()
    make(s, rule(topic, DESCRIBE, principal=ME, permission_type=DENY))
    with_operations = {"include_topic_authorized_operations": True}
    s.ask("denied", topics=[{"name": topic}], **with_operations)
    unmake(s, topic)
    make(
        s, rule(topic, WRITE, principal=ME), rule(topic, DELETE, principal=ME, permission_type=DENY)
    )
    s.ask("bits", topics=[{"name": topic}], **with_operations)
    unmake(s, topic)


@script("Produce", versions=(9, 12))
def denied_produce(s):
    topic, other = s.topic(), s.topic("other")
    make(s, rule(topic, READ, principal=ME))
    data = [{"index": 0, "records": batch(b"v")}]
    rows = [{"name": name, "partition_data": data} for name in (topic, other)]
    s.ask("one of two", acks=-1, timeout=10_000, topic_data=rows, transactional_id=None)
    unmake(s, topic)


@script("ListOffsets", versions=(4, 9))
def denied_list_offsets(s):
    topic = s.topic()
    row = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
    asked = {"replica_id": -1, "topics": [{"name": topic, "partitions": [row]}]}
    for step, operation in (("implied", READ), ("not implied", CREATE)):
        make(s, rule(topic, operation, principal=ME))
        s.ask(step, **asked)
        unmake(s, topic)
    make(s, rule(topic[:-1], ALL, principal=ME, permission_type=DENY,
                 resource_pattern_type=PREFIXED))  # fmt: skip
    s.ask("denied by its beginning", **asked)
    unmake(s, topic[:-1])
    make(s, rule(topic, READ, principal=ME, host="10.9.9.9"))
    s.ask("another address", **asked)
    unmake(s, topic)


@script("DescribeConfigs")
def denied_describe_configs(s):
    topic = s.topic()
    asked = {"resources": [{"resource_type": 2, "resource_name": topic,
                            "configuration_keys": ["retention.ms"]}]}  # fmt: skip
    for step, operation in (("implied", ALTER_CONFIGS), ("not implied", DESCRIBE)):
        make(s, rule(topic, operation, principal=ME))
        s.ask(step, **asked)
        unmake(s, topic)


def coordinated(s, name, kind):
    """Somebody coordinates it when this returns, on a broker that was only just started too."""
    wanted = {"key": name, "key_type": kind, "coordinator_keys": [name]}
    s.until(lambda told: told["coordinators"][0]["error_code"] == "NONE", "FindCoordinator",
            version=4, **wanted)  # fmt: skip


@script("DescribeGroups")
def denied_groups(s):
    group = s.name("group")
    coordinated(s, group, 0)
    s.until(lambda told: told["groups"][0]["error_code"] in ("NONE", "GROUP_ID_NOT_FOUND"),
            "DescribeGroups", groups=[group])  # fmt: skip
    make(s, rule(group, DELETE, GROUP, principal=ME))
    s.ask("implied", groups=[group], include_authorized_operations=True)
    unmake(s, group)
    make(s, rule(group, READ, GROUP, principal="User:anna"))
    s.ask("denied", groups=[group], include_authorized_operations=True)
    unmake(s, group)


@script("FindCoordinator")
def denied_coordinators(s):
    name = s.name("coordinated")
    for kind, number in ((GROUP, 0), (TRANSACTIONAL_ID, 1)):
        coordinated(s, name, number)
        make(s, rule(name, READ, kind, principal="User:anna"))
        s.ask(f"denied {number}", key=name, key_type=number, coordinator_keys=[name])
        unmake(s, name)


@script("DeleteTopics")
def denied_delete_topics(s):
    topic = s.topic()
    by_name = {"topics": [{"name": topic}], "topic_names": [topic]}
    make(s, rule(topic, READ, principal=ME))
    s.ask("seen", **by_name, timeout=10_000)
    unmake(s, topic)
    make(s, rule(topic, READ, principal="User:anna"))
    s.ask("not seen", **by_name, timeout=10_000)
    unmake(s, topic)
