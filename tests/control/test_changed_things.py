"""Records of requests are told as things that people know, and without secrets."""

from appliance.control.history.changed_things import changed_things
from appliance.metadata.image import BROKER, TOPIC, MetadataImage
from appliance.wire import kraft_records as kraft

ID = bytes(range(16))


def image(*records):
    made = MetadataImage()
    for offset, one in enumerate(records):
        made.apply(offset, one)
    return made


def told(before, *records):
    return changed_things(before, records)


def thing(kind, name, action, **more):
    return {"type": kind, "name": name, "action": action, **more}


def partition(number):
    return kraft.PartitionRecord(
        partition_id=number, topic_id=ID, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
        partition_epoch=0,
    )  # fmt: skip


def test_a_topic_is_one_thing_and_its_new_partitions_are_named():
    topic = kraft.TopicRecord(name="orders", topic_id=ID)
    assert told(image(), topic, partition(0)) == ([thing("topic", "orders", "create")], 0)
    there = image(topic, partition(0))
    assert told(there, partition(1))[0] == [thing("partition", "orders-1", "create")]
    gone = kraft.RemoveTopicRecord(topic_id=ID)
    assert told(there, gone)[0] == [thing("topic", "orders", "delete")]


def config(kind, of, name, value):
    return kraft.ConfigRecord(resource_type=kind, resource_name=of, name=name, value=value)


def test_values_of_settings_are_told_unless_they_may_be_secret():
    found, _ = told(
        image(),
        config(TOPIC, "orders", "retention.ms", "1000"),
        config(TOPIC, "orders", "retention.ms", None),
        config(BROKER, "1", "ssl.keystore.password", "canary"),
        config(BROKER, "1", "listener.name.sasl.plain.sasl.jaas.config", "canary"),
        config(BROKER, "", "never.heard.of", "canary"),
    )
    assert found[:2] == [
        thing("config", "retention.ms", "set", resource="TOPIC", of="orders", value="1000"),
        thing("config", "retention.ms", "delete", resource="TOPIC", of="orders"),
    ]
    assert len(found) == 5 and "canary" not in repr(found)


def token(ends, name="t1"):
    return kraft.DelegationTokenRecord(
        owner="User:anna", requester="User:bert", renewers=(), issue_timestamp=1, max_timestamp=99,
        expiration_timestamp=ends, token_id=name,
    )  # fmt: skip


def test_tokens_are_told_by_what_becomes_of_them():
    def change(action, *before, ends=None):
        more = {} if ends is None else {"expires_ms": str(ends)}
        gone = kraft.RemoveDelegationTokenRecord(token_id="t1")
        record = gone if ends is None else token(ends)
        expected = thing("token", "t1", action, owner="User:anna", **more)
        assert told(image(*before), record)[0] == [expected]

    change("create", ends=50)
    change("renew", token(50), ends=60)
    change("expire", token(50), ends=40)
    change("expire", token(50))


def test_users_are_told_without_what_is_kept_of_their_passwords():
    user = kraft.UserScramCredentialRecord(
        name="anna", mechanism=2, salt=b"canary", stored_key=b"canary", server_key=b"canary",
        iterations=4096,
    )  # fmt: skip
    gone = kraft.RemoveUserScramCredentialRecord(name="anna", mechanism=2)
    assert told(image(), user, gone)[0] == [
        thing("user", "anna", "alter", mechanism="SCRAM-SHA-512"),
        thing("user", "anna", "delete", mechanism="SCRAM-SHA-512"),
    ]


def test_a_removed_rule_is_told_as_it_was():
    rule = kraft.AccessControlEntryRecord(
        id=ID, resource_type=2, resource_name="orders", pattern_type=3, principal="User:anna",
        host="*", operation=3, permission_type=3,
    )  # fmt: skip
    said = {
        "permission": "ALLOW", "operation": "READ", "host": "*", "resource": "TOPIC",
        "pattern": "LITERAL", "of": "orders",
    }  # fmt: skip
    assert told(image(), rule)[0] == [thing("acl", "User:anna", "create", **said)]
    gone = kraft.RemoveAccessControlEntryRecord(id=ID)
    assert told(image(rule), gone)[0] == [thing("acl", "User:anna", "delete", **said)]


def test_quotas_and_the_cluster():
    entity = (
        kraft.EntityData(entity_type="user", entity_name="anna"),
        kraft.EntityData(entity_type="client-id", entity_name=None),
    )
    quota = kraft.ClientQuotaRecord(
        entity=entity, key="producer_byte_rate", value=1e6, remove=False
    )
    gone = kraft.UnregisterBrokerRecord(broker_id=3, broker_epoch=1)
    of = "user=anna,client-id=<default>"
    assert told(image(), quota, gone)[0] == [
        thing("quota", "producer_byte_rate", "set", of=of, value="1e+06"),
        thing("broker", "3", "delete"),
    ]


def test_of_many_records_the_rest_is_counted():
    many = [config(TOPIC, f"t{n}", "retention.ms", "1") for n in range(1500)]
    found, more = changed_things(image(), many)
    assert (len(found), more) == (1000, 500)
