"""`run`: commands against the session's appliance."""

import os

import pytest

from penstock.local import Appliance
from tests.console_process import typing


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory):
    """What a console remembers is not the user's."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    yield
    os.environ.pop("XDG_STATE_HOME")
    if before is not None:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session")
def run(appliance):
    """Run a command: the finished process with stdout and stderr as text."""
    return typing(appliance.bootstrap)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """An appliance of a module's own: its lists fit a screen, whatever other tests made."""
    with Appliance(tmp_path_factory.mktemp("alone") / "data") as running:
        yield running
