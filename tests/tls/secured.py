"""A broker with TLS listeners, and what its clients need: certificates in files.

With PENSTOCK_TEST_BROKER=kafka all of it is Apache Kafka's, as in `broker_process`.
"""

import ssl
import subprocess
import sys
from contextlib import closing
from datetime import timedelta

from cryptography import x509

from benchmarks import kafka
from benchmarks.certificates import Authority, put
from benchmarks.peer import Peer, Wire
from tests.broker_process import KAFKA, Broker, answers

HOST = "127.0.0.1"
PASSWORD = "a store's password"
KEY_PASSWORD = "a key's password"
LIMIT_S = 60
LISTENERS = {
    "SSL": {},
    "REQUESTED": {"ssl.client.auth": "requested"},
    "MUTUAL": {"ssl.client.auth": "required"},
    "OLDER": {"ssl.enabled.protocols": "TLSv1.2"},
    "NEWER": {"ssl.enabled.protocols": "TLSv1.3"},
    "STORED": {"ssl.keystore.type": "PKCS12"},
}
"""Name → what its listener has of its own."""
A_DAY = timedelta(days=1)


class Pki:
    """A folder of certificates: those of our authority, and those that nobody should take.

    PEM files: ca, server (and server-again, which renews it), client, expired, foreign-ca, foreign.
    PKCS12: server.p12 (made by keytool), client.p12, trust.p12 and foreign-trust.p12.
    """

    def __init__(self, folder):
        self.folder = folder
        self.ca, self.foreign_ca = Authority("a CA"), Authority("another CA")
        put(folder / "ca.pem", self.ca.pem)
        put(folder / "foreign-ca.pem", self.foreign_ca.pem)
        gone = (-30 * A_DAY, -A_DAY)
        self.made = {
            "server": self.ca.issue("CN=broker,O=Tests"),
            "server-again": self.ca.issue("CN=broker,O=Tests"),
            "client": self.ca.issue("CN=alice,OU=Readers,O=Tests", hosts=()),
            "expired": self.ca.issue("CN=late,O=Tests", hosts=(), valid=gone),
            "foreign": self.foreign_ca.issue("CN=alice,OU=Readers,O=Tests", hosts=()),
        }
        for name, certificate in self.made.items():
            certificate.write(folder, name)
        put(folder / "server-locked.pem", self.made["server"].pem(KEY_PASSWORD))
        put(folder / "client.p12", self.made["client"].pkcs12(PASSWORD))

    def path(self, name):
        return str(self.folder / name)

    def context(self, *, ca="ca.pem", certificate=None, version=None):
        """A client's: trusts `ca`, shows that certificate, speaks that version alone."""
        made = ssl.create_default_context(cafile=self.path(ca))
        if certificate is not None:
            made.load_cert_chain(self.path(f"{certificate}.pem"))
        if version is not None:
            made.minimum_version = made.maximum_version = version
        return made

    def stores(self):
        """Those that keytool makes: the server's key is made in its store, signed by our
        authority, and the answer comes back into it."""
        if not (self.folder / "server.p12").exists():
            self._trust("trust.p12", "ca.pem")
            self._trust("foreign-trust.p12", "foreign-ca.pem")
            ours = ["-keystore", self.path("server.p12"), "-alias", "broker"]
            keytool(
                "-genkeypair", *ours, "-storetype", "PKCS12", "-dname", "CN=broker,O=Tests",
                "-keyalg", "RSA", "-keysize", "2048",
            )  # fmt: skip
            request = keytool("-certreq", *ours)
            put(self.folder / "answer.pem", self.ca.sign(request.encode()))
            for alias, name in (("ca", "ca.pem"), ("broker", "answer.pem")):
                words = ["-alias", alias, "-file", self.path(name), "-noprompt"]
                keytool("-importcert", *ours[:2], *words)
        return self

    def _trust(self, store, certificate):
        keytool(
            "-importcert", "-keystore", self.path(store), "-storetype", "PKCS12", "-alias", "ca",
            "-file", self.path(certificate), "-noprompt",
        )  # fmt: skip


def keytool(*words):
    """What it says."""
    done = subprocess.run(
        ["keytool", *words, "-storepass", PASSWORD, "-J-XX:TieredStopAtLevel=1"],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def of_broker(pki, keystore="server.pem", truststore="ca.pem"):
    """ssl.* of a broker, with PEM files."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": pki.path(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": pki.path(truststore),
    }


def of_listeners(pki, names):
    """What those of LISTENERS have of their own, and the stores of STORED."""
    own = {name: dict(LISTENERS[name]) for name in names}
    if "STORED" in own:
        own["STORED"] |= {
            "ssl.keystore.location": pki.stores().path("server.p12"),
            "ssl.keystore.password": PASSWORD,
        }
    return {
        f"listener.name.{name.lower()}.{key}": value
        for name, settings in own.items()
        for key, value in settings.items()
    }


class Secured(Broker):
    """A broker that listens in plain, unless that is left out, and at a port for each name of
    LISTENERS. ports: name → port."""

    def __init__(self, data, pki, names=("SSL",), settings=None, *, plain=True, of_kafka=KAFKA):
        super().__init__(data, settings)
        self.of_kafka = of_kafka
        self.pki = pki
        self.names = tuple(names)
        different = {self.port}
        while len(different) < len(names) + 2:
            different.add(kafka.free_port())
        others = sorted(different - {self.port})
        self.ports = {"PLAINTEXT": self.port} if plain else {}
        self.ports |= zip(names, others, strict=False)
        self.controllers = others[-1]
        self.plain = plain

    def command(self):
        listeners = [f"{name}://{HOST}:{port}" for name, port in self.ports.items()]
        protocols = ["PLAINTEXT:PLAINTEXT", *(f"{name}:SSL" for name in self.names)]
        ours = {"group.initial.rebalance.delay.ms": "0"} | of_broker(self.pki)
        ours |= of_listeners(self.pki, self.names)
        if self.of_kafka:
            return self._of_kafka(listeners, protocols, ours | self.settings)
        words = {
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(protocols),
        }
        command = [sys.executable, "-m", "console", "up", "--data", str(self.data)]
        for key, value in (words | ours | self.settings).items():
            command += ["-o", f"{key}={value}"]
        return command

    def _of_kafka(self, listeners, protocols, settings):
        node = kafka.Kafka(self.data, self.port)
        node.controller_port = self.controllers
        node.settings |= {
            "listeners": ",".join([*listeners, f"CONTROLLER://{HOST}:{node.controller_port}"]),
            "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
            "inter.broker.listener.name": next(iter(self.ports)),
        }
        node.settings |= settings
        self.data.mkdir(parents=True, exist_ok=True)
        return kafka.java("kafka.Kafka", node.format(), heap="512m")

    def at(self, listener="SSL"):
        """HOST:PORT of it."""
        return f"{HOST}:{self.ports[listener]}"

    def address(self, listener="SSL"):
        return HOST, self.ports[listener]

    @property
    def peer(self):
        if self.plain:
            return super().peer
        return Peer("broker", self.address(), self.process.pid, self.pki.context())

    def answers(self):
        """Does each kind of listener answer? The first one with TLS stands for the others."""
        plain = answers(self.port, self.host) if self.plain else True
        context = self.pki.context(certificate="client")
        return plain and answers(self.ports[self.names[0]], self.host, context)


def serial_seen(address, context):
    """The serial number of the certificate that somebody sees who connects now."""
    with closing(Wire(address, context=context)) as wire:
        return x509.load_der_x509_certificate(wire.socket.getpeercert(True)).serial_number
