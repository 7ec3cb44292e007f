"""One booted systemd for all tests of the units; skipped with the reason where none can be."""

import pytest
from booted import Booted, NotBooted, impossible


@pytest.fixture(scope="module")
def booted(tmp_path_factory):
    if why := impossible():
        pytest.skip(why)
    try:
        found = Booted(tmp_path_factory.mktemp("systemd") / "container")
    except NotBooted as why:
        pytest.skip(str(why))
    try:
        found.install()
        yield found
    finally:
        found.close()
