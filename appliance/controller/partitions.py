"""Add partitions to topics (CreatePartitions, KIP-195). Partitions never go away again."""

from collections.abc import Sequence

from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.errors import PeerError
from appliance.config.internal_topics import DECLARED
from appliance.controller.decision import OK, Record, Result, Situation, duplicates, failed
from appliance.controller.electorate import active_brokers
from appliance.controller.placement import check_active, check_assignment, new_partition, place
from appliance.controller.topics import MAX_PARTITIONS_PER_REQUEST


@dataclass(slots=True, frozen=True)
class MorePartitions:
    """`count` is the number of partitions afterwards; assignments are those of the new ones."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


def create_partitions(
    situation: Situation, wanted: Sequence[MorePartitions]
) -> tuple[list[Record], list[tuple[str, Result]]]:
    """Records, and per distinct topic how it went."""
    twice = duplicates([item.name for item in wanted])
    text = "Duplicate topic name. A request may name each topic once."
    results = [(name, Result(errors.INVALID_REQUEST, text)) for name in twice]
    records: list[Record] = []
    added = 0
    for item in wanted:
        if item.name in twice:
            continue
        try:
            new = _grow(situation, item, added)
        except PeerError as error:
            results.append((item.name, failed(error)))
            continue
        added += len(new)
        records += new
        results.append((item.name, OK))
    return records, results


def _grow(situation: Situation, item: MorePartitions, added_before: int) -> list[Record]:
    image = situation.image
    topic = image.topics_by_name.get(item.name)
    if topic is None:
        raise PeerError(
            errors.UNKNOWN_TOPIC_OR_PARTITION,
            f"This server does not host this topic-partition. No topic is named"
            f" '{item.name[:249]}'.",
        )
    present = len(topic.partitions)
    declared = DECLARED.get(item.name)
    if declared is not None:
        unit = declared.unit
        raise PeerError(
            errors.INVALID_REQUEST,
            f"'{item.name}' keeps its {present} partition(s): a {unit} lives in one of them by its"
            f" name and their number, so with more of them {unit}s would lose their"
            f" {declared.keeps}. Set {declared.partitions} before the first {unit} is used.",
        )
    count = item.count - present
    if count <= 0:
        text = (
            f"The topic {item.name} currently has {present} partition(s); {item.count} would not"
            " be an increase."
        )
        if count == 0:
            text = f"Topic already has {present} partition(s)."
        raise PeerError(errors.INVALID_PARTITIONS, f"{text} Partitions can only be added.")
    room = situation.free_rows if situation.alone else MAX_PARTITIONS_PER_REQUEST
    limit = min(room, MAX_PARTITIONS_PER_REQUEST) - added_before
    if count > limit:
        text = (
            f"{count} partitions more for topic '{item.name}' are too many: at most"
            f" {max(limit, 0)} can be added now."
        )
        if room < MAX_PARTITIONS_PER_REQUEST:
            raise situation.rows.refuse(text)
        raise PeerError(errors.INVALID_PARTITIONS, text)
    factor = len(topic.partitions[0].replicas)
    if item.assignments is None:
        placed = place(situation, count, factor, "")
    elif len(item.assignments) != count:
        raise PeerError(
            errors.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {count} additional partition(s), but only {len(item.assignments)}"
            " assignment(s) were specified. Give one for each new partition.",
        )
    else:
        placed = [check_assignment(image, replicas, factor) for replicas in item.assignments]
    situation.rows.check(placed)
    active = active_brokers(image)
    check_active(placed, present, active, manual=item.assignments is not None)
    situation.check_disk()
    situation.permit(count)
    situation.rows.count_replicas(placed)
    return [
        new_partition(situation, topic.topic_id, index, replicas, active)
        for index, replicas in enumerate(placed, present)
    ]
