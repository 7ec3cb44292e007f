"""`penstock up --check`, and what `penstock restart` refuses; at work it is in tests/upgrade."""

import subprocess
import sys

import pytest

from appliance.config.load import load
from appliance.control.folder import startup
from console.model.asking.failure import Failure
from console.model.local.starting import check
from console.model.local.succession import _ask
from tests.console.test_up import up


def told(folder, *args):
    done = up(folder, "--check", *args)
    return done.returncode, (done.stdout + done.stderr).strip()


def test_a_new_folder_is_not_made_by_the_check(tmp_path):
    code, said = told(tmp_path)
    assert code == 0 and said.endswith(f"would start; data {tmp_path}/data (new)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["-o", "num.partitions=none"], "num.partitions"),
        (["-o", "node.id=7"], "belongs to node.id=1"),
        (["--join", "127.0.0.1:1"], "--check asks no cluster"),
    ],
)
def test_what_a_start_would_refuse_the_check_refuses(fresh_appliance, args, why):
    one = fresh_appliance()
    lock = (one.data_dir / ".lock").read_bytes()
    where = one.data_dir.parent
    (where / "data").symlink_to(one.data_dir) if one.data_dir.name != "data" else None
    assert told(where)[0] == 0, "also beside one that runs"
    code, said = told(where, *args)
    assert code == 2 and why in said
    assert (one.data_dir / ".lock").read_bytes() == lock and one.running


def test_a_folder_of_a_newer_version_is_refused_by_the_check(fresh_appliance, monkeypatch):
    one = fresh_appliance()
    broker, _ = load(None, {"node.id": "1"})
    assert check([str(one.data_dir)], broker, "") == ""
    lower = {name: (lowest, highest - 1) for name, (lowest, highest) in startup.SUPPORTED.items()}
    monkeypatch.setattr(startup, "SUPPORTED", lower)
    with pytest.raises(Failure, match="use the Penstock that wrote it, or a newer one"):
        check([str(one.data_dir)], broker, "")


def test_where_nothing_runs_nothing_is_restarted(tmp_path):
    command = [sys.executable, "-m", "console", "restart", "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "is no folder of an appliance" in done.stderr


def test_who_does_not_wait_for_the_signal_is_not_killed_by_it():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as one:
        with pytest.raises(Failure, match="its version does not know how"):
            _ask(one.pid, "data")
        assert one.poll() is None
        one.communicate(b"\n")
    assert one.returncode == 0
