"""Every API as who is denied, as who has just what it needs, and as a super user: on Apache Kafka
and on the appliance."""

import pytest

from benchmarks import kafka
from tests.differential import registry, table
from tests.differential.rights.brokers import secured
from tests.differential.rights.needs import BEFORE_LOGIN, NEEDS
from tests.differential.rights.plays import scripts
from tests.differential.run import run

pytestmark = pytest.mark.timeout(900)


def test_every_api_says_what_it_needs():
    assert set(registry.APIS) == {*NEEDS, *BEFORE_LOGIN}


def test_the_answers_are_the_same(tmp_path):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    with secured(tmp_path) as targets:
        report = run(scripts(), targets, table.of_rights())
    print(report)
    assert report.good, f"\n{report}"
