"""What the tests of groups with real clients share: an appliance, fresh names, filled topics.

PENSTOCK_TEST_BOOTSTRAP=HOST:PORT names another broker that runs already, Apache Kafka say.
"""

import itertools
import os
import time

import pytest
from group_members import fill

_numbers = itertools.count(1)


def pytest_configure(config):
    """The clients' own use of the language is not what these tests are about."""
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:(aio)?kafka.*")


@pytest.fixture(scope="session")
def bootstrap(request):
    """HOST:PORT of the broker under test."""
    given = os.environ.get("PENSTOCK_TEST_BOOTSTRAP")
    return given or request.getfixturevalue("appliance").bootstrap


@pytest.fixture
def fresh():
    """Names that nobody has used yet."""

    def name(prefix="g"):
        return f"{prefix}-{os.getpid()}-{next(_numbers)}-{time.time_ns() // 1_000_000 % 10**9}"

    return name


@pytest.fixture
def group(fresh):
    return fresh()


@pytest.fixture
def filled(bootstrap, fresh):
    """A function that makes a topic of (partitions, records in each) and returns its name."""

    def make(partitions, count):
        topic = fresh("t")
        fill(bootstrap, topic, partitions, count)
        return topic

    return make
