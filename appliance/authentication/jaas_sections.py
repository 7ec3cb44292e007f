"""A JAAS file, as Java's own reader (`com.sun.security.auth.login.ConfigFile`) takes it: sections
with a name, each with login modules and their options.

    KafkaServer {
        org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
    };

Errors name the line and what is missing there; none shows a value.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from appliance.authentication.jaas import FLAGS, JaasEntry, unescaped
from appliance.base.errors import ConfigError

_TOKEN = re.compile(
    r"""(?P<space>\s+|/\*.*?(?:\*/|\Z)|/[^\n]*)
    |(?P<word>(?:[A-Za-z_$*]|[^\x00-\x9f])(?:[A-Za-z0-9_$*.\-]|[^\x00-\x9f])*)
    |"(?P<text>(?:[^"\\\n]|\\.)*)"
    |(?P<sign>.)""",
    re.X | re.S,
)
_EXPANDED = re.compile(r"\$\{([^}]*)\}")
_SHOWN: Final = "{};="
"""Signs that an error may show: they are no part of a value."""


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse_sections(text: str) -> dict[str, tuple[JaasEntry, ...]]:
    """The modules of each section by its name, in their order; one without a module counts as
    absent. Raises ConfigError."""
    found: dict[str, tuple[JaasEntry, ...]] = {}
    reading = _Reading(_tokens(text))
    while reading.next.kind != "end":
        line = reading.next.line
        name = reading.take_word("section name")
        reading.take_sign("{")
        modules = []
        while not reading.stands("}"):
            modules.append(reading.take_module())
        reading.take_sign("}")
        reading.take_sign(";")
        if name in found:
            raise ConfigError(f"line {line}: the section {name} is there twice")
        found[name] = tuple(modules)
    return {name: modules for name, modules in found.items() if modules}


def fill_in(text: str, properties: Mapping[str, str]) -> str:
    """The text with the properties of the JVM that it names as ${NAME}; others stay."""

    def one(match: re.Match[str]) -> str:
        value = properties.get(match[1])
        return match[0] if value is None else re.sub(r'([\\"])', r"\\\1", value)

    return _EXPANDED.sub(one, text)


class _Reading:
    """A look at the next token."""

    def __init__(self, tokens: Iterator[_Token]) -> None:
        self._tokens = tokens
        self.next = next(tokens)

    def stands(self, sign: str) -> bool:
        return self.next[:2] == ("sign", sign)

    def take_sign(self, sign: str) -> None:
        if not self.stands(sign):
            raise self._expected(sign)
        self._go_on()

    def take_word(self, what: str) -> str:
        kind, text, _ = self.next
        if kind not in ("word", "text"):
            raise self._expected(what)
        self._go_on()
        return text

    def take_module(self) -> JaasEntry:
        """One module with its options, and the semicolon behind it."""
        line = self.next.line
        module = self.take_word("module class name")
        of_flag = self.next.line
        flag = self.take_word("controlFlag")
        if flag.lower() not in FLAGS:
            raise ConfigError(f"line {of_flag}: Invalid control flag {flag[:20]!r}: required")
        options: dict[str, str] = {}
        while not self.stands(";"):
            key = self.take_word("option key")
            self.take_sign("=")
            options[key] = self._take_value(key)
        self._go_on()
        return JaasEntry(module, options, line)

    def _take_value(self, key: str) -> str:
        line = self.next.line
        value = self.take_word("option value").replace("${/}", "/")
        if left := _EXPANDED.search(value):
            raise ConfigError(
                f"line {line}: unable to expand property {left[1][:60]} in {key[:40]}: set it as"
                " -D in KAFKA_OPTS, or write the value"
            )
        return value

    def _expected(self, what: str) -> ConfigError:
        kind, text, line = self.next
        found = ""
        if kind == "end":
            found = ", found the end of the file"
        elif kind == "sign" and text in _SHOWN:
            found = f", found [{text}]"
        return ConfigError(f"line {line}: expected [{what}]{found}")

    def _go_on(self) -> None:
        self.next = next(self._tokens)


def _tokens(text: str) -> Iterator[_Token]:
    line, end = 1, len(text)
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "text":
            yield _Token(kind, unescaped(match["text"]), line)
        elif kind != "space":
            yield _Token(kind, match[kind], line)
        line += text.count("\n", match.start(), match.end())
        end = match.end()
    assert end == len(text), "the pattern takes every text"
    yield _Token("end", "", line)
