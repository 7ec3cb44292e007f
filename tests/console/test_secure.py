"""`penstock secure`: three commands from nothing to a client that is known by its certificate,
while nobody without one is served."""

import json
import shutil
import socket
import ssl
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509

from appliance.config.properties import parse_properties
from benchmarks import kafka
from console.model.secure import server_settings
from penstock.local import Appliance

pytestmark = pytest.mark.timeout(180)
LIMIT_S = 60
ASK_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 0000")


def penstock(place, *words, code=0):
    """What it prints, in this folder."""
    done = subprocess.run(
        [sys.executable, "-m", "console", *words], cwd=place, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in which somebody typed `penstock secure init --certificates` and made a client."""
    place = tmp_path_factory.mktemp("secured")
    port = kafka.free_ports(server_settings.PORTS)
    words = ("secure", "init", "--certificates", "--host", "localhost", "--port", str(port))
    penstock(place, *words)
    penstock(place, "secure", "client", "loader")
    return place


@pytest.fixture(scope="module")
def running(place):
    """An appliance with the settings that it wrote, but for the port of the plain listener."""
    settings = dict(properties(place / "penstock-secure" / "server.properties"))
    own = f"localhost:{kafka.free_port()}"
    for key in ("listeners", "advertised.listeners"):
        settings[key] = settings[key].replace("localhost:9092", own)
    with Appliance(place / "data", settings) as appliance:
        yield appliance


def properties(path):
    return {key: value for key, value, _ in parse_properties(path.read_text())}


def client(place, name):
    return place / "penstock-secure" / "clients" / name


def test_what_it_makes_is_its_owners_alone(place):
    made = place / "penstock-secure"
    files = [one for one in made.rglob("*") if one.is_file()]
    assert {one.name for one in files} >= {"ca.key", "ca.pem", "server.pem", "loader.pem"}
    for one in [made, *made.rglob("*")]:
        assert stat.S_IMODE(one.stat().st_mode) & 0o077 == 0, one
    assert not [one for one in files if one.name.startswith(".")], "nothing half written is left"


@pytest.mark.parametrize("name", ["admin", "loader"])
def test_a_client_is_known_by_its_name(place, running, name):
    """Its quota is that of the user of its name."""
    file = str(client(place, name) / "client.properties")
    known = ["--command-config", file, "-b", properties(Path(file))["bootstrap.servers"]]
    penstock(place, "quota", "set", "--user", name, "request=90%", *known)
    used = penstock(place, "quota", "usage", "-o", "json", *known)
    assert name in {one["user"] for one in json.loads(used)}


def test_kcat_takes_the_file_as_it_is(place, running):
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not here")
    done = subprocess.run(
        ["kcat", "-F", client(place, "loader") / "client.properties", "-L", "-J"],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert '"brokers":[{"id"' in done.stdout, done.stderr


def test_apache_kafkas_tools_take_the_file_as_it_is(place, running, tmp_path):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    copied = tmp_path / "elsewhere.properties"
    shutil.copy(client(place, "loader") / "java.properties", copied)
    server = properties(copied)["bootstrap.servers"]
    command = kafka.java(
        "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", server,
        "--command-config", str(copied), "--create", "--topic", "by-java", heap="128m",
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert "Created topic by-java" in done.stdout, done.stdout + done.stderr


def test_nobody_else_is_served(place, running):
    host, _, port = properties(client(place, "loader") / "client.properties")[
        "bootstrap.servers"
    ].rpartition(":")
    trusting = ssl.create_default_context(cafile=str(place / "penstock-secure" / "ca.pem"))
    heard = b""
    with (
        suppress(ssl.SSLError, ConnectionError),
        socket.create_connection((host, int(port)), LIMIT_S) as plain,
        trusting.wrap_socket(plain, server_hostname=host) as peer,
    ):
        peer.sendall(ASK_VERSIONS)
        heard = peer.recv(1)
    assert heard == b""


def test_a_second_authority_is_refused(place):
    said = penstock(place, "secure", "init", "--host", "localhost", code=2)
    assert "has an authority already" in said
    assert "secure server" in said


def test_a_server_certificate_is_renewed_for_its_names(place):
    file = place / "penstock-secure" / "server.pem"
    before = x509.load_pem_x509_certificates(file.read_bytes())
    penstock(place, "secure", "server", "--host", "localhost", "--host", "192.0.2.7")
    after = x509.load_pem_x509_certificates(file.read_bytes())
    assert before[0].serial_number != after[0].serial_number
    assert before[1] == after[1], "the authority stays"
    names = after[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "192.0.2.7" in map(str, names.get_values_for_type(x509.IPAddress))


@pytest.mark.parametrize("name", ["", "a/b", "..", "-x", "a b", "CN=a,O=b", "x" * 65])
def test_what_is_no_name_of_a_client_is_refused(place, name):
    said = penstock(place, "secure", "client", "--", name, code=2)
    assert "is no name of a client" in said
    assert "Traceback" not in said


def test_without_an_authority_there_are_no_clients(tmp_path):
    said = penstock(tmp_path, "secure", "client", "loader", "--bootstrap", "a:1", code=2)
    assert "has no authority" in said
    assert "secure init" in said


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "taken").write_text("a file")
    said = penstock(tmp_path, "secure", "init", "--host", "a", "--folder", "taken/in", code=1)
    assert "cannot be made" in said
