"""How far a search, a tail or an export is, in words. Nothing is left out in silence: what was not
looked at is said, with the key that goes on."""

import time
from typing import Final

from console.model.records.export import Export
from console.model.records.running import DONE, FAILED, FULL, PLANNING, RUNNING, STOPPED, Running
from console.model.records.scan import Progress
from console.screens.view import Part
from console.show.figures import age, in_bytes, short

_QUIET_S: Final = 3.0


def searched(running: Running) -> list[Part]:
    """The progress of a search."""
    told = running.progress
    parts: list[Part] = [_state(running), f"  found {told.found:,} in {_looked(told)}"]
    if running.state == RUNNING:
        share = f"{told.at * 100 // told.of} %" if told.of else ""
        left = f", {age(told.eta_s)} left" if told.eta_s is not None else ""
        parts.append((f"  {share}, {short(told.records_s)}/s{left}  Esc stops", "dim"))
        quiet_s = time.monotonic() - running.heard_s
        if quiet_s > _QUIET_S:
            parts.append((f"  nothing has come for {age(quiet_s)}", "yellow"))
    elif running.state in (FULL, STOPPED, FAILED) and told.left:
        parts.append((f"  {told.left:,} offsets were not looked at: m continues", "yellow"))
    return parts + _missing(told)


def tailed(running: Running) -> list[Part]:
    """The progress of a tail."""
    told = running.progress
    parts: list[Part] = [_state(running), f"  {told.found:,} came of {_looked(told)}"]
    if running.state == RUNNING:
        parts.append((f"  {short(told.records_s)}/s  P pauses", "dim"))
    elif running.state == STOPPED:
        parts.append(("  P continues there, t at the end", "yellow"))
    if running.skipped:
        parts.append((
            f"  {running.skipped:,} skipped: they came faster than a screen shows them", "yellow",
        ))  # fmt: skip
    if running.passed:
        parts.append((f"  {running.passed:,} offsets were not looked at", "yellow"))
    return parts + _missing(told)


def exported(export: Export) -> list[Part]:
    """The progress of an export."""
    told = export.progress
    much = f"{told.found:,} records, {in_bytes(export.written)}"
    if export.problem is not None:
        problem = export.problem
        return [(f"  ✗ export: {problem.message}", "bold red"), f"  → {problem.hint}"]
    if export.cancelled:
        return [(f"  export ended: {much} are in {export.part}", "yellow")]
    if export.is_over:
        return [(f"  exported {much} to {export.path}", "green"), *_missing(told)]
    share = f"{told.at * 100 // told.of} %" if told.of else ""
    left = f", {age(told.eta_s)} left" if told.eta_s is not None else ""
    return [("● exporting", "green"), f" {share}{left}  {much} to {export.path}  Esc ends it"]


def _state(running: Running) -> Part:
    failure = running.failure
    if running.state == FAILED and failure is not None:
        hint = f"  → {failure.hint}" if failure.hint else ""
        return f"✗ {failure.message}{hint}", "bold red"
    words, style = {
        PLANNING: ("asking …", "yellow"),
        RUNNING: ("● tail" if running.follows else "● searching", "green"),
        STOPPED: ("paused" if running.follows else "stopped", "bold yellow"),
        FULL: ("enough for one list", "bold yellow"),
        DONE: ("✓ all looked at", "green"),
    }.get(running.state, (running.state, ""))
    return words, style


def _looked(told: Progress) -> str:
    return f"{told.records:,} records, {in_bytes(told.data_bytes)}"


def _missing(told: Progress) -> list[Part]:
    parts: list[Part] = []
    if told.expired:
        parts.append((f"  {told.expired:,} offsets from there on have expired", "yellow"))
    if told.held_back:
        parts.append((
            f"  {told.held_back:,} offsets lie behind an open transaction", "yellow",
        ))  # fmt: skip
    return parts
