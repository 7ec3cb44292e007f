"""What the tests of groups with real clients share: an appliance, fresh names, filled topics.

PENSTOCK_TEST_BOOTSTRAP=HOST:PORT names another broker that runs already, Apache Kafka say.
"""

import itertools
import os
import time

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

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


def fill(bootstrap, topic, partitions, count):
    """Create a topic and put `count` numbered records into each of its partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        made.result()
    producer = ck.Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        for partition in range(partitions):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(30) == 0


@pytest.fixture
def filled(bootstrap, fresh):
    """A function that makes a topic of (partitions, records in each) and returns its name."""

    def make(partitions, count):
        topic = fresh("t")
        fill(bootstrap, topic, partitions, count)
        return topic

    return make
