"""`run`: commands against the session's appliance."""

import pytest

from penstock.local import Appliance
from tests.console_process import typing


@pytest.fixture(scope="session")
def run(appliance):
    """Run a command: the finished process with stdout and stderr as text."""
    return typing(appliance.bootstrap)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """An appliance of a module's own: its lists fit a screen, whatever other tests made."""
    with Appliance(tmp_path_factory.mktemp("alone") / "data") as running:
        yield running
