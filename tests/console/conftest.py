"""`run`: commands against the session's appliance."""

import pytest

from penstock.local import Appliance
from tests.console_process import typing


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory):
    """What a console remembers is not the user's, nor are the profiles that it knows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.delenv("PENSTOCK_PROFILE", raising=False)
        yield


@pytest.fixture(scope="session")
def run(appliance):
    """Run a command: the finished process with stdout and stderr as text."""
    return typing(appliance.bootstrap)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """An appliance of a module's own: its lists fit a screen, whatever other tests made."""
    with Appliance(tmp_path_factory.mktemp("alone") / "data") as running:
        yield running
