"""What was measured, one line of JSON for each measurement, written at once: a run can go on after
it was cut off. Called by the run and the report."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One row on one system in one round. Exactly one of figures, failed and skipped is set."""

    round: int
    row: str
    system: str
    figures: dict[str, float] = field(default_factory=dict)
    failed: str = ""
    skipped: str = ""


class Journal:
    """The entries of a run in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a line that was cut off is not an entry
        if whole != text:
            path.write_text(whole)
        self.entries = [Entry(**json.loads(line)) for line in whole.splitlines()]

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(entry)) + "\n")

    def has(self, number: int, row: str, system: str) -> bool:
        """Is it measured? What failed or was skipped is tried again on resuming."""
        return any(
            (entry.round, entry.row, entry.system) == (number, row, system) and entry.figures
            for entry in self.entries
        )

    def figures(self, row: str, system: str, figure: str) -> list[float]:
        """The measured values of one figure, one for each round."""
        return list(self.by_round(row, system, figure).values())

    def by_round(self, row: str, system: str, figure: str) -> dict[int, float]:
        """Round → the measured value of one figure."""
        return {
            entry.round: entry.figures[figure]
            for entry in self.entries
            if (entry.row, entry.system) == (row, system) and figure in entry.figures
        }

    def reasons(self, row: str, system: str) -> list[str]:
        """Why the row has no figures on a system, or fewer than rounds; what was made up for
        later is left out."""
        found = []
        for entry in self.entries:
            if (entry.row, entry.system) != (row, system) or entry.figures:
                continue
            if not self.has(entry.round, row, system):
                found.append(
                    f"skipped: {entry.skipped}" if entry.skipped else f"failed: {entry.failed}"
                )
        return list(dict.fromkeys(found))
