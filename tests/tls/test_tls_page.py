"""docs/tls.md: its certificates are made as it says, its appliance starts with them, and each of
its clients comes in by the settings that stand there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from benchmarks import kafka
from penstock.local import environment
from tests import java_tools
from tests.broker_process import KAFKA, answers
from tests.tls.secured import Pki
from tests.tls.stock import librdkafka

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tls.md").read_text()
LIMIT_S = 60
pytestmark = pytest.mark.skipif(
    KAFKA or shutil.which("openssl") is None, reason="an appliance, with certificates of openssl"
)


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def block(kind, word):
    (found,) = [one for one in blocks(kind) if word in one]
    return found


class Typist:
    """Types what stands on the page in a folder of its own. tls: the port of the listener that
    the page has at 9093, plain: of that at 9092."""

    def __init__(self, home):
        self.home = home
        self.plain = kafka.free_port()
        self.tls = kafka.free_port(self.plain)
        program = home / "bin" / "penstock"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m console "$@"\n')
        program.chmod(0o755)
        self.env = environment() | {
            "HOME": str(home), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "PENSTOCK_BOOTSTRAP": f"localhost:{self.plain}",
        }  # fmt: skip

    def said_here(self, text):
        text = text.replace("localhost:9092", f"localhost:{self.plain}")
        text = text.replace("SSL://:9093", f"SSL://127.0.0.1:{self.tls}")
        text = text.replace(":9093", f":{self.tls}")
        text = text.replace("SSL://kafka.example.org", "SSL://localhost")
        return text.replace("/etc/penstock", str(self.home))

    def type(self, text):
        done = subprocess.run(
            ["bash", "-e", "-c", self.said_here(text)], cwd=self.home, env=self.env,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (text, done.stdout + done.stderr)
        return done.stdout

    def run(self, code):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", self.said_here(code)], cwd=self.home,
            env=self.env, capture_output=True, text=True, timeout=LIMIT_S, check=True,
        )  # fmt: skip

    @contextmanager
    def up(self, *properties):
        """The appliance of the page, by these lines of its settings file."""
        text = self.said_here("".join(properties))
        (self.home / "server.properties").write_text(text)
        with (
            (self.home / "up.log").open("wb") as log,
            subprocess.Popen(
                ["bash", "-c", f"exec {block('sh', 'penstock up')}"], cwd=self.home, env=self.env,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            ) as process,
        ):  # fmt: skip
            try:
                self.type("penstock wait --timeout 30")
                yield
            finally:
                process.terminate()


@pytest.fixture(scope="module")
def typist(tmp_path_factory):
    one = Typist(tmp_path_factory.mktemp("page"))
    for word in ("-keyout ca.key", "-keyout loader.key"):
        one.type(block("sh", word))
    return one


START = block("properties", ":9093\nssl.keystore.location=/etc/penstock")
MUTUAL = block("properties", "/ca.pem\nssl.client.auth")


def test_keys_are_for_nobody_else(typist):
    for name in ("ca.key", "server.key", "server.pem", "loader.key", "loader.pem"):
        assert not (typist.home / name).stat().st_mode & 0o077, name


def test_clients_come_in_as_the_page_says(typist):
    with typist.up(START):
        assert typist.type(block("sh", "echo world")).endswith("world\n")
        for code in blocks("python"):
            typist.run(textwrap.dedent(code))
        found = set(typist.type(block("sh", "kcat")).split("\n")) if shutil.which("kcat") else None
        wanted = {"world", "from kafka-python", "from aiokafka", "from penstock"}
        assert found is None or wanted <= found
        if not kafka.unavailable():
            java_reads(typist)


def java_reads(typist):
    file = typist.home / "client.properties"
    text = typist.said_here(block("properties", "ssl.truststore.type=PEM"))
    file.write_text(text.replace("ca.pem", str(typist.home / "ca.pem")))
    done = java_tools.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server",
        f"localhost:{typist.tls}", "--command-config", str(file), "--topic", "hello",
        "--from-beginning", "--max-messages", "4", "--timeout-ms", "30000",
    )  # fmt: skip
    assert "from aiokafka" in done.stdout, done.stdout + done.stderr


def test_who_shows_a_certificate_is_known_by_it(typist):
    with typist.up(START, MUTUAL):
        typist.type(block("sh", "echo secret"))
        assert "CN=loader,O=Example" in typist.type("penstock quota list")
        shown = Pki.context(typist_pki(typist), certificate="loader")
        assert answers(typist.tls, "localhost", shown)
        assert not answers(typist.tls, "localhost", Pki.context(typist_pki(typist)))


def test_a_rule_shortens_names(typist):
    (rule,) = re.findall(r"`(ssl\.principal\.mapping\.rules=\S+)`", PAGE)
    with typist.up(START, MUTUAL, rule + "\n"):
        producer = Producer(
            librdkafka(typist_pki(typist), f"localhost:{typist.tls}", certificate="loader")
        )
        producer.produce("hello", b"secret")
        assert producer.flush(LIMIT_S) == 0
        assert '"user": "loader"' in typist.type("penstock connections -o json --over 0")
        del producer


def typist_pki(typist):
    """Its folder, as `Pki` has one."""
    one = object.__new__(Pki)
    one.folder = typist.home
    return one
