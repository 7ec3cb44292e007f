"""Delegation tokens with Apache Kafka's own tool, Java's clients, and `penstock token`."""

import json
import re
import time

import pytest

from benchmarks import kafka
from tests.broker_process import KAFKA
from tests.console_process import typing
from tests.sasl.logged import SCRAM_MODULE
from tests.sasl.talk import Talk
from tests.sasl.test_stock_logins import java
from tests.tls.java import Tools

BY_TOKEN = ",tokenauth=true"
DAY_MS = 86_400_000


def by_token(token, hmac):
    login = f'{SCRAM_MODULE} required username="{token}" password="{hmac}" tokenauth="true";'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": login,
    }


def rows_of(said):
    """The rows of tokens that the tool has printed: id, HMAC, owner, …"""
    lines = said.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("TOKENID"))
    return [line.split() for line in lines[start + 1 :] if "User:" in line]


@pytest.mark.skipif(bool(kafka.unavailable()), reason=str(kafka.unavailable()))
@pytest.mark.timeout(300)
def test_apache_kafkas_tool_and_console_clients(broker, tmp_path):
    topic = broker.peer.create(1, {})
    alice = Tools(tmp_path, broker.at(), java("SCRAM-SHA-512", "alice", "alice-secret"))

    def tool(*words, code=0):
        return alice.run("DelegationTokenCommand", *words, code=code)

    said = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    [(token, hmac, *_)] = rows_of(said)
    assert token in {one[0] for one in rows_of(tool("--describe", "--owner-principal", "User:bob"))}
    clients = Tools(tmp_path, broker.at(), by_token(token, hmac))
    clients.run("ConsoleProducer", "--topic", topic, stdin="one\ntwo\n")
    words = ["--topic", topic, "--from-beginning", "--max-messages", "2", "--timeout-ms", "60000"]
    assert clients.run("consumer.ConsoleConsumer", *words) == "one\ntwo\n"
    tool("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    tool("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    again = tool("--renew", "--renew-time-period", "-1", "--hmac", hmac, code=1)
    assert "DelegationTokenNotFoundException" in again
    told = clients.configs("--describe", "--entity-type", "users", code=1)
    assert "SaslAuthenticationException" in told


@pytest.fixture
def typed(broker, tmp_path):
    """`penstock token …` of alice."""
    file = tmp_path / "alice.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.username=alice\nsasl.password=alice-secret\n"
    )
    run = typing(broker.at())

    def token(*words, code=0):
        return run("token", *words, "--command-config", str(file), code=code)

    return token


@pytest.mark.skipif(KAFKA, reason="the console of an appliance")
def test_penstock_token(broker, typed):
    made = json.loads(typed("create", "--renewer", "bob", "--form", "json").stdout)
    assert (made["owner"], made["renewers"]) == ("User:alice", ["User:bob"])

    def log_in():
        with broker.wire("ONLY") as wire:
            talk = Talk(wire)
            words = ("SCRAM-SHA-512", made["token"], made["hmac"])
            return talk.scram(*words, extensions=BY_TOKEN)

    code, _, _, lifetime_ms = log_in()
    assert code == 0 and 0 < lifetime_ms <= DAY_MS
    listed = typed("list", "-o", "json")
    assert made["token"] in {one["token"] for one in json.loads(listed.stdout)}
    assert made["hmac"] not in listed.stdout
    typed("expire", made["token"], "--in", "1h", "--yes")
    assert log_in()[3] <= 3_600_000
    typed("renew", made["token"])
    assert log_in()[3] > 3_600_000
    typed("expire", made["token"], "--yes")
    assert log_in()[0] == 58
    told = typed("renew", made["token"], code=None)
    assert told.returncode and made["token"] in told.stderr


@pytest.mark.skipif(KAFKA, reason="the console of an appliance")
def test_what_create_prints_is_a_javas_client(typed):
    done = typed("create", "--lifetime", "1m")
    assert re.search(r'username="[\w-]{22}" password="[\w+/]{86}==" tokenauth="true";', done.stdout)
    assert "of User:alice ends" in done.stderr


@pytest.mark.skipif(KAFKA, reason="the console of an appliance")
def test_plaintext_is_told_what_to_do(broker):
    done = typing(broker.bootstrap)("token", "list", code=None)
    assert done.returncode and "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in done.stderr
    assert "--login" in done.stderr


@pytest.mark.skipif(KAFKA, reason="the audit of an appliance")
def test_changes_of_a_token_are_in_the_audit_without_its_hmac(broker, typed):
    made = json.loads(typed("create", "--form", "json").stdout)
    typed("renew", made["token"])
    typed("expire", made["token"], "--yes")
    expected = {
        ("CreateDelegationToken", "create"), ("RenewDelegationToken", "renew"),
        ("ExpireDelegationToken", "expire"),
    }  # fmt: skip
    end = time.monotonic() + 30
    while True:
        words = ("audit", "--data", str(broker.data), "-n", "10000", "-o", "json")
        told = typing(broker.bootstrap)(*words).stdout
        found = {
            (entry["request"], change["action"])
            for entry in json.loads(told)
            for change in entry.get("changes") or ()
            if (change["type"], change["name"]) == ("token", made["token"])
        }
        if found == expected:
            break
        assert time.monotonic() < end, found
    assert made["hmac"] not in told
