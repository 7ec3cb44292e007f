"""What the clients' own suites ask about users and ACLs, against an appliance that decides by ACLs
and where whoever does not log in is a super user, as those suites want it.

kafka-python's suite comes from its source distribution; confluent-kafka's is in none:
PENSTOCK_TEST_SUITES names a folder with `confluent-kafka-python`. Those of librdkafka and kafka-go
are in tests/software.
"""

import os
import shutil
from pathlib import Path

import pytest

from appliance.config.acl_checks import STANDARD
from tests.broker_process import KAFKA, Broker
from tests.compat import suites
from tests.compat.test_suite_kafka_python import results, suite
from tests.compat.test_suites_transactions import CONFLUENT_PLUGIN

__all__ = ["suite"]
SUITES = os.environ.get("PENSTOCK_TEST_SUITES")
pytestmark = [
    pytest.mark.skipif(KAFKA, reason="the authorizer is the appliance's"),
    pytest.mark.timeout(600),
]
of_folder = pytest.mark.skipif(SUITES is None, reason="PENSTOCK_TEST_SUITES names no folder")


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
