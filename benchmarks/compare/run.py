"""The run: rounds, fresh brokers, alternation A B, B A, progress, and going on after a failure.

A round starts every broker in an empty folder. Rows that need running brokers share one pair for
each level of durability; both stand side by side and one is loaded while the other is idle. What is
measured is written to the journal at once, so the same command goes on where a run was cut off.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import raw
from benchmarks.compare import tools
from benchmarks.compare.journal import Entry, Journal
from benchmarks.compare.life_loads import Limit
from benchmarks.compare.measure import FIGURES, Effort, measure
from benchmarks.compare.raw_loads import Raw
from benchmarks.compare.rows import LIVES, Row
from benchmarks.compare.systems import LEVELS, NotObtainable, System
from benchmarks.peer import WrongAnswer

SYSTEMS = ("penstock", "kafka")
BARE, MACHINE = "bare loop", "machine"
FAILURES = (WrongAnswer, OSError, RuntimeError, ValueError, LookupError, AssertionError)


@dataclass(frozen=True)
class Plan:
    """What to run. folder: where the journal is; data: where brokers put their files; tree: the
    appliance's sources, when not these."""

    rows: list[Row]
    systems: tuple[str, ...]
    rounds: int
    effort: Effort
    warm_s: float
    folder: Path
    data: Path
    tree: Path | None = None


class Progress:
    """Says on stderr what is done and about how long the rest takes."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.begun = time.monotonic()

    def say(self, entry: Entry, headline: str) -> None:
        self.done += 1
        passed = time.monotonic() - self.begun
        left = passed / self.done * (self.total - self.done)
        if entry.figures:
            value = entry.figures.get(headline, float("nan"))
            text = f"{value:,.2f} {FIGURES[headline].title}"
        else:
            text = f"skipped: {entry.skipped}" if entry.skipped else f"FAILED: {entry.failed}"
        print(
            f"[{self.done}/{self.total}, {clock(left)} left] round {entry.round + 1} {entry.row} "
            f"on {entry.system}: {text[:200]}",
            file=sys.stderr, flush=True,
        )  # fmt: skip


def clock(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


class Run:
    """One run of a plan. Use `all`."""

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self.plan = plan
        self.journal = journal
        self.progress = Progress(sum(len(self._todo(number)) for number in range(plan.rounds)))

    def _todo(self, number: int) -> list[tuple[Row, str]]:
        """(row, system) of a round that have no figures yet."""
        return [
            (row, system)
            for row in self.plan.rows
            for system in self._systems(row)
            if not self.journal.has(number, row.name, system)
        ]

    def _systems(self, row: Row) -> tuple[str, ...]:
        if row.kind == "limit":
            return (MACHINE,)
        bare = isinstance(row.load, Raw) and row.load.has_bare
        return (*self.plan.systems, BARE) if bare else self.plan.systems

    def all(self) -> None:
        """Every round. Failures are noted and the run goes on."""
        for number in range(self.plan.rounds):
            todo = self._todo(number)
            if number % 2:
                names = [*self.plan.systems[::-1], BARE, MACHINE]
                todo.sort(key=lambda pair: (self.plan.rows.index(pair[0]), names.index(pair[1])))
            for row, name in todo:
                if row.kind == "limit":
                    self._note(number, row, name, self._limit(row))
                elif row.kind == "life":
                    self._note(number, row, name, self._life(row, name))
            for level in LEVELS:
                mine = [pair for pair in todo if pair[0].kind == "load" and pair[0].level == level]
                if mine:
                    self._side_by_side(number, level, mine)

    def _note(
        self, number: int, row: Row, system: str, act: Callable[[], dict[str, float]]
    ) -> bool:
        """Do it, note it. Returns whether it worked."""
        try:
            entry = Entry(number, row.name, system, act())
        except NotObtainable as reason:
            entry = Entry(number, row.name, system, skipped=str(reason))
        except FAILURES as error:
            text = f"{type(error).__name__}: {error}"[:500]
            entry = Entry(number, row.name, system, failed=text)
        finally:
            tools.reap()
        self.journal.add(entry)
        self.progress.say(entry, row.headline)
        return not entry.failed

    def _limit(self, row: Row) -> Callable[[], dict[str, float]]:
        assert isinstance(row.load, Limit)
        load = row.load
        return lambda: load.alone(self.plan.data, self.plan.effort)

    def _life(self, row: Row, name: str) -> Callable[[], dict[str, float]]:
        def act() -> dict[str, float]:
            assert isinstance(row.load, LIVES)
            with fresh(name, row.level, self.plan) as system:
                return row.load.run(system, self.plan.effort)

        return act

    def _side_by_side(self, number: int, level: str, todo: list[tuple[Row, str]]) -> None:
        with contextlib.ExitStack() as open_systems:
            running: dict[str, System] = {}

            def ready(name: str) -> System:
                """The broker, started again in a new folder when the last row broke it."""
                if name in running and running[name].alive and running[name].answers():
                    return running[name]
                system = open_systems.enter_context(fresh(name, level, self.plan)).start()
                raw.warm([system.peer], self.plan.warm_s)
                running[name] = system
                return system

            for row, name in todo:
                worked = self._note(number, row, name, self._load(row, name, ready))
                if not worked and name in running:
                    running.pop(name).kill()

    def _load(
        self, row: Row, name: str, ready: Callable[[str], System]
    ) -> Callable[[], dict[str, float]]:
        load, effort = row.load, self.plan.effort
        assert not isinstance(load, LIVES | Limit)
        if name == BARE:
            assert isinstance(load, Raw)
            raw_load = load

            def bare() -> dict[str, float]:
                os.sync()
                return raw_load.bare(self.plan.data, effort)

            return bare
        return lambda: measure(load, ready(name), effort)


@contextlib.contextmanager
def fresh(name: str, level: str, plan: Plan) -> Iterator[System]:
    """A system in an empty folder, not started; stopped and removed at the end."""
    folder = Path(tempfile.mkdtemp(dir=plan.data, prefix=f"{name}-{level}-"))
    system = System(name, level, folder, plan.tree)
    try:
        yield system
    finally:
        system.stop()
        shutil.rmtree(folder, ignore_errors=True)
