"""Why a command got no answer when the broker's disk is nearly full: clients only hear that it took
too long, or that the coordinator is not available.

A look at DescribeLogDirs (v4, KIP-827) and at the broker's own limit; nothing is said when the
broker does not tell, because it is another one or wants TLS.
"""

from typing import Final

from appliance.cli.exits import Failure
from appliance.cli.link import Link
from appliance.cli.plain_request import ask

MAY_MEAN_FULL: Final = frozenset(
    (
        "_MSG_TIMED_OUT",
        "_TIMED_OUT",
        "REQUEST_TIMED_OUT",
        "COORDINATOR_NOT_AVAILABLE",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
    )
)
HINT: Final = (
    "make room on it, delete topics (penstock topic delete) or records (penstock topic trim),"
    " or keep less (penstock topic config set TOPIC retention.ms=...); then try again"
)
_KEEP: Final = "penstock.disk.free.min.bytes"
_MIB: Final = 1 << 20
_METADATA, _DESCRIBE_CONFIGS, _DESCRIBE_LOG_DIRS = 3, 32, 35
_BROKER: Final = 4


def nearly_full(link: Link) -> str:
    """Which log folder's disk is nearly full, and how much more must be free; "" when none is."""
    try:
        keep = _keep_bytes(link)
        found = ask(link, _DESCRIBE_LOG_DIRS, 4, {"topics": []}).results
    except Failure:
        return ""
    for one in found:
        total, free = int(one.total_bytes), int(one.usable_bytes)
        # Twice as much must be free to resume as to go on: see base/space.py.
        missing = 2 * max(keep, total // 100) - free
        if keep >= 0 and total > 0 and missing > 0:
            return (
                f"the disk of {one.log_dir} is nearly full: {free // _MIB} MiB are free,"
                f" {-(-missing // _MIB)} MiB more must be"
            )
    return ""


def _keep_bytes(link: Link) -> int:
    """What the broker keeps free, in bytes; -1 when it is no appliance of ours."""
    asked = {
        "topics": [],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }
    node = int(ask(link, _METADATA, 12, asked).controller_id)
    resource = {
        "resource_type": _BROKER,
        "resource_name": str(node),
        "configuration_keys": (_KEEP,),
    }
    asked = {"resources": [resource], "include_synonyms": False, "include_documentation": False}
    for result in ask(link, _DESCRIBE_CONFIGS, 4, asked).results:
        for one in result.configs:
            return int(one.value)
    return -1
