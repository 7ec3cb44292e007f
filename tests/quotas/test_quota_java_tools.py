"""kafka-configs of Apache Kafka sets, shows and takes away quotas of every entity that it knows."""

import pytest

from benchmarks import kafka
from tests import java_tools

pytestmark = pytest.mark.skipif(kafka.unavailable() is not None, reason=str(kafka.unavailable()))


@pytest.fixture
def configs(quota_broker, admin):
    def run(*arguments):
        server = ("--bootstrap-server", quota_broker.bootstrap)
        done = java_tools.tool("kafka.admin.ConfigCommand", *server, *arguments)
        lines = [line for line in done.stderr.splitlines() if "SLF4J" not in line]
        assert not done.returncode and not lines, (done.stdout, done.stderr)
        return done.stdout.strip().splitlines()

    return run


def test_kafka_configs_alters_and_describes_quotas(configs):
    alice = ("--entity-type", "users", "--entity-name", "alice")
    app = ("--entity-type", "clients", "--entity-name", "app")
    rates = "producer_byte_rate=1000,request_percentage=12.5"
    done = configs("--alter", *alice, "--add-config", rates)
    assert done == ["Completed updating config for user alice."]
    configs("--alter", *alice, *app, "--add-config", "consumer_byte_rate=2000")
    anyone = ("--entity-type", "clients", "--entity-default")
    configs("--alter", *anyone, "--add-config", "controller_mutation_rate=5")
    configs("--alter", "--ip-defaults", "--add-config", "connection_creation_rate=700")
    [line] = configs("--describe", "--entity-type", "users")
    head, _, told = line.partition(" are ")
    assert head == "Quota configs for user-principal 'alice'"
    assert sorted(told.split(", ")) == ["producer_byte_rate=1000.0", "request_percentage=12.5"]
    assert configs("--describe", *alice, "--entity-type", "clients") == [
        "Quota configs for user-principal 'alice', client-id 'app' are consumer_byte_rate=2000.0"
    ]
    assert configs("--describe", *anyone) == [
        "Quota configs for the default client-id are controller_mutation_rate=5.0"
    ]
    assert configs("--describe", "--entity-type", "ips") == [
        "Quota configs for the default ip are connection_creation_rate=700.0"
    ]
    configs("--alter", *alice, "--delete-config", "producer_byte_rate")
    assert configs("--describe", *alice) == [
        "Quota configs for user-principal 'alice' are request_percentage=12.5"
    ]
