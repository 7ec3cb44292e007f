"""`penstock topic undelete`, and names that are not created again, against a real appliance."""

import itertools
import json

import pytest
from confluent_kafka import Consumer

from tests.console_process import rows, typing

_numbers = itertools.count(1)


@pytest.fixture
def topic(run):
    """The name of a topic with a setting of its own and five records."""
    name = f"gone.{next(_numbers)}"
    run("topic", "create", name, "-p", "2", "-c", "retention.ms=123456789")
    run("produce", name, stdin="a\nb\nc\nd\ne\n")
    return name


def told(done):
    return json.loads(done.stdout)["error"]


def test_a_topic_comes_back_as_it_was(run, topic):
    (before,) = rows(run("topic", "describe", topic, "-a", "-o", "json"))
    run("topic", "delete", topic, "--yes")
    (listed,) = [r for r in rows(run("topic", "ls", "--deleted", "-o", "json"))
                 if r["name"] == topic]  # fmt: skip
    assert (listed["id"], listed["partitions"], listed["records"]) == (before["id"], 2, 5)
    assert listed["bytes"] > 0
    assert listed["until"] > listed["deleted"]
    (plan,) = rows(run("topic", "undelete", topic, "--dry-run", "-o", "json"))
    assert plan["status"] == "would come back"
    assert told(run("topic", "describe", topic, "-o", "json", code=1))["kafka_code"] == 3
    run("topic", "undelete", topic)
    (after,) = rows(run("topic", "describe", topic, "-a", "-o", "json"))
    assert after == before
    again = told(run("topic", "undelete", topic, "-o", "json", code=1))
    assert again["code"] == "TOPIC_ALREADY_EXISTS"
    assert run("topic", "ls", topic, "--deleted", "-o", "name").stdout == ""


def test_which_of_several_comes_back_can_be_said(run, topic):
    (first,) = rows(run("topic", "describe", topic, "-o", "json"))
    run("topic", "delete", topic, "--yes")
    run("topic", "create", topic)
    refused = told(run("topic", "undelete", topic, "-o", "json", code=1))
    assert refused["code"] == "TOPIC_ALREADY_EXISTS"
    run("topic", "delete", topic, "--yes")
    run("topic", "undelete", topic)
    (newest,) = rows(run("topic", "describe", topic, "-o", "json"))
    assert (newest["records"], newest["partition_count"]) == (0, 1)
    run("topic", "delete", topic, "--yes")
    run("topic", "undelete", topic, "--id", first["id"])
    assert rows(run("topic", "describe", topic, "-o", "json")) == [first]


def test_what_never_was_does_not_come_back(run, topic):
    refused = told(run("topic", "undelete", "never.was", "-o", "json", code=1))
    assert refused["kafka_code"] == 3
    assert "--deleted" in refused["hint"]
    run("topic", "create", f"{topic}.x", "-c", "penstock.undelete=true", "-c", "a=b", code=1)


def test_a_deleted_name_is_created_by_who_writes_to_it(run, topic):
    run("topic", "delete", topic, "--yes")
    run("produce", topic, stdin="x\n")
    (made,) = rows(run("topic", "describe", topic, "-o", "json"))
    assert made["records"] == 1
    refused = told(run("topic", "undelete", topic, "-o", "json", code=1))
    assert refused["code"] == "TOPIC_ALREADY_EXISTS"


def test_a_time_of_nothing_deletes_at_once(fresh_appliance):
    appliance = fresh_appliance()
    run = typing(appliance.bootstrap)
    run("topic", "create", "brief")
    from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ResourceType

    entry = _set(ConfigEntry, "penstock.topic.trash.retention.ms")
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": appliance.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)
    run("topic", "delete", "brief", "--yes")
    assert run("topic", "list", "--deleted", "-o", "name").stdout == ""
    run("topic", "undelete", "brief", code=1)


def _set(entry, key):
    from confluent_kafka.admin import AlterConfigOpType

    return entry(key, "0", incremental_operation=AlterConfigOpType.SET)


def test_committed_offsets_are_hidden_and_come_back(appliance, run, topic):
    consumer = Consumer(
        {"bootstrap.servers": appliance.bootstrap, "group.id": topic, "enable.auto.commit": False}
    )
    from confluent_kafka import TopicPartition

    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    place = TopicPartition(topic, 0)
    run("topic", "delete", topic, "--yes")
    assert consumer.committed([place], 30)[0].offset < 0
    run("topic", "undelete", topic)
    assert consumer.committed([place], 30)[0].offset == 2
    run("topic", "delete", topic, "--yes")
    run("topic", "create", topic)
    assert consumer.committed([place], 30)[0].offset < 0, "another topic of the same name"
    consumer.close()
