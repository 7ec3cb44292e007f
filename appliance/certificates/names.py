"""The subject of a certificate as Java writes it (`X500Principal.getName()`, RFC 2253), which is
what Kafka takes for the name of who shows it.

Read from the bytes themselves, because a name must not depend on what a library makes of it: the
last part comes first, parts of several attributes keep their order, what has no keyword in RFC 2253
or is no text is `OID=#` and the value in hexadecimal. Java reads every text as UTF-8, whatever its
kind, and so does this.
"""

import re
from collections.abc import Iterator
from typing import Final

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OID: Final = 0x06
_VERSION: Final = 0xA0
_TEXTS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""
_HALF: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
"""A half of a pair of UTF-16 in UTF-8: one sign that Java cannot read, three that Python cannot."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = " \r"
_BEFORE_SUBJECT: Final = 4
"""Serial number, signature algorithm, issuer, validity."""

Part = tuple[int, bytes, bytes]
"""(tag, content, the whole) of one value in DER."""


class NameUnreadable(ValueError):
    """It is no certificate in DER."""


def distinguished_name(der: bytes) -> str:
    """The subject of a certificate in DER. Raises NameUnreadable."""
    return rfc_2253(_subject(der))


def rfc_2253(name: bytes) -> str:
    """A name in DER as text. Raises NameUnreadable."""
    tag, content, _ = _one(name)
    if tag != _SEQUENCE:
        raise NameUnreadable("a name is a sequence")
    return ",".join(reversed([_relative(part) for part in _parts(content)]))


def _subject(der: bytes) -> bytes:
    tag, certificate, _ = _one(der)
    signed = next(_parts(certificate), None)
    if tag != _SEQUENCE or signed is None or signed[0] != _SEQUENCE:
        raise NameUnreadable("a certificate is a sequence of what is signed and its signature")
    fields = [part for part in _parts(signed[1]) if part[0] != _VERSION]
    if len(fields) <= _BEFORE_SUBJECT:
        raise NameUnreadable("the certificate ends before its subject")
    return fields[_BEFORE_SUBJECT][2]


def _relative(part: Part) -> str:
    tag, content, _ = part
    if tag != _SET:
        raise NameUnreadable("a part of a name is a set")
    return "+".join(_attribute(one) for one in _parts(content))


def _attribute(part: Part) -> str:
    tag, content, _ = part
    found = list(_parts(content))
    if tag != _SEQUENCE or len(found) != 2 or found[0][0] != _OID:
        raise NameUnreadable("an attribute is its type and its value")
    number = _dotted(found[0][1])
    kind, value, whole = found[1]
    keyword = _KEYWORDS.get(number)
    if keyword is None or kind not in _TEXTS:
        return f"{keyword or number}=#{whole.hex()}"
    text = _HALF.sub("\ufffd".encode(), value).decode("utf-8", "replace")
    return f"{keyword}={_escaped(text)}"


def _escaped(text: str) -> str:
    text = "".join(
        f"\\{sign}" if sign in _ESCAPED else "\\00" if sign == "\0" else sign for sign in text
    )
    lead, trail = len(text) - len(text.lstrip(_BLANKS)), len(text.rstrip(_BLANKS))
    return "".join(
        f"\\{sign}" if place < lead or place >= trail else sign for place, sign in enumerate(text)
    )


def _dotted(content: bytes) -> str:
    if not content or content[-1] & 0x80:
        raise NameUnreadable("a type of an attribute does not end")
    numbers: list[int] = []
    value = 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _one(der: bytes) -> Part:
    """The value that begins here."""
    found = next(_parts(der), None)
    if found is None:
        raise NameUnreadable("there is nothing")
    return found


def _parts(content: bytes) -> Iterator[Part]:
    """The values in what holds several."""
    at, end = 0, len(content)
    while at < end:
        if content[at] & 0x1F == 0x1F or at + 2 > end:
            raise NameUnreadable("no value in DER")
        size, start = content[at + 1], at + 2
        if size & 0x80:
            more = size & 0x7F
            if not 0 < more <= 4 or start + more > end:
                raise NameUnreadable("no length in DER")
            size, start = int.from_bytes(content[start : start + more], "big"), start + more
        if start + size > end:
            raise NameUnreadable("a value is longer than what holds it")
        yield content[at], content[start : start + size], content[at : start + size]
        at = start + size
