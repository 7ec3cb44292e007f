"""Passwords are in nothing that the appliance and its commands show, keep or send."""

import base64
import tarfile
from pathlib import Path

import pytest

from tests.broker_process import KAFKA
from tests.console_process import typing
from tests.differential.link import Link
from tests.sasl.logged import HOST, LoggedIn, jaas
from tests.sasl.talk import Talk

pytestmark = pytest.mark.skipif(KAFKA, reason="what an appliance shows")
IN_SETTINGS = "canary-Settings-7a31"
OF_A_USER = "canary-User-90fe"
MISTYPED = "canary-Mistyped-c44d"
OF_TOKENS = "canary-Tokens-51bc"
CANARIES = [IN_SETTINGS, OF_A_USER, MISTYPED, OF_TOKENS]
"""The HMACs of tokens are added as they are made."""
KEY = "listener.name.static.plain.sasl.jaas.config"


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Its users have logged in, or tried to, by each mechanism."""
    folder = tmp_path_factory.mktemp("canaries")
    words = {KEY: jaas({"static": IN_SETTINGS}), "delegation.token.secret.key": OF_TOKENS}
    with LoggedIn(folder / "data", words) as running:
        secret = folder / "secret"
        secret.write_text(OF_A_USER)
        run = typing(running.bootstrap)
        run("user", "add", "kept", "--new-password-file", str(secret), "--form", "none")
        for listener, user, password, code in (
            ("STATIC", "static", IN_SETTINGS, 0), ("STATIC", "static", MISTYPED, 58),
            ("SASL_PLAINTEXT", "kept", OF_A_USER, 0), ("SASL_PLAINTEXT", "kept", MISTYPED, 58),
            ("SASL_PLAINTEXT", MISTYPED, OF_A_USER, 58),
        ):  # fmt: skip
            with running.wire(listener) as wire:
                assert Talk(wire).plain(user, password)[0] == code
        for password, code in ((OF_A_USER, 0), (MISTYPED, 58)):
            with running.wire("ONLY") as wire:
                assert Talk(wire).scram("SCRAM-SHA-512", "kept", password)[0] == code
        secret.unlink()
        log_in_by_token(running)
        yield running


def log_in_by_token(running):
    """A token is created, renewed and used, and its HMAC given in the wrong place, too."""
    link = Link((HOST, running.ports["STATIC"]))
    link.login("static", IN_SETTINGS)
    asked = {"owner_principal_type": None, "owner_principal_name": None, "renewers": []}
    token = link.ask(38, 3, asked | {"max_lifetime": -1})
    hmac = bytes.fromhex(token["hmac"])
    password = base64.b64encode(hmac).decode()
    CANARIES.extend((token["hmac"], password, repr(hmac)[2:-1]))
    assert link.ask(39, 2, {"hmac": hmac, "renew_period": -1})["error_code"] == "NONE"
    for user, secret, code in (
        (token["token_id"], password, 0), (password, password, 58), (token["token_id"], "x", 58),
    ):  # fmt: skip
        with running.wire("ONLY") as wire:
            talk = Talk(wire)
            told = talk.scram("SCRAM-SHA-512", user, secret, extensions=",tokenauth=true")
            assert told[0] == code
    link.close()


def check(what, data):
    for canary in CANARIES:
        assert canary.encode() not in data, (what, canary)


def test_in_no_log_and_no_command_line(own):
    assert "login-failed" in own.output()
    check("log", own.output().encode())
    for pid in own.pids():
        check("ps", Path(f"/proc/{pid}/cmdline").read_bytes())


@pytest.mark.parametrize(
    "words",
    [
        ("event", "list", "--data", "{data}", "-o", "json"),
        ("audit", "--data", "{data}", "-n", "10000", "-o", "json"),
        ("client", "list", "--data", "{data}", "--over", "0.1", "-o", "json"),
        ("config", "list", "-o", "json"),
        ("config", "list", "--broker", "1", "-o", "json"),
        ("user", "list", "-o", "json"),
        ("status", "--data", "{data}", "-o", "json"),
    ],
    ids=" ".join,
)
def test_in_nothing_that_a_command_shows(own, words):
    done = typing(own.bootstrap)(*(one.format(data=own.data) for one in words), code=None)
    assert done.returncode in (0, 4), done.stderr
    check(words, (done.stdout + done.stderr).encode())


def test_in_no_debug_bundle(own, tmp_path):
    file = tmp_path / "bundle.tar.gz"
    typing(own.bootstrap)("debug", "bundle", "--data", str(own.data), "-o", str(file))
    with tarfile.open(file) as bundle:
        names = [one.name for one in bundle if one.isfile()]
        for name in names:
            check(name, bundle.extractfile(name).read())
    assert len(names) > 5


def test_in_no_file_of_the_data_folder(own):
    """A user's password is kept as what is derived of it."""
    for file in own.data.rglob("*"):
        if file.is_file():
            check(file, file.read_bytes())


def test_a_setting_that_is_changed_is_not_shown_to_whoever_asks(own):
    run = typing(own.bootstrap)
    told = run("config", "get", KEY, "--broker", "1", "-o", "json", code=None)
    check("config get", (told.stdout + told.stderr).encode())
