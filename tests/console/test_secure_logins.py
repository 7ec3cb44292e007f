"""`penstock secure init`: three commands from nothing to a client that logs in and may do
what was said, while nobody else is served."""

import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.config.properties import parse_properties
from benchmarks import kafka
from console.model.secure import server_settings
from penstock.local import Appliance

pytestmark = pytest.mark.timeout(240)
LIMIT_S = 100


def penstock(place, *words, code=0, stdin=""):
    """What it prints, in this folder."""
    done = subprocess.run(
        [sys.executable, "-m", "console", *words], cwd=place, input=stdin,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def properties(path):
    return {key: value for key, value, _ in parse_properties(Path(path).read_text())}


class Secured:
    """A folder in which somebody typed the three commands, and the appliance that runs there."""

    def __init__(self, place):
        self.place = place
        self.folder = place / "penstock-secure"
        self.admin = str(self.folder / "clients/admin/client.properties")
        self.loader = str(place / "loader.properties")
        port = str(kafka.free_ports(server_settings.PORTS))
        self.said = penstock(place, "secure", "init", "--host", "localhost", "--port", port)

    def add_loader(self):
        rights = ("--can", "write:orders", "--can", "read:orders")
        told = penstock(self.place, "user", "add", "loader", *rights)  # by the owner's socket
        Path(self.loader).write_text(told)

    def as_admin(self, *words, **how):
        return penstock(self.place, *words, "--command-config", self.admin, **how)

    def as_loader(self, *words, **how):
        return penstock(self.place, *words, "--command-config", self.loader, **how)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    made = Secured(tmp_path_factory.mktemp("secured"))
    settings = properties(made.folder / "server.properties")
    with Appliance(made.place / "penstock-data", settings):
        made.add_loader()
        made.as_admin("topic", "create", "orders", "others")
        yield made


def test_what_it_makes_is_its_owners_alone_and_the_password_is_not_printed(secured):
    for one in [secured.folder, *secured.folder.rglob("*")]:
        assert stat.S_IMODE(one.stat().st_mode) & 0o077 == 0, one
    password = properties(secured.admin)["sasl.password"]
    assert len(password) >= 24
    assert password not in secured.said


def test_the_new_user_may_do_what_was_said_and_nothing_else(secured):
    secured.as_loader("produce", "orders", stdin="one\ntwo\n")
    assert secured.as_loader("consume", "orders", "-e") == "one\ntwo\n"
    assert secured.as_loader("consume", "orders", "-e", "-g", "loader-1") == "one\ntwo\n"
    assert secured.as_loader("topic", "list", "-o", "name").split() == ["orders"]
    said = secured.as_loader("produce", "others", stdin="x\n", code=1)
    assert "TOPIC_AUTHORIZATION_FAILED" in said
    secured.as_loader("user", "add", "friend", code=1)


def test_kcat_takes_the_file_as_it_is(secured):
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not here")
    done = subprocess.run(
        ["kcat", "-F", secured.loader, "-P", "-t", "orders"], input="three\n",
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "three\n" in secured.as_loader("consume", "orders", "-e")


def test_apache_kafkas_tools_take_the_file_as_it_is(secured):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    file = secured.folder / "clients/admin/java.properties"
    command = kafka.java(
        "org.apache.kafka.tools.TopicCommand",
        "--bootstrap-server", properties(file)["bootstrap.servers"],
        "--command-config", str(file), "--create", "--topic", "by-java", heap="128m",
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert "Created topic by-java" in done.stdout, done.stdout + done.stderr


def test_nobody_is_served_without_a_login_or_with_a_wrong_one(secured):
    told = properties(secured.admin)
    trusts = ("-b", told["bootstrap.servers"], "-X", f"ssl.ca.location={told['ssl.ca.location']}")
    said = penstock(secured.place, "topic", "list", *trusts, "-X", "security.protocol=SSL", code=2)
    assert "asks clients to log in" in said
    wrong = Path(secured.place / "wrong.properties")
    text = Path(secured.loader).read_text()
    password = properties(secured.loader)["sasl.password"]
    wrong.write_text(text.replace(password, "wrong"))
    said = penstock(secured.place, "topic", "list", "--command-config", str(wrong), code=2)
    assert "invalid credentials" in said


def test_the_settings_have_neither_warning_nor_error(secured):
    file = str(secured.folder / "server.properties")
    assert penstock(secured.place, "config", "lint", file, "--strict") is not None
