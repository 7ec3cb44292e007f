"""Passwords that somebody types, at the prompt of a command and of the console, and the one that
the console makes for a new user: on no terminal, in no history and in no file that stays behind,
but in the one that was asked for."""

import re

import pytest

from tests.broker_process import KAFKA
from tests.console.seat import sit, tab
from tests.console.terminal import Terminal
from tests.console_process import PENSTOCK
from tests.sasl.logged import LoggedIn, jaas

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(KAFKA, reason="the console of an appliance"),
]
USER, RIGHT, WRONG = "typist", "canary-Typed-e170", "canary-Mistyped-22fa"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    words = {"listener.name.static.plain.sasl.jaas.config": jaas({USER: RIGHT})}
    with LoggedIn(tmp_path_factory.mktemp("typed") / "data", words) as running:
        yield running


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Of whoever types: all that commands keep for the next time is below it."""
    found = tmp_path / "home"
    found.mkdir()
    monkeypatch.setenv("HOME", str(found))
    for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(found / kind))
    monkeypatch.delenv("PENSTOCK_PASSWORD", raising=False)
    return found


def keeping(folder, *canaries):
    files = [one for one in folder.rglob("*") if one.is_file()]
    return [one for one in files if any(word.encode() in one.read_bytes() for word in canaries)]


@pytest.mark.parametrize("typed", [RIGHT, WRONG])
@pytest.mark.parametrize("words", [("topic", "list"), ("console", "topics")], ids=" ".join)
def test_what_is_typed_at_a_prompt_is_shown_and_kept_nowhere(broker, home, words, typed):
    login = ("--login", USER, "-X", "sasl.mechanism=PLAIN", "-b", broker.at("STATIC"))
    terminal = Terminal(*words, *login, command=PENSTOCK, cwd=home)
    try:
        terminal.until(f"password of {USER}: ")
        assert not terminal.echoes()
        terminal.type(f"{typed}\n")
        if words[0] == "console":
            terminal.until("Topics" if typed == RIGHT else "login")
            for keys in (":", "groups\r", "/", "some\r", ":", "topics\r", "\x11"):
                terminal.type(keys)  # the last one leaves it: what it keeps it has written then
        assert terminal.ends() == (2 if typed == WRONG and words[0] == "topic" else 0)
    finally:
        terminal.close()
    said = terminal.said.decode(errors="replace")
    assert RIGHT not in said and WRONG not in said
    assert not keeping(home, RIGHT, WRONG)


def test_a_new_users_password_is_in_its_file_alone(broker, home, monkeypatch):
    monkeypatch.chdir(home)
    seen = []

    async def act(seat):
        await seat.press(tab("users"), "n")
        await seat.form()
        await seat.type("kept")
        await seat.press("enter")
        await seat.plan()
        seen.append(seat.text())
        await seat.press("right", "enter")
        await seat.back()
        await seat.sees("kept")
        seen.extend((seat.text(), seat.app.clipboard, str(seat.app.journal.entries)))
        await seat.press(tab("log"))
        await seat.settled()
        seen.append(seat.text())

    sit(broker.bootstrap, act)
    made = home / "kept.properties"
    [secret] = re.findall(r"^sasl\.password=(\S+)", made.read_text(), re.M)
    assert "user add kept" in "".join(seen) and secret not in "".join(seen)
    assert keeping(home, secret) == [made]
