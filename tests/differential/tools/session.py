"""One broker under comparison: every tool that a script runs against it, and what it printed."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.differential.link import LIMIT_S, Link
from tests.differential.registry import APIS
from tests.differential.scene import Target
from tests.differential.tools.launcher import Printed, Tools

_TOOLS = "org.apache.kafka.tools."
CLASSES = {
    "kafka-acls": _TOOLS + "AclCommand",
    "kafka-broker-api-versions": _TOOLS + "BrokerApiVersionsCommand",
    "kafka-client-metrics": _TOOLS + "ClientMetricsCommand",
    "kafka-cluster": _TOOLS + "ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": _TOOLS + "consumer.ConsoleConsumer",
    "kafka-console-producer": _TOOLS + "ConsoleProducer",
    "kafka-consumer-groups": _TOOLS + "consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": _TOOLS + "DeleteRecordsCommand",
    "kafka-features": _TOOLS + "FeatureCommand",
    "kafka-get-offsets": _TOOLS + "GetOffsetShell",
    "kafka-groups": _TOOLS + "GroupsCommand",
    "kafka-leader-election": _TOOLS + "LeaderElectionCommand",
    "kafka-log-dirs": _TOOLS + "LogDirsCommand",
    "kafka-metadata-quorum": _TOOLS + "MetadataQuorumCommand",
    "kafka-reassign-partitions": _TOOLS + "reassign.ReassignPartitionsCommand",
    "kafka-topics": _TOOLS + "TopicCommand",
}
"""The names that users type, and the classes behind them."""

_CHANGE = ("add", "alter", "create", "delete", "execute", "remove")
_BOOTSTRAP_LAST = {"kafka-cluster"}
"""Their first word is a verb that the option belongs to."""


@dataclass(frozen=True)
class Step:
    """One tool's run. command: as a user would type it, without the broker's address."""

    command: str
    printed: Printed


class Session:
    """One broker, and the steps that were run against it so far.

    bootstrap: HOST:PORT. files: a folder for plans that tools read from files.
    """

    def __init__(self, tools: Tools, target: Target, files: Path) -> None:
        self.target = target
        self.bootstrap = "{}:{}".format(*target.address)
        self.files = files
        files.mkdir(parents=True, exist_ok=True)
        self.steps: list[Step] = []
        self._tools = tools
        self._link = Link(target.address)

    def run(
        self, line: str, *more: str, stdin: str = "", until: Callable[[str], bool] | None = None
    ) -> Printed:
        """Run a tool. line: its name and its words, split at blanks; more: words that hold some.
        until: run it again until it says so of the output; only the last run counts."""
        name, *words = [*line.split(), *more]
        server = ["--bootstrap-server", self.bootstrap]
        words = [*words, *server] if name in _BOOTSTRAP_LAST else [*server, *words]
        printed = self._tools.run(CLASSES[name], *words, stdin=stdin)
        end = time.monotonic() + LIMIT_S
        while until is not None and not until(printed.out):
            assert time.monotonic() < end, f"{self.target.name}: {line} stays {printed}"
            printed = self._tools.run(CLASSES[name], *words, stdin=stdin)
        command = " ".join([line, *more])
        self.steps.append(Step(command, printed))
        if any(f"--{verb}" in command for verb in _CHANGE):
            self._settle()
        return printed

    def _settle(self) -> None:
        """Wait until the broker shows what its controller has decided."""
        asked = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{}]}]}
        quorum = self._link.ask(APIS["DescribeQuorum"], 1, asked)
        decided = quorum["topics"][0]["partitions"][0]["high_watermark"] - 1
        end = time.monotonic() + LIMIT_S
        while self._shown() < decided:
            assert time.monotonic() < end, f"{self.target.name} does not show offset {decided}"
            time.sleep(0.005)

    def _shown(self) -> int:
        who = {"client_software_name": "differential", "client_software_version": "1"}
        answer = self._link.ask(APIS["ApiVersions"], 3, who)
        return answer["finalized_features_epoch"]

    def close(self) -> None:
        self._link.close()

    def file(self, name: str, content: object) -> str:
        """Write a plan as JSON; returns its path, which says nothing of the broker."""
        path = self.files / name
        path.write_text(json.dumps(content))
        return str(path)

    def hurried(self) -> str:
        """Options for a tool that asks for something absent until its time is up."""
        path = self.files / "hurried.properties"
        path.write_text("default.api.timeout.ms=1000\nrequest.timeout.ms=1000\n")
        return f"--command-config {path}"
