"""Reading one table of a job file: every key is asked for once, and what is wrong is written down
instead of raised, so that a person sees all mistakes at once. Used by jobfile.py alone.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, TypeVar

_T = TypeVar("_T")
_MOST_SHOWN: Final = 60
_UNITS_MS: Final = {
    "ms": 1,
    "millisecond": 1,
    "s": 1000,
    "second": 1000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}
_DURATION: Final = re.compile(r"(\d{1,12})\s*([a-z]+)")


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: where (`key` with the path of its table), the value, what and what
    to do about it."""

    file: str
    key: str
    value: Any
    problem: str
    remedy: str

    def __str__(self) -> str:
        shown = "" if self.value is None else f" = {_shown(self.value)}"
        return f"{self.file}: {self.key}{shown}: {self.problem}; {self.remedy}"


class JobFileError(Exception):
    """A job file that cannot be used. `mistakes` has every mistake, one line each in the text."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        assert mistakes
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class TableReader:
    """One TOML table at `path`. Ask for each key, then `finish`."""

    def __init__(self, file: str, path: str, table: dict[str, Any], out: list[Mistake]) -> None:
        self._file = file
        self._path = path
        self._table = table
        self._out = out
        self._known: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def wrong(self, key: str, problem: str, remedy: str) -> None:
        """Write a mistake down."""
        value = self._table.get(key)
        self._out.append(Mistake(self._file, self.at(key), value, problem, remedy))

    def wrong_secret(self, key: str, problem: str, remedy: str) -> None:
        """Write a mistake down without the value, which may be a secret."""
        self._out.append(Mistake(self._file, self.at(key), None, problem, remedy))

    def at(self, key: str) -> str:
        """The key as a person finds it in the file."""
        return f"[{self._path}] {key}" if self._path else key

    def raw(self, key: str) -> Any:
        """The unchecked value of a key; None when it is absent."""
        self._known.add(key)
        return self._table.get(key)

    def text(self, key: str, default: str | None = None) -> str | None:
        """A string that is not blank."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip():
            self.wrong(key, "it must be a text", f'write {key} = "…"')
            return default
        return value

    def choice(self, key: str, among: tuple[str, ...], default: str) -> str:
        """One of `among`."""
        value = self.raw(key)
        if value is None:
            return default
        if value not in among:
            near = get_close_matches(str(value).lower(), among, 1)
            hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(among)}"
            self.wrong(key, "there is no such choice", hint)
            return default
        return str(value)

    def flag(self, key: str) -> bool:
        """true or false; false when absent."""
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            self.wrong(key, "it is neither true nor false", f"write {key} = true")
            return False
        return bool(value)

    def number(self, key: str, default: int, least: int, most: int) -> int:
        """A whole number of a range."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.wrong(
                key, "it is no whole number of the range", f"write one from {least} to {most}"
            )
            return default
        return value

    def names(self, key: str) -> tuple[str, ...]:
        """One name or several: a text or a list of texts."""
        value = self.raw(key)
        if value is None:
            return ()
        found = [value] if isinstance(value, str) else value
        if (
            not isinstance(found, list)
            or not found
            or not all(isinstance(name, str) and name.strip() for name in found)
        ):
            self.wrong(key, "it must name one column or several", f'write {key} = ["a", "b"]')
            return ()
        if len(set(found)) != len(found):
            self.wrong(key, "a column is named twice", "name each once")
        return tuple(found)

    def duration(self, key: str, default: int | None, least: int = 1) -> int | None:
        """A length of time in ms."""
        return self.checked(key, lambda value: duration_ms(value, least), default)

    def checked(self, key: str, check: Callable[[Any], _T], default: _T) -> _T:
        """The value as converted by `check`. It raises ValueError(problem, remedy)."""
        value = self.raw(key)
        if value is None:
            return default
        try:
            return check(value)
        except ValueError as wrong:
            problem, remedy = wrong.args
            self.wrong(key, problem, remedy)
            return default

    def table(self, key: str, *, needed: bool = False) -> "TableReader | None":
        """The table of that name."""
        value = self.raw(key)
        if value is None:
            if needed:
                self.wrong(key, "it is missing", f"write a table [{self._below(key)}]")
            return None
        if not isinstance(value, dict):
            self.wrong(key, "it must be a table", f"write [{self._below(key)}] and its keys")
            return None
        return TableReader(self._file, self._below(key), value, self._out)

    def scalars(self, key: str) -> dict[str, str]:
        """A table of settings, values as text the way Kafka and Spark write them."""
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong(key, "it must be a table", f'write {key} = {{"name" = "value"}}')
            return {}
        found = {}
        for name, one in flatten(value):
            if isinstance(one, bool):
                found[name] = str(one).lower()
            elif isinstance(one, str | int | float):
                found[name] = str(one)
            else:
                self.wrong(f"{key}.{name}", "it is no text and no number", "write a plain value")
        return found

    def children(self, key: str) -> "dict[str, TableReader]":
        """The tables below a table: name → reader."""
        outer = self.table(key)
        if outer is None:
            return {}
        found = {name: outer.table(name) for name in outer._table}
        return {name: reader for name, reader in found.items() if reader is not None}

    def finish(self) -> None:
        """Reports every key that was never read as a mistake."""
        for key in self._table:
            if key not in self._known:
                near = get_close_matches(key, self._known, 1)
                known = ", ".join(sorted(self._known))
                hint = f"did you mean {near[0]}?" if near else f"known here: {known}"
                self.wrong(key, "there is no such key", hint)

    def _below(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def flatten(table: dict[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """cleanup.policy without quotes is a table in TOML: the names with dots again."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{before}{name}.")
        else:
            yield before + name, value


def duration_ms(value: Any, least: int = 1) -> int:
    """`2 hours`, `250 ms` … in ms. Raises ValueError(problem, remedy)."""
    remedy = 'write a number and a unit, for example "250 ms", "30 seconds", "2 hours"'
    match = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if match is None:
        raise ValueError("it is no length of time", remedy)
    unit = match[2]
    factor = _UNITS_MS.get(unit) or _UNITS_MS.get(unit.removesuffix("s"))
    if factor is None:
        raise ValueError("the unit is unknown", remedy)
    length = int(match[1]) * factor
    if length < least:
        raise ValueError("it is too short", f"write {least} ms or more")
    return length


def _shown(value: Any) -> str:
    text = repr(value).replace("\n", " ")
    if isinstance(value, str):
        text = f'"{value}"'.replace("\n", " ")
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"
