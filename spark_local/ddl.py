"""Column lists as Spark writes them (`a STRING, b STRUCT<c: INT>`), checked without Spark.

Only the shape and the names of types are checked here; what the columns mean is Spark's affair.
"""

import re
from typing import Final

_PLAIN: Final = re.compile(
    "STRING|BINARY|BOOLEAN|BYTE|TINYINT|SHORT|SMALLINT|INT|INTEGER|LONG|BIGINT|FLOAT|REAL|DOUBLE|"
    "DATE|TIMESTAMP|TIMESTAMP_LTZ|TIMESTAMP_NTZ|DECIMAL|DEC|NUMERIC|VARIANT"
)
_SIZED: Final = re.compile(r"(DECIMAL|DEC|NUMERIC)\(\d+(,\d+)?\)|(CHAR|VARCHAR)\(\d+\)")
_COLUMN: Final = re.compile(r"(`[^`]+`|\w+)\s*(?::\s*|\s+)(.+)", re.DOTALL)
_SUFFIX: Final = re.compile(r"\s+(NOT\s+NULL|COMMENT\s+('[^']*'|\"[^\"]*\"))\s*$", re.IGNORECASE)
_REMEDY: Final = 'write "name TYPE, name TYPE", for example "carrier STRING, delay DOUBLE"'


def columns(text: str) -> dict[str, str]:
    """Column → type. Raises ValueError(problem, remedy)."""
    found: dict[str, str] = {}
    for part in _split(text):
        match = _COLUMN.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is no column with a type", _REMEDY)
        name, kind = match[1].strip("`"), match[2]
        while _SUFFIX.search(kind):
            kind = _SUFFIX.sub("", kind)
        _check(kind)
        if name.lower() in map(str.lower, found):
            raise ValueError(f"the column {name!r} is there twice", "name each column once")
        found[name] = kind.strip()
    return found


def _check(kind: str) -> None:
    plain = re.sub(r"\s+", "", kind.strip().upper())
    if _PLAIN.fullmatch(plain) or _SIZED.fullmatch(plain):
        return
    outer = re.fullmatch(r"\s*(\w+)\s*<(.*)>\s*", kind, re.DOTALL)
    if outer is None:
        raise ValueError(f"there is no type {kind.strip()!r}", _REMEDY)
    name, inner = outer[1].upper(), outer[2]
    if name == "STRUCT":
        columns(inner)
    elif name == "ARRAY":
        _check(inner)
    elif name == "MAP" and len(parts := _split(inner)) == 2:
        for part in parts:
            _check(part)
    else:
        raise ValueError(f"there is no type {kind.strip()!r}", _REMEDY)


def _split(text: str) -> list[str]:
    """At the commas that are in no bracket and no quotes."""
    parts, depth, begin, quote = [], 0, 0, ""
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"`":
            quote = sign
        elif sign in "<(":
            depth += 1
        elif sign in ">)":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
        if depth < 0:
            raise ValueError("a bracket closes that was not opened", _REMEDY)
    if depth:
        raise ValueError("a bracket is not closed", _REMEDY)
    return [*parts, text[begin:]]
