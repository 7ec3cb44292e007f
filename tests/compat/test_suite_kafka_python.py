"""kafka-python's own integration suite, from its source distribution, against an appliance.

The suite is fetched once into pytest's cache and never kept here. What it does on the appliance is
compared with what it does on Apache Kafka (all passes), less the exceptions listed below: one that
no longer is one must leave the list.
"""

import subprocess
import sys
import tarfile

import pytest

from tests.broker_process import KAFKA, Broker
from tests.compat import suites

VERSION = "3.0.12"
TESTS = 56
SKIPPED = {"test_kafka_consumer_offsets_for_time_old"}  # for brokers before 0.10.1
NOT_SERVED = {
    "test_create_describe_delete_acls": "it wants an authorizer",
}
SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port
class SpawnedService:
    def __init__(self, *args):
        raise RuntimeError("set KAFKA_URI")
"""
"""What the distribution leaves out: how the suite knows a broker that runs already."""


@pytest.fixture(scope="module")
def suite(pytestconfig):
    """The unpacked source distribution, whole: the client of this version and its tests."""
    folder = pytestconfig.cache.mkdir("kafka-python-suite")
    unpacked = folder / f"kafka_python-{VERSION}"
    if not (unpacked / "test" / "service.py").exists():
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
        command += ["--no-deps", "--no-binary", ":all:", "-d", folder, f"kafka-python=={VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        if "from versions: none" in done.stderr:
            pytest.skip("kafka-python's suite cannot be fetched: no package index answers")
        assert not done.returncode, done.stderr
        with tarfile.open(f"{unpacked}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        (unpacked / "test" / "__init__.py").touch()
        (unpacked / "test" / "service.py").write_text(SERVICE)
    return unpacked


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A broker with the settings that the suite counts on; it names broker 0."""
    broker = Broker(tmp_path_factory.mktemp("suite") / "data")
    broker.settings |= {
        "node.id": "0",
        "num.partitions": "2",
        "group.min.session.timeout.ms": "3000",
        "advertised.listeners": f"PLAINTEXT://{broker.bootstrap}",
    }
    with broker:
        yield broker


def results(suite, broker, folder, chosen):
    """What the tests that the expression chooses do."""
    tests = ["test/integration"]
    for skipped in ("sasl", "ssl"):
        tests += ["--ignore", f"test/integration/test_{skipped}_integration.py"]
    return suites.results(
        suite, folder, tests, chosen, KAFKA_URI=f"kafka://{broker.bootstrap}",
        KAFKA_VERSION="4.3.1", KAFKA_ROOT=str(folder),
    )  # fmt: skip


@pytest.mark.timeout(400)
@pytest.mark.skipif(KAFKA, reason="the list of exceptions is the appliance's")
def test_the_suite_passes_as_on_apache_kafka(suite, ready, tmp_path):
    """What fails is tried again: this client loses a subscription that is made while its first
    Metadata request is under way, and then reads nothing for five minutes."""
    seen = results(suite, ready, tmp_path, "test")
    assert len(seen) == TESTS
    again = failed(seen).keys() - NOT_SERVED.keys()
    if again:
        seen |= results(suite, ready, tmp_path, " or ".join(again))
    assert failed(seen).keys() == NOT_SERVED.keys(), failed(seen)
    assert {name for name, (kind, _) in seen.items() if kind == "skipped"} == SKIPPED


def failed(seen):
    return {name: why for name, (kind, why) in seen.items() if kind in ("failure", "error")}
