"""Who logged in, who failed and who changed what is in the audit file of a running appliance."""

import json
import time
from contextlib import closing

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import KAFKA
from tests.console_process import typing
from tests.differential.link import Link
from tests.sasl.logged import USERS
from tests.sasl.talk import Talk

pytestmark = pytest.mark.skipif(KAFKA, reason="what an appliance writes")


def until(found):
    """What is found at last."""
    end = time.monotonic() + 30
    while not (told := found()):
        assert time.monotonic() < end, "it never comes"
        time.sleep(0.05)
    return told


@pytest.fixture(scope="module")
def audit(broker):
    run = typing(broker.bootstrap)

    def entries(*words):
        done = run("audit", "--data", str(broker.data), "-n", "100000", "-o", "json", *words)
        # Tests before this one may have changed so much at once that entries count the rest.
        return [one for one in json.loads(done.stdout) if one["event"] != "left-out"]

    return entries


def _login(entry):
    return (entry["event"], entry.get("principal"), entry["mechanism"], entry["listener"])


def test_logins_and_failures(broker, audit):
    with broker.wire("STATIC") as wire:
        assert Talk(wire).plain("alice", USERS["alice"])[0] == 0
    for user in ("alice", "mistyped-password"):
        with broker.wire("STATIC") as wire:
            assert Talk(wire).plain(user, "wrong")[0] == 58
    with broker.wire("ONLY") as wire:
        assert Talk(wire).scram("SCRAM-SHA-512", "bob", "wrong")[0] == 58
    with broker.wire("ONLY") as wire:
        assert Talk(wire).handshake("PLAIN")[0] == 33
    wanted = {
        ("login", "User:alice", "PLAIN", "STATIC"),
        ("login-failed", "User:alice", "PLAIN", "STATIC"),
        ("login-failed", None, "PLAIN", "STATIC"),
        ("login-failed", "User:bob", "SCRAM-SHA-512", "ONLY"),
        ("login-failed", None, "none", "ONLY"),
    }

    def logins():
        return [one for one in audit() if one["event"].startswith("login")]

    until(lambda: {_login(one) for one in logins()} >= wanted)
    mine, found = logins(), audit()
    assert all(one["address"] == "127.0.0.1" for one in mine)
    assert "mistyped-password" not in json.dumps(found)


def test_changes_with_who_made_them(broker, audit):
    admin = AdminClient({
        "bootstrap.servers": broker.at("STATIC"), "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": USERS["alice"],
        "client.id": "auditor",
    })  # fmt: skip
    admin.create_topics([NewTopic("audited", 2, 1)])["audited"].result(30)
    [done] = admin.delete_records([TopicPartition("audited", 1, 0)]).values()
    done.result(30)
    with pytest.raises(KafkaException):
        admin.create_topics([NewTopic("audited", 1, 1)])["audited"].result(30)
    admin.delete_topics(["audited"])["audited"].result(30)

    def mine():
        found = audit("--who", "auditor", "--event", "changed")
        return len(found) >= 3 and found

    made, records, deleted = until(mine)
    who = {"principal": "User:alice", "address": "127.0.0.1", "listener": "STATIC"}
    for one in (made, records, deleted):
        assert one | who == one
    topic = {"type": "topic", "name": "audited"}
    assert made["request"] == "CreateTopics" and made["changes"][0] == topic | {"action": "create"}
    assert records["changes"] == [
        {"type": "records", "name": "audited-1", "action": "delete", "before": "0"}
    ]
    assert deleted["changes"] == [topic | {"action": "delete"}]


def offsets_of(topic, *partitions, **more):
    return [{"name": topic, "partitions": [{"partition_index": n, **more} for n in partitions]}]


def test_changes_that_are_no_records_of_the_metadata(broker, audit):
    """Groups and their offsets stand in a topic, levels of loggers in memory."""
    topic = broker.peer.create(2, {})
    host, _, port = broker.bootstrap.rpartition(":")
    mine = {"committed_offset": 0, "committed_leader_epoch": -1, "committed_metadata": ""}
    commit = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": ""}
    commit |= {"group_instance_id": None, "topics": offsets_of(topic, 0, 1, **mine)}
    level = {"name": "root", "config_operation": 0, "value": "DEBUG"}
    logger = {"resource_type": 8, "resource_name": "1", "configs": [level]}
    with closing(Link((host, int(port)), client_id="of-groups")) as link:
        until(lambda: "'NONE'" in str(link.ask(8, 7, commit)))
        link.ask(47, 0, {"group_id": "g", "topics": offsets_of(topic, 1, 7)})
        link.ask(42, 1, {"groups_names": ["g", "no-such-group"]})
        told = link.ask(44, 0, {"validate_only": False, "resources": [logger]})
    assert [one["error_code"] for one in told["responses"]] == ["NONE"]

    def changes():
        found = audit("--who", "of-groups", "--event", "changed")
        return {one["request"]: one["changes"] for one in found if len(found) == 3}

    offsets = {"type": "offset", "name": f"{topic}-1", "action": "delete", "of": "g"}
    changed = {"type": "config", "name": "root", "action": "set", "resource": "BROKER_LOGGER"}
    assert until(changes) == {
        "OffsetDelete": [offsets],
        "DeleteGroups": [{"type": "group", "name": "g", "action": "delete"}],
        "IncrementalAlterConfigs": [changed | {"of": "1", "value": "DEBUG"}],
    }
