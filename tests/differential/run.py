"""Start both brokers, play every script on both, compare, hold the result against the table."""

import contextlib
import secrets
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from appliance.wire.messages import request_versions
from benchmarks.kafka import Kafka
from tests.broker_process import Broker
from tests.differential.compare import compare
from tests.differential.groups import GROUP_MAX
from tests.differential.normal import Normaliser
from tests.differential.scene import Target

SETTINGS = {
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.assignment.interval.ms": "0",  # Kafka else assigns once a second at most
    "group.max.size": str(GROUP_MAX),
    "group.consumer.max.size": str(GROUP_MAX),
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "broker.session.timeout.ms": "60000",  # a machine that is busy fences nobody
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",  # Kafka's is 10,000
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Whatever no rule names is open, so only scripts that make rules meet a refusal.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Both brokers have these; everything else is each one's default."""


@contextlib.contextmanager
def both(folder, ours=None, kafka=None, settings=SETTINGS):
    """(the appliance, Apache Kafka) as Targets. Each one runs in a folder below `folder`, or is
    reached at HOST:PORT:FOLDER when it runs already."""
    with contextlib.ExitStack() as stack:
        # Kafka first: it takes longest to be there.
        theirs = _named("kafka", kafka) or start_kafka(stack, folder / "kafka", settings)
        yield _named("penstock", ours) or start_penstock(stack, folder / "ours", settings), theirs


def _named(name, text):
    if text is None:
        return None
    host, port, folder = [*text.split(":", 2), None][:3]
    return Target(name, (host, int(port)), folder)


def start_kafka(stack, folder, settings):
    """A Target that runs as long as the stack."""
    node = Kafka(folder, heap="512m")
    node.settings |= settings
    stack.enter_context(node)
    return Target("kafka", ("127.0.0.1", node.port), str(folder / "logs"))


def start_penstock(stack, folder, settings):
    """The same of an appliance."""
    broker = stack.enter_context(Broker(folder, settings))
    return Target("penstock", ("127.0.0.1", broker.port), str(folder))


@dataclass
class Report:
    """What a run found. asked: comparisons by (API, version)."""

    asked: Counter = field(default_factory=Counter)
    unexpected: list = field(default_factory=list)
    expected: list = field(default_factory=list)
    stale: list = field(default_factory=list)
    broken: list = field(default_factory=list)

    @property
    def good(self):
        return not (self.unexpected or self.stale or self.broken)

    def __str__(self):
        lines = [f"{title} {item}" for title, items in (
            ("not in the table:", by_version(self.unexpected)),
            ("in the table, but no longer different:", self.stale),
            ("scripts failed:", self.broken),
        ) for item in items]  # fmt: skip
        apis = {api for api, _ in self.asked}
        lines.append(
            f"{sum(self.asked.values())} answers compared: {len(apis)} APIs,"
            f" {len(self.asked)} versions of them; {len(self.expected)} fields differ on purpose,"
            f" {len(self.unexpected)} unexpectedly, {len(self.stale)} entries of the table are"
            f" stale, {len(self.broken)} scripts failed"
        )
        return "\n".join(lines)


def by_version(differences):
    """One line for differences that are the same in several versions."""
    found = {}
    for one in differences:
        found.setdefault(repr(one._replace(version=0)), []).append(one)
    return [
        str(same[0]).replace(
            f" v{same[0].version} ", f" v{','.join(str(s.version) for s in same)} ", 1
        )
        for same in found.values()
    ]


def versions_of(script, targets):
    """The versions it is played in: advertised by both, known to us, wanted by it."""
    low, high = 0, 1 << 15
    for target in targets:
        lowest, highest = target.ranges[script.key]
        low, high = max(low, lowest), min(high, highest)
    known = request_versions(script.key)
    wanted = known if script.versions is None else script.versions
    return [one for one in range(low, high + 1) if one in known and one in wanted]


def play(script, version, target, run):
    """The notes of one run, comparable."""
    scene = target.scene(target, script, version, run)
    try:
        script.play(scene)
    finally:
        scene.close()
    ports = getattr(target, "ports", None) or [target.address[1]]
    clean = Normaliser(scene.known, ports, target.folder, scene.numbers)
    return [(step, api, asked, clean.note(answer)) for step, api, asked, answer in scene.notes]


def run(scripts, targets, entries, whole=True, told=lambda script, version: None):
    """Play `scripts` on (ours, Kafka) and judge by the table's entries. told: called before each.

    whole: whether all scripts are there, so that an entry that nothing matched is stale even when
    nothing was asked that it speaks of.
    """
    report, tag = Report(), secrets.token_hex(3)
    found, steps = [], []
    with ThreadPoolExecutor(2) as pool:
        for script in scripts:
            for version in versions_of(script, targets):
                told(script, version)
                runs = [pool.submit(play, script, version, one, tag) for one in targets]
                try:
                    ours, kafka = (one.result() for one in runs)
                except Exception:
                    report.broken.append(f"{script.name} v{version}: {traceback.format_exc(-2)}")
                    continue
                report.asked.update((api, asked) for _, api, asked, _ in kafka)
                steps += [(api, asked, f"{script.name}/{step}") for step, api, asked, _ in kafka]
                found += compare(ours, kafka, script.name, script.api)
    judge(report, found, steps, entries, whole)
    return report


def judge(report, found, steps, entries, whole):
    used = set()
    for difference in found:
        covering = [one for one in entries if one.covers(difference)]
        used |= {(one, difference.version) for one in covering}
        (report.expected if covering else report.unexpected).append(difference)
    if not whole:  # what a part does not show may differ in the rest
        return
    for entry in entries:
        asked = {version for api, version, script in steps if entry.about(api, version, script)}
        if entry.ours != "*" or entry.kafka != "*":  # else both may be the same by chance
            report.stale += [
                f"{entry} (v{version})" for version in sorted(asked) if (entry, version) not in used
            ]
        if not asked:
            report.stale.append(f"{entry}: no script asks that")
