"""Ours, and Apache Kafka beside it, with the same users in their settings and their metadata."""

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from benchmarks import kafka
from tests.sasl.logged import USERS, LoggedIn

_KINDS = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)


def pytest_configure(config):
    """The clients' own use of the language is not what these tests are about."""
    for accepted in (":(aio)?kafka.*", "(read|open)_text is deprecated.*:"):
        message, _, module = accepted.rpartition(":")
        config.addinivalue_line("filterwarnings", f"ignore:{message}:DeprecationWarning:{module}")


def put_users(bootstrap, users=USERS, kinds=_KINDS):
    """As kafka-configs --alter --add-config does it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for kind in kinds:
        wanted = [
            UserScramCredentialUpsertion(name, ScramCredentialInfo(kind, 4096), password.encode())
            for name, password in users.items()
        ]
        for done in admin.alter_user_scram_credentials(wanted).values():
            done.result(30)


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    with LoggedIn(tmp_path_factory.mktemp("sasl") / "data") as running:
        put_users(running.bootstrap)
        yield running


@pytest.fixture(scope="session")
def apache(tmp_path_factory):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    data = tmp_path_factory.mktemp("sasl-kafka") / "data"
    with LoggedIn(data, of_kafka=True) as running:
        put_users(running.bootstrap)
        yield running
