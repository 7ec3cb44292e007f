"""Records that retention deletes before a group has read them, as commands tell it."""

from console.model.topics.expiry import describe_risk
from console.model.topics.retention import Expiry
from console.show.output import Row, plain, print_note


def expiring(found: Expiry, group: str) -> list[Row]:
    """A row for each topic of a group: records, and in how many seconds the first of them go; by:
    the setting, or `lost` where they went before. exact: else at that time at the earliest."""
    return [
        {
            "topic": one.topic,
            "partitions": list(one.partitions),
            "records": one.records,
            "in_s": round(one.in_s),
            "by": one.by,
            "exact": one.exact,
        }
        for one in found.risks
        if one.group == group
    ]


def warn(found: Expiry) -> None:
    """On stderr, a line for each."""
    for one in found.risks:
        print_note(f"! {plain(describe_risk(one))}")
    if found.unknown:
        topics = ", ".join(map(plain, found.unknown[:5])) + (", …" if found.unknown[5:] else "")
        print_note(
            f"when retention.bytes deletes what was not read of {topics} is not known from here"
        )
