"""The log folders of a broker, and whether a full disk is why it does not answer: clients only hear
that it took too long, or that the coordinator is not available.

By DescribeLogDirs (v4, KIP-827) and the broker's own limit; nothing is said when the broker does
not tell, because it is another one or wants TLS.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import name_of_code

_MAY_MEAN_FULL: Final = frozenset(
    (
        "_MSG_TIMED_OUT",
        "_TIMED_OUT",
        "REQUEST_TIMED_OUT",
        "COORDINATOR_NOT_AVAILABLE",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
    )
)
_HINT: Final = (
    "make room on it, delete topics (penstock topic delete) or records (penstock topic trim),"
    " or keep less (penstock topic config set TOPIC retention.ms=...); then try again"
)
_KEEP: Final = "penstock.disk.free.min.bytes"
_MIB: Final = 1 << 20
_METADATA, _DESCRIBE_CONFIGS, _DESCRIBE_LOG_DIRS = 3, 32, 35
_BROKER: Final = 4


@dataclass(slots=True, frozen=True)
class LogFolder:
    """One log folder of a broker. total_bytes, free_bytes: of its disk, -1 when it does not say.
    used_bytes: of all partitions in it that were asked for. problem: the error that it is offline
    with, else "". of_topics: topic → bytes in it, of those that were asked for."""

    path: str
    total_bytes: int
    free_bytes: int
    used_bytes: int
    problem: str = ""
    of_topics: Mapping[str, int] = field(default_factory=dict)


def log_folders(
    link: Link, *, used: bool = True, topics: Mapping[str, int] | None = None
) -> list[LogFolder]:
    """Every log folder of the broker that is asked. used: without it no partition is looked at, and
    used_bytes is 0. topics: only these are looked at, topic → its number of partitions; None: all.
    Raises Failure."""
    only = [{"topic": one, "partitions": list(range(n))} for one, n in (topics or {}).items()]
    asked = {"topics": None if used and topics is None else only if used else []}
    return [_log_folder(one) for one in ask_server(link, _DESCRIBE_LOG_DIRS, 4, asked).results]


def _log_folder(one: Any) -> LogFolder:
    """By a result of DescribeLogDirs (v4)."""
    of_topics = {
        str(topic.name): sum(int(part.partition_size) for part in topic.partitions)
        for topic in one.topics
    }
    return LogFolder(
        one.log_dir,
        int(one.total_bytes),
        int(one.usable_bytes),
        sum(of_topics.values()),
        name_of_code(int(one.error_code)) if int(one.error_code) else "",
        of_topics,
    )


def sizes(
    link: Link, wanted: Mapping[str, Iterable[int]], server: str | None = None
) -> dict[tuple[str, int], int]:
    """Topic and partition → bytes on the disks of the broker that is asked, of `server` when it is
    named; nothing where it does not say. wanted: topic → partitions."""
    asked = [{"topic": name, "partitions": list(numbers)} for name, numbers in wanted.items()]
    found: dict[tuple[str, int], int] = {}
    try:
        for folder in ask_server(link, _DESCRIBE_LOG_DIRS, 4, {"topics": asked}, server).results:
            for topic in folder.topics:
                for one in topic.partitions:
                    key = topic.name, int(one.partition_index)
                    found[key] = found.get(key, 0) + int(one.partition_size)
    except Failure:
        return {}
    return found


def of_topics(link: Link, wanted: Mapping[str, Iterable[int]]) -> dict[str, int]:
    """Topic → bytes, as `sizes` counts them."""
    found: dict[str, int] = {}
    for (name, _), size in sizes(link, wanted).items():
        found[name] = found.get(name, 0) + size
    return found


def nearly_full(link: Link) -> str:
    """Which log folder's disk is nearly full, and how much more must be free; "" when none is."""
    try:
        keep = _keep_bytes(link)
        found = log_folders(link, used=False)
    except Failure:
        return ""
    for one in found:
        # Twice as much must be free to resume as to go on: see base/space.py.
        missing = 2 * max(keep, one.total_bytes // 100) - one.free_bytes
        if keep >= 0 and one.total_bytes > 0 and missing > 0:
            return (
                f"the disk of {one.path} is nearly full: {one.free_bytes // _MIB} MiB are free,"
                f" {-(-missing // _MIB)} MiB more must be"
            )
    return ""


def or_full(link: Link, failure: Failure) -> Failure:
    """The failure, with its reason when that is a full disk."""
    if failure.name in _MAY_MEAN_FULL and "nearly full" not in failure.message:
        why = nearly_full(link)
        if why:
            failure.message += f"; {why}"
            failure.hint = _HINT
    return failure


def _keep_bytes(link: Link) -> int:
    """The bytes that the broker keeps free; -1 when it is no appliance of ours."""
    asked = {
        "topics": [],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }
    node = int(ask_server(link, _METADATA, 12, asked).controller_id)
    resource = {
        "resource_type": _BROKER,
        "resource_name": str(node),
        "configuration_keys": (_KEEP,),
    }
    asked = {"resources": [resource], "include_synonyms": False, "include_documentation": False}
    for result in ask_server(link, _DESCRIBE_CONFIGS, 4, asked).results:
        for one in result.configs:
            return int(one.value)
    return -1
