"""An installation that is replaced under an appliance that runs: it is of the old version until it
is restarted, processes that take the place of dead ones too."""

import os
import signal
import sys
import time

from appliance.observer.door import Observer
from appliance.ring.process_table import CONTROL, READY, Peer
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.cluster.nodes import read_nodes
from console.model.cluster.versions import read_versions
from tests.upgrade.installed import ROOT, Installed

LIMIT_S = 60


def installed(place, version):
    folder = place / "packages/penstock-0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(f"Version: {version}\n")


def program(place):
    path = place / "penstock"
    found = f"{place / 'packages'}:{ROOT}"
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{found}" exec "{sys.executable}" -P -m console "$@"\n')
    path.chmod(0o755)
    return path


def said(appliance):
    """The versions that it tells, as soon as it answers."""
    link, end = Link(appliance.bootstrap, {}, 10), time.monotonic() + LIMIT_S
    while True:
        try:
            return list(read_versions(link, read_nodes(link)).versions.values())
        except Failure:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_the_version_is_that_which_was_started(tmp_path):
    appliance = Installed(tmp_path / "data")
    installed(tmp_path, "1.3.2")
    try:
        appliance.start(program(tmp_path))
        assert said(appliance) == ["1.3.2"]
        installed(tmp_path, "1.4.0")
        processes, control = Observer(str(appliance.data)).tables.processes, Peer(CONTROL, 0)
        generation = processes.generation(control)
        os.kill(processes.pid(control), signal.SIGKILL)
        end = time.monotonic() + LIMIT_S
        while processes.generation(control) == generation or processes.state(control) != READY:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert said(appliance) == ["1.3.2"]
        assert appliance.stop() == 0
        appliance.start(program(tmp_path))
        assert said(appliance) == ["1.4.0"]
    finally:
        appliance.close()
