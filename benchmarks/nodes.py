"""Several nodes that form one cluster on the loopback, each broker and controller at once or one of
both.

The same properties start Apache Kafka and the appliance: static voters, everything internal kept by
three. Called by the cluster's benchmark and by its tests.
"""

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import unpack_from

from appliance.config.open_listeners import ALLOW, SETTING, is_loopback
from benchmarks import kafka, procstat, requests
from benchmarks.compare.systems import HEAP, System
from benchmarks.peer import Wire, WrongAnswer
from benchmarks.requests import Led

CLUSTER_ID = kafka.CLUSTER_ID
LIMIT_S = 120.0
TOPIC_ALREADY_EXISTS = 36
BOTH = "broker,controller"


@dataclass(frozen=True)
class Place:
    """Where a node is found: by clients and brokers, and by controllers. roles: as in
    `process.roles`."""

    number: int
    port: int
    controller_port: int
    host: str = "127.0.0.1"
    roles: str = BOTH

    @property
    def serves(self) -> bool:
        """Whether it is a broker."""
        return "broker" in self.roles

    @property
    def votes(self) -> bool:
        """Whether it is a controller."""
        return "controller" in self.roles


def places(count: int, roles: Mapping[int, str] | None = None) -> tuple[Place, ...]:
    """Free places for nodes 1 to `count`. roles: of those that are not both."""
    given = roles or {}
    ports: list[int] = []
    while len(ports) < 2 * count:
        port = kafka.free_port()
        if port not in ports:
            ports.append(port)
    return tuple(
        Place(n, ports[2 * n - 2], ports[2 * n - 1], roles=given.get(n, BOTH))
        for n in range(1, count + 1)
    )


def bootstrap(nodes: tuple[Place, ...]) -> str:
    """For clients; the order is by chance, so that not all of them ask the same node first."""
    brokers = [one for one in nodes if one.serves]
    return ",".join(f"{one.host}:{one.port}" for one in random.sample(brokers, len(brokers)))


def properties(place: Place, nodes: tuple[Place, ...]) -> dict[str, str]:
    """What makes a node of this cluster of it, in Kafka's names."""
    voters = [f"{one.number}@{one.host}:{one.controller_port}" for one in nodes if one.votes]
    clients = f"PLAINTEXT://{place.host}:{place.port}"
    controllers = f"CONTROLLER://{place.host}:{place.controller_port}"
    opened = [*([clients] if place.serves else []), *([controllers] if place.votes else [])]
    brokers = sum(one.serves for one in nodes)
    kept, least = str(min(3, brokers)), str(min(2, brokers))
    return {
        "process.roles": place.roles,
        "node.id": str(place.number),
        "listeners": ",".join(opened),
        **({"advertised.listeners": clients} if place.serves else {}),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.voters": ",".join(voters),
        "default.replication.factor": kept,
        "min.insync.replicas": least,
        **({} if is_loopback(place.host) else {SETTING: ALLOW}),
        "offsets.topic.replication.factor": kept,
        "transaction.state.log.replication.factor": kept,
        "transaction.state.log.min.isr": least,
    }


def kafka_command(folder: Path, settings: dict[str, str], heap: str, *flags: str) -> list[str]:
    """Format the folder if it is new; the command that starts Apache Kafka in it. flags: of the
    format step."""
    shared = "share.coordinator.state.topic"
    lines = {
        **settings,
        "log.dirs": str(folder / "logs"),
        f"{shared}.replication.factor": settings["transaction.state.log.replication.factor"],
        f"{shared}.min.isr": settings["transaction.state.log.min.isr"],
    }
    return kafka.java("kafka.Kafka", kafka.formatted(folder, lines, *flags), heap=heap)


