"""`penstock user`, and the console's commands on a listener that asks for a login."""

import json
import uuid

import pytest
from confluent_kafka import KafkaException

from benchmarks import kafka
from penstock import connect
from tests.broker_process import KAFKA
from tests.console_process import typing
from tests.tls.java import Tools
from tests.tls.stock import there_and_back_librdkafka

pytestmark = pytest.mark.skipif(KAFKA, reason="the console of an appliance")


@pytest.fixture
def plain(broker):
    """A command on the listener where nobody logs in."""
    return typing(broker.bootstrap)


@pytest.fixture
def name(plain):
    found = f"user-{uuid.uuid4()}"
    yield found
    if found in plain("user", "list").stdout:
        plain("user", "remove", found, "--yes")


def properties(text):
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def file_of(folder, text):
    file = folder / f"{uuid.uuid4()}.properties"
    file.write_text(text)
    return str(file)


def test_the_file_of_a_new_user_is_all_that_its_client_needs(broker, plain, name):
    added = plain("user", "add", name)
    given = properties(added.stdout)
    assert given["sasl.username"] == name and given["sasl.mechanism"] == "SCRAM-SHA-512"
    topic = broker.peer.create(1, {})
    assert there_and_back_librdkafka(given, topic, [b"one", b"two"]) == [b"one", b"two"]
    (row,) = [one for one in json.loads(plain("user", "list", "-o", "json").stdout)
              if one["user"] == name]  # fmt: skip
    assert row == {"user": name, "mechanisms": "SCRAM-SHA-512", "iterations": 4096}


@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
@pytest.mark.timeout(300)
def test_javas_file_serves_java_and_the_console(broker, plain, name, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text('a "quoted\\ pass=word\n')
    told = plain("user", "add", name, "--form", "java", "--new-password-file", str(secret),
                 "--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")  # fmt: skip
    file = file_of(tmp_path, told.stdout)
    plain("topic", "list", "-b", broker.at("ONLY"), "--command-config", file)
    tools = Tools(tmp_path, broker.at("ONLY"), properties(told.stdout))
    tools.configs("--describe", "--entity-type", "brokers", "--entity-name", "1")


def test_who_is_there_is_not_added_again_and_who_is_not_is_neither_changed_nor_removed(plain, name):
    assert plain("user", "password", name, code=1).stdout == ""
    plain("user", "remove", name, "--yes", code=1)
    plain("user", "add", name, "--dry-run")
    assert name not in plain("user", "list").stdout
    plain("user", "add", name)
    again = plain("user", "add", name, code=1)
    assert "is there already" in again.stderr and again.stdout == ""


def test_another_password_holds_at_once_and_a_removed_user_is_refused(
    broker, plain, name, tmp_path
):
    def listed(file, code=0):
        return plain("topic", "list", "-b", broker.at(), "--command-config", file, code=code)

    first = file_of(tmp_path, plain("user", "add", name).stdout)
    listed(first)
    second = file_of(tmp_path, plain("user", "password", name).stdout)
    assert "invalid credentials" in listed(first, code=2).stderr
    listed(second)
    plain("user", "remove", name, "--yes")
    assert "invalid credentials" in listed(second, code=2).stderr


COMMANDS = (
    ("topic", "list"), ("topic", "create", "{topic}"), ("topic", "describe", "{topic}"),
    ("produce", "{topic}", "--value", "x"), ("consume", "{topic}", "-e"), ("group", "list"),
    ("quota", "list"), ("config", "get", "num.partitions"), ("cluster", "status"), ("txn", "list"),
    ("user", "list"), ("topic", "delete", "{topic}", "--yes"),
)  # fmt: skip


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_every_kind_of_command_works_where_clients_log_in(broker, plain, tmp_path, mechanism):
    secret = tmp_path / "secret"
    secret.write_text("alice-secret\n")
    topic = f"topic-{uuid.uuid4()}"
    for words in COMMANDS:
        typed = [word.format(topic=topic) for word in words]
        plain(*typed, "-b", broker.at(), "--login", "alice", "--password-file", str(secret),
              "-X", f"sasl.mechanism={mechanism}")  # fmt: skip


def test_the_login_comes_from_the_environment_too(broker, plain, monkeypatch):
    monkeypatch.setenv("PENSTOCK_LOGIN", "alice")
    monkeypatch.setenv("PENSTOCK_PASSWORD", "alice-secret")
    plain("topic", "list", "-b", broker.at("ONLY"))
    monkeypatch.delenv("PENSTOCK_PASSWORD")
    refused = plain("topic", "list", "-b", broker.at("ONLY"), code=2)
    assert "--password-file" in refused.stderr


def test_who_does_not_log_in_is_told_how_to(broker, plain):
    refused = plain("topic", "list", "-b", broker.at("ONLY"), code=2)
    for word in ("asks clients to log in", "SCRAM-SHA-512", "SASL_PLAINTEXT", "--login"):
        assert word in refused.stderr


def test_who_logs_in_where_nobody_does_or_by_what_is_not_offered_is_told(broker, plain, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("alice-secret")
    login = ("--login", "alice", "--password-file", str(secret))
    nobody = plain("topic", "list", *login, code=2)
    assert "that listener has no SASL" in nobody.stderr
    words = ("-b", broker.at("ONLY"), "-X", "sasl.mechanism=PLAIN")
    other = plain("topic", "list", *words, *login, code=2)
    assert "sasl.mechanism=PLAIN is not offered there: SCRAM-SHA-512" in other.stderr


def test_the_python_client_logs_in(broker):
    def listed(**given):
        return connect(broker.at("ONLY"), **given).admin().list_topics(timeout=30)

    given = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512"}
    assert listed(sasl_username="alice", sasl_password="alice-secret", **given) is not None
    with pytest.raises(KafkaException, match="invalid credentials"):
        listed(sasl_username="alice", sasl_password="no", **given)
    with pytest.raises(KafkaException, match="asks clients to log in"):
        listed()
