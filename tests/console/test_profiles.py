"""`penstock profile` and --profile: which broker a command is about."""

import pytest

from console.model.asking import profiles
from console.model.asking.failure import Failure
from console.model.asking.profiles import Profile
from console.screens import lines
from tests.console_process import rows, typing


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    """A user's settings of the test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    for name in ("PENSTOCK_PROFILE", "PENSTOCK_BOOTSTRAP"):
        monkeypatch.delenv(name, raising=False)


def test_a_profile_says_where_the_broker_is(appliance):
    nowhere = typing("127.0.0.1:1")
    nowhere("profile", "add", "here", appliance.bootstrap)
    typing(appliance.bootstrap)("topic", "create", "by.profile")
    assert "by.profile" in nowhere("--profile", "here", "topic", "list", "-o", "name").stdout


def test_which_broker_is_meant(monkeypatch, tmp_path):
    ask = typing("")
    assert profiles.where(None, None) == Profile("localhost:9092")
    ask("profile", "add", "a", "a:1,b:2", "--command-config", "x.properties", cwd=tmp_path)
    ask("profile", "add", "c", "c:3")
    assert profiles.where(None, None) == Profile("localhost:9092"), "none is in use"
    ask("profile", "use", "a")
    a = Profile("a:1,b:2", str(tmp_path / "x.properties"))
    assert profiles.where(None, None) == a
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP", "e:5")
    assert profiles.where(None, None) == Profile("e:5")
    assert profiles.where(None, "a") == a
    monkeypatch.setenv("PENSTOCK_PROFILE", "c")
    assert profiles.where(None, None) == Profile("c:3")
    assert profiles.where("b:9", "a") == Profile("b:9")
    found = rows(ask("profile", "list", "-o", "json"))
    assert [(one["name"], one["used"]) for one in found] == [("a", True), ("c", False)]
    ask("profile", "remove", "a")
    assert profiles.read().used == ""
    assert list(profiles.read().named) == ["c"]


def test_what_is_wrong_is_one_sentence(tmp_path):
    ask = typing("")
    assert "there is no profile x: none yet" in ask("profile", "use", "x", code=2).stderr
    assert "is not HOST:PORT" in ask("profile", "add", "x", "a:b", code=2).stderr
    told = ask("--profile", "x", "topic", "list", code=2).stderr
    assert "profile add x HOST:PORT" in told
    profiles.path().parent.mkdir(parents=True)
    profiles.path().write_text("[profiles.a]\n")
    with pytest.raises(Failure, match="profile a says no bootstrap"):
        profiles.read()


def test_the_profile_says_where_and_its_file_how(appliance, tmp_path):
    ask = typing("127.0.0.1:1")
    (tmp_path / "client.properties").write_text("bootstrap.servers=127.0.0.1:2\nclient.id=me\n")
    ask("profile", "add", "here", appliance.bootstrap,
        "--command-config", "client.properties", cwd=tmp_path)  # fmt: skip
    ask("--profile", "here", "topic", "list")


@pytest.mark.parametrize("name", ["a b", 'say "x"', "ü\U0001f4e6", "a\\b", "\x7f"])
def test_any_name_is_read_as_it_was_written(name):
    known = profiles.Profiles(name, {name: Profile("a:1", f"/{name}")})
    profiles.write_profiles(known)
    assert profiles.read() == known


def test_a_screen_names_the_broker_that_its_command_would_not_find():
    ask = typing("")
    ask("profile", "add", "far", "far:1", "--use")
    assert "-b" not in lines.asking("topic list", "far:1")
    assert lines.asking("topic list", "localhost:9092").endswith("-b localhost:9092")
    profiles.path().write_text("use = ")
    assert lines.asking("topic list", "far:1").endswith("-b far:1")
