"""One Apache Kafka and one appliance for all of these tests."""

import pytest

from benchmarks import kafka


@pytest.fixture(scope="session")
def targets(tmp_path_factory):
    """(the appliance, Apache Kafka), running; skips when Kafka cannot run here."""
    if reason := kafka.unavailable():
        pytest.skip(reason)
    from tests.differential.run import both

    with both(tmp_path_factory.mktemp("differential")) as running:
        yield running
