"""What `tests/outcomes.py` recorded: who failed, who never ran, what took long.

    python .ci/report.py > tests/durations.txt

prints the seconds of the longest files of the last whole run of `.ci/run` on this machine, and
their seconds of processor time.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

SLOWEST = 30
LONG_S = 2
"""Shorter files end whenever a worker has time for them."""


class Outcomes:
    """The outcome of every test of one stage or of several."""

    def __init__(self) -> None:
        self.collected: set[str] = set()
        self._states: dict[str, str] = {}
        self._seconds: Counter[str] = Counter()
        self._processor: Counter[str] = Counter()
        self._flaky_inside: list[str] = []

    @classmethod
    def read(cls, record: Path) -> "Outcomes":
        """Reads a record, also one that is still being written: its last line may be cut off."""
        found = cls()
        text = record.read_text() if record.exists() else ""
        for line in text.splitlines():
            try:
                found._note(json.loads(line))
            except json.JSONDecodeError:
                break
        return found

    def _note(self, line: dict) -> None:
        if "collected" in line:
            self.collected |= set(line["collected"])
            return
        name, state = line["id"], line["outcome"]
        self._seconds[name] += line["s"]
        self._processor[name] += line.get("cpu", 0)
        if line["when"] == "teardown" and state == "passed":
            self._states.setdefault(name, "passed")
            self._flaky_inside += line.get("flaky", [])
        elif self._states.get(name) != "failed" and (state != "passed" or line["when"] == "call"):
            self._states[name] = state

    def add(self, other: "Outcomes") -> None:
        """Counts another stage, too."""
        self.collected |= other.collected
        self._states |= other._states
        self._seconds += other._seconds
        self._processor += other._processor
        self._flaky_inside += other._flaky_inside

    def ran(self) -> int:
        return len(self._states)

    def failed(self) -> list[str]:
        return [name for name, state in self._states.items() if state == "failed"]

    def passed(self, name: str) -> bool:
        return self._states.get(name) == "passed"

    def unfinished(self) -> set[str]:
        """Tests that were to run and have no outcome."""
        return self.collected - set(self._states)

    def flaky_inside(self) -> list[str]:
        """Tests of suites within a test, which passed at the second time there."""
        return self._flaky_inside

    def counts(self, flaky: list[str]) -> dict[str, int]:
        """In pytest's words; flaky ones have passed."""
        kinds = Counter(
            "passed" if name in flaky else state for name, state in self._states.items()
        )
        named = {kind: kinds[kind] for kind in ("failed", "passed", "skipped")}
        return named | {"rerun": len(flaky)}

    def files(self) -> list[tuple[str, float, float]]:
        """File, seconds of its tests, seconds of their processor time; the longest first."""
        files: Counter[str] = Counter()
        processor: Counter[str] = Counter()
        for name, seconds in self._seconds.items():
            files[name.partition("::")[0]] += seconds
            processor[name.partition("::")[0]] += self._processor[name]
        return [(name, seconds, processor[name]) for name, seconds in files.most_common()]

    def slowest(self) -> tuple[list[tuple[str, float, float]], list[tuple[str, float, float]]]:
        """Tests, the slowest first, and files, those with the most processor time first: name,
        seconds, seconds of processor time. A file is told by what it uses, because how long it
        takes depends on what runs beside it."""
        return (
            [(one, s, self._processor[one]) for one, s in self._seconds.most_common(SLOWEST)],
            sorted(self.files(), key=lambda file: -file[2])[:SLOWEST],
        )


def print_slowest(outcomes: Outcomes) -> None:
    tests, files = outcomes.slowest()
    for title, rows in (("slowest tests", tests), ("costliest files", files)):
        print(f"\n== {title}: seconds, and seconds of processor time")
        for name, seconds, processor in rows:
            print(f"{seconds:8.1f} {processor:8.1f} {name}")


def kept() -> Path:
    """The folder with the records of the last whole run."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "penstock-tests" / "outcomes"


def keep(records: Iterable[Path]) -> None:
    """Copies these records there, instead of those of the run before."""
    shutil.rmtree(kept(), ignore_errors=True)
    kept().mkdir(parents=True)
    for one in records:
        shutil.copy(one, kept())


def main() -> None:
    outcomes = Outcomes()
    for record in sorted(kept().glob("*.jsonl")):
        outcomes.add(Outcomes.read(record))
    print("# Seconds, and seconds of processor time, of the files that take long, by")
    print("# python .ci/report.py: tests/tiers.py orders files by them.")
    for name, seconds, processor in outcomes.files():
        if seconds >= LONG_S:
            print(f"{seconds:.0f} {processor:.0f} {name}")


if __name__ == "__main__":
    main()
