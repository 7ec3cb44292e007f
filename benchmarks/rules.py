"""What rules cost: a user of SCRAM-SHA-512 produces and fetches, with 10 and with 10,000 rules, in
plain and over TLS, beside Apache Kafka with its StandardAuthorizer.

    python -m benchmarks.rules [--repeat 3] [--seconds 2] [--most 10000] [--short] [--markdown]

Half of the rules name the user itself and other topics, the others name others. Both brokers
acknowledge in the page cache (acks=1). Beside each rate stands the processor time of the broker.
"""

import argparse
import ssl
import sys
from pathlib import Path
from struct import pack, unpack_from

from benchmarks import fetch, logins, produce, requests
from benchmarks.certificates import Authority, put
from benchmarks.fetch import Data, FetchRow
from benchmarks.logins import KAFKA, OURS, USER, Found, Guarded, Login
from benchmarks.peer import Peer, Wire, WrongAnswer
from benchmarks.produce import ProduceRow

MECHANISM = "SCRAM-SHA-512"
FEW = 10
SMALL, LARGE, READ = ProduceRow(1, 100, 1), ProduceRow(64, 1000, 5), FetchRow(1 << 20)
SHORT_BYTES = 16 << 20
_CREATE_ACLS, _AT_ONCE = 30, 500
_TOPIC, _LITERAL, _PREFIXED, _ALLOW, _ALL, _READ = 2, 3, 4, 3, 2, 3

Rule = tuple[str, str, int, int]
"""(name of topics, user, pattern, operation)."""


class Ruled(Guarded):
    """Only rules allow; who prepares is nobody in particular, and a super user."""

    @property
    def settings(self) -> dict[str, str]:
        return super().settings | {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def user(self, context: ssl.SSLContext | None) -> "UserPeer":
        at = self.at(MECHANISM, context)
        return UserPeer(at.name, at.address, at.pid, at.context)


class UserPeer(Peer):
    """Each connection has logged in."""

    def connect(self, buffer_bytes: int = 1 << 16) -> Wire:
        wire = super().connect(buffer_bytes)
        login = Login(wire, MECHANISM)
        while not login.done:
            login.send()
            login.receive()
        return wire


def rules(first: int, last: int) -> list[Rule]:
    """Those of these numbers; the first one is what the user needs."""
    found = [("bench-", USER, _PREFIXED, _ALL)] if not first else []
    for number in range(max(first, 1), last):
        user = USER if number % 2 else f"user-{number % 100}"
        found.append((f"topic-{number:06d}", user, _LITERAL, _READ))
    return found


def put_rules(peer: Peer, wanted: list[Rule]) -> None:
    with peer.connect(1 << 20) as wire:
        for at in range(0, len(wanted), _AT_ONCE):
            part = wanted[at : at + _AT_ONCE]
            body = pack(">i", len(part))
            for name, user, pattern, operation in part:
                body += pack(">b", _TOPIC) + requests.string(name) + pack(">b", pattern)
                body += requests.string(f"User:{user}") + requests.string("*")
                body += pack(">bb", operation, _ALLOW)
            answer = wire.call(requests.frame(_CREATE_ACLS, 1, 1, body))
            if any(unpack_from(f">{'hh' * len(part)}", answer, 8)):
                raise WrongAnswer("the rules were not taken")


def measure(peer: Peer, data: Data, seconds: float) -> dict[str, float]:
    small = produce.run(peer, SMALL, seconds)
    large = produce.run(peer, LARGE, seconds)
    read = fetch.run(peer, READ, data, seconds)
    found = {"small produces/s": small.requests_s, "produce, MB/s": large.mb_s,
             "fetch, MB/s": read.mb_s}  # fmt: skip
    for name, done in (("a small produce", small), ("a fetch", read)):
        if done.cpu_us is not None:
            found[f"broker's CPU of {name}, µs"] = done.cpu_us
    return found


def run(options: argparse.Namespace, folder: Path) -> Found:
    """Everything, in alternation; what comes first in one round comes last in the next."""
    authority = Authority("a CA of this run")
    put(folder / "ca.pem", authority.pem)
    authority.issue("CN=broker,O=Benchmark", rsa_bits=2048).write(folder, "server")
    tls = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    systems = [Ruled(name, folder / name, folder) for name in (OURS, KAFKA)]
    found: Found = {}
    filled: dict[str, Data] = {}
    try:
        for system in systems:
            system.start()
            logins.put_users(system.peer)
            filled[system.name] = (
                fetch.fill(system.peer, SHORT_BYTES) if options.short else fetch.fill(system.peer)
            )
        there = 0
        for count in (FEW, options.most):
            for system in systems:
                put_rules(system.peer, rules(there, count))
                measure(system.user(None), filled[system.name], options.seconds)
            there = count
            for number in range(options.repeat):
                for system in systems[:: -1 if number % 2 else 1]:
                    for context in (None, tls):
                        kind = f"{count:,} rules{', TLS' if context else ''}"
                        peer = system.user(context)
                        told = measure(peer, filled[system.name], options.seconds)
                        for figure, value in told.items():
                            found.setdefault((f"{kind}: {figure}", system.name), []).append(value)
                    print(f"{kind}, round {number + 1}, {system.name}", file=sys.stderr, flush=True)
    finally:
        for system in systems:
            system.stop()
    return found


if __name__ == "__main__":
    option = ("--most", 10_000, "rules in the second half")
    logins.main_beside("rules", __doc__, run, logins.Timing(3, 2.0), option)
