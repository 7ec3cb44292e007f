"""Elections of preferred leaders: the first of the replicas leads again (ElectLeaders v2)."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.topics.placing import Place

_ELECT: Final = (43, 2)
_PREFERRED: Final = 0
_LEADS_ALREADY: Final = 84
_NOT_IN_SYNC: Final = 80


def elect_preferred(link: Link, places: Iterable[Place]) -> list[Place]:
    """Let the first replica of each partition lead. Returns those whose first replica is not in
    sync yet, which the cluster does later by itself (auto.leader.rebalance.enable). Raises Failure
    for the first that is refused."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(places):
        topics[topic].append(number)
    if not topics:
        return []
    asked: dict[str, Any] = {
        "election_type": _PREFERRED,
        "topic_partitions": tuple(
            {"topic": name, "partitions": tuple(numbers)} for name, numbers in topics.items()
        ),
        "timeout": round(link.timeout_s * 1000),
    }
    told = ask_server(link, *_ELECT, asked)
    check(int(told.error_code), None, "the elections")
    later = []
    for topic in told.replica_election_results:
        for one in topic.partition_result:
            place = str(topic.topic), int(one.partition_id)
            if int(one.error_code) == _NOT_IN_SYNC:
                later.append(place)
            elif int(one.error_code) != _LEADS_ALREADY:
                check(int(one.error_code), one.error_message, f"{place[0]} {place[1]}")
    return later
