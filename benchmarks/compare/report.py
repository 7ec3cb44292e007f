"""The report of a run: Markdown, JSON and charts, from its journal and the facts of its start."""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path

from benchmarks import tables
from benchmarks.compare import goals
from benchmarks.compare.journal import Journal
from benchmarks.compare.measure import COSTS, FIGURES
from benchmarks.compare.rows import ROWS, Row
from benchmarks.compare.run import BARE, MACHINE, SYSTEMS
from benchmarks.compare.systems import LEVELS

WORKLOADS = {
    "limits": "The machine's own limits",
    "raw": "Raw protocol (our generator)",
    "W1": "W1 record sizes (kafka-producer-perf-test)",
    "W2": "W2 sizes, codecs and acks",
    "W3": "W3 partitions",
    "W4": "W4 many producers and consumers (rdkafka_performance)",
    "W5": "W5 consuming (kafka-consumer-perf-test)",
    "W7": "W7 latency at a fixed rate (open loop, from the moment a record was due)",
    "W8": "W8 ping-pong (closed loop)",
    "W9": "W9 produce and consume together",
    "W10": "W10 catching up",
    "W11": "W11 fan-out (rdkafka_performance)",
    "W14": "W14 recovery",
    "W15": "W15 start",
    "W16": "W16 idle",
    "W17": "W17 connections",
}


def write(folder: Path, journal: Journal, facts: dict[str, object]) -> Path:
    """report.md and report.json in the run's folder. Returns the path of the first."""
    parts = [head(facts), "## Goals", goal_table(journal)]
    names = {entry.row for entry in journal.entries}
    for workload, title in WORKLOADS.items():
        rows = [row for row in ROWS.values() if row.workload == workload and row.name in names]
        if rows:
            parts += [f"## {title}", table(journal, rows)]
            if (folder / chart_name(workload)).exists():
                parts.append(f"![{title}]({chart_name(workload)})")
    parts += [
        "## Settings of the loads",
        settings(journal, (row for row in ROWS.values() if row.name in names)),
    ]
    path = folder / "report.md"
    path.write_text("\n\n".join(part for part in parts if part) + "\n")
    (folder / "report.json").write_text(json.dumps(whole(journal, facts), indent=1))
    return path


def chart_name(workload: str) -> str:
    return f"{workload.lower()}.svg"


def head(facts: dict[str, object]) -> str:
    """Title, machine, versions, durability of each side."""
    rows = [[str(key), str(value)] for key, value in facts.items() if not isinstance(value, dict)]
    levels = [
        [level, LEVELS[level], *(_settings_of(facts, name, level) for name in SYSTEMS)]
        for level in LEVELS
    ]
    return "\n\n".join([
        "# Penstock beside Apache Kafka",
        "Both on one machine in one run, in alternation; medians, ranges in brackets. A ratio is "
        "Penstock ÷ Kafka, **bold** where Penstock is behind. What was produced is counted and "
        "read back.",
        tables.render(["", ""], rows, markdown=True, left=2),
        tables.render(["level", "a record is", *SYSTEMS], levels, markdown=True, left=4),
    ])  # fmt: skip


def _settings_of(facts: dict[str, object], name: str, level: str) -> str:
    given = facts.get("settings")
    found = given.get(f"{name} {level}", {}) if isinstance(given, dict) else {}
    return ", ".join(f"`{key}={value}`" for key, value in found.items()) or "defaults"


def goal_table(journal: Journal) -> str:
    rows = goals.lines(journal)
    met = sum(row[-1] == "met" for row in rows)
    measured = sum(row[-1] != "not measured" for row in rows)
    shown = tables.render(["goal", "ratios", "bound", ""], rows, markdown=True, left=4)
    return f"{met} of {measured} measured goals met, {len(rows)} in all.\n\n{shown}"


def table(journal: Journal, rows: list[Row]) -> str:
    """One line per row and figure. The costs of a row stand below its figures."""
    if rows[0].kind == "limit":
        return _limits(journal, rows)
    head_line = ["row", "level", "figure", *SYSTEMS, "ratio", BARE]
    lines: list[list[str]] = []
    notes: list[str] = []
    for row in rows:
        figures = [
            name for name in FIGURES if any(journal.figures(row.name, one, name) for one in SYSTEMS)
        ]
        figures.sort(key=lambda name: (name != row.headline, name in COSTS))
        for number, figure in enumerate(figures):
            first = [row.title, row.level] if not number else ["", ""]
            lines.append([*first, *_cells(journal, row, figure)])
        for system in (*SYSTEMS, BARE):
            reasons = journal.reasons(row.name, system)
            notes += [f"- {row.title} on {system}: {why}" for why in reasons]
    shown = tables.render(head_line, lines, markdown=True, left=3)
    return shown + ("\n\n" + "\n".join(notes) if notes else "")


def _cells(journal: Journal, row: Row, figure: str) -> list[str]:
    ratio = goals.ratio(journal, row.name, figure)
    shown = "–" if ratio is None else f"{ratio:.2f}"
    if ratio is not None and figure != "rate":
        behind = ratio < 0.995 if FIGURES[figure].more_is_better else ratio > 1.005
        shown = f"**{shown}**" if behind else shown
    spreads = [tables.spread(journal.figures(row.name, name, figure)) for name in SYSTEMS]
    bare = tables.spread(journal.figures(row.name, BARE, figure))
    return [FIGURES[figure].title, *spreads, shown, bare]


def _limits(journal: Journal, rows: list[Row]) -> str:
    lines = [
        [
            row.title,
            *(
                tables.spread(journal.figures(row.name, MACHINE, name))
                for name in ("requests_s", "mb_s")
            ),
        ]
        for row in rows
    ]
    return tables.render(["limit", "per second", "MB/s"], lines, markdown=True)


def settings(journal: Journal, rows: Iterable[Row]) -> str:
    """One line a row: the rounds it was measured in, and what its load does."""
    lines = []
    for row in rows:
        rounds = {entry.round for entry in journal.entries if entry.row == row.name}
        given = {"rounds": len(rounds), **row.settings}
        lines.append(f"- `{row.name}`: {', '.join(f'{k}={v}' for k, v in given.items())}")
    return "\n".join(lines)


def whole(journal: Journal, facts: dict[str, object]) -> dict[str, object]:
    """Everything as JSON: facts, and for each row the values, medians and ratios of its figures."""
    rows: dict[str, object] = {}
    for name in dict.fromkeys(entry.row for entry in journal.entries):
        row = ROWS.get(name)
        systems = dict.fromkeys(entry.system for entry in journal.entries if entry.row == name)
        rows[name] = {
            "title": row.title if row else name,
            "level": row.level if row else "",
            "settings": row.settings if row else {},
            "figures": {
                figure: {
                    "values": {one: journal.figures(name, one, figure) for one in systems},
                    "medians": {
                        one: statistics.median(values)
                        for one in systems
                        if (values := journal.figures(name, one, figure))
                    },
                    "ratio": goals.ratio(journal, name, figure),
                }
                for figure in FIGURES
                if any(journal.figures(name, one, figure) for one in systems)
            },
            "missing": {one: why for one in systems if (why := journal.reasons(name, one))},
        }
    return {"facts": facts, "goals": goals.lines(journal), "rows": rows}
