"""What the clients leave behind is not what these tests are about."""

import gc
import socket

import pytest


@pytest.fixture(autouse=True)
def swept():
    """Close what a client did not when it was given up: kafka-python forgets sockets that were not
    connected yet."""
    yield
    for one in gc.get_objects():
        if type(one) is socket.socket and one.fileno() >= 0:
            one.close()


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:(aio)?kafka.*")
