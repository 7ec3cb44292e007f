"""A schema registry by its address: the part of Confluent's REST API that jobs need.

Karapace, Apicurio Registry (below /apis/ccompat/v7), Redpanda and Confluent's own speak it. A value
in its wire format is a byte 0, the schema's id in four bytes, big-endian, and the content.
Imports nothing of Spark's.
"""

import base64
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote

from spark_local.cause import JobError

HEAD_BYTES: Final = 5
_LIMIT_S: Final = 5.0
_MOST_BYTES: Final = 8 << 20
_MOST_REFERENCES: Final = 200
_MOST_VERSIONS: Final = 200
_TYPE: Final = "application/vnd.schemaregistry.v1+json"

Send = Callable[[str, str, bytes | None], bytes]
"""(method, address, body) → the answer's body. Raises OSError, HTTPError among them."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema of a registry. kind: AVRO, JSON or PROTOBUF. references: the texts of those that it
    names, in an order in which each is complete. version: of its subject, 0 where it is not said.
    """

    number: int
    kind: str
    text: str
    references: tuple[str, ...] = ()
    version: int = 0


def frame_head(number: int) -> bytes:
    """The first five bytes of a value that is written by this schema."""
    return b"\0" + number.to_bytes(4, "big")


def schema_number(value: bytes) -> int | None:
    """The id in a value's head, None where there is no such head."""
    if len(value) < HEAD_BYTES or value[0]:
        return None
    return int.from_bytes(value[1:HEAD_BYTES], "big")


