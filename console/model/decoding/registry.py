"""A schema registry: which schema the number in front of a value means.

The wire format is Confluent's: a byte 0, the schema's number in four bytes, big-endian, then the
value; Protobuf has the path to its message in between. Every registry that speaks Confluent's API
is asked the same (`/schemas/ids`, `/subjects/…/versions`). Answers are kept; what failed is asked
again after a while, so that a registry that is down costs its patience once and not for each
record.
"""

import base64
import json
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from console.model.asking.failure import usage
from console.model.decoding import schemas
from console.model.decoding.decoded import AVRO, JSON, PROTOBUF, Unfit
from console.model.decoding.schemas import JsonSchema, Schema

_HEAD: Final = 5
_PATIENCE_S: Final = 3.0
_AGAIN_S: Final = 30.0
_MOST_BYTES: Final = 4 << 20
_MOST_KEPT: Final = 1000
_MOST_REFERENCES: Final = 200
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"

_KINDS: Final = {"AVRO": AVRO, "PROTOBUF": PROTOBUF, "JSON": JSON}

Get = Callable[[str], bytes]
"""What is behind an address. Raises OSError or ValueError."""


def framed(data: bytes) -> tuple[int, bytes] | None:
    """(number of the schema, the rest) of what begins as the wire format does."""
    if len(data) < _HEAD or data[0]:
        return None
    return int.from_bytes(data[1:_HEAD], "big"), data[_HEAD:]


class Newest(NamedTuple):
    """The newest version of a subject. number: the schema's. kind: AVRO, PROTOBUF or JSON. schema,
    references: Avro's as JSON's objects, in an order in which each is complete."""

    number: int
    kind: str
    schema: Any
    references: tuple[Any, ...]


class Registry:
    """One registry. A schema that is not known yet is waited for, so it is used in threads. get:
    the door to the network; now_s: a monotonic clock."""

    def __init__(
        self, url: str, get: Get | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """url: its address, maybe with USER:PASSWORD@. Raises Failure (USAGE)."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise usage(f"{url!r} is no registry's address", "for example http://localhost:8081")
        host = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._get = get or _Door(parts.username, parts.password).read_url
        self._now_s = now_s
        self._known: dict[int, Schema] = {}
        self._failed: dict[int, tuple[float, str]] = {}

    def schema(self, number: int) -> Schema:
        """Raises Unfit when it cannot be had."""
        if (known := self._known.get(number)) is not None:
            return known
        since, why = self._failed.get(number, (0.0, ""))
        if why and self._now_s() - since < _AGAIN_S:
            raise Unfit(why)
        try:
            found = self._read(number)
        except Unfit as wrong:
            told = f"schema {number} of {self.url}: {wrong}"
            _keep(self._failed, number, (self._now_s(), told))
            raise Unfit(told) from None
        _keep(self._known, number, found)
        return found

    def newest(self, subject: str) -> Newest:
        """Raises Unfit when it cannot be had. It is asked each time."""
        answer = self._asked(f"/subjects/{quote(subject, safe='')}/versions/latest")
        number, kind = answer.get("id"), _KINDS.get(answer.get("schemaType") or "AVRO")
        if not isinstance(number, int) or not 0 <= number < 1 << 32 or kind is None:
            raise Unfit("the registry did not answer as one does")
        found: dict[str, Any] = {}
        if kind == AVRO:
            self._references(answer, found, "")
        return Newest(number, kind, _json(answer["schema"]), tuple(map(_json, found.values())))

    def _read(self, number: int) -> Schema:
        answer = self._asked(f"/schemas/ids/{number}")
        kind = answer.get("schemaType") or "AVRO"
        if kind == "JSON":
            return JsonSchema()
        if kind == "AVRO":
            found: dict[str, Any] = {}
            self._references(answer, found, "")
            return schemas.avro(_json(answer["schema"]), tuple(map(_json, found.values())))
        if kind == "PROTOBUF":
            answer = self._asked(f"/schemas/ids/{number}?format=serialized")
            found = {}
            self._references(answer, found, "format=serialized")
            main = "main.proto"
            while main in found:
                main = f"_{main}"
            files = {name: _descriptor(text) for name, text in found.items()}
            return schemas.protobuf_files(files | {main: _descriptor(answer["schema"])}, main)
        raise Unfit(f"its kind {kind!r} is not known")

    def _references(self, answer: dict[str, Any], found: dict[str, Any], how: str) -> None:
        """Adds the text of every schema that this one names, each behind those that it names."""
        open_ones: set[str] = set()

        def visit(one: dict[str, Any]) -> None:
            for reference in one.get("references") or ():
                name = str(reference["name"])
                if name in found or name in open_ones:
                    continue
                if len(open_ones) >= _MOST_REFERENCES:
                    raise Unfit(f"it names more than {_MOST_REFERENCES} others")
                open_ones.add(name)
                subject, version = quote(str(reference["subject"]), safe=""), reference["version"]
                inner = self._asked(f"/subjects/{subject}/versions/{int(version)}?{how}")
                visit(inner)
                found[name] = inner["schema"]

        try:
            visit(answer)
        except (KeyError, TypeError, ValueError) as wrong:
            raise Unfit(f"its references cannot be read: {wrong}") from None

    def _asked(self, path: str) -> dict[str, Any]:
        try:
            found = json.loads(self._get(self.url + path.rstrip("?")))
        except HTTPError as refused:
            with refused:
                if refused.code == 404:
                    raise Unfit("the registry does not know it") from None
                raise Unfit(f"the registry answered {refused.code} {refused.reason}") from None
        except URLError as problem:
            raise Unfit(f"the registry cannot be reached: {problem.reason}") from None
        except (OSError, ValueError, RecursionError) as problem:
            raise Unfit(f"the registry did not answer as one does: {problem}") from None
        if not isinstance(found, dict) or not isinstance(found.get("schema"), str):
            raise Unfit("the registry did not answer as one does")
        return found


class _Door:
    """The network."""

    def __init__(self, user: str | None, password: str | None) -> None:
        self._headers = {"Accept": _ACCEPT, "User-Agent": "penstock"}
        if user is not None:
            both = f"{unquote(user)}:{unquote(password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(both).decode()}"

    def read_url(self, url: str) -> bytes:
        """Within the patience, however slowly it comes."""
        import urllib.request

        until = time.monotonic() + _PATIENCE_S
        request = urllib.request.Request(url, headers=self._headers)
        parts: list[bytes] = []
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            while part := answer.read1(1 << 16):
                parts.append(part)
                if time.monotonic() > until:
                    raise TimeoutError("it takes too long")
                if len(parts) > _MOST_BYTES >> 10 or sum(map(len, parts)) > _MOST_BYTES:
                    raise ValueError(f"more than {_MOST_BYTES} bytes")
        return b"".join(parts)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # a primitive type may come without quotes


def _descriptor(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise Unfit(
            "the registry gives Protobuf's source only: name a file of descriptors with --schema"
        ) from None


def _keep(kept: dict[int, Any], number: int, value: Any) -> None:
    kept.pop(number, None)
    kept[number] = value
    if len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]
