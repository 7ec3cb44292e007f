"""One SVG for each workload: how many times better than Kafka each row's headline figure is.

A bar starts at 1, where both are equal, and goes right where Penstock is ahead, left where it is
behind; the scale is logarithmic, so that twice and half are equally long. The whisker is the range
over the rounds, each compared with itself. Needs matplotlib (the extra `bench`).
"""

import statistics
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.compare.journal import Journal
from benchmarks.compare.measure import FIGURES
from benchmarks.compare.report import WORKLOADS, chart_name
from benchmarks.compare.rows import ROWS, Row

AHEAD, BEHIND, INK = "#2a6f97", "#b5483a", "#333333"


def draw(folder: Path, journal: Journal) -> list[Path]:
    """Write a chart for each workload that was measured on both. Returns the files."""
    try:
        import matplotlib
    except ImportError:
        print("no charts: matplotlib is not installed (pip install '.[bench]')")
        return []
    matplotlib.use("svg")
    made = []
    for workload, title in WORKLOADS.items():
        rows = [
            row for row in ROWS.values() if row.workload == workload and advantages(journal, row)
        ]
        if rows:
            made.append(_chart(folder / chart_name(workload), title, rows, journal))
    return made


def advantages(journal: Journal, row: Row) -> list[float]:
    """How many times better Penstock was, round by round; below 1 where it was worse."""
    ours, theirs = (
        journal.by_round(row.name, name, row.headline) for name in ("penstock", "kafka")
    )
    ratios = [ours[number] / theirs[number] for number in ours.keys() & theirs.keys()
              if ours[number] and theirs[number]]  # fmt: skip
    return ratios if FIGURES[row.headline].more_is_better else [1 / ratio for ratio in ratios]


def _chart(path: Path, title: str, rows: list[Row], journal: Journal) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 1.3 + 0.4 * len(rows)), layout="constrained")
    for place, row in enumerate(rows):
        _bar(axes, place, row, journal)
    axes.set_yticks(range(len(rows)), [f"{row.title} ({row.level})" for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.margins(x=0.25)
    axes.set_xlabel("times better than Kafka (log scale); beside the bars: Penstock / Kafka")
    axes.set_title(title, fontsize=10)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path


def _bar(axes: Any, place: int, row: Row, journal: Journal) -> None:
    found = advantages(journal, row)
    middle = statistics.median(found)
    colour = AHEAD if middle >= 1 else BEHIND
    axes.barh(place, middle - 1, 0.6, left=1, color=colour)
    axes.plot([min(found), max(found)], [place, place], color=INK, linewidth=1)
    medians = [
        tables.number(statistics.median(journal.figures(row.name, name, row.headline)))
        for name in ("penstock", "kafka")
    ]
    text = f" {' / '.join(medians)} {FIGURES[row.headline].title} "
    axes.annotate(text, (max(1.0, *found), place), va="center", fontsize=7, color=INK)
