"""What the client tests share: one broker for all of them, and topics with fresh names.

The broker is the appliance, started here; PENSTOCK_TEST_BOOTSTRAP=HOST:PORT names any other that
runs already, PENSTOCK_TEST_BROKER=kafka starts Apache Kafka.
"""

import itertools
import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.peer import Peer
from tests.broker_process import Broker

_numbers = itertools.count(1)
LIMIT_S = 60
"""How long a client may take for one step before a test gives up, seconds. Never slept through."""


def pytest_configure(config):
    """The clients' own use of the language is not what these tests are about."""
    for accepted in (":(aio)?kafka.*", "(read|open)_text is deprecated.*:"):
        message, _, module = accepted.rpartition(":")
        config.addinivalue_line("filterwarnings", f"ignore:{message}:DeprecationWarning:{module}")


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """The broker's process, for tests that look at its files; skipped when it is not ours."""
    if os.environ.get("PENSTOCK_TEST_BOOTSTRAP"):
        pytest.skip("the broker of PENSTOCK_TEST_BOOTSTRAP is not ours to look into")
    with Broker(tmp_path_factory.mktemp("compat") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(request):
    """HOST:PORT of the broker under test."""
    given = os.environ.get("PENSTOCK_TEST_BOOTSTRAP")
    return given or request.getfixturevalue("broker").bootstrap


@pytest.fixture
def new_topic(bootstrap):
    """A function that creates a topic and returns its name; all of them are deleted at the end."""
    host, _, port = bootstrap.rpartition(":")
    peer, made = Peer("broker", (host, int(port)), None), []

    def create(partitions=1, **configs):
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        made.append(peer.create(partitions, settings, fresh_name()))
        return made[-1]

    yield create
    for name in made:
        peer.delete(name)


def fresh_name(prefix="compat"):
    return f"{prefix}.{os.getpid()}-{next(_numbers)}_{time.time_ns() // 1_000_000 % 10**9}"


@pytest.fixture
def topic(new_topic):
    return new_topic()


@pytest.fixture
def fresh():
    """Names that no topic has yet."""
    return fresh_name
