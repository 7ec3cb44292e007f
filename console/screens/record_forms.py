"""The forms for a record: a new one, an edited copy, a tombstone."""

from functools import partial
from typing import Final

from console.model.asking.change import Proposal, Tier
from console.model.asking.failure import Failure, usage
from console.model.records import outgoing, producing
from console.model.records.outgoing import ENCODINGS, MOST_TYPED, TEXT, Outgoing
from console.model.records.reading import Record
from console.screens import lines
from console.screens.changes.form import FLAG, LINES, YES, Field, Form, Values

_DIGITS: Final = 10


def produce(topic: str, bootstrap: str) -> Form:
    """A new record for a topic."""
    return _form(f"Produce to {topic}", Outgoing(topic, None, b""), bootstrap)


def resend(record: Record, bootstrap: str) -> Form:
    """A record once more, with what is edited in it: the bytes of what is not stay as they are."""
    title = f"Send {record.topic} {record.partition}:{record.offset} again"
    return _form(title, outgoing.again(record), bootstrap)


def tombstone(topic: str, partition: int, offset: int) -> Proposal:
    """The key of a record is gone."""
    plan = partial(producing.burying, topic=topic, partition=partition, offset=offset)
    return Proposal(f"Tombstone for the key of {topic} {partition}:{offset}", Tier.PLAN, plan)


def _form(title: str, before: Outgoing, bootstrap: str) -> Form:
    fields = _fields(before)
    first = {one.key: one.value for one in fields}

    def wanted(values: Values) -> Outgoing:
        same = {key for key, value in values.items() if value == first[key]}
        return Outgoing(
            before.topic,
            before.key if same >= {"key", "key_encoding"} else _key(values),
            before.value if same >= {"value", "encoding", "tombstone"} else _value(values),
            before.headers
            if "headers" in same
            else outgoing.headers_of(values["headers"], before.headers),
            int(values["partition"]) if values["partition"].strip() else None,
        )

    def propose(values: Values) -> Proposal:
        return Proposal(title, Tier.PLAN, partial(producing.producing, one=wanted(values)))

    def preview(values: Values) -> str:
        try:
            return "$ " + lines.of_words(outgoing.words(wanted(values)), bootstrap)
        except (Failure, ValueError):
            return ""  # it is told when somebody goes on

    return Form(title, fields, propose, preview=preview)


def _fields(before: Outgoing) -> tuple[Field, ...]:
    key, key_encoding = ("", "") if before.key is None else _one_line(before.key)
    value, encoding, about = "", TEXT, "Enter begins another line. ^s continues."
    if before.value is not None and len(before.value) > MOST_TYPED:
        about = f"{len(before.value):,} bytes, which stay as they are when nothing is typed here."
    elif before.value is not None:
        value, encoding = outgoing.typed(before.value)
    return (
        Field("key", "Key", key,
              about="Empty means a null key, unless you choose an encoding."),
        Field("key_encoding", "Key is typed as", key_encoding, hint="text", choices=ENCODINGS,
              about="msgpack: JSON that is written as MessagePack."),
        Field("value", "Value", value, kind=LINES, about=about, lines=4),
        Field("encoding", "Value is typed as", encoding, choices=ENCODINGS,
              about="json is checked and sent as it is typed. msgpack: JSON that is written as"
              " MessagePack."),
        Field("tombstone", "Tombstone", YES if before.value is None else "", kind=FLAG,
              about="The value is null: in a compacted topic the key counts as deleted."),
        Field("headers", "Headers", "\n".join(outgoing.header_lines(before.headers)),
              kind=LINES, lines=3,
              about="name=value, a line for each, in their order; name=hex:00ff for bytes, name"
              " alone for null."),
        Field("partition", "Partition", "" if before.partition is None else str(before.partition),
              hint="by the key", check=_partition_wrong,
              about="Nothing: the key says which one, as it does for Java's clients."),
    )  # fmt: skip


def _one_line(key: bytes) -> tuple[str, str]:
    text, encoding = outgoing.typed(key)
    return (text, encoding) if "\n" not in text else (key.hex(), outgoing.HEX)


def _key(values: Values) -> bytes | None:
    text, encoding = values["key"], values["key_encoding"]
    return outgoing.encoded(text, encoding or TEXT) if text or encoding else None


def _value(values: Values) -> bytes | None:
    if values["tombstone"] != YES:
        return outgoing.encoded(values["value"], values["encoding"] or TEXT)
    if values["value"]:
        raise usage("a tombstone has no value", "take away the value, or the mark")
    return None


def _partition_wrong(text: str) -> str:
    typed = text.strip()
    right = not typed or (typed.isdecimal() and len(typed) < _DIGITS)
    return "" if right else "a number of a partition, or nothing"
