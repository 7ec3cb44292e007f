"""Run a script of tools on both brokers; what they printed, comparable."""

import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.differential.compare import compare
from tests.differential.run import Report, judge
from tests.differential.table import read
from tests.differential.tools import (
    scripts_acls,
    scripts_cluster,
    scripts_configs,
    scripts_groups,
    scripts_records,
    scripts_topics,
)  # fmt: skip
from tests.differential.tools.launcher import Tools
from tests.differential.tools.session import Session

TABLE = Path(__file__).with_name("differences.toml")
FIRST = "cluster.alike"
ROOMS = (scripts_topics, scripts_records, scripts_configs, scripts_groups, scripts_cluster,
         scripts_acls)  # fmt: skip
SCRIPTS = {FIRST: scripts_cluster.alike} | {
    f"{room.__name__.rpartition('_')[2]}.{script.__name__}": script
    for room in ROOMS
    for script in room.SCRIPTS
}
"""By the name that the table of differences calls them."""


def _in_order(found):
    """Java prints a set of options in an order of its own in each run."""
    return ", ".join(sorted(found[0].split(", ")))


_REPLACED = (
    (r"(?<=of these options: ).*", _in_order),
    (r"(?<=only supports operations \[)[^]]*", _in_order),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
    (
        r"(?<![\w+/.-])(?=[\w+/-]*[A-Z])(?=[\w+/-]*[a-z])(?=[\w+/-]*[\d_+/-])[\w+/-]{22}(?![\w+/(-])",
        "<id>",
    ),
    (r"(?<=\s)(?=[\w+/-]*[a-z])[\w+/-]{22}(?=\s)", "<id>"),
    (r"((?:TopicId|Cluster ID|ClusterId):\s+)[\w-]{22}", r"\1<id>"),
    (r"\b1[0-9]{12}\b", "<time>"),
    (r"\b\d+ ms ago", "<time> ago"),
    (r"\b20\d\d-\d\d-\d\dT[\d:.]+", "<time>"),
    (r"TimeoutException: .*", "TimeoutException: <calls>"),
    (r"(Epoch|HighWatermark): +\d+", r"\1: <offset>"),
    (r"CONTROLLER://127.0.0.1:\d+", "<controller>"),
    (r"^(\d\s+\S+\s+)\d+\b(.*Leader)", r"\1<offset>\2"),
    (r"(?<=\S) +\t", "\t"),
)
"""What cannot be the same on two brokers, or in two runs."""
_ACL = re.compile(r"\s*\(principal=")
_OF_A_SET = re.compile(rf"{_ACL.pattern}|Acl \(pattern=|\s+\t[A-Z]\w+$")
"""A line of an ACL, or of one of a tool's operations: their order is that of a set of Java's."""
_RESOURCE = re.compile(r"[A-Z]\w+ ACLs for resource ")
"""The head of the ACLs of a resource; these blocks come in the order of a map of Java's."""


def _without_javas_order(lines):
    """The lines with those sorted that Java prints in the order of its sets and maps."""
    lines = [_ACL.sub("\t(principal=", line) for line in lines]
    for is_set, run in [
        (key, list(run)) for key, run in itertools.groupby(enumerate(lines), _is_of_a_set)
    ]:
        if is_set:
            lines[run[0][0] : run[-1][0] + 1] = sorted(line for _, line in run)
    blocks = [[]]
    for line in lines:
        if _RESOURCE.match(line) or not (line == "" or _ACL.match(line)):
            blocks.append([])
        blocks[-1].append(line)
    found = []
    for is_acls, run in itertools.groupby(blocks, _is_of_a_resource):
        some = list(run)
        found += sorted(some) if is_acls else some
    return [line for block in found for line in block]


def _is_of_a_resource(block):
    return bool(block and _RESOURCE.match(block[0]))


def _is_of_a_set(found):
    return bool(_OF_A_SET.match(found[1]))


def _lines(text, session):
    """What a tool printed, without the paths, ids and times of this run."""
    port = session.target.address[1]
    for own, word in (
        (f"127.0.0.1:{port}", "<broker>"), (f"127.0.0.1 {port}", "<broker>"),
        (str(session.files), "<files>"), (session.target.folder, "<data>"),
    ):  # fmt: skip
        text = text.replace(own, word)
    for pattern, word in _REPLACED:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("\tat ")]
    return _without_javas_order(lines)


def _notes(session):
    """[(command, tool, 0, what it printed)], as `compare` takes them."""
    notes = []
    for step in session.steps:
        printed = step.printed
        out = _lines(printed.out, session)
        said = {"code": printed.code, "out": _by_name(out) if " --all " in step.command else out}
        said["err"] = _lines(printed.err, session)
        words = step.command.replace(str(session.files), "<files>")
        notes.append((words, words.split()[0], 0, said))
    return notes


def _by_name(lines):
    """Settings by their names, so that one of them that only one broker has is one difference."""
    return {line.strip().partition("=")[0]: line for line in lines}


def _agree(ours, kafka):
    """An error of ours that begins with Kafka's words, and goes on with a remedy, is the same."""
    for (*_, said), (*_, other) in zip(ours, kafka, strict=False):
        if not other["code"] and "rror" not in str(other):
            continue
        for stream in ("out", "err"):
            if isinstance(said[stream], list) and len(said[stream]) == len(other[stream]):
                said[stream] = [
                    two if two and one.startswith(two.rstrip(".")) else one
                    for one, two in zip(said[stream], other[stream], strict=True)
                ]


def play(names, targets, folder):
    """The report of the named scripts on (ours, Kafka), and of the first one, which makes both
    alike. folder: an empty one for their plans."""
    report, found, steps = Report(), [], []
    with ExitStack() as stack:
        jvms = [stack.enter_context(Tools()) for _ in targets]
        pool = stack.enter_context(ThreadPoolExecutor(2))
        for name in dict.fromkeys([FIRST, *names]):
            sessions = [
                Session(tools, target, folder / target.name)
                for tools, target in zip(jvms, targets, strict=True)
            ]
            for one in pool.map(SCRIPTS[name], sessions):
                assert one is None
            for session in sessions:
                session.close()
            ours, kafka = map(_notes, sessions)
            _agree(ours, kafka)
            report.asked.update((tool, 0) for _, tool, _, _ in kafka)
            steps += [(tool, 0, f"{name}/{command}") for command, tool, _, _ in kafka]
            found += compare(ours, kafka, name, "tools")
    judge(report, found, steps, read(TABLE), whole=set(names) == set(SCRIPTS))
    return report
