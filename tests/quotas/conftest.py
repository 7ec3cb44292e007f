"""One broker for the tests of quotas that talk to one; PENSTOCK_TEST_BROKER=kafka: Apache Kafka."""

import itertools
import os

import pytest
from broker_process import Broker
from quota_peer import QuotaPeer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def quota_broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("quotas") / "data") as broker:
        yield broker


@pytest.fixture
def name():
    """A function that gives names which nobody has used yet."""
    return lambda prefix="c": f"{prefix}{os.getpid()}x{next(_numbers)}"


@pytest.fixture
def peer(quota_broker, name):
    """Makes peers: of a fresh client id unless one is given."""
    made = []

    def make(client_id=None):
        made.append(QuotaPeer(quota_broker.bootstrap, client_id or name()))
        return made[-1]

    yield make
    for one in made:
        one.__exit__()


@pytest.fixture
def admin(peer):
    """Nothing that it asks is throttled, and what it set is taken away at the end."""
    one = peer("the-admin")
    yield one
    for entity, quotas in one.described().items():
        one.quotas(entity, **dict.fromkeys(quotas))


@pytest.fixture
def topic(quota_broker, name):
    return quota_broker.peer.create(1, {}, name("t"))
