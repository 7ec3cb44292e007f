"""The page of metrics as OpenTelemetry's protocol has it (ExportMetricsServiceRequest): a value
machine.

It is made of the page that Prometheus would get, so both say the same; what repeats a metric under
a name of Kafka's exporters is left out. Counters are totals since the appliance began.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from re import compile as expression
from struct import Struct
from typing import Final

from appliance.exporter.families import COUNTER, HISTOGRAM, OWN
from appliance.wire.varint import uvarint

_FAMILIES: Final = {family.name: family for family in OWN}
_LABEL: Final = expression(r'([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_ESCAPE: Final = expression(r"\\.")
_DOUBLE: Final = Struct("<d")
_WHOLE: Final = Struct("<q")
_COUNT: Final = Struct("<Q")
_TIMES: Final = Struct("<BQBQ")  # start and end of a point, fields 2 and 3
_CUMULATIVE: Final = b"\x10\x02"
_MONOTONIC: Final = b"\x18\x01"
_HEAD: Final = "# TYPE "


class Encoder:
    """start_ns: of the appliance, since 1970. Labels that were told before are encoded already."""

    __slots__ = ("_labels", "_start_ns")

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._labels: dict[str, bytes] = {}

    def encode(self, page: str, resource: Mapping[str, str], now_ns: int) -> bytes:
        """The request. resource: what the appliance is, attribute → value. now_ns: since 1970."""
        what = b"".join(_field(1, _attribute(*one)) for one in resource.items())
        times = _TIMES.pack(0x11, self._start_ns, 0x19, now_ns)
        known, self._labels = self._labels, {}
        metrics = [_field(2, self._metric(name, lines, times, known)) for name, lines in _own(page)]
        scope = _field(1, _field(1, b"penstock")) + b"".join(metrics)
        return _field(1, _field(1, what) + _field(2, scope))

    def _metric(
        self, name: str, lines: list[str], times: bytes, known: Mapping[str, bytes]
    ) -> bytes:
        family = _FAMILIES[name]
        head = _field(1, name.encode()) + _field(2, family.meaning.encode())
        if family.kind == HISTOGRAM:
            series = groupby(lines, key=lambda line: _without_bound(name, line))
            points = [self._histogram(labels, rows, times, known) for labels, rows in series]
            return head + _field(9, b"".join(points) + _CUMULATIVE)
        found = []
        for line in lines:
            told, _, text = line.rpartition(" ")
            attributes = self._attributes(told[len(name) :], 7, known)
            found.append(_field(1, attributes + times + _number(text)))
        whole = b"".join(found)
        if family.kind == COUNTER:
            return head + _field(7, whole + _CUMULATIVE + _MONOTONIC)
        return head + _field(5, whole)

    def _histogram(
        self, labels: str, rows: Iterable[str], times: bytes, known: Mapping[str, bytes]
    ) -> bytes:
        *buckets, total, count = rows
        bounds, counts, below = [], [], 0
        for row in buckets:
            head, _, text = row.rpartition(" ")
            bound = head.rpartition('le="')[2][:-2]
            counts.append(int(text) - below)
            below = int(text)
            if bound != "+Inf":
                bounds.append(float(bound))
        return _field(
            1,
            self._attributes(labels, 9, known)
            + times
            + b"\x21" + _COUNT.pack(int(count.rpartition(" ")[2]))
            + b"\x29" + _DOUBLE.pack(float(total.rpartition(" ")[2]))
            + _field(6, b"".join(map(_COUNT.pack, counts)))
            + _field(7, b"".join(map(_DOUBLE.pack, bounds))),
        )  # fmt: skip

    def _attributes(self, labels: str, field: int, known: Mapping[str, bytes]) -> bytes:
        """Those of {name="value",…}, or of nothing at all."""
        if not labels:
            return b""
        key = f"{field}{labels}"
        found = self._labels.get(key) or known.get(key)
        if found is None:
            pairs = _LABEL.findall(labels)
            found = b"".join(_field(field, _attribute(name, _plain(text))) for name, text in pairs)
        self._labels[key] = found
        return found


def _own(page: str) -> Iterator[tuple[str, list[str]]]:
    """(name of a metric of ours, its lines), of each that has some."""
    for part in page.split("# HELP ")[1:]:
        _, kind, *lines = part.splitlines()
        name = kind[len(_HEAD) :].partition(" ")[0]
        if name in _FAMILIES and lines:
            yield name, lines


def _without_bound(name: str, line: str) -> str:
    """The labels of a histogram's line, but for le."""
    labels = line[len(name) :].rpartition(" ")[0].partition("{")[2]
    rest = labels.partition('le="')[0].rstrip(",") if 'le="' in labels else labels.rstrip("}")
    return f"{{{rest}}}" if rest else ""


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPED[found[0]], text) if "\\" in text else text


def _number(text: str) -> bytes:
    """Encodes the value of a NumberDataPoint, as integer or double."""
    if text.lstrip("-").isdigit():
        return b"\x31" + _WHOLE.pack(int(text))
    return b"\x21" + _DOUBLE.pack(float(text))


def _attribute(name: str, value: str) -> bytes:
    return _field(1, name.encode()) + _field(2, _field(1, value.encode(errors="replace")))


def _field(number: int, data: bytes) -> bytes:
    return uvarint(number << 3 | 2) + uvarint(len(data)) + data
