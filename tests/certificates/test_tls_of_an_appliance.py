"""A real appliance and its certificates: refused starts, dynamic changes, reloads."""

import socket
import ssl
import subprocess
import sys
import time

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from benchmarks import kafka
from tests.broker_process import Broker
from tests.certificates.authority import authority
from tests.console_process import rows, typing

ROOT = authority()
MAY_CHANGE = "listener.name.ssl.ssl.allow.dn.changes"
MORE = "penstock.net.processes=2\n"
LOCATION = "listener.name.ssl.ssl.keystore.location"


class Node(Broker):
    """Its settings, listeners among them, stand in a file."""

    def __init__(self, folder, store):
        super().__init__(folder / "data")
        self.file = folder / "server.properties"
        self.tls_port = kafka.free_port(self.port)
        ends = f"PLAINTEXT://127.0.0.1:{self.port},SSL://127.0.0.1:{self.tls_port}"
        self.file.write_text(f"listeners={ends}\n{LOCATION}={store}\n{MORE}")

    def command(self):
        up = ["up", "--data", str(self.data), "--config", str(self.file)]
        return [sys.executable, "-m", "console", *up]


def written(path, common="broker", hosts=("localhost",)):
    path.write_bytes(ROOT.sign(common, hosts=hosts).pem())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def node(folder):
    with Node(folder, written(folder / "server.pem")) as one:
        yield one


def shown(node):
    """The certificate that a client is shown; None: nobody listens."""
    believes = ssl.create_default_context(cadata=ROOT.chain_pem().decode())
    try:
        with (
            socket.create_connection(("127.0.0.1", node.tls_port), 30) as sock,
            believes.wrap_socket(sock, server_hostname="localhost") as client,
        ):
            return client.getpeercert(binary_form=True)
    except ConnectionError:
        return None


def until(fact):
    end = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.1)


def reload(node, code=0):
    words = ("config", "reload", "--data", str(node.data), "-o", "json")
    return typing(node.bootstrap)(*words, code=code)


