"""The temporary folder of `penstock run` goes with it, and by the next run where it was killed."""

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from console.commands import run
from console.model.asking.failure import Failure
from console.model.local import run_folders
from tests.compat.waiting import until

RUN = [sys.executable, "-m", "console", "run", "--"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def left(place):
    return sorted(place.glob("penstock-run-*"))


def test_what_a_killed_run_leaves_the_next_one_removes_and_no_other_s(place):
    mine = run_folders.make_folder()
    (place / "penstock-run-unlocked").mkdir()  # perhaps another one is about to take it
    process = subprocess.Popen(
        [*RUN, sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "up\n"
    assert len(left(place)) == 3
    run_folders.remove_left()
    assert len(left(place)) == 3, "it serves"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    def gone():
        run_folders.remove_left()  # once its appliance has ended, too
        return left(place) == sorted([mine.path, place / "penstock-run-unlocked"])

    until(gone, 60)
    mine.remove()
    assert left(place) == [place / "penstock-run-unlocked"]


def test_where_there_is_no_room_for_it_a_line_says_what_helps(place, monkeypatch):
    def full(**named):
        raise OSError(28, "No space left on device", str(place))

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(Failure, match="No space left on device") as told:
        run._folder()
    assert "TMPDIR" in told.value.hint


def test_settings_that_there_are_not_are_warned_of(capsys):
    run.warn_of({"nosuch.setting": "1", "log.retention.ms": "1000"})
    told = capsys.readouterr().err
    assert told.startswith("warning: ") and "nosuch.setting" in told and told.count("\n") == 1
    with pytest.raises(Failure, match=r"log\.retention\.ms"):
        run.warn_of({"log.retention.ms": "soon"})