class SchemaRegistry:
    """One registry. Every method raises JobError: one that waits while nobody answers."""

    def __init__(
        self, url: str, login: tuple[str, str] | None = None, send: Send | None = None
    ) -> None:
        """login: user and password. send: the door to the network."""
        self.url = url.rstrip("/")
        self._send = send or _Door(login).send_request

    def versions(self, subject: str) -> list[Registered]:
        """Every version of a subject, the newest last; of many the newest 200. Empty for a subject
        that is not there."""
        told = self._asked("GET", f"{_subject(subject)}/versions")
        if told is None:
            return []
        numbers = [int(one) for one in self._list(told)][-_MOST_VERSIONS:]
        found = (self.version(subject, number) for number in numbers)
        return [one for one in found if one is not None]

    def version(self, subject: str, number: int) -> Registered | None:
        """One version of a subject."""
        told = self._asked("GET", f"{_subject(subject)}/versions/{number}")
        return None if told is None else self._registered(told, told.get("id"), number)

    def by_number(self, number: int) -> Registered | None:
        """The schema of an id; None when the registry knows none."""
        told = self._asked("GET", f"/schemas/ids/{number}")
        return None if told is None else self._registered(told, number, 0)

    def refusal(self, subject: str, kind: str, text: str) -> str:
        """Why the registry does not take this schema as the next version of a subject; "" when it
        takes it."""
        path = f"/compatibility{_subject(subject)}/versions/latest?verbose=true"
        told = self._asked("POST", path, {"schema": text, "schemaType": kind})
        if told is None or told.get("is_compatible") is True:
            return ""
        messages = told.get("messages")
        said = "; ".join(map(str, messages)) if isinstance(messages, list) else ""
        return said or "its rule of compatibility does not allow it"

    def register(self, subject: str, kind: str, text: str) -> int:
        """The id of this schema, which is a version of the subject from now on."""
        told = self._asked(
            "POST", f"{_subject(subject)}/versions", {"schema": text, "schemaType": kind}
        )
        number: Any = (told or {}).get("id")
        if not _is_number(number):
            raise self._odd()
        return int(number)

    def _registered(self, told: dict[str, Any], number: Any, version: int) -> Registered:
        kind, text = told.get("schemaType") or "AVRO", told.get("schema")
        if not _is_number(number) or not isinstance(text, str) or not isinstance(kind, str):
            raise self._odd()
        found: dict[str, str] = {}
        self._references(told, found, 0)
        return Registered(int(number), kind, text, tuple(found.values()), version)

    def _references(self, told: dict[str, Any], found: dict[str, str], depth: int) -> None:
        """Adds the text of each schema that `told` names, behind those that it names itself."""
        for one in told.get("references") or ():
            try:
                name, subject, version = str(one["name"]), str(one["subject"]), int(one["version"])
            except (KeyError, TypeError, ValueError):
                raise self._odd() from None
            if name in found:
                continue
            if len(found) >= _MOST_REFERENCES or depth >= _MOST_REFERENCES:
                raise JobError(f"a schema names more than {_MOST_REFERENCES} others")
            inner = self._asked("GET", f"{_subject(subject)}/versions/{version}")
            if inner is None or not isinstance(inner.get("schema"), str):
                problem = f"the registry {self.url} has no version {version} of {subject}"
                raise JobError(problem, "a schema of the job's refers to it")
            self._references(inner, found, depth + 1)
            found[name] = inner["schema"]

    def _asked(self, method: str, path: str, content: Any = None) -> Any:
        """The answer, None for what is not there (404)."""
        body = None if content is None else json.dumps(content).encode()
        try:
            return json.loads(self._send(method, self.url + path, body))
        except HTTPError as refused:
            with refused:
                return self._refused(refused)
        except (URLError, OSError) as problem:
            why = getattr(problem, "reason", problem)
            problem_text = f"the schema registry {self.url} cannot be reached: {why}"
            remedy = "the job waits for it; correct registry in the job file if it is elsewhere"
            raise JobError(problem_text, remedy, final=False, waits=True) from None
        except (ValueError, RecursionError):
            raise self._odd() from None

    def _refused(self, refused: HTTPError) -> None:
        if refused.code == 404:
            return
        if refused.code in (401, 403):
            problem = f"the schema registry {self.url} refuses the login ({refused.code})"
            raise JobError(problem, "write user and password of registry", final=False)
        said = refused.read(_MOST_BYTES).decode(errors="replace")
        with suppress(ValueError, AttributeError, RecursionError):
            said = str(json.loads(said).get("message") or said)
        problem = f"the schema registry {self.url} answered {refused.code}: {said[:300]}"
        is_ours = 400 <= refused.code < 500
        raise JobError(problem, "correct the schema or the job", final=is_ours)

    def _list(self, told: Any) -> list[Any]:
        if not isinstance(told, list) or not all(map(_is_number, told)):
            raise self._odd()
        return told

    def _odd(self) -> JobError:
        problem = f"{self.url} does not answer as a schema registry does"
        return JobError(problem, "correct the address of registry", final=False)


class _Door:
    """The network."""

    def __init__(self, login: tuple[str, str] | None) -> None:
        self._headers = {"Accept": f"{_TYPE}, application/json", "Content-Type": _TYPE}
        if login is not None:
            told = base64.b64encode(":".join(login).encode()).decode()
            self._headers["Authorization"] = f"Basic {told}"

    def send_request(self, method: str, url: str, body: bytes | None) -> bytes:
        """Within the limit, however slowly it comes."""
        import urllib.request

        until = time.monotonic() + _LIMIT_S
        request = urllib.request.Request(url, data=body, headers=self._headers, method=method)
        parts, size = [], 0
        with urllib.request.urlopen(request, timeout=_LIMIT_S) as answer:
            while part := answer.read1(1 << 16):
                parts.append(part)
                size += len(part)
                if time.monotonic() > until:
                    raise TimeoutError("it takes too long")
                if size > _MOST_BYTES:
                    raise ValueError(f"more than {_MOST_BYTES} bytes")
        return b"".join(parts)


def _subject(name: str) -> str:
    return f"/subjects/{quote(name, safe='')}"


def _is_number(told: Any) -> bool:
    return isinstance(told, int) and not isinstance(told, bool) and 0 <= told < 1 << 32
