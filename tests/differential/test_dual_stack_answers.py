"""IPv4 clients of a listener for all interfaces, which the kernel shows as `::ffff:a.b.c.d`: what
is by address (rules, quotas, what groups tell of their members) is by their IPv4 address."""

import pytest

from benchmarks import kafka
from benchmarks.kafka import Kafka
from tests.broker_process import Broker
from tests.differential import registry, run
from tests.differential.groups import group_of
from tests.differential.run import SETTINGS
from tests.differential.scene import Target
from tests.differential.scripts.acls import every
from tests.differential.scripts.classic_groups import stable
from tests.differential.scripts.produce import batch

pytestmark = pytest.mark.timeout(300)
ADDRESSES = ("127.0.0.1", "::ffff:127.0.0.1", "::1", "10.1.2.3")
CREATION_RATE = "connection_creation_rate"


def denied_by_address(s):
    """A rule for the client's own address, written in several ways, and for others."""
    topic = s.topic()
    about = every(resource_type_filter=2, resource_name_filter=topic)
    for address in ADDRESSES:
        one = {
            "resource_type": 2, "resource_name": topic, "resource_pattern_type": 3,
            "principal": "User:ANONYMOUS", "host": address, "operation": 4, "permission_type": 2,
        }  # fmt: skip
        s.ask(f"{address}: made", "CreateAcls", creations=[one])
        s.ask_until(f"{address}: in force", lambda told: told["resources"], "DescribeAcls", **about)
        row = {"name": topic, "partition_data": [{"index": 0, "records": batch(b"value")}]}
        s.ask(f"{address}: written", version=9, acks=-1, timeout=10_000, topic_data=[row])
        s.ask(f"{address}: removed", "DeleteAcls", filters=[about])
        s.until(lambda told: not told["resources"], "DescribeAcls", **about)


def told_of_members(s):
    group = group_of(s)
    stable(s, group)
    s.ask("described", groups=[group])


def quota_of_address(s):
    filters = [{"entity_type": "ip", "match_type": 2, "match": None}]
    for address in ADDRESSES:
        entity = [{"entity_type": "ip", "entity_name": address}]
        for step, value, remove in (("set", 1000.0, False), ("removed", 0.0, True)):
            ops = [{"key": CREATION_RATE, "value": value, "remove": remove}]
            said = s.ask(f"{address}: {step}", entries=[{"entity": entity, "ops": ops}],
                         validate_only=False)  # fmt: skip
            is_there = not remove and said["entries"][0]["error_code"] == "NONE"
            s.ask_until(
                f"{address}: described, {step}",
                lambda told, is_there=is_there: bool(told["entries"]) == is_there,
                "DescribeClientQuotas", components=filters, strict=False,
            )  # fmt: skip


def advertised(s):
    s.ask("cluster")
    s.ask("brokers", "Metadata", topics=[], allow_auto_topic_creation=False)


SCRIPTS = (
    ("Produce", 9, denied_by_address),
    ("DescribeGroups", 5, told_of_members),
    ("AlterClientQuotas", 1, quota_of_address),
    ("DescribeCluster", 1, advertised),
)


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    """(the appliance, Apache Kafka), asked at 127.0.0.1."""
    if reason := kafka.unavailable():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("dual")
    node = Kafka(folder / "kafka", heap="512m")
    controller = f"CONTROLLER://127.0.0.1:{node.controller_port}"
    node.settings |= SETTINGS | {"listeners": f"PLAINTEXT://[::]:{node.port},{controller}"}
    broker = Broker(folder / "ours", dict(SETTINGS))
    broker.settings |= {
        "listeners": f"PLAINTEXT://[::]:{broker.port}",
        "penstock.listeners.without.authentication": "allow",
    }
    with node, broker:
        yield (
            Target("penstock", ("127.0.0.1", broker.port), str(broker.data)),
            Target("kafka", ("127.0.0.1", node.port), str(folder / "kafka" / "logs")),
        )


@pytest.mark.parametrize("asked", SCRIPTS, ids=lambda one: one[2].__name__)
def test_who_comes_by_ipv4_is_known_by_that_address(everywhere, asked):
    api, version, play = asked
    name = f"dual_{play.__name__}"
    script = registry.Script(name, api, play, range(version, version + 1))
    report = run.run([script], everywhere, [], whole=False)
    assert report.good and report.asked, f"\n{report}"