def appliance_command(folder: Path, settings: dict[str, str]) -> list[str]:
    """The command that starts the appliance in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.parent / f"{folder.name}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [sys.executable, "-m", "console", "up", "--data", str(folder)]
    return [*command, "--cluster-id", CLUSTER_ID, "--config", str(path)]


class Node(System):
    """One node of a cluster."""

    def __init__(
        self, name: str, level: str, folder: Path, place: Place, nodes: tuple[Place, ...]
    ) -> None:
        super().__init__(name, level, folder / f"node-{place.number}")
        self.port = place.port
        self.properties = properties(place, nodes) | self.settings

    def prepare(self) -> list[str]:
        self.data.mkdir(parents=True, exist_ok=True)
        if self.name == "kafka":
            return kafka_command(self.data, self.properties, HEAP)
        return appliance_command(self.data / "penstock", self.properties)


class Cluster:
    """Three nodes of one kind. Raises RuntimeError for what does not come in time."""

    def __init__(self, name: str, level: str, folder: Path, count: int = 3) -> None:
        self.name = name
        where = places(count)
        self.nodes = {one.number: Node(name, level, folder, one, where) for one in where}
        self.bootstrap = bootstrap(where)
        self._topics = 0

    @property
    def living(self) -> list[int]:
        return [number for number, node in self.nodes.items() if node.alive]

    def start(self, *numbers: int) -> None:
        """Start these, or all, at once; until the cluster has them all as brokers."""
        chosen = numbers or tuple(self.nodes)
        for number in chosen:
            self.nodes[number].launch()

        def serves() -> bool:
            if dead := [number for number in chosen if not self.nodes[number].alive]:
                said = (self.nodes[dead[0]].data / "out.txt").read_text(errors="replace")
                raise RuntimeError(f"{self.name}, node {dead[0]} ended: {said[-2000:]}")
            return all(set(chosen) <= set(self.known("", one)[0]) for one in chosen)

        self.wait(serves, f"{chosen} serve")

    def start_those_that_ended(self) -> None:
        ended = [number for number, node in self.nodes.items() if not node.alive]
        if ended:
            self.start(*ended)

    def kill(self, number: int) -> None:
        self.nodes[number].kill()

    def terminate(self, number: int) -> None:
        """SIGTERM, without waiting."""
        os.kill(self.nodes[number].pid, signal.SIGTERM)

    def stop(self, number: int) -> None:
        """SIGTERM, and wait; harmless when it has ended."""
        self.nodes[number].stop()

    def close(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def wait(self, fact: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
        end = time.monotonic() + limit_s
        while True:
            with contextlib.suppress(OSError, WrongAnswer):
                if fact():
                    return
            if time.monotonic() > end:
                raise RuntimeError(f"{self.name}, never: {what}")
            time.sleep(0.005)

    # What they tell -------------------------------------------------------------------------------

    def ask(self, request: bytes, number: int | None = None) -> bytes:
        """The answer of this node, or of one that lives, without its correlation id."""
        living = self.living
        if not living:
            raise RuntimeError(f"no node of {self.name} lives")
        node = self.nodes[living[0] if number is None else number]
        with Wire(("127.0.0.1", node.port), 1 << 20) as wire:
            return wire.call(request)

    def known(self, topic: str, number: int | None = None) -> tuple[list[int], dict[int, Led]]:
        """The brokers, and the partitions of a topic, as a node knows them."""
        return requests.known(self.ask(requests.metadata([topic or "none"]), number))

    def controller(self) -> int:
        """Who leads the quorum."""
        found: list[int] = []

        def one() -> bool:
            answer = self.ask(requests.describe_quorum())
            if len(answer) < requests.QUORUM_LEADER.size:
                return False
            first, _, second, leader = requests.QUORUM_LEADER.unpack_from(answer)
            found[:] = [leader]
            return first == second == 0 and leader in self.living

        self.wait(one, "somebody leads the quorum")
        return found[0]

    def whole(self, topic: str) -> bool:
        """Whether everybody knows all partitions led and all replicas in sync."""
        for number in self.living:
            _, partitions = self.known(topic, number)
            if not partitions:
                return False
            if any(p.leader < 0 or len(p.isr) < len(self.nodes) for p in partitions.values()):
                return False
        return True

    def led(self, topic: str, without: int = 0) -> bool:
        """Whether everybody else knows a leader of each partition that is not this node."""
        for number in self.living:
            if number == without:
                continue
            _, partitions = self.known(topic, number)
            if not partitions or any(p.leader in (-1, without) for p in partitions.values()):
                return False
        return True

    def settle(self) -> None:
        """Until all nodes are brokers and somebody leads the quorum."""
        self.wait(lambda: len(self.known("")[0]) == len(self.nodes), "all are brokers")
        self.controller()

    def create(self, partitions: int = 1, replicas: Sequence[Sequence[int]] = ()) -> str:
        """A fresh topic with replication factor 3 that is whole."""
        self._topics += 1
        name = f"bench-{self._topics:04d}"
        request = requests.create_topic(
            name, partitions, {"file.delete.delay.ms": "0"}, factor=3, replicas=replicas
        )

        def made() -> bool:
            (code,) = unpack_from(">h", self.ask(request), 4 + 4 + 2 + len(name))
            return code in (0, TOPIC_ALREADY_EXISTS)

        self.wait(made, f"{name} is created")
        self.wait(lambda: self.whole(name), f"{name} is whole")
        return name

    def elect_preferred(self) -> None:
        """The first replica of each partition is to lead it."""
        self.ask(requests.elect_preferred())

    def delete(self, topic: str) -> None:
        self.ask(requests.delete_topic(topic))

    # What they cost -------------------------------------------------------------------------------

    def _pids(self) -> list[int]:
        return [self.nodes[number].pid for number in self.living]

    def cpu_seconds(self) -> float:
        """Of all that live."""
        return sum(procstat.cpu_seconds(pid) for pid in self._pids())

    def memory(self) -> int:
        """Proportional set size of all that live, bytes."""
        return sum(procstat.memory(pid).pss for pid in self._pids())
