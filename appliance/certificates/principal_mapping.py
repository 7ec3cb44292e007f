"""`ssl.principal.mapping.rules`: from the name in a certificate to that of a principal, by Kafka's
words: `RULE:PATTERN/REPLACEMENT/`, then L or U for lower or upper case; DEFAULT is the name as it
is. The first rule whose pattern fits the whole name counts.

Patterns are those of RE2, so that no name takes long: what Java has beyond them (look-around, back
references within a pattern) is refused when the rules are read.
"""

import re
from typing import Any, Final

from appliance.base.errors import ConfigError
from appliance.certificates.names import distinguished_name

_KEY: Final = "ssl.principal.mapping.rules"
_RULE: Final = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)", re.DOTALL)
_BETWEEN: Final = re.compile(r"\s*(?:,|\n|$)\s*")
_SIGN: Final = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}|(.)", re.DOTALL)
_EXAMPLE: Final = "for example RULE:^CN=([^,]+).*$/$1/L,DEFAULT"


class NoRule(ValueError):
    """No rule fits the name: who shows it is nobody, and its connection is refused."""


class _Rule:
    """One of a list. fit: the compiled pattern; None: DEFAULT."""

    __slots__ = ("_case", "_fit", "_replacement")

    def __init__(self, fit: Any, replacement: str, case: str) -> None:
        self._fit = fit
        self._replacement = replacement
        self._case = case

    def apply(self, name: str) -> str | None:
        if self._fit is None:
            return name
        if self._fit.fullmatch(name) is None:
            return None
        mapped = _replaced(self._fit, self._replacement, name)
        return mapped.lower() if self._case == "L" else mapped.upper() if self._case else mapped


class Rules:
    """A list of rules as it was set. Raises ConfigError for what is none, naming `key`."""

    __slots__ = ("_rules", "_text")

    def __init__(self, text: str, key: str = _KEY) -> None:
        self._text = text
        self._rules: list[_Rule] = []
        at = _place(text, 0)
        while at < len(text):
            found = _RULE.match(text, at)
            gap = None if found is None else _BETWEEN.match(text, found.end())
            if found is None or gap is None:
                raise ConfigError(
                    f"Invalid value {text[:200]!r} for configuration {key}: there is no rule at"
                    f" {text[at : at + 40]!r}; rules are DEFAULT and RULE:PATTERN/REPLACEMENT/,"
                    f" then L or U, {_EXAMPLE}"
                )
            fit = None if found[1] else _compiled(found[2], key)
            self._rules.append(_Rule(fit, _known(found[3] or "", fit, key), found[4] or ""))
            at = _place(text, gap.end())

    def apply(self, name: str) -> str:
        """The principal's name. Raises NoRule."""
        for rule in self._rules:
            mapped = rule.apply(name)
            if mapped is not None:
                return mapped
        raise NoRule(f"No rules apply to {name}, rules {self._text}")


def _place(text: str, at: int) -> int:
    """Returns the position of the next rule; empty rules are skipped."""
    while at < len(text) and (text[at].isspace() or text[at] == ","):
        at += 1
    return at


def _known(replacement: str, fit: Any, key: str) -> str:
    """Raises ConfigError for the name of a group that the pattern has not."""
    for sign in _SIGN.finditer(replacement):
        if sign[3] is not None and sign[3] not in fit.groupindex:
            raise ConfigError(
                f"Invalid value for configuration {key}: the pattern has no group {sign[3]}, which"
                f" {replacement[:200]!r} names"
            )
    return replacement


def _compiled(pattern: str, key: str) -> Any:
    import re2  # a C++ library: few have rules

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as cause:
        why = cause.args[0]
        said = why.decode(errors="replace") if isinstance(why, bytes) else why
        raise ConfigError(
            f"Invalid value for configuration {key}: {pattern[:200]!r} is no pattern:"
            f" {said}; patterns are those of RE2 (https://github.com/google/re2/wiki/Syntax)"
        ) from None


def _replaced(fit: Any, replacement: str, name: str) -> str:
    """Java's replaceAll, which goes on behind the first place that fits."""
    out, at = [], 0
    for found in fit.finditer(name):
        out += [name[at : found.start()], _expanded(replacement, found, fit)]
        at = found.end()
    return "".join([*out, name[at:]])


def _expanded(replacement: str, found: Any, fit: Any) -> str:
    """A group that the pattern has not is taken as it is written, as Kafka does."""
    out = []
    for sign in _SIGN.finditer(replacement):
        escaped, digits, word, plain = sign.groups()
        if digits is not None:
            size = len(digits)
            while size > 1 and int(digits[:size]) > fit.groups:
                size -= 1
            number = int(digits[:size])
            out.append(
                (found.group(number) or "") + digits[size:]
                if number <= fit.groups
                else f"${digits}"
            )
        elif word is not None:
            out.append(found.group(word) or "")
        else:
            out.append(escaped or plain or "")
    return "".join(out)


def principal_name(der: bytes, rules: Rules) -> str:
    """Returns the principal's name for this certificate. Raises NameUnreadable, NoRule."""
    return rules.apply(distinguished_name(der))
