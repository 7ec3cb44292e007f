"""Median, range and ratio of repeated measurements, as text for a terminal or as Markdown."""

import statistics
from collections.abc import Mapping, Sequence


def number(value: float) -> str:
    """Three significant figures, thousands separated."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values: Sequence[float]) -> str:
    """Median, and the range in brackets when there is more than one value."""
    if not values:
        return "–"
    middle = number(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({number(min(values))}–{number(max(values))})"


def ratio(values: Sequence[float], others: Sequence[float]) -> str:
    """Median of `values` over the median of `others`."""
    if not values or not others or not statistics.median(others):
        return "–"
    return f"{statistics.median(values) / statistics.median(others):.2f}"


def rows_beside(
    found: Mapping[tuple[str, str], Sequence[float]], ours: str, peer: str
) -> list[list[str]]:
    """A row for each figure: what two systems reached, and the ratio. found: (figure, system) →
    values of all rounds; of a figure one of them may have none."""
    rows = []
    for figure in dict.fromkeys(key[0] for key in found):
        here, there = (found.get((figure, name), []) for name in (ours, peer))
        rows.append([figure, spread(here), spread(there), ratio(here, there)])
    return rows


def render(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool, left: int = 1
) -> str:
    """A table; the first `left` columns are left aligned, the others right."""
    if markdown:
        lines = ["| " + " | ".join(head) + " |", "|---" * left + "|---:" * (len(head) - left) + "|"]
        return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, ["-" * width for width in widths], *rows]
    )
