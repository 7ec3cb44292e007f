"""One SVG for each workload: its rows' headline figures on both systems, as bars beside each other.

Bars are shares of Kafka's median on a logarithmic scale, because rows of one workload differ by
orders of magnitude; whiskers are the ranges. Needs matplotlib (the extra `bench`).
"""

import statistics
from pathlib import Path

from benchmarks.compare.journal import Journal
from benchmarks.compare.measure import FIGURES
from benchmarks.compare.report import WORKLOADS, chart_name
from benchmarks.compare.rows import ROWS, Row

COLOURS = {"penstock": "#2a6f97", "kafka": "#b0a990"}


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
            row for row in ROWS.values() if row.workload == workload and _complete(journal, row)
        ]
        if rows:
            made.append(_chart(folder / chart_name(workload), title, rows, journal))
    return made


def _complete(journal: Journal, row: Row) -> bool:
    return all(journal.figures(row.name, name, row.headline) for name in COLOURS)


def _chart(path: Path, title: str, rows: list[Row], journal: Journal) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.55 * len(rows)), layout="constrained")
    for place, row in enumerate(rows):
        whole = statistics.median(journal.figures(row.name, "kafka", row.headline))
        for number, (name, colour) in enumerate(COLOURS.items()):
            values = journal.figures(row.name, name, row.headline)
            middle = statistics.median(values)
            spread = [[(middle - min(values)) / whole], [(max(values) - middle) / whole]]
            at = place + (number - 0.5) * 0.38
            axes.barh(at, middle / whole, 0.36, color=colour, xerr=spread, ecolor="#444444",
                      label=name if not place else None)  # fmt: skip
            axes.annotate(f" {middle:,.4g}", (middle / whole, at), va="center", fontsize=7)
    better = {True: "more is better", False: "less is better"}
    labels = [
        f"{row.title} ({row.level})\n{FIGURES[row.headline].title}, "
        f"{better[FIGURES[row.headline].more_is_better]}"
        for row in rows
    ]
    axes.set_yticks(range(len(rows)), labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="#888888", linewidth=0.8)
    axes.set_xlabel("share of Kafka's median (log scale); figures beside the bars")
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path
