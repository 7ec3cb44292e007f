"""Every script on Apache Kafka and on the appliance."""

import pytest

from tests.differential import registry, table
from tests.differential.run import run

pytestmark = pytest.mark.timeout(900)


def test_the_answers_are_the_same(targets):
    report = run(registry.load(), targets, table.read())
    print(report)
    assert report.good, f"\n{report}"


def test_every_advertised_api_has_a_script(targets):
    """An API that is advertised and compared with nothing would be believed for nothing."""
    ours, _ = targets
    not_kafkas = {71, 72}  # asked by the script client_metrics
    assert set(ours.ranges) - not_kafkas == {script.key for script in registry.load()}
