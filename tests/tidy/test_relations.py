"""Limits in different files that must fit each other: each is held, and a wrong one is named."""

import re
from pathlib import Path

import pytest

from appliance.ioproc import main as ioproc
from appliance.ioproc.deletion import partition_deletion
from appliance.ioproc.lifecycle import partition_manager
from appliance.metadata import follower
from appliance.ring import ring
from appliance.shell import patience
from appliance.supervisor import relations, restart
from appliance.supervisor import run as run_supervisor

ROOT = Path(__file__).parents[2]


def test_all_of_them_hold():
    relations.assert_relations()


@pytest.mark.parametrize(
    ("module", "name", "value", "why"),
    [
        (partition_manager, "OPENING_NS", 9_000_000, "no turn takes long"),
        (follower, "A_SLICE", 2000, "no turn takes long"),
        (follower, "BREATH", 100_000, "lets go of the dead"),
        (partition_deletion, "A_SYNC", 1 << 20, "one job"),
        (ring, "PIECES", 16, "in one piece"),
        (ioproc, "DRAIN_STAGE", 3, "ends when it is asked to"),
        (restart, "FIRST_DELAY_NS", 4_000_000_000, "isolated"),
    ],
)
@pytest.mark.interpreted("compiled modules keep their constants")
def test_who_changes_one_limit_alone_is_told_which_relation_breaks(
    module, name, value, why, monkeypatch
):
    monkeypatch.setattr(module, name, value)
    with pytest.raises(AssertionError, match=why):
        relations.assert_relations()


@pytest.mark.interpreted("compiled modules keep their constants")
def test_nothing_starts_while_a_relation_does_not_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(partition_manager, "OPENING_NS", 9_000_000)
    folder = tmp_path / "data"
    with pytest.raises(AssertionError, match="no turn takes long"):
        run_supervisor(None, data_dir=str(folder), on_ready=pytest.fail)
    assert not folder.exists()


@pytest.mark.parametrize("setting", ["CONFIRM_S", "WEDGED_S", "NETPROC_ANSWERS_S"])
def test_who_waits_too_long_or_not_long_enough_is_told_at_the_import(setting):
    text = Path(patience.__file__).read_text()
    wrong = {"CONFIRM_S": "20.0", "WEDGED_S": "1.0", "NETPROC_ANSWERS_S": "9.0"}[setting]
    changed, count = re.subn(rf"^{setting}: Final = .*$", f"{setting} = {wrong}", text, flags=re.M)
    assert count == 1
    with pytest.raises(AssertionError, match=r"\w+"):
        exec(compile(changed, patience.__file__, "exec"), {"__name__": "wrong"})


def test_the_system_gives_an_orderly_end_the_time_that_it_may_take():
    unit = (ROOT / "systemd" / "penstock.service").read_text()
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.M)
    drains = patience.NETPROC_DRAIN_S + patience.IOPROC_DRAIN_S + patience.CONTROL_DRAIN_S
    assert int(seconds) >= 2 * drains
