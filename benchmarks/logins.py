"""Logins a second, by mechanism, in plain and over TLS, beside Apache Kafka.

    python -m benchmarks.logins [--repeat 5] [--seconds 3] [--at-once 16] [--short] [--markdown]

A login is what a client does: connect, ApiVersions, SaslHandshake, SaslAuthenticate once or twice,
and the connection is closed. "one" logs in one after the other, the other rows keep that many going
together. The client hashes each password once per salt, as it may: else its own 4,096 iterations
would be most of what is measured. PLAIN is asked of users in the settings, as Kafka has it, and of
the appliance also of users in the metadata ("PLAIN, stored"), whose passwords it hashes itself.
Beside each rate stands the processor time of the broker for one login.
"""

import argparse
import base64
import functools
import hashlib
import hmac
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack, unpack_from
from typing import NamedTuple

from benchmarks import kafka, machine, requests, tables
from benchmarks.certificates import Authority, put
from benchmarks.compare.systems import System
from benchmarks.peer import Peer, Wire, WrongAnswer
from benchmarks.startup import byte_compile

HOST, OURS, KAFKA = "127.0.0.1", "penstock", "kafka"
USER, PASSWORD, ITERATIONS = "loader", "not-a-secret", 4096
SCRAMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
PLAIN, STORED = "PLAIN", "PLAIN, stored"
LISTENERS = ("KNOWN", "KNOWN_TLS", "STORED", "STORED_TLS")
"""The first two know users of PLAIN by their settings."""
_HANDSHAKE, _AUTHENTICATE, _ALTER_SCRAM = 17, 36, 51
_JAAS = "org.apache.kafka.common.security"

Found = dict[tuple[str, str], list[float]]
"""(figure, of whom) → a value for each round."""


class Guarded(System):
    """A broker with listeners that ask for a login, in plain and over TLS."""

    def __init__(self, name: str, data: Path, certificates: Path) -> None:
        super().__init__(name, "D1", data)
        self._certificates = certificates
        ports: list[int] = []
        while len(ports) < len(LISTENERS):
            if (port := kafka.free_port(self.port)) not in ports:
                ports.append(port)
        self.ports = dict(zip(LISTENERS, ports, strict=True))

    @property
    def settings(self) -> dict[str, str]:
        listeners = [f"PLAINTEXT://{HOST}:{self.port}"]
        listeners += [f"{name}://{HOST}:{port}" for name, port in self.ports.items()]
        protocols = ["PLAINTEXT:PLAINTEXT"]
        protocols += [
            f"{name}:SASL_{'SSL' if 'TLS' in name else 'PLAINTEXT'}" for name in LISTENERS
        ]
        found = super().settings | {
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(protocols),
            "sasl.enabled.mechanisms": ",".join([PLAIN, *SCRAMS]),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._certificates / "server.pem"),
        }
        for name in LISTENERS:
            at = f"listener.name.{name.lower()}"
            known = f'required user_{USER}="{PASSWORD}";'
            if "KNOWN" in name or self.name == KAFKA:
                found[f"{at}.plain.sasl.jaas.config"] = f"{_JAAS}.plain.PlainLoginModule {known}"
            for scram in SCRAMS if self.name == KAFKA else ():
                jaas = f"{_JAAS}.scram.ScramLoginModule required;"
                found[f"{at}.{scram.lower()}.sasl.jaas.config"] = jaas
        return found

    def prepare(self) -> list[str]:
        settings = self.settings
        self.data.mkdir(parents=True, exist_ok=True)
        if self.name == KAFKA:
            node = kafka.Kafka(self.data, self.port)
            protocols = settings["listener.security.protocol.map"]
            node.settings |= settings | {
                "listeners": f"{settings['listeners']},CONTROLLER://{HOST}:{node.controller_port}",
                "advertised.listeners": settings["listeners"],
                "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
            }
            return kafka.java("kafka.Kafka", node.format(), heap=node.heap)
        file = self.data / "server.properties"
        put(file, "".join(f"{key}={value}\n" for key, value in settings.items()).encode())
        return [sys.executable, "-m", "console", "up", "--data", str(self.data / "penstock"),
                "--config", str(file)]  # fmt: skip

    def at(self, mechanism: str, context: ssl.SSLContext | None) -> Peer:
        """Who is asked for logins by that mechanism."""
        name = ("STORED" if mechanism == STORED else "KNOWN") + ("_TLS" if context else "")
        return Peer(self.name, (HOST, self.ports[name]), self.pid, context)


def put_users(peer: Peer) -> None:
    """The user, for both mechanisms of SCRAM."""
    with peer.connect() as wire:
        for number, digest in SCRAMS.values():
            salt = os.urandom(16)
            row = requests.compact(USER.encode()) + pack(">bi", number, ITERATIONS)
            row += requests.compact(salt) + requests.compact(salted(digest, salt, ITERATIONS))
            body = b"\1\2" + row + b"\0\0"
            answer = wire.call(requests.frame(_ALTER_SCRAM, 0, 1, body, flexible=True))
            (code,) = unpack_from(">h", answer, 7 + len(USER))
            if code:
                raise WrongAnswer(f"the user is not taken: {code}")


@functools.cache
def salted(digest: str, salt: bytes, iterations: int) -> bytes:
    """The salted password."""
    return hashlib.pbkdf2_hmac(digest, PASSWORD.encode(), salt, iterations)


