"""Samples as text in Prometheus' format (0.0.4): a value machine.

A page of 1,000 partitions has tens of thousands of lines, and most of them are what they were at
the scrape before. So names and labels are written once for each set of series (`Columns`), and a
column whose values are the same is not written again.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from appliance.exporter.families import HISTOGRAM, OWN, Family
from appliance.exporter.kafka_names import KAFKAS

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

FAMILIES: Final = (*OWN, *KAFKAS)
"""Every metric, in the order in which they are told."""
BY_NAME: Final = {family.name: family for family in FAMILIES}

Value = int | float


def _told() -> dict[str, list[Family]]:
    """Name → itself and those that repeat it."""
    found = {family.name: [family] for family in FAMILIES}
    for family in FAMILIES:
        for name in family.like:
            found[name].append(family)
    return found


_TOLD: Final = _told()
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_HEADS: Final = {
    family.name: f"# HELP {family.name} {family.meaning}\n# TYPE {family.name} {family.kind}\n"
    for family in FAMILIES
}

assert len(BY_NAME) == len(FAMILIES), "a name is declared once"
assert all(head.count("\n") == 2 for head in _HEADS.values()), "a meaning is one line"


def _escaped(value: str) -> str:
    """As it stands between quotes. Names of topics have nothing to escape."""
    plain = "\\" not in value and '"' not in value and "\n" not in value
    return value if plain else value.translate(_ESCAPES)


def series(names: Sequence[str], values: Sequence[str]) -> str:
    """Labels as they stand behind a name: as many as there are of both."""
    pairs = zip(names, values, strict=False)
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
    return f"{{{inside}}}" if inside else ""


class Page:
    """The text of one scrape."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {}

    def add(self, name: str, value: Value, *labels: str) -> None:
        """One sample of ours, and of those that repeat it."""
        for family in _TOLD[name]:
            times = value if family.scale == 1.0 else value * family.scale
            self.add_lines(family.name, f"{family.name}{series(family.labels, labels)} {times}\n")

    def add_lines(self, name: str, text: str) -> None:
        """Lines of a metric as they stand."""
        self._parts.setdefault(name, []).append(text)

    def text(self) -> str:
        """The whole page; a metric without samples is not on it."""
        told = []
        for family in FAMILIES:
            parts = self._parts.get(family.name)
            if parts:
                told.append(_HEADS[family.name])
                told += parts
        return "".join(told)


class Columns:
    """Many series with the same labels: a key, the values of its labels, for each line.

    What stands around the values is one text with a gap for each, so that a column is written by
    one call.
    """

    __slots__ = ("_before", "_forms", "_keys", "_labels")

    def __init__(self, keys: Iterable[Sequence[str]]) -> None:
        self._keys = [tuple(map(_escaped, key)) for key in keys]
        self._labels: dict[tuple[str, ...], list[str]] = {}  # by the names of labels
        self._forms: dict[str, list[tuple[str, str]]] = {}  # metric → (name, text with gaps)
        self._before: dict[str, tuple[Sequence[Value], list[str]]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def write_columns(self, page: Page, name: str, values: Sequence[Value]) -> None:
        """One value for each key, as it is: of the same type of sequence each time."""
        assert len(values) == len(self._keys), "a value for each series"
        forms = self._forms.get(name)
        if forms is None:
            forms = self._forms[name] = [(one.name, self._form(one)) for one in _TOLD[name]]
        before = self._before.get(name)
        if before is None or before[0] != values:
            told = tuple(values)
            before = self._before[name] = values, [form % told for _, form in forms]
        for (told_as, _), text in zip(forms, before[1], strict=True):
            page.add_lines(told_as, text)

    def _form(self, family: Family) -> str:
        assert family.scale == 1.0, "columns are told as they are"
        labels = self._labels.get(family.labels)
        if labels is None:
            one = series(family.labels, ["%s"] * len(self._keys[0])) if self._keys else ""
            labels = self._labels[family.labels] = [
                (one % key).replace("%", "%%") for key in self._keys
            ]
        return family.name + f" %s\n{family.name}".join(labels) + " %s\n" if labels else ""


class Buckets:
    """A histogram's lines for one set of labels. bounds: upper bounds in seconds, in order."""

    __slots__ = ("_heads",)

    def __init__(self, name: str, values: Sequence[str], bounds: Sequence[float]) -> None:
        family = BY_NAME[name]
        assert family.kind == HISTOGRAM
        labels = (*family.labels, "le")
        self._heads = [
            f"{name}_bucket{series(labels, (*values, text))} "
            for text in (*map(repr, bounds), "+Inf")
        ]
        self._heads += [
            f"{name}_{part}{series(family.labels, values)} " for part in ("sum", "count")
        ]

    def lines(self, counts: Sequence[int], seconds: float) -> str:
        """counts: of each bound those at or below it, at last all. seconds: their sum."""
        texts = [*map(str, counts), repr(seconds), str(counts[-1])]
        return "".join(f"{head}{text}\n" for head, text in zip(self._heads, texts, strict=True))
