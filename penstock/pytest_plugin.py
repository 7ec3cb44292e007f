"""pytest fixtures that give tests a real appliance. Installed with the package, so nothing has to
be switched on; `docs/testing.md` is the manual.

Under pytest-xdist each worker is a process with a session of its own, so each has an appliance of
its own: no worker waits for another one, and names of topics need not be shared out.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:  # every run of pytest in this environment loads this module
    from penstock.local import Appliance
    from penstock.secured import SecuredAppliance

_SETTINGS: Final = "penstock_settings"
_NAME_MOST: Final = 200
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the appliance's options to pytest's configuration file."""
    parser.addini(
        _SETTINGS, "Settings of the session's appliance, KEY=VALUE in each line.", "linelist", []
    )


@pytest.fixture(scope="session")
def appliance(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator["Appliance"]:
    """One running appliance for the whole session: `.bootstrap`, `.connect()`, `.environment()`,
    `.data_dir`, `.log_text()`. Use topics of your own in it (`new_topic`), and do not stop it."""
    from penstock.local import Appliance

    settings = _settings_of(pytestconfig)
    with Appliance(tmp_path_factory.mktemp("appliance") / "data", settings) as running:
        yield running


def _settings_of(config: pytest.Config) -> dict[str, str]:
    """The settings in pytest's configuration file. Raises UsageError."""
    lines = [line.partition("=") for line in config.getini(_SETTINGS)]
    if wrong := [key for key, sign, _ in lines if not sign]:
        raise pytest.UsageError(f"{_SETTINGS}: {wrong[0]!r} is not KEY=VALUE")
    return {key.strip(): value.strip() for key, _, value in lines}


@pytest.fixture(scope="session")
def secured_appliance(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator["SecuredAppliance"]:
    """One running appliance for the whole session whose clients log in over TLS, with ACLs:
    `.admin` and `.add_user("loader", "write:orders")` are users with `.properties`, `.file` and
    `.java_file`; `.connect(user)`. Its settings are those of `appliance`."""
    from penstock.secured import SecuredAppliance

    settings = _settings_of(pytestconfig)
    with SecuredAppliance(tmp_path_factory.mktemp("secured"), settings) as running:
        yield running


@pytest.fixture
def fresh_appliance(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., "Appliance"]]:
    """A function that starts an appliance of this test's own in an empty folder.

    Its keywords are settings with `_` for `.`; the appliance has `start`, `stop`, `kill`,
    `restart` and `advance(days=8)`, and is stopped at the end of the test.
    """
    from penstock.local import Appliance

    with ExitStack() as made:

        def start_appliance(**settings: object) -> Appliance:
            one = Appliance(tmp_path_factory.mktemp("fresh") / "data", own_clock=True)
            made.callback(one.close)
            return one.start(**settings)

        yield start_appliance


@pytest.fixture
def new_topic(request: pytest.FixtureRequest) -> Callable[..., str]:
    """A function that makes a topic in the session's appliance, with a name that no other test has,
    and returns the name: `new_topic(partitions=3, retention_ms=60000)`."""
    running: Appliance = request.getfixturevalue("appliance")
    test = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name).strip("-")[:_NAME_MOST]

    def make_topic(partitions: int = 1, **settings: Any) -> str:
        name = f"{test}.{next(_numbers)}"
        running.connect().create_topic(name, partitions, **settings)
        return name

    return make_topic


@pytest.fixture
def kill_process() -> Callable[..., None]:
    """`kill_process(appliance, "io")`: that process is killed, another one is at work."""
    from penstock import failures

    return failures.kill_process


@pytest.fixture
def full_disk() -> Callable[["Appliance"], AbstractContextManager[None]]:
    """`with full_disk(appliance):` records are refused for want of room."""
    from penstock import failures

    return failures.full_disk


@pytest.fixture
def throttled() -> Callable[..., AbstractContextManager[None]]:
    """`with throttled(appliance, produce="10kB/s"):` every client has these quotas."""
    from penstock import failures

    return failures.throttled