def alter(node, key, value):
    """Nothing, or what the broker says, with the name of its error."""
    entry = ConfigEntry(key, str(value), incremental_operation=AlterConfigOpType.SET)
    one = ConfigResource("broker", "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    try:
        admin.incremental_alter_configs([one])[one].result()
    except KafkaException as refused:
        return f"{refused.args[0].name()} {refused.args[0].str()}"
    return ""


def test_a_reload_tells_which_certificate_is_another_one(node, folder):
    assert rows(reload(node)) == []
    written(folder / "server.pem")
    (row,) = rows(reload(node))
    assert row["key"] == "certificate of SSL" and row["status"] == "changed"
    assert row["before"].startswith("CN=broker, until 2045-12-")


def test_a_reload_is_refused_while_the_certificate_cannot_be_used(node, folder):
    before = (folder / "server.pem").read_bytes()
    (folder / "server.pem").write_bytes(before[:-200])
    said = reload(node, code=2).stdout
    assert f"{LOCATION}={folder}/server.pem" in said and "nothing has changed" in said
    (folder / "server.pem").write_bytes(ROOT.sign("other").pem())
    assert "ssl.allow.dn.changes" in reload(node, code=2).stdout
    (folder / "server.pem").write_bytes(before)
    assert rows(reload(node)) == []


def test_a_dynamic_change_is_loaded_before_it_is_promised(node, folder):
    """Error codes are those that Apache Kafka 4.3.1 answered."""
    good, other = written(folder / "good.pem"), written(folder / "other.pem", "other")
    fewer = written(folder / "fewer.pem", hosts=("elsewhere",))
    assert alter(node, LOCATION, folder / "none.pem").startswith(f"INVALID_REQUEST {LOCATION}: ")
    assert alter(node, LOCATION, f"{folder}\0").startswith("INVALID_REQUEST")
    assert "INVALID_REQUEST ssl.allow.dn.changes" in alter(node, LOCATION, other)
    assert "INVALID_REQUEST ssl.allow.san.changes" in alter(node, LOCATION, fewer)
    assert alter(node, LOCATION, good) == ""
    assert alter(node, LOCATION, good) == ""
    good.write_bytes(other.read_bytes())
    assert "ssl.allow.dn.changes" in alter(node, LOCATION, good)
    assert alter(node, MAY_CHANGE, "true") == ""
    assert alter(node, LOCATION, other) == ""
    assert alter(node, "listener.name.nobody.ssl.keystore.location", "/none") == ""


def test_a_reload_tells_of_a_store_that_was_set_dynamically(node, folder):
    assert alter(node, MAY_CHANGE, "true") == ""
    mine = written(folder / "mine.pem", "other")
    assert alter(node, LOCATION, mine) == ""
    mine.write_text("nothing")
    for _ in range(2):
        said = reload(node, code=2).stdout
        assert f"{LOCATION}={mine}" in said and "stays in use" in said
    assert alter(node, "log.cleaner.backoff.ms", "15000") == ""
    written(mine, "other")
    reload(node)


def test_every_process_shows_what_was_set_and_what_was_written_since(node, folder):
    assert alter(node, MAY_CHANGE, "true") == ""
    store = folder / "shown.pem"

    def set_it():
        assert alter(node, LOCATION, store) == ""

    # Set; set again to the same path; told by a signal; told by nobody.
    for ask in (set_it, set_it, lambda: reload(node), lambda: None):
        new = ROOT.sign("other")
        store.write_bytes(new.pem())
        ask()
        until(lambda der=new.der: {shown(node) for _ in range(20)} == {der})


def test_a_listener_that_was_opened_with_its_certificate_is_there_after_a_restart(tmp_path):
    """All of it is metadata: the file knows nothing of it, and does not refuse the start."""
    node = Node(tmp_path, "/none")
    plain, _, tls = (
        node.file.read_text().partition("\n")[0].removeprefix("listeners=").partition(",")
    )
    node.file.write_text(f"listeners={plain}\n")
    with node:
        both = f"{plain},{tls}"
        assert "there is no certificate for it" in alter(node, "listeners", both)
        assert alter(node, LOCATION, written(tmp_path / "server.pem")) == ""
        assert alter(node, "listeners", both) == ""
        until(lambda: shown(node))
    with node:
        until(lambda: shown(node))


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "console", *map(str, words)], capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("trouble", ["away", "broken", "strange"])
def test_a_start_and_a_check_and_lint_refuse_what_cannot_be_shown(tmp_path, trouble):
    store = tmp_path / "server.pem"
    if trouble == "broken":
        store.write_text("-----BEGIN NOTHING-----")
    elif trouble == "strange":
        store.write_bytes(ROOT.sign("a").key_pem() + ROOT.sign("b").chain_pem())
    words = {"away": "no such file", "broken": "neither PEM", "strange": "does not belong"}[trouble]
    node = Node(tmp_path, store)
    for arguments, expected in (
        (node.command()[3:], 2),
        ([*node.command()[3:], "--check"], 2),
        (["config", "lint", node.file], 4),
    ):
        code, said = command(*arguments)
        assert code == expected
        assert LOCATION in said.replace("\n", "") and words in " ".join(said.split())


def test_a_certificate_that_is_over_is_served_with_a_warning(tmp_path):
    store = tmp_path / "server.pem"
    store.write_bytes(ROOT.sign("broker", days=1).pem())
    with Node(tmp_path, store) as node:
        said = node.output()
    assert "settings-warning" in said and "it was valid until 2026-01-02" in said


def test_lint_shows_no_secret_and_warns_of_a_certificate_that_is_over(tmp_path):
    store = tmp_path / "server.pem"
    store.write_bytes(ROOT.sign("broker", days=1).pem("tops3cret"))
    node = Node(tmp_path, store)
    with node.file.open("a") as file:
        file.write("listener.name.ssl.ssl.key.password=tops3cret\n")
    code, said = command("config", "lint", node.file)
    assert code == 0 and "refused by clients" in " ".join(said.split())
    code, shown = command("config", "show", node.file)
    assert code == 0 and LOCATION in shown
    assert "tops3cret" not in said + shown
