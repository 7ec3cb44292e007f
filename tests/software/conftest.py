"""Software of others that speaks Kafka's protocol, in the versions that `installs.py` pins, against
one appliance for all of it."""

import itertools
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.broker_process import Broker
from tests.software.records import Records

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """The appliance; Apache Kafka with PENSTOCK_TEST_BROKER=kafka."""
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    settings["group.initial.rebalance.delay.ms"] = "0"
    with Broker(tmp_path_factory.mktemp("software") / "data", settings) as running:
        yield running


@pytest.fixture
def records(broker):
    """What is written and read beside the software, by librdkafka."""
    return Records(broker.bootstrap)


@pytest.fixture
def fresh_name():
    """A function: a name that no topic and no group has yet, which begins with a word."""
    return lambda word: f"{word}-{os.getpid()}-{next(_numbers)}"
