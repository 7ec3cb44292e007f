"""The fault tests run whole brokers and kill them; they need nothing but the clients of pip."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.broker_process import Broker


@pytest.fixture
def broker(tmp_path):
    """A broker of this test's own, started."""
    with Broker(tmp_path / "data") as running:
        yield running
