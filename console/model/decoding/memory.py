"""The decoders chosen for a topic's keys and values, or found to fit: kept in a file of the user's,
so that a topic looks tomorrow as it did today.

The file is small, read once, and replaced as a whole. Without it, or when it cannot be written,
everything works for as long as the program runs.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from console.model.decoding.decoded import AUTO, CHOICES

_MOST_TOPICS: Final = 1000
_MOST_BYTES: Final = 4 << 20


@dataclass(slots=True, frozen=True)
class Choice:
    """decoder: one of CHOICES. schema: the file of AVRO and PROTOBUF, "" for a registry's. message:
    the one that is meant of a Protobuf file. seen: the decoder that fitted last in AUTO."""

    decoder: str = AUTO
    schema: str = ""
    message: str = ""
    seen: str = ""


class Choices:
    """The choices for the topics of one broker. path: the file; None: nothing is kept. where: the
    broker's name. given: choices for every topic, by part. keeps: write what is new.
    """

    def __init__(
        self,
        path: Path | None,
        where: str,
        given: Mapping[str, Choice] | None = None,
        *,
        keeps: bool = True,
    ) -> None:
        self._path = path if keeps else None
        self._where = where
        self._given = given or {}
        self._known = _topics(path)

    def of(self, topic: str, part: str) -> Choice:
        """The choice for a part of a topic."""
        given = self._given.get(part, Choice())
        if given.decoder != AUTO:
            return given
        return _choice(self._known.get(self._name(topic), {}).get(part))

    def choose(self, topic: str, part: str, choice: Choice) -> None:
        """From now on this holds."""
        self._put(topic, part, replace(choice, seen=""))

    def found(self, topic: str, part: str, decoder: str) -> None:
        """This decoder fits, where nobody chose one."""
        choice = self.of(topic, part)
        if choice.decoder == AUTO and choice.seen != decoder:
            self._put(topic, part, replace(choice, seen=decoder))

    def _name(self, topic: str) -> str:
        return f"{self._where} {topic}"

    def _put(self, topic: str, part: str, choice: Choice) -> None:
        name = self._name(topic)
        parts = {**self._known.pop(name, {}), part: asdict(choice)}
        self._known[name] = parts
        if self._path is not None:
            with suppress(OSError):  # then it is known until the program ends
                self._save(self._path, name, parts)

    def _save(self, path: Path, name: str, parts: dict[str, Any]) -> None:
        """Over what the file has now: another console may have written it."""
        there = _topics(path)
        there.pop(name, None)
        there[name] = parts
        kept = dict(list(there.items())[-_MOST_TOPICS:])
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "topics": kept}, file, indent=1)
            os.replace(made, path)
        except OSError:
            os.unlink(made)
            raise


def usual() -> Path:
    """The file of this user: in $XDG_STATE_HOME, or where such things are on this system."""
    from platformdirs import user_state_path

    return user_state_path("penstock") / "decoders.json"


def _topics(path: Path | None) -> dict[str, dict[str, Any]]:
    """The content of the file; empty when it is missing or not in our form."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
        topics = found["topics"]
        assert isinstance(topics, dict)
        return {name: parts for name, parts in topics.items() if isinstance(parts, dict)}
    except (OSError, ValueError, KeyError, TypeError, AssertionError, RecursionError):
        return {}


def _choice(kept: Any) -> Choice:
    if not isinstance(kept, dict) or kept.get("decoder") not in CHOICES:
        return Choice()
    texts = {name: str(kept.get(name, "")) for name in ("schema", "message", "seen")}
    return Choice(kept["decoder"], **texts)
