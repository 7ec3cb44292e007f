"""JAAS entries as they stand in `sasl.jaas.config`: a login module, a control flag and options.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";

Read as Java's StreamTokenizer does it for Apache Kafka. No error shows a value: it may be a secret.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.errors import ConfigError

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_USER: Final = "user_"
FLAGS: Final = ("required", "requisite", "sufficient", "optional")
# [^\x00-\x9f]: [\xa0-\U0010ffff] takes `re` 3 ms to compile, in every start.
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<word>(?:[A-Za-z_$\-]|[^\x00-\x9f])(?:[A-Za-z0-9_$.\-]|[^\x00-\x9f])*)
    |"(?P<double>(?:[^"\\\n]|\\.)*)"
    |'(?P<single>(?:[^'\\\n]|\\.)*)'
    |(?P<sign>.)""",
    re.X | re.S,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.S)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(slots=True, frozen=True)
class JaasEntry:
    """One entry. options: user names and passwords among them. line: of the file that it is from,
    0 when it is from none."""

    module: str
    options: Mapping[str, str] = field(repr=False)
    line: int = 0

    def users(self) -> dict[str, str]:
        """The passwords of a server's static users (`user_NAME="PASSWORD"`) by their names."""
        return {
            key.removeprefix(_USER): value
            for key, value in self.options.items()
            if key.startswith(_USER)
        }


def parse(text: str) -> JaasEntry:
    """The one entry of this text. Raises ConfigError, in Kafka's words."""
    tokens = _tokens(text)
    found = []
    for kind, module in tokens:
        if kind == "sign":
            raise ConfigError("Login module not specified in JAAS config")
        found.append(JaasEntry(module, _entry(tokens)))
    if not found:
        raise ConfigError("Login module not specified in JAAS config")
    if len(found) > 1:
        raise ConfigError(
            f"JAAS config property contains {len(found)} login modules, should be 1 module"
        )
    return found[0]


def _entry(tokens: Iterator[tuple[str, str]]) -> dict[str, str]:
    """The options behind a module's name, up to its semicolon."""
    _, flag = next(tokens, ("", ""))
    if not flag:
        raise ConfigError("Login module control flag not specified in JAAS config")
    if flag.lower() not in FLAGS:
        raise ConfigError(f"Invalid login module control flag {flag[:20]!r} in JAAS config")
    options: dict[str, str] = {}
    for kind, key in tokens:
        if (kind, key) == ("sign", ";"):
            return options
        equals, (value_kind, value) = next(tokens, ("", "")), next(tokens, ("", ""))
        if kind == "sign" or equals != ("sign", "=") or value_kind in ("", "sign"):
            named = f" for key {key[:40]!r}" if kind == "word" else ""
            raise ConfigError(f"Value not specified{named} in JAAS config")
        options[key] = value
    raise ConfigError("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind in ("double", "single"):
            yield "text", unescaped(match[kind])
        elif kind != "space":
            yield kind, match[kind]


def unescaped(text: str) -> str:
    """Returns what stands between quotes, as Java's StreamTokenizer understands it."""
    return _ESCAPE.sub(_one_escape, text)


def _one_escape(match: re.Match[str]) -> str:
    said = match[1]
    return chr(int(said, 8)) if said[0] in "01234567" else _ESCAPES.get(said, said)
