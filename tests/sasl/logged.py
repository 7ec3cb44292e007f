"""A broker with listeners that ask for a login, and clients that say who they are.

With PENSTOCK_TEST_BROKER=kafka it is Apache Kafka, as in `broker_process`.
"""

import sys

from benchmarks import kafka
from benchmarks.peer import Wire
from tests.broker_process import KAFKA, Broker

HOST = "127.0.0.1"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
TOKEN_SECRET = "token-secret"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def jaas(users):
    said = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return f"{PLAIN_MODULE} required {said};"


class LoggedIn(Broker):
    """It listens in plain, and on three listeners that ask for a login: STATIC knows USERS by its
    settings, SASL_PLAINTEXT (for PLAIN, ours alone) by the metadata, ONLY offers SCRAM-SHA-512.
    ports: name → port."""

    names = ("STATIC", "SASL_PLAINTEXT", "ONLY")

    def __init__(self, data, settings=None, *, of_kafka=KAFKA):
        super().__init__(data, settings)
        self.of_kafka = of_kafka
        different = {self.port}
        while len(different) < len(self.names) + 2:
            different.add(kafka.free_port())
        others = sorted(different - {self.port})
        self.ports = {"PLAINTEXT": self.port, **dict(zip(self.names, others, strict=False))}
        self.controllers = others[-1]

    def own(self):
        """What both have of logins."""
        static = "listener.name.static."
        found = {
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "group.initial.rebalance.delay.ms": "0",
            "delegation.token.secret.key": TOKEN_SECRET,
            f"{static}plain.sasl.jaas.config": jaas(USERS),
            "listener.name.only.sasl.enabled.mechanisms": MECHANISMS[-1],
        }
        if self.of_kafka:  # which wants an entry for each mechanism of each listener
            for name in self.names:
                for one in MECHANISMS[1:]:
                    key = f"listener.name.{name.lower()}.{one.lower()}.sasl.jaas.config"
                    found[key] = f"{SCRAM_MODULE} required;"
            found["listener.name.sasl_plaintext.sasl.enabled.mechanisms"] = ",".join(MECHANISMS[1:])
        return found | self.settings

    def command(self):
        listeners = [f"{name}://{HOST}:{port}" for name, port in self.ports.items()]
        protocols = ["PLAINTEXT:PLAINTEXT", *(f"{name}:SASL_PLAINTEXT" for name in self.names)]
        if self.of_kafka:
            return self._of_kafka(listeners, protocols)
        words = {
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(protocols),
        } | self.own()
        file = self.data.parent / f"{self.data.name}.properties"
        lines = [f"{key}={value}\n" for key, value in words.items()]
        file.write_text("".join(lines))
        file.chmod(0o600)
        return [sys.executable, "-m", "console", "up", "--data", str(self.data),
                "--config", str(file)]  # fmt: skip

    def _of_kafka(self, listeners, protocols):
        node = kafka.Kafka(self.data, self.port)
        node.settings |= {
            "listeners": ",".join([*listeners, f"CONTROLLER://{HOST}:{self.controllers}"]),
            "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
            "inter.broker.listener.name": "PLAINTEXT",
        }
        node.controller_port = self.controllers
        node.settings |= self.own()
        self.data.mkdir(parents=True, exist_ok=True)
        return kafka.java("kafka.Kafka", node.format(), heap="512m")

    def at(self, listener="STATIC"):
        """HOST:PORT of it."""
        return f"{HOST}:{self.ports[listener]}"

    def wire(self, listener="STATIC"):
        """A connection that has said nothing yet."""
        return Wire((HOST, self.ports[listener]))
