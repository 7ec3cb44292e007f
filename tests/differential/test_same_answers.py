"""Every script on Apache Kafka and on the appliance."""

import pytest

from tests.differential import registry, table
from tests.differential.run import run

pytestmark = pytest.mark.timeout(900)


def test_the_answers_are_the_same(targets):
    report = run(registry.load(), targets, table.read())
    print(report)
    assert report.good, f"\n{report}"
