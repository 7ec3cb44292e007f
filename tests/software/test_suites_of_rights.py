"""What the suites of librdkafka and kafka-go ask about ACLs and logins, made of what their
publishers distribute, against an appliance that decides by ACLs, and one where clients log in."""

import os
import shlex
import shutil
import subprocess

import pytest
from confluent_kafka.admin import ScramMechanism
from installs import go_module, librdkafka_runner, need

from benchmarks import kafka
from tests.broker_process import KAFKA
from tests.compat.test_suites_rights import with_rules
from tests.sasl.conftest import put_users
from tests.sasl.logged import LoggedIn

pytestmark = [
    pytest.mark.skipif(KAFKA, reason="the authorizer is the appliance's"),
    pytest.mark.timeout(1800),
]
NODE_RDKAFKA, KAFKA_GO = "3.6.0", "github.com/segmentio/kafka-go@v0.4.49"
OF_LIBRDKAFKA = ("0081", "0109", "0115", "0119")
"""Administration (five minutes), topics created by asking, producers and readers without rights."""


@pytest.fixture
def unruled(request, tmp_path):
    """What no rule names is open to all, and nobody is above the rules: librdkafka's tests deny
    everybody something, by kafka-acls.sh; but for 0081, which changes everything."""
    if reason := kafka.unavailable():
        pytest.skip(reason)
    program = tmp_path / "kafka" / "bin" / "kafka-acls.sh"
    program.parent.mkdir(parents=True)
    command = shlex.join(kafka.java("org.apache.kafka.tools.AclCommand"))
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    above = "ANONYMOUS" if request.node.callspec.params["number"] == "0081" else "admin"
    more = {"allow.everyone.if.no.acl.found": "true", "super.users": f"User:{above}"}
    with with_rules(tmp_path, **more) as broker:
        yield broker, str(program.parents[1])


@pytest.mark.parametrize("number", OF_LIBRDKAFKA)
def test_librdkafka(unruled, tmp_path, number):
    runner, (broker, tools) = librdkafka_runner(NODE_RDKAFKA), unruled
    built = ":".join(str(runner.parents[1] / one) for one in ("src", "src-cpp"))
    (tmp_path / "test.conf").write_text(f"bootstrap.servers={broker.bootstrap}\n")
    done = subprocess.run(
        [runner], cwd=tmp_path, stdin=subprocess.DEVNULL, text=True,
        capture_output=True, timeout=900, check=False,
        env=os.environ | {
            "TESTS": number, "RDKAFKA_TEST_CONF": str(tmp_path / "test.conf"), "CI": "y",
            "TEST_KAFKA_VERSION": "4.0.0", "KAFKA_PATH": tools, "LD_LIBRARY_PATH": built,
        },
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def test_kafka_go(tmp_path):
    """Its test of SASL: right and wrong passwords by PLAIN and SCRAM."""
    shutil.copytree(go_module(KAFKA_GO), tmp_path / "go")
    file = tmp_path / "go" / "sasl" / "sasl_test.go"
    kinds = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    with LoggedIn(tmp_path / "data") as broker:
        put_users(broker.bootstrap, {"adminplain": "admin-secret"}, kinds[:1])
        put_users(broker.bootstrap, {"adminscram256": "admin-secret-256"}, kinds[:1])
        put_users(broker.bootstrap, {"adminscram512": "admin-secret-512"}, kinds[1:])
        broker.peer.create(1, {}, "test-writer-0")
        text = file.read_text()
        assert '"localhost:9093"' in text
        file.write_text(text.replace("localhost:9093", broker.at("SASL_PLAINTEXT")))
        done = subprocess.run(
            [need("go"), "test", "-mod=mod", "-count=1", "-v", "-run", "TestSASL", "./sasl/"],
            cwd=tmp_path / "go", capture_output=True, text=True, timeout=600, check=False,
            env=os.environ | {"KAFKA_VERSION": "4.0.0"},
        )  # fmt: skip
    told = done.stdout + done.stderr
    assert done.returncode == 0 and told.count("--- PASS: TestSASL/") == 9, told[-3000:]
