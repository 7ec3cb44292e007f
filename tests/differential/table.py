"""The table of what differs on purpose: differences.toml, read, matched and printed."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("differences.toml")
RIGHTS, NOBODYS, FRESH = "rights_", "nobody_", "fresh_"
"""How the names begin of the scripts in rights/, of all others as somebody without a rule, and of
those on brokers that nothing was asked of before."""
FIELDS = {"api", "versions", "script", "path", "ours", "kafka", "reason"}


class Entry(NamedTuple):
    """One difference on purpose. `*` stands for any text in script, path, ours and kafka."""

    api: str
    low: int
    high: int
    script: str
    path: str
    ours: object
    kafka: object
    reason: str

    def covers(self, difference):
        """Is this the difference that was meant?"""
        return (
            self.about(difference.api, difference.version, difference.script)
            and _like(self.path, difference.path)
            and _same(self.ours, difference.ours)
            and _same(self.kafka, difference.kafka)
        )

    def about(self, api, version, script):
        """Does it speak of this step of this script in this version?"""
        return (
            _like(self.api, api)
            and (version < 0 or self.low <= version <= self.high)
            and _like(self.script, script)
        )

    def __str__(self):
        return f"{self.api} {versions(self)} {self.script} {self.path}"


def of_scripts():
    """The entries about what everybody may ask."""
    return [one for one in read() if not one.script.startswith((RIGHTS, NOBODYS, FRESH))]


def of_nobody():
    """The entries about what somebody without a rule is answered: those about everybody, too."""
    own = [one for one in read() if one.script.startswith(NOBODYS)]
    return own + [one._replace(script=f"{NOBODYS}{one.script}") for one in of_scripts()]


def of_rights():
    """The entries about who may ask what."""
    return [one for one in read() if one.script.startswith(RIGHTS)]


def of_first_requests():
    """The entries about what a broker is asked first of all."""
    return [one for one in read() if one.script.startswith(FRESH)]


def read(path=TABLE):
    """All entries, in the file's order. Raises ValueError for one that is not whole."""
    entries = []
    for row in tomllib.loads(path.read_text()).get("difference", []):
        if strange := set(row) ^ FIELDS:
            raise ValueError(f"{row}: {sorted(strange)} missing or not known")
        low, _, high = str(row["versions"]).partition("-")
        if row["versions"] == "*":
            low, high = 0, 1 << 15
        for script in _many(row["script"]):
            entries += [
                Entry(row["api"], int(low), int(high or low), script, path, row["ours"],
                      row["kafka"], row["reason"])
                for path in _many(row["path"])
            ]  # fmt: skip
    return entries


def _many(value):
    return value if isinstance(value, list) else [value]


def versions(entry):
    """As the file writes it."""
    if entry.high == 1 << 15:
        return "*"
    return str(entry.low) if entry.low == entry.high else f"{entry.low}-{entry.high}"


def _like(pattern, text):
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), text, re.S) is not None


def _same(wanted, value):
    if wanted == "*":
        return True
    if isinstance(wanted, str):
        return _like(wanted, value if isinstance(value, str) else repr(value))
    return type(wanted) is type(value) and wanted == value


def markdown(entries):
    """The table as the documentation prints it."""
    lines = ["| API | versions | where | ours | Kafka 4.3.1 | why |", "|---|---|---|---|---|---|"]
    rows = {}
    for entry in entries:
        rows.setdefault(entry._replace(script="", path=""), []).append(entry)
    for entry, same in rows.items():
        paths = ", ".join(dict.fromkeys(f"`{one.path}`" for one in same))
        scripts = ", ".join(dict.fromkeys(f"`{one.script}`" for one in same))
        cells = [entry.api, versions(entry), f"{paths} in {scripts}"]
        cells += [f"`{value}`" for value in (entry.ours, entry.kafka)] + [entry.reason]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
