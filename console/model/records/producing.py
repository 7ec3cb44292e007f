"""Writing one record as a change: what its topic makes of it, and what is known when its answer was
lost.
"""

from functools import partial
from typing import Any, Final

from console.model.asking import configs
from console.model.asking.change import Change, Fact
from console.model.asking.configs import Target
from console.model.asking.failure import FAILED, UNREACHABLE, Failure, usage
from console.model.asking.link import Link
from console.model.groups.offsets import partitions_of
from console.model.records.one import one as read_one
from console.model.records.outgoing import MOST_TYPED, VALUE_FILE, Outgoing, tombstone, words
from console.model.records.writing import write_records

_COMPACT: Final = "compact"
_USUAL_MOST: Final = 1_000_000
_PER_HEADER: Final = 1024
_HOUR_MS: Final = 3_600_000


def producing(link: Link, one: Outgoing) -> Change:
    """Write a record: what the topic makes of it. Raises Failure for a topic or a partition that is
    not there."""
    wanted = () if one.partition is None else (one.partition,)
    count = len(partitions_of(link, [one.topic], wanted))
    where = str(one.partition) if wanted else f"by the key, one of {count}"
    if one.key is None and not wanted:
        where = f"any of {count}"
    policy, kept = _cleanup(link, one.topic)
    if _COMPACT in policy and one.key is None:
        raise usage(
            f"{one.topic} is compacted: a record needs a key", "only the last one of each key stays"
        )
    says = []
    if one.value is None:
        says.append(_of_tombstone(one.topic, policy, kept))
    if one.value is not None and len(one.value) > MOST_TYPED:
        says.append(f"The command reads the value from the file {VALUE_FILE}.")
    return Change(
        "Write a tombstone" if one.value is None else "Produce",
        words(one),
        partial(written, one=one),
        says=tuple(says),
        facts=(
            Fact("partition", where),
            Fact("key", _size(one.key)),
            Fact("value", _size(one.value)),
            Fact("headers", len(one.headers)),
        ),
    )


def burying(link: Link, topic: str, partition: int, offset: int) -> Change:
    """Write a tombstone for the key of the record at an offset. Raises Failure when there is none,
    or it has no key."""
    return producing(link, tombstone(read_one(link, topic, partition, offset).record))


def _size(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data):,} bytes"


def _cleanup(link: Link, topic: str) -> tuple[str, str]:
    """cleanup.policy and delete.retention.ms."""
    keys = ("cleanup.policy", "delete.retention.ms")
    found = configs.settings(link, Target(configs.TOPIC, topic), keys)
    values = {one.key: one.value or "" for one in found}
    policy, kept = (values.get(key, "") for key in keys)
    return policy, kept


def _of_tombstone(topic: str, policy: str, kept: str) -> str:
    if _COMPACT not in policy:
        return (
            f"{topic} is not compacted (cleanup.policy={policy}): a record without a value deletes"
            " nothing. It is one more record; consumers may take it as a deletion."
        )
    return (
        f"{topic} is compacted: from now on the key counts as deleted. A later cleaning takes its"
        f" older records away, and this one {_hours(kept)} (delete.retention.ms) after that."
    )


def _hours(ms: str) -> str:
    return f"{int(ms) // _HOUR_MS} h" if ms.isdecimal() and int(ms) >= _HOUR_MS else f"{ms} ms"


def written(link: Link, one: Outgoing) -> str:
    """Write it: where it is. Raises Failure: of a lost answer as what may have been written."""
    try:
        link.reach()
    except Failure as failure:
        failure.code = FAILED
        failure.message = f"nothing was sent: {failure.message}"
        raise
    fields: dict[str, Any] = {"key": one.key, "value": one.value}
    fields["headers"] = list(one.headers) or None
    if one.partition is not None:
        fields["partition"] = one.partition
    try:
        size = (
            len(one.key or b"")
            + len(one.value or b"")
            + sum(
                len(name.encode()) + len(value or b"") + _PER_HEADER for name, value in one.headers
            )
        )
        # How long a record may be is the broker's to say, not the client's.
        most = {"message_max_bytes": max(_USUAL_MOST, size + _PER_HEADER)}
        _, (place,) = write_records(link, one.topic, iter([fields]), most, keep=True)
    except Failure as failure:
        if failure.code == UNREACHABLE:
            failure.message += "; whatever was sent had one number, so it is there once at most"
        raise
    return f"partition {place.partition}, offset {place.offset}"
