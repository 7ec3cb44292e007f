"""The tables of the overview that lead on: the busiest topics, the groups that are farthest behind,
the jobs that are worst. They are made of what is known anyway, nobody is asked for them.
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import Final

from console.model.jobs.job_watch import Jobs
from console.model.jobs.jobs import Status
from console.model.local.history import TOPIC_KEPT
from console.model.local.local import Facts
from console.screens.jobs import NONE_YET, STATES, count_states, state_of, worst_first
from console.screens.rows import Cell, Column, Rows
from console.show.figures import age, in_bytes, meter, short, some, spark

_MOST: Final = 200
"""Rows of a table; its list has all."""
_FEW: Final = 5_000
"""Topics of which the largest are looked for while none has traffic."""
SPARK: Final = 12
_METER: Final = 10
TOPICS_COLUMNS: Final = (
    Column("TOPIC", 0),
    Column("REC/S", 6, right=True),
    Column("IN/S", 8, right=True),
    Column("LAST 2 MIN", SPARK, from_width=64),
    Column("OUT/S", 8, right=True, from_width=50),
    Column("SIZE", 7, right=True),
)
GROUPS_COLUMNS: Final = (
    Column("GROUP", 0),
    Column("LAG", 6, right=True),
    Column("", _METER, from_width=50),
    Column("MOST IN", 18, from_width=40),
)
JOBS_COLUMNS: Final = (
    Column("JOB", 0),
    Column("STATE", 9),
    Column("OUT/S", 6, right=True, from_width=44),
    Column("LAG", 6, right=True),
    Column("BEHIND", 10, right=True, from_width=60),
)


def show_topics(table: Rows, facts: Facts | None) -> None:
    """The topics with traffic in the last two minutes, the busiest first; the largest ones where
    there was none.
    """
    topics = facts.topics if facts is not None else {}
    past: Mapping[str, tuple[tuple[float, float], ...]] = (
        facts.of_topics if facts is not None else {}
    )
    names = heapq.nlargest(
        _MOST, past, key=lambda name: (topics[name].in_mb_s + topics[name].out_mb_s, name)
    )
    if not names and len(topics) <= _FEW:
        names = heapq.nlargest(_MOST, topics, key=lambda name: topics[name].size_mb)

    def cells(name: str) -> tuple[Cell, ...]:
        one = topics[name]
        written = [each[0] for each in past.get(name, ())]
        past_s = facts.past_s if facts is not None else 0
        return (
            name, short(one.records_in_s), in_bytes(one.in_mb_s * 1e6),
            (minutes(written, past_s), "chart"), in_bytes(one.out_mb_s * 1e6),
            in_bytes(one.size_mb * 1e6),
        )  # fmt: skip

    table.show_rows(names, cells, empty="no topic yet: penstock topic create NAME" if facts else "")


def minutes(rates: Sequence[float], past_s: int) -> str:
    """The last two minutes as SPARK columns, means of ten seconds. rates: second by second, the
    last one that of the second `past_s`: a column begins where the clock has whole tens.
    """
    of_one = TOPIC_KEPT // SPARK
    ends = range(len(rates) + of_one - 1 - past_s % of_one, 0, -of_one)
    parts = [rates[max(0, end - of_one) : end] for end in reversed(ends)]
    return spark([sum(one) / max(1, len(one)) for one in parts], SPARK)


def show_groups(table: Rows, facts: Facts | None, at_risk: frozenset[str]) -> None:
    """The groups that committed offsets, the farthest behind first. at_risk: those that are about
    to lose records.
    """
    behind: dict[str, int] = {}
    worst: dict[str, tuple[int, str]] = {}
    for (group, topic), lag in (facts.lags if facts is not None else {}).items():
        behind[group] = behind.get(group, 0) + lag
        worst[group] = max(worst.get(group, (-1, "")), (lag, topic))
    names = heapq.nlargest(_MOST, behind, key=lambda name: (name in at_risk, behind[name]))
    most = max(behind.values(), default=0)

    def cells(name: str) -> tuple[Cell, ...]:
        lag = behind[name]
        style = "bad" if name in at_risk else "warn" if lag else "good"
        share = lag / most if most else 0.0
        return (
            name, (short(lag), style), (meter(share, _METER) if lag else "", style),
            worst[name][1] if lag else "",
        )  # fmt: skip

    table.show_rows(names, cells, empty="no group has committed here yet" if facts else "")


def show_jobs(table: Rows, seen: Jobs | None) -> None:
    """The jobs, the worst first."""
    jobs: Mapping[str, Status] = seen.jobs if seen is not None else {}
    names = worst_first(jobs)[:_MOST]

    def cells(name: str) -> tuple[Cell, ...]:
        one, state = jobs[name], state_of(jobs[name])
        lag = short(one.lag_records)
        return (
            name, (state, STATES.get(state, "dim")), short(one.rows_out_per_s),
            (lag, "warn") if one.lag_records else lag, age(one.lag_s),
        )  # fmt: skip

    table.show_rows(names, cells, empty=NONE_YET if seen is not None else "")
    counts = count_states(jobs.values())
    said = [some(len(jobs), "job"), *(f"{count} {state}" for state, count in counts)]
    if (told := ", ".join(said) if jobs else "") != (table.border_subtitle or ""):
        table.border_subtitle = told