def messages(mechanism: str) -> Iterator[bytes]:
    """What a client says; each answer is sent in."""
    if mechanism not in SCRAMS:
        yield f"\0{USER}\0{PASSWORD}".encode()
        return
    _, digest = SCRAMS[mechanism]
    bare = f"n={USER},r={base64.b64encode(os.urandom(18)).decode()}"
    challenge = (yield f"n,,{bare}".encode()).decode()
    told = dict(part.split("=", 1) for part in challenge.split(","))
    keys = salted(digest, base64.b64decode(told["s"]), int(told["i"]))
    key = hmac.digest(keys, b"Client Key", digest)
    stored = hashlib.new(digest, key).digest()
    unproved = f"c=biws,r={told['r']}"
    signature = hmac.digest(stored, f"{bare},{challenge},{unproved}".encode(), digest)
    proof = base64.b64encode(bytes(map(int.__xor__, key, signature)))
    yield unproved.encode() + b",p=" + proof


class Login:
    """One login, a step at a time: `send` and `receive` in turn until `done`. wire: its connection,
    which stays open."""

    def __init__(self, wire: Wire, mechanism: str) -> None:
        self.done = False
        self.wire = wire
        self._says = messages(mechanism)
        first = PLAIN if mechanism == STORED else mechanism
        handshake = requests.frame(_HANDSHAKE, 1, 2, requests.string(first))
        self._requests = [requests.api_versions(), handshake]
        self._heard: bytes | None = None

    def send(self) -> None:
        if self._requests:
            self.wire.socket.sendall(self._requests[0])
            return
        says = next(self._says) if self._heard is None else self._says.send(self._heard)
        body = pack(">i", len(says)) + says
        self.wire.socket.sendall(requests.frame(_AUTHENTICATE, 1, 3, body))

    def receive(self) -> None:
        wire = self.wire
        wire.exact(0, 4)
        (size,) = unpack_from(">i", wire.buffer)
        wire.exact(0, size)
        answer = bytes(wire.view[4:size])
        if self._requests:
            self._requests.pop(0)
            return
        code, text = unpack_from(">hh", answer)
        if code:
            raise WrongAnswer(f"the login is refused: {answer[4 : 4 + max(text, 0)].decode()}")
        self._heard = answer[8 + max(text, 0) : -8]
        if self._heard.startswith(b"v=") or not self._heard:
            self.done = True


def measure(peer: Peer, mechanism: str, at_once: int, seconds: float) -> dict[str, float]:
    """Logins a second, and the broker's processor time of each in µs."""
    cpu, count = peer.cpu_seconds(), 0
    begun = now = time.perf_counter()
    while now < begun + seconds:
        logins = [Login(peer.connect(1 << 12), mechanism) for _ in range(at_once)]
        while not logins[0].done:
            for one in logins:
                one.send()
            for one in logins:
                one.receive()
        for one in logins:
            one.wire.close()
        count += at_once
        now = time.perf_counter()
    found = {"logins/s": count / (now - begun)}
    after = peer.cpu_seconds()
    if cpu is not None and after is not None:
        found["broker's CPU, µs"] = (after - cpu) / count * 1e6
    return found


def run(options: argparse.Namespace, folder: Path) -> Found:
    """Everything, in alternation; what comes first in one round comes last in the next."""
    authority = Authority("a CA of this run")
    put(folder / "ca.pem", authority.pem)
    authority.issue("CN=broker,O=Benchmark", rsa_bits=2048).write(folder, "server")
    tls = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    systems = [Guarded(name, folder / name, folder) for name in (OURS, KAFKA)]
    kinds = [(one, context) for one in (PLAIN, *SCRAMS, STORED) for context in (None, tls)]
    found: Found = {}
    try:
        for system in systems:
            system.start()
            put_users(system.peer)
            for mechanism, context in kinds:  # warm, and the client knows the salts
                measure(system.at(mechanism, context), mechanism, 1, options.seconds / 4)
        for number in range(options.repeat):
            for system in systems[:: -1 if number % 2 else 1]:
                for mechanism, context in kinds:
                    if (mechanism, system.name) == (STORED, KAFKA):
                        continue
                    for at_once in (1, options.at_once):
                        peer = system.at(mechanism, context)
                        title = f"{mechanism}{' over TLS' if context else ''}, {at_once} at once"
                        told = measure(peer, mechanism, at_once, options.seconds)
                        for figure, value in told.items():
                            key = f"{title}: {figure}", system.name
                            found.setdefault(key, []).append(value)
                print(f"round {number + 1}, {system.name}", file=sys.stderr, flush=True)
    finally:
        for system in systems:
            system.stop()
    return found


class Timing(NamedTuple):
    """Defaults of a benchmark's options: rounds, and seconds of each measurement."""

    repeat: int
    seconds: float


def main_beside(
    name: str,
    about: str | None,
    run: Callable[[argparse.Namespace, Path], Found],
    timing: Timing,
    option: tuple[str, int, str],
) -> None:
    """Measure both systems by the options of the command line and print the table. option: a
    further one: its flag, default and help."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}", description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, help=f"rounds (default: {timing.repeat})")
    told = f"of each measurement (default: {timing.seconds:g})"
    parser.add_argument("--seconds", type=float, help=told)
    flag, default, text = option
    parser.add_argument(flag, type=int, default=default, help=text)
    parser.add_argument("--short", action="store_true", help="whether it runs: figures mean little")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    options.repeat = options.repeat or (1 if options.short else timing.repeat)
    options.seconds = options.seconds or (0.3 if options.short else timing.seconds)
    kafka.fetch()
    byte_compile()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        found = run(options, Path(folder))
    rows = tables.rows_beside(found, OURS, KAFKA)
    print(f"{machine.state()}; medians (range)\n")
    print(tables.render(["", OURS, KAFKA, "ratio"], rows, markdown=options.markdown))


if __name__ == "__main__":
    option = ("--at-once", 16, "logins that go on together")
    main_beside("logins", __doc__, run, Timing(5, 3.0), option)
