"""The owner's socket: commands without a password where logins and ACLs are in force, and nothing
for anybody else on the host."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from appliance.base.owner import FILE, relay_address, relay_name
from benchmarks.kafka import free_port
from console.model.asking import owner
from console.model.asking.link import Link
from penstock.local import environment
from tests.broker_process import START_LIMIT_S

NOBODY = 65534
PASSWORD = "of-the-first-start"
SECURED = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "penstock.net.processes": "2",
}


class Home:
    """A folder in which an appliance was started by its owner."""

    def __init__(self, folder):
        self.folder = folder
        self.data = folder / ("long-" * 24 + "path") / "penstock-data"
        self.data.parent.mkdir()
        self.env = environment() | {"XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
        self.env.pop("PENSTOCK_BOOTSTRAP", None)
        self.process = None

    def start(self):
        self.port = free_port()
        settings = SECURED | {"listeners": f"SASL_PLAINTEXT://127.0.0.1:{self.port}"}
        secret = self.folder / "admin.scram"
        secret.write_text(f"SCRAM-SHA-512=[name=admin,password={PASSWORD}]\n")
        words = ["--add-scram", f"@{secret}"]
        words += [w for key, value in settings.items() for w in ("-o", f"{key}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "console", "up", *words], cwd=self.data.parent, env=self.env,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.run("wait", "--timeout", str(START_LIMIT_S))

    def run(self, *words, given="", code=0):
        done = subprocess.run(
            [sys.executable, "-m", "console", *words], cwd=self.data.parent, env=self.env,
            input=given, capture_output=True, text=True, timeout=START_LIMIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == code, (words, done, (self.folder / "log").read_text()[-2000:])
        return done.stdout

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(START_LIMIT_S)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    one = Home(tmp_path_factory.mktemp("home"))
    try:
        one.start()
        yield one
    finally:
        if one.process is not None and one.process.poll() is None:
            one.end()


def test_the_owner_does_everything_without_a_password(home):
    home.run("topic", "create", "orders", "-p", "2")
    assert home.run("produce", "orders", given="a record\n") == ""
    assert "a record" in home.run("consume", "orders", "-e")
    assert "sasl.password" in home.run("user", "add", "loader", "--can", "write:orders")
    assert "loader" in home.run("user", "list")
    assert "User:loader" in home.run("acl", "list")


def test_a_user_of_the_first_start_logs_in(home):
    assert "admin" in home.run("user", "list")
    properties = {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "admin", "sasl.password": PASSWORD,
    }  # fmt: skip
    found = Link(f"127.0.0.1:{home.port}", properties, 60.0).admin().list_topics(timeout=60)
    assert found.brokers


def test_the_socket_is_the_owners_alone(home):
    path = home.data / FILE
    assert path.is_socket() and path.stat().st_mode & 0o777 == 0o600
    assert owner.is_there(str(home.data))


def ask_as(uid, folder):
    """What a process of this user hears: the exit code of one that asks ApiVersions there."""
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            os.chdir(folder)
            if uid:
                os.setuid(uid)
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(START_LIMIT_S)
                peer.connect(FILE)
                peer.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff")
                code = 0 if peer.recv(4) else 3
        except PermissionError:
            code = 13
        except ConnectionError:
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_everybody_else_is_a_stranger(home):
    assert ask_as(0, home.data) == 0
    mode = home.data.stat().st_mode & 0o777
    try:
        home.data.chmod(0o711)
        assert ask_as(NOBODY, home.data) == 13
        (home.data / FILE).chmod(0o666)  # a mistake of the owner lets nobody in
        assert ask_as(NOBODY, home.data) == 3
    finally:
        (home.data / FILE).chmod(0o600)
        home.data.chmod(mode)


def test_nobody_comes_through_the_relay_of_a_command_without_its_password(home):
    relay = owner.Relay(str(home.data))
    properties = relay.properties
    assert Link(relay.bootstrap, properties, 60.0).admin().list_topics(timeout=60).brokers
    with socket.create_connection(("127.0.0.1", relay.port), START_LIMIT_S) as peer:
        wrong = b"\0owner\0" + b"0" * 64
        body = b"\0\x24\0\0\0\0\0\x01\xff\xff" + len(wrong).to_bytes(4, "big") + wrong
        peer.sendall(len(body).to_bytes(4, "big") + body)
        heard = peer.recv(100)
        assert heard[8:10] == (58).to_bytes(2, "big"), "SASL_AUTHENTICATION_FAILED"
        assert peer.recv(1) == b""


@pytest.mark.parametrize("key", [3, 19, 33])
def test_nothing_is_passed_on_for_a_stranger_before_the_login(home, key):
    relay = owner.Relay(str(home.data))
    with socket.create_connection(("127.0.0.1", relay.port), START_LIMIT_S) as peer:
        body = key.to_bytes(2, "big") + b"\0\0\0\0\0\x01\xff\xff\0\0\0\0"
        peer.sendall(len(body).to_bytes(4, "big") + body)
        assert peer.recv(1) == b""


def test_it_goes_on_over_a_restart_and_after_a_kill_and_goes_with_the_end(home):
    before = (home.data / FILE).stat().st_ino
    home.run("restart", "--data", str(home.data))
    assert (home.data / FILE).stat().st_ino != before
    assert owner.is_there(str(home.data))
    home.end(signal.SIGKILL)
    assert (home.data / FILE).is_socket(), "nobody could remove it"
    home.start()
    assert owner.is_there(str(home.data))
    assert "--add-scram is left out" in (home.folder / "log").read_text()
    assert home.end() == 0
    assert not (home.data / FILE).exists()


def test_the_address_of_a_relay_is_taken_from_its_name_alone():
    assert relay_address(relay_name("127.0.0.1", 4711, "x").encode()) == ("127.0.0.1", 4711)
    for other in (b"", "", "/run/x.sock", b"\0penstock-relay/:x/", b"\0penstock-relay/h:70000/"):
        assert relay_address(other) == ("localhost", 0)
