"""One broker with listeners of every kind for the tests that change nothing in it, certificates in
a folder, and topics with fresh names. PENSTOCK_TEST_BROKER=kafka runs all of it on Apache Kafka."""

import itertools
import os
import time

import pytest

from benchmarks import kafka
from tests.tls.secured import LISTENERS, Pki, Secured

_numbers = itertools.count(1)


def pytest_configure(config):
    """The clients' own use of the language is not what these tests are about."""
    for accepted in (":(aio)?kafka.*", "(read|open)_text is deprecated.*:"):
        message, _, module = accepted.rpartition(":")
        config.addinivalue_line("filterwarnings", f"ignore:{message}:DeprecationWarning:{module}")


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def fresh_pki(tmp_path):
    """For a test that changes files."""
    folder = tmp_path / "pki"
    folder.mkdir()
    return Pki(folder)


@pytest.fixture(scope="session")
def broker(tmp_path_factory, pki):
    names = [name for name in LISTENERS if name != "STORED"]
    with Secured(tmp_path_factory.mktemp("tls") / "data", pki, names) as running:
        yield running


@pytest.fixture(scope="session")
def stored(tmp_path_factory, pki):
    """A broker with a PKCS12 store that keytool made."""
    if reason := kafka.unavailable():
        pytest.skip(reason)
    with Secured(tmp_path_factory.mktemp("stored") / "data", pki, ["STORED"]) as running:
        yield running


@pytest.fixture(scope="session")
def alone(tmp_path_factory, pki):
    """A broker without a plain listener."""
    with Secured(tmp_path_factory.mktemp("alone") / "data", pki, ["SSL"], plain=False) as running:
        yield running


@pytest.fixture
def new_topic(broker):
    """A function that creates a topic and returns its name; all of them are deleted at the end."""
    made = []

    def create(partitions=1, **configs):
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        made.append(broker.peer.create(partitions, settings, fresh_name()))
        return made[-1]

    yield create
    for name in made:
        broker.peer.delete(name)


@pytest.fixture
def topic(new_topic):
    return new_topic()


def fresh_name():
    return f"tls-{os.getpid()}-{next(_numbers)}-{time.time_ns() // 1_000_000 % 10**9}"
