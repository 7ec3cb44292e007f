"""Which data folder a command reads when --data does not say it."""

import pytest

from console.model.asking import profiles
from console.model.storage import data_folder
from tests.console_process import rows, typing

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    """A user's settings of the test's own, and a folder to be in."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.delenv("PENSTOCK_PROFILE", raising=False)
    monkeypatch.chdir(tmp_path)


def unit(tmp_path, data):
    """This user's service."""
    file = tmp_path / "settings/systemd/user/penstock.service"
    file.parent.mkdir(parents=True)
    file.write_text(f'[Service]\nExecStart=/x/penstock up --data "{data}" --config /y\n')
    return file


def test_the_strongest_that_says_it_wins(tmp_path, alone):
    away, here = typing(NOBODY), typing(alone.bootstrap)
    folder = str(alone.data_dir)
    assert "no folder of an appliance" in away("stats", code=3).stderr
    told = here("stats").stderr
    assert told == f"data folder {folder}, of the appliance at {alone.bootstrap}\n"
    file = unit(tmp_path, "/of a unit")
    assert f"data folder /of a unit, of {file}" in here("stats", code=3).stderr
    (tmp_path / "penstock-data").symlink_to(folder)
    assert away("stats").stderr == "", "it runs in the folder where one is"
    away("profile", "add", "a", NOBODY, "--data", "elsewhere")
    assert rows(away("profile", "list", "-o", "json"))[0]["data"] == str(tmp_path / "elsewhere")
    told = away("--profile", "a", "stats", code=3).stderr
    assert f"data folder {tmp_path / 'elsewhere'}, of profile a" in told
    away("--profile", "a", "stats", "-b", alone.bootstrap)
    assert away("--profile", "a", "stats", "--data", folder).stderr == ""


def test_a_profile_without_a_folder_is_refused_and_not_ignored(tmp_path, alone):
    away = typing(NOBODY)
    (tmp_path / "penstock-data").symlink_to(alone.data_dir)
    away("profile", "add", "far", "127.0.0.1:1")
    for words in (["connections"], ["top"], ["event", "list"], ["config", "reload"], ["wait"]):
        told = away("--profile", "far", *words, code=2).stderr
        assert "profile far names no data folder" in told and "--data DIR" in told
    away("profile", "add", "near", alone.bootstrap)
    told = away("--profile", "near", "client", "metrics").stderr
    assert f"data folder {alone.data_dir}" in told


def test_an_address_that_is_not_of_this_host_is_refused(alone):
    away = typing(NOBODY)
    assert "127.0.0.1:1" in away("connections", "-b", NOBODY, code=3).stderr
    found = rows(away("connections", "-b", alone.bootstrap, "--over", "0", "-o", "json"))
    assert isinstance(found, list)


def test_an_address_of_a_profile_has_a_port():
    away = typing(NOBODY)
    told = away("profile", "add", "x", "a:1,b.example.org", code=2).stderr
    assert "'b.example.org' names no port" in told and "b.example.org:9092" in told
    away("profile", "add", "x", "[::1]", code=2)
    away("profile", "add", "x", "[::1]:9092")
    assert profiles.read().named["x"].bootstrap == "[::1]:9092"


def test_status_takes_the_folder_of_a_profile(alone, tmp_path):
    away = typing(NOBODY)
    away("profile", "add", "a", NOBODY, "--data", str(alone.data_dir))
    told = away("--profile", "a", "status", "--over", "0", code=None).stdout
    assert f"at {alone.bootstrap}" in told


def test_the_doctor_looks_at_the_folder_or_the_broker_of_a_profile(alone):
    away = typing(NOBODY)
    away("profile", "add", "a", NOBODY, "--data", str(alone.data_dir))
    assert "of profile a" in away("--profile", "a", "doctor", code=None).stderr
    away("profile", "add", "far", NOBODY)
    assert NOBODY in away("--profile", "far", "doctor", code=3).stderr


def test_wait_goes_to_whoever_comes_up(tmp_path, alone, monkeypatch):
    """It looks where nobody is at first, as a script does that starts an appliance beside it."""
    places = iter([data_folder.Folder("nowhere"), data_folder.Folder(str(alone.data_dir), "of x")])
    monkeypatch.setattr("console.commands.wait.find_folder", lambda *_, **__: next(places))
    assert f"data folder {alone.data_dir}, of x" in typing(NOBODY)("wait").stderr


def test_wait_means_the_appliance_of_this_folder(tmp_path, alone, monkeypatch):
    """Not another one that answers at the usual address: this one may be about to start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_BOOTSTRAP", raising=False)
    monkeypatch.setattr(data_folder, "_of_address", lambda said: pytest.fail(str(said)))
    monkeypatch.setattr(data_folder, "_of_units", lambda: iter(()))
    assert data_folder.find_folder(None, asks=False) == data_folder.Folder("penstock-data")
