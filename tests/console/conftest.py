"""`run`: commands against the session's appliance."""

import pytest

from tests.console_process import typing


@pytest.fixture(scope="session")
def run(appliance):
    """Run a command: the finished process with stdout and stderr as text."""
    return typing(appliance.bootstrap)
