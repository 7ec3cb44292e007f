"""Keeping secrets out of what is sent: a value machine that everything passes on its way.

Three sieves, one behind the other. A setting shows its value only where it is declared and not a
secret. The value of each secret that was met is remembered, and blanked wherever it stands, in
whatever part. And free text loses what looks like a secret: what follows a telling name, passwords
in addresses, private keys.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from appliance.metadata.effective import definition
from appliance.metadata.image import BROKER

HIDDEN: Final = "(hidden)"
_SHORTEST: Final = 4
"""Characters: what is shorter would be found in every word. Only its own place is blanked."""
_TELLING: Final = (
    r"pass(?:word|wd|phrase|code)|secret|token|credential|jaas|api[._-]?key|access[._-]?key"
    r"|private[._-]?key|account[._-]?key|key[._-]?id|authorization|signature"
)
_NAME: Final = re.compile(
    _TELLING + r"|(?:^|[._-])(?:key|keys|pem|pwd|sasl|auth|cookie)(?:$|[._-])", re.I
)
_VALUE: Final = r"\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|[^\s,;&]+"
_KEY: Final = re.compile(r"-----BEGIN [^-\n]{0,64}-----.*?(?:-----END [^-\n]{0,64}-----|\Z)", re.S)
_END_OF_KEY: Final = re.compile(r"-----END [^-\n]{0,64}-----")
_SIEVES: Final = (
    # A login of JAAS goes on to the end of its line.
    (re.compile(r"(jaas[\w.-]{0,64}[\"']?\s{0,8}[=:])[^\n]*", re.I), rf"\1{HIDDEN}"),
    (re.compile(r"(LoginModule\b)[^\n]*"), rf"\1 {HIDDEN}"),
    (re.compile(r"(://)[^\s/@\"']*@"), rf"\1{HIDDEN}@"),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{4,}", re.I), rf"\1 {HIDDEN}"),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}\b"), HIDDEN),
    (
        re.compile(
            rf"((?:{_TELLING})[\w.-]{{0,64}}[\"']?\s{{0,8}}[=:]\s{{0,8}})(?:{_VALUE})", re.I
        ),
        rf"\1{HIDDEN}",
    ),
)
"""None takes more than a time that grows with the text: what repeats has an end."""
_PIECES: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s\"'=;,]+)")
_PLAIN: Final = re.compile(
    r".*LoginModule|required|requisite|sufficient|optional|true|false|username|password|user_.*"
    r"|org\..*|com\..*|serviceName|-----.*",
    re.I,
)
"""Words of a login that are no secret."""


class Secrets:
    """The secrets met so far; `blanked` and `text` leave them out."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._keys: dict[str, str] = {}  # as they are shown

    def learn(self, value: str) -> None:
        """A secret: it, its lines, and of a login what stands in it, are blanked from now on."""
        parts = {value, value.strip(), *value.splitlines()}
        if "LoginModule" in value or "=" in value:
            found = ("".join(one) for one in _PIECES.findall(value))
            parts |= {one for one in found if not _PLAIN.fullmatch(one)}
        self._known |= {form for one in parts if len(one) >= _SHORTEST for form in _forms(one)}
        self._keys.clear()

    def setting(self, key: str, value: str | None, resource_type: int = BROKER) -> str | None:
        """The value of a setting as shown. Undeclared ones, without effect, are blanked too."""
        if value is None:
            return None
        declared = definition(resource_type, key)
        if declared is not None and not declared.sensitive:
            return self.text(value)
        if declared is not None or is_telling(key):
            self.learn(value)
        return HIDDEN

    def learn_named(self, named: Mapping[str, str]) -> None:
        """Properties of a client that are not shown at all."""
        for key, value in named.items():
            if is_telling(key):
                self.learn(value)

    def text(self, text: str) -> str:
        """Free text without secrets."""
        text = _KEY.sub(HIDDEN, self.known(text))
        if ends := list(_END_OF_KEY.finditer(text)):  # of one whose beginning was not kept
            text = HIDDEN + text[ends[-1].end() :]
        for pattern, put in _SIEVES:
            text = pattern.sub(put, text)
        return text

    def known(self, text: str) -> str:
        """Text without the secrets that were met."""
        for one in sorted(self._known, key=len, reverse=True):
            if one in text:
                text = text.replace(one, HIDDEN)
        return text

    def blanked(self, value: Any) -> Any:
        """The same of everything in a value of JSON's kinds; what a telling key names is left
        out."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self._key(str(key)): HIDDEN if _holds_one(str(key), one) else self.blanked(one)
                for key, one in value.items()
            }
        if isinstance(value, Iterable):
            return [self.blanked(one) for one in value]
        return value

    def _key(self, key: str) -> str:
        """Rows repeat theirs."""
        if key not in self._keys:
            self._keys[key] = self.text(key)
        return self._keys[key]


def is_telling(key: str) -> bool:
    """True if the name suggests a secret."""
    return _NAME.search(key) is not None


def _holds_one(key: str, value: object) -> bool:
    return isinstance(value, str) and re.search(_TELLING, key, re.I) is not None


def _forms(secret: str) -> set[str]:
    """How it may be written in JSON, in an address, in an event."""
    quoted = {json.dumps(secret, ensure_ascii=flag)[1:-1] for flag in (True, False)}
    return {secret, secret.replace('"', "'"), quote(secret, safe=""), repr(secret)[1:-1]} | quoted
