"""The transactional tests of aiokafka's and confluent-kafka's own suites, against an appliance.

Their source distributions leave the tests out. PENSTOCK_TEST_SUITES names a folder that holds what
their authors publish: `aiokafka` as of v0.14.0 and `confluent-kafka-python` as of v2.15.0. All of
them pass on Apache Kafka 4.3.1 (PENSTOCK_TEST_BROKER=kafka), and none may fail here.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.broker_process import Broker
from tests.compat import suites

SUITES = os.environ.get("PENSTOCK_TEST_SUITES")
pytestmark = [
    pytest.mark.skipif(SUITES is None, reason="PENSTOCK_TEST_SUITES names no folder"),
    pytest.mark.timeout(400),
]
AIOKAFKA_FIXTURES = """
import asyncio, gc, os
import pytest

@pytest.fixture(scope="class")
def setup_test_class(request):
    cls = request.cls
    cls.loop = asyncio.new_event_loop()
    asyncio.set_event_loop(cls.loop)
    cls.hosts, cls.kafka_version = [os.environ["BROKERS"]], "4.3.1"
    yield
    cls.loop.close()
    gc.collect()
    asyncio.set_event_loop(None)
"""
"""In the place of those that start a broker in a container."""
CONFLUENT_PLUGIN = """
import sys, types

def stub(name, **named):
    sys.modules[name] = module = types.ModuleType(name)
    module.__dict__.update(named, __path__=[])

registry = "confluent_kafka.schema_registry"
for name in ("trivup", "trivup.clusters", registry, registry + "._async"):
    stub(name)
stub("trivup.clusters.KafkaCluster", KafkaCluster=object)
stub("confluent_kafka.avro", AvroConsumer=object)
stub(registry + "._async.schema_registry_client", AsyncSchemaRegistryClient=None)
stub(registry + ".schema_registry_client", SchemaRegistryClient=None)
"""
"""In the place of what starts brokers, and of the schema registry's client."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    settings = {"num.partitions": "2"}
    with Broker(tmp_path_factory.mktemp("suites") / "data", settings) as running:
        yield running


def test_aiokafka(broker, tmp_path):
    shutil.copytree(Path(SUITES) / "aiokafka" / "tests", tmp_path / "tests")
    (tmp_path / "tests" / "conftest.py").write_text(AIOKAFKA_FIXTURES)
    tests = [f"tests/test_transactional_{of}.py" for of in ("producer", "consumer")]
    seen = suites.results(tmp_path, tmp_path, tests, BROKERS=broker.bootstrap)
    assert [kind for kind, _ in seen.values()] == ["passed"] * 20, seen


def test_confluent_kafka(broker, tmp_path):
    shutil.copytree(Path(SUITES) / "confluent-kafka-python" / "tests", tmp_path / "tests")
    (tmp_path / "broker_only.py").write_text(CONFLUENT_PLUGIN)
    seen = suites.results(
        tmp_path, tmp_path, ["tests/integration/producer/test_transactions.py"],
        plugins=["broker_only"], BROKERS=broker.bootstrap, PYTHONPATH=str(tmp_path),
    )  # fmt: skip
    assert [kind for kind, _ in seen.values()] == ["passed"] * 4, seen
