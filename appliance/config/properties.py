"""Java's .properties syntax: comments, continued lines, escapes, `=`, `:` or a blank between key
and value."""

import re

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_SPLIT = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)


def parse_properties(text: str) -> list[tuple[str, str, int]]:
    """(key, value, line number) of each entry in order; a key may come twice, the last one
    counts."""
    entries = []
    for line, number in _logical_lines(text):
        match = _SPLIT.fullmatch(line)
        assert match is not None, "the pattern takes every line"
        entries.append((_unescape(match[1]), _unescape(match[2]).rstrip(), number))
    return entries


def _logical_lines(text: str) -> list[tuple[str, int]]:
    lines: list[tuple[str, int]] = []
    pending: str | None = None
    started = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.lstrip(" \t\f")
        if pending is None:
            if not line or line[0] in "#!":
                continue
            pending, started = "", number
        tail = len(line) - len(line.rstrip("\\"))
        pending += line[:-1] if tail % 2 else line
        if tail % 2 == 0:
            lines.append((pending, started))
            pending = None
    if pending is not None:
        lines.append((pending, started))
    return lines


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        found = match[1]
        if len(found) == 5:
            return chr(int(found[1:], 16))
        return _ESCAPES.get(found, found)

    told = _UNESCAPE.sub(one, text)
    # Java escapes UTF-16: what is beyond the first plane comes as two.
    return told.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
