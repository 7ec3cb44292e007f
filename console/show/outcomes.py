"""Formats the outcome of each of several things: topics or groups that were made or deleted."""

from collections.abc import Mapping

from console.model.asking.failure import FAILED, OK, Failure
from console.show.output import Row, emit


def show_outcomes(
    outcomes: Mapping[str, Failure | None],
    status: str | Mapping[str, str],
    output: str,
    more: Mapping[str, Row] | None = None,
) -> int:
    """Show a row for each name: its status, or why it failed. One failure alone is raised; among
    several it is a row. more: further columns of each name. The exit code."""
    failed = [failure for failure in outcomes.values() if failure is not None]
    if failed and len(outcomes) == 1:
        raise failed[0]
    rows: list[Row] = []
    for name, failure in outcomes.items():
        done = status if isinstance(status, str) else status[name]
        row: Row = {"name": name, "status": "failed" if failure else done}
        row |= more[name] if more else {}
        rows.append(row | {"error": f"{failure.name}: {failure.message}" if failure else None})
    narrow = [column for column in rows[0] if column != "error" or failed]
    emit(rows, output, narrow=narrow)
    return FAILED if failed else OK
