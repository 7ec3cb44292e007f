"""The producers of a partition by its leader (DescribeProducers, KIP-664), and the marker that ends
a transaction there without its coordinator.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from appliance.base import errors
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.asking.plain_request import ask_server
from console.model.asking.refusals import check
from console.model.groups.groups import Place

_DESCRIBE: Final = (61, 0)
_WRITE_MARKERS: Final = (27, 1)
_GONE: Final = (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.NOT_LEADER_OR_FOLLOWER)


@dataclass(slots=True, frozen=True)
class Producer:
    """One that wrote to a partition. last_ms: the timestamp of its last batch, since 1970.
    coordinator_epoch: of its last marker, -1 before the first. start: offset of the first record of
    the transaction that it has open there, None without one."""

    producer_id: int
    epoch: int
    last_ms: int
    coordinator_epoch: int
    start: int | None


def producers(link: Link, places: Iterable[Place]) -> dict[Place, list[Producer]]:
    """The producers of each partition that exists and has a leader. Raises Failure."""
    found: dict[Place, list[Producer]] = {}
    for server, mine in _by_leader(link, places).items():
        topics: dict[str, list[int]] = {}
        for topic, number in mine:
            topics.setdefault(topic, []).append(number)
        asked = [{"name": name, "partition_indexes": tuple(of)} for name, of in topics.items()]
        for topic_told in ask_server(link, *_DESCRIBE, {"topics": asked}, server).topics:
            for one in topic_told.partitions:
                place = (str(topic_told.name), int(one.partition_index))
                if int(one.error_code) not in _GONE:
                    check(int(one.error_code), one.error_message, f"{place[0]} {place[1]}")
                    found[place] = [_producer(row) for row in one.active_producers]
    return found


def _producer(row: Any) -> Producer:
    start = int(row.current_txn_start_offset)
    return Producer(
        int(row.producer_id), int(row.producer_epoch), int(row.last_timestamp),
        int(row.coordinator_epoch), start if start >= 0 else None,
    )  # fmt: skip


def _by_leader(link: Link, places: Iterable[Place]) -> dict[str, list[Place]]:
    """HOST:PORT → the partitions that it leads."""
    wanted = list(places)
    if not wanted:
        return {}
    metadata = link.admin().list_topics(timeout=link.timeout_s)
    found: dict[str, list[Place]] = {}
    for topic, number in wanted:
        known = metadata.topics.get(topic)
        partition = known.partitions.get(number) if known is not None else None
        leader = metadata.brokers.get(partition.leader) if partition is not None else None
        if leader is not None:
            found.setdefault(f"{leader.host}:{leader.port}", []).append((topic, number))
    return found


def abort(link: Link, place: Place, producer: Producer) -> None:
    """Write the marker that aborts what this producer has open there. Raises Failure."""
    topic, number = place
    leaders = list(_by_leader(link, [place]))
    if not leaders:
        raise Failure(f"{topic} {number} has no leader", "try again", name="LEADER_NOT_AVAILABLE")
    marker = {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
        "transaction_result": False,
        "topics": [{"name": topic, "partition_indexes": (number,)}],
        "coordinator_epoch": max(0, producer.coordinator_epoch),
    }
    answer = ask_server(link, *_WRITE_MARKERS, {"markers": [marker]}, leaders[0])
    for one in answer.markers:
        for of in one.topics:
            for row in of.partitions:
                check(int(row.error_code), None, f"{topic} {number}")
