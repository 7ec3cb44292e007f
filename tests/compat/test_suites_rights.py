"""What the clients' own suites ask about users and ACLs, against an appliance that decides by ACLs
and where whoever does not log in is a super user, as those suites want it.

kafka-python's suite comes from its source distribution. The others are in no distribution:
PENSTOCK_TEST_SUITES names a folder with `confluent-kafka-python`, `kafka-go`, and `librdkafka`,
whose tests/test-runner has been built.
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from confluent_kafka.admin import ScramMechanism

from appliance.config.acl_checks import STANDARD
from benchmarks import kafka
from tests.broker_process import KAFKA, Broker
from tests.compat import suites
from tests.compat.test_suite_kafka_python import results, suite
from tests.compat.test_suites_transactions import CONFLUENT_PLUGIN
from tests.sasl.conftest import put_users
from tests.sasl.logged import LoggedIn

__all__ = ["suite"]
SUITES = os.environ.get("PENSTOCK_TEST_SUITES")
pytestmark = [
    pytest.mark.skipif(KAFKA, reason="the authorizer is the appliance's"),
    pytest.mark.timeout(600),
]
of_folder = pytest.mark.skipif(SUITES is None, reason="PENSTOCK_TEST_SUITES names no folder")
OF_LIBRDKAFKA = ("0081", "0109", "0115", "0119")
"""Administration (five minutes), topics created by asking, producers and readers without rights."""


def with_rules(folder, **more):
    broker = Broker(folder / "data")
    broker.settings |= {
        "authorizer.class.name": STANDARD,
        "node.id": "0",
        "num.partitions": "2",
        "group.initial.rebalance.delay.ms": "0",
        "advertised.listeners": f"PLAINTEXT://{broker.bootstrap}",
        **more,
    }
    return broker


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with with_rules(
        tmp_path_factory.mktemp("rights"), **{"super.users": "User:ANONYMOUS"}
    ) as broker:
        yield broker


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


def test_kafka_python(suite, guarded, tmp_path):
    seen = results(suite, guarded, tmp_path, "test_create_describe_delete_acls")
    assert {name: kind for name, (kind, _) in seen.items()} == {
        "test_create_describe_delete_acls": "passed"
    }, seen


@of_folder
@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("test_basic_operations", "test_basic_operations"),
        ("test_user_scram_credentials", "test_user_scram_credentials"),
    ],
)
def test_confluent_kafka(guarded, tmp_path, file, test):
    shutil.copytree(Path(SUITES) / "confluent-kafka-python" / "tests", tmp_path / "tests")
    (tmp_path / "broker_only.py").write_text(CONFLUENT_PLUGIN)
    seen = suites.results(
        tmp_path, tmp_path, [f"tests/integration/admin/{file}.py"], test,
        plugins=["broker_only"], BROKERS=guarded.bootstrap, PYTHONPATH=str(tmp_path),
    )  # fmt: skip
    assert {name: kind for name, (kind, _) in seen.items()} == {test: "passed"}, seen


@of_folder
@pytest.mark.parametrize("number", OF_LIBRDKAFKA)
def test_librdkafka(unruled, tmp_path, number):
    broker, tools = unruled
    folder = Path(SUITES) / "librdkafka" / "tests"
    (tmp_path / "test.conf").write_text(f"bootstrap.servers={broker.bootstrap}\n")
    done = subprocess.run(
        [folder / "test-runner"], cwd=tmp_path, stdin=subprocess.DEVNULL, text=True,
        capture_output=True, timeout=500, check=False,
        env=os.environ | {
            "TESTS": number, "RDKAFKA_TEST_CONF": str(tmp_path / "test.conf"),
            "TEST_KAFKA_VERSION": "4.0.0", "CI": "y", "KAFKA_PATH": tools,
        },
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@of_folder
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_kafka_go(tmp_path):
    """Its test of SASL: right and wrong passwords by PLAIN and SCRAM."""
    shutil.copytree(
        Path(SUITES) / "kafka-go", tmp_path / "go", ignore=shutil.ignore_patterns(".git")
    )
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
            ["go", "test", "-mod=mod", "-count=1", "-v", "-run", "TestSASL", "./sasl/"],
            cwd=tmp_path / "go", capture_output=True, text=True, timeout=300, check=False,
            env=os.environ | {"KAFKA_VERSION": "4.0.0"},
        )  # fmt: skip
    told = done.stdout + done.stderr
    assert done.returncode == 0 and told.count("--- PASS: TestSASL/") == 9, told[-3000:]
