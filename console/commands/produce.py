"""`penstock produce`: lines (or files) become records; idempotent, acks=all, in order."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from console.flags.complete import topic_names
from console.flags.connection import connected
from console.flags.output import remember
from console.model.asking.failure import usage
from console.model.asking.link import Link
from console.model.decoding.registry import Registry
from console.model.records.by_schema import SchemaWriter
from console.model.records.outgoing import ENCODINGS, JSON, TEXT, encoded
from console.model.records.writing import write_records
from console.show.output import FORMATS, emit, print_note, rows_of
from console.show.record_format import Headers, parse_headers, reader, unescape
from console.show.record_json import read_line

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_CHUNK: Final = 1 << 16


@click.command("produce")
@click.argument("topic", shell_complete=topic_names)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-delimiter", metavar="D", help="Split lines into KEY D VALUE.")
@click.option("-D", "--delimiter", metavar="D", default="\\n", help="Record delimiter.  [\\n]")
@click.option("--value", metavar="V", help="Write one record with this value instead of stdin.")
@click.option("--null", is_flag=True, help="Write one record without a value: a tombstone.")
@click.option("--encoding", type=click.Choice(ENCODINGS), default=TEXT, metavar="HOW",
              help=f"Encoding of values: {', '.join(ENCODINGS)}.  [text]")  # fmt: skip
@click.option("--key-encoding", type=click.Choice(ENCODINGS), default=TEXT, metavar="HOW",
              help="Encoding of keys.  [text]")  # fmt: skip
@click.option("--subject", metavar="NAME",
              help="Encode JSON values by the newest schema of this subject of --registry, "
                   "orders-value for one.")  # fmt: skip
@click.option("--registry", metavar="URL", envvar="PENSTOCK_REGISTRY",
              help="A schema registry, for --subject.  [default: $PENSTOCK_REGISTRY]")  # fmt: skip
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="K=V",
    help="A header for every record; K alone: null value.",
)
@click.option("--header-encoding", type=click.Choice(ENCODINGS), default=TEXT, metavar="HOW",
              help="Encoding of header values.  [text]")  # fmt: skip
@click.option("-Z", "--tombstone", is_flag=True, help="Treat empty keys and values as null.")
@click.option("-z", "--compression", type=click.Choice(CODECS), help="Compression codec.")
@click.option("-p", "--partition", type=click.IntRange(0), metavar="N", help="The partition.")
@click.option("--acks", type=click.Choice(["0", "1", "all", "-1"]), help="[default: all]")
@click.option("-J", "--json", "as_json", is_flag=True, help="Read lines as consume -J prints them.")
@click.option(
    "-f", "--record-format", metavar="F", help="Format of a line: %k %v %p %h, for example '%k,%v'."
)
@click.option(
    "-o", "--output", "--format", "output", type=click.Choice(FORMATS), is_eager=True,
    callback=remember, metavar="FORM", help="Print partition and offset of each record in "
                                            "this form.",
)  # fmt: skip
@connected
def command(
    link: Link,
    topic: str,
    files: tuple[str, ...],
    output: str | None,
    compression: str | None,
    acks: str | None,
    subject: str | None,
    registry: str | None,
    **how: Any,
) -> None:
    """Write records: each line of stdin, or each FILE as one value.

    \b
    echo world | penstock produce hello
    printf 'a:1\\nb:2\\n' | penstock produce hello -K:
    penstock produce hello -k photo picture.png
    penstock produce hello -k gone --null
    penstock consume orders -e -J | penstock produce copy -J
    penstock produce orders --subject orders-value --registry http://localhost:8081 < lines.json
    penstock produce hello -k 0001 --key-encoding hex --value '{"a": 1}' --encoding msgpack
    """
    chosen = {"compression_type": compression, "acks": acks}
    settings = {key: value for key, value in chosen.items() if value is not None}
    records = _records(files, **how)
    if subject is not None:
        records = _by_schema(records, subject, registry, str(how["encoding"]))
    count, places = write_records(link, topic, records, settings, keep=output is not None)
    if output:
        emit(rows_of(places), output, name="topic")
    print_note(f"{count} record{'s'[: count != 1]} to {topic}")


def _records(
    files: tuple[str, ...],
    *,
    key: str | None,
    key_delimiter: str | None,
    delimiter: str,
    headers: tuple[str, ...],
    tombstone: bool,
    partition: int | None,
    record_format: str | None,
    as_json: bool,
    value: str | None,
    null: bool,
    encoding: str,
    key_encoding: str,
    header_encoding: str,
) -> Iterator[dict[str, Any]]:
    """The arguments of `Producer.produce` for each record. Raises Failure before the first."""
    if (value is not None) + null + bool(files) > 1:
        raise usage("--value, --null and files: one of the three")
    if record_format and (key is not None or key_delimiter):
        raise usage("-f says where the key is: leave out -k and -K")
    if as_json and (record_format or key is not None or key_delimiter or tombstone or null):
        raise usage("-J says what keys and values are: leave out -k, -K, -f, -Z and --null")
    if as_json and not encoding == key_encoding == TEXT:
        raise usage("-J has bytes as text or in base64: leave out --encoding and --key-encoding")
    common: dict[str, Any] = {}
    if key is not None:
        common["key"] = os.fsencode(key)
    if partition is not None:
        common["partition"] = partition
    split = _splitter(key_delimiter, record_format)
    if as_json:
        split = read_line if partition is None else lambda line: read_line(line) | common
    fixed = [(name, _read(text, header_encoding)) for name, text in parse_headers(headers)]
    if null:
        one = common | {"value": None} | ({"headers": fixed} if fixed else {})
        return _encoded(iter([one]), encoding, key_encoding)
    values = (
        iter([os.fsencode(value)]) if value is not None else _values(files, unescape(delimiter))
    )
    if tombstone and key is not None:
        values = _one_at_least(values)
    found = _walk(values, split, common, fixed, tombstone)
    return found if encoding == key_encoding == TEXT else _encoded(found, encoding, key_encoding)


def _read(data: bytes | None, encoding: str) -> bytes | None:
    """Bytes as they were typed → those that are meant."""
    if data is None or encoding == TEXT:
        return data
    try:
        return encoded(data.decode(), encoding)
    except UnicodeDecodeError:
        raise usage(f"{data[:20]!r} is not {encoding}") from None


def _encoded(
    records: Iterator[dict[str, Any]], encoding: str, key_encoding: str
) -> Iterator[dict[str, Any]]:
    for record in records:
        record["value"] = _read(record["value"], encoding)
        record["key"] = _read(record.get("key"), key_encoding)
        yield record


def _by_schema(
    records: Iterator[dict[str, Any]], subject: str, url: str | None, encoding: str
) -> Iterator[dict[str, Any]]:
    """Raises Failure before the first record for a registry that cannot be used."""
    if url is None:
        raise usage("--subject needs a registry", "--registry URL, or $PENSTOCK_REGISTRY")
    if encoding not in (TEXT, JSON):
        raise usage(f"--subject takes JSON, and --encoding says {encoding}: leave one of them out")
    writer = SchemaWriter(Registry(url), subject)

    def framed() -> Iterator[dict[str, Any]]:
        for record in records:
            if record["value"] is not None:
                record["value"] = writer.encode_value(record["value"])
            yield record

    return framed()


def _one_at_least(values: Iterator[bytes]) -> Iterator[bytes]:
    yield next(values, b"")
    yield from values


def _splitter(
    key_delimiter: str | None, record_format: str | None
) -> Callable[[bytes], dict[str, Any] | None]:
    if record_format:
        return reader(record_format)
    if key_delimiter:
        between = unescape(key_delimiter)

        def split(line: bytes) -> dict[str, Any] | None:
            key, found, value = line.partition(between)
            return {"key": key, "value": value} if found else {"value": line}

        return split
    return lambda line: {"value": line}


def _walk(
    values: Iterator[bytes],
    split: Callable[[bytes], dict[str, Any] | None],
    common: dict[str, Any],
    fixed: Headers,
    tombstone: bool,
) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(values, 1):
        try:
            fields = split(line)
        except ValueError as wrong:
            raise usage(f"line {number}: {wrong}") from None
        if fields is None:
            raise usage(f"line {number} does not fit the format of -f")
        record = common | fields
        if fixed:
            record["headers"] = fixed + record.get("headers", [])
        if tombstone:
            for part in ("key", "value"):
                record[part] = record.get(part) or None
        yield record


def _values(files: tuple[str, ...], delimiter: bytes) -> Iterator[bytes]:
    if files:
        for name in files:
            try:
                yield Path(name).read_bytes()
            except OSError as problem:
                raise usage(f"{name} cannot be read: {problem.strerror}") from None
        return
    if not delimiter:
        yield sys.stdin.buffer.read()
        return
    rest = b""
    while chunk := os.read(0, _CHUNK):
        *whole, rest = (rest + chunk).split(delimiter)
        yield from whole
    if rest:
        yield rest
