"""A planned change in words and rows."""

from console.model.asking.change import BYTES, Change
from console.show.figures import in_bytes
from console.show.output import Row


def rows_planned(change: Change) -> list[Row]:
    """Its table, a row for each."""
    return [dict(zip(change.columns, row, strict=True)) for row in change.rows]


def facts_told(change: Change) -> str:
    """`2 partitions, 4 new replicas, 1.2 GB to copy`: what is not nothing."""
    told = []
    for fact in change.facts:
        if fact.unit == BYTES and isinstance(fact.value, int):
            told.append(f"{in_bytes(fact.value)} {fact.what}")
        elif fact.value:
            what = fact.what
            if fact.value == 1:
                what = what.replace("partitions", "partition").replace("replicas", "replica")
            told.append(f"{fact.value} {what}")
    return ", ".join(told)
