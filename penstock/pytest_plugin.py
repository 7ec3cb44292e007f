"""pytest fixtures that give tests a real appliance.

Switch them on with `pytest_plugins = ["penstock.pytest_plugin"]` in the topmost conftest.py.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from penstock.local import Appliance


@pytest.fixture(scope="session")
def appliance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    """One running appliance for the whole session: `.bootstrap`, `.pid`, `.pids()`, `.data_dir`,
    `.log_text()`. Use topics of your own in it, and do not stop it."""
    with Appliance(tmp_path_factory.mktemp("appliance") / "data") as running:
        yield running


@pytest.fixture
def fresh_appliance(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Appliance]]:
    """A function that starts an appliance of this test's own in an empty folder.

    Its keywords are settings with `_` for `.`; the appliance has `start`, `stop`, `kill` and
    `restart`, and is stopped at the end of the test.
    """
    with ExitStack() as made:

        def start(**settings: object) -> Appliance:
            one = Appliance(tmp_path_factory.mktemp("fresh") / "data")
            made.callback(one.close)
            return one.start(**settings)

        yield start
