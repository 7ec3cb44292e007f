"""Several nodes that form one cluster on the loopback, each broker and controller at once.

The same properties start Apache Kafka and the appliance: static voters, everything internal kept by
three. Called by the cluster's benchmark and by its tests.
"""

import random
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks import kafka

CLUSTER_ID = kafka.CLUSTER_ID
SEVERAL = "PENSTOCK_SEVERAL=1"
"""Opens the appliance to more than one voter."""


@dataclass(frozen=True)
class Place:
    """Where a node is found on the loopback: by clients and brokers, and by controllers."""

    number: int
    port: int
    controller_port: int


def places(count: int) -> tuple[Place, ...]:
    """Free places for nodes 1 to `count`."""
    ports: list[int] = []
    while len(ports) < 2 * count:
        port = kafka.free_port()
        if port not in ports:
            ports.append(port)
    return tuple(Place(at + 1, ports[2 * at], ports[2 * at + 1]) for at in range(count))


def bootstrap(nodes: tuple[Place, ...]) -> str:
    """For clients; the order is by chance, so that not all of them ask the same node first."""
    return ",".join(f"127.0.0.1:{one.port}" for one in random.sample(nodes, len(nodes)))


def properties(place: Place, nodes: tuple[Place, ...]) -> dict[str, str]:
    """What makes a node of this cluster of it, in Kafka's names."""
    voters = ",".join(f"{one.number}@127.0.0.1:{one.controller_port}" for one in nodes)
    clients = f"PLAINTEXT://127.0.0.1:{place.port}"
    kept, least = str(min(3, len(nodes))), str(min(2, len(nodes)))
    return {
        "process.roles": "broker,controller",
        "node.id": str(place.number),
        "listeners": f"{clients},CONTROLLER://127.0.0.1:{place.controller_port}",
        "advertised.listeners": clients,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.voters": voters,
        "default.replication.factor": kept,
        "min.insync.replicas": least,
        "offsets.topic.replication.factor": kept,
        "transaction.state.log.replication.factor": kept,
        "transaction.state.log.min.isr": least,
        "share.coordinator.state.topic.replication.factor": kept,
        "share.coordinator.state.topic.min.isr": least,
    }


def kafka_command(folder: Path, settings: dict[str, str], heap: str) -> list[str]:
    """Format the folder if it is new; the command that starts Apache Kafka in it."""
    lines = {**settings, "log.dirs": str(folder / "logs")}
    return kafka.java("kafka.Kafka", kafka.formatted(folder, lines), heap=heap)


def appliance_command(folder: Path, settings: dict[str, str]) -> list[str]:
    """The command that starts the appliance in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.parent / f"{folder.name}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = ["env", SEVERAL, sys.executable, "-m", "console", "up", "--data", str(folder)]
    return [*command, "--cluster-id", CLUSTER_ID, "--config", str(path)]
